"""The fits of this process, each of them computed once.

A study is learned from its log again and again: by a study that is opened a second time, for every point that Optuna
asks for, for the history of a gap. A fit depends on its arguments alone, to the last bit. So it is kept.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cascada.arrays import Array
from cascada.calibration.fit import Fit, fit_output
from cascada.calibration.settings import Calibration

# A study of some hundred runs has about this many fits, some ten per output; each is about as large as its data.
_MOST = 512


@dataclass(frozen=True)
class _Call:
    """Arguments of `fit_output`, compared by their bytes."""

    key: tuple[Any, ...]
    arguments: tuple[Any, ...] = field(compare=False)


def kept_fit(
    inputs: Array,
    outputs: Array,
    ranges: Array,
    settings: Calibration,
    before: Fit | None,
    noisy: bool = False,
    codes: tuple[int, ...] = (),
) -> Fit:
    """The result of `fit_output`, computed if it is not among the last ones."""
    data = inputs.shape, inputs.tobytes(), outputs.tobytes(), ranges.tobytes()
    # A fit depends on the shapes to choose from and on where it starts; the order of the shapes decides between equals.
    start: tuple[Any, ...] = settings.shapes(inputs.shape[1], codes)
    if before is not None:
        start = before.ranges.tobytes(), *((shape, theta.tobytes()) for shape, theta in before.log_scales.items())
    return _computed(_Call((*data, noisy, start), (inputs, outputs, ranges, settings, before, noisy, codes)))


@lru_cache(maxsize=_MOST)
def _computed(call: _Call) -> Fit:
    return fit_output(*call.arguments)
