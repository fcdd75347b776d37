"""Deliberately broken versions of studies whose stages are read with errors; see `broken`."""

from functools import partial
from typing import Any

import numpy as np

from cascada.search.incumbent import Incumbent
from cascada.study import incumbent, judge
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State
from cascada.study.validation import Rules
from tests.soundness import read_studies
from tests.soundness.broken import Broken, always


def _best_reading(model: Model, state: State, _settings: Settings) -> Incumbent | None:
    """The run with the best reading, as if it were its value."""
    network = state.network
    complete = np.isfinite(model.data[:, network.objective_column])
    if not complete.any() or network.limits:
        return None
    values = network.sign * model.data[complete, network.objective_column]
    i = int(values.argmax())
    return Incumbent(model.data[complete][i, : network.domain.dimension], float(values[i]))


def _by_reading(self: Rules, _controls: Any, outputs: Any) -> bool | None:
    return self._network.is_feasible(outputs)


BROKEN_READ_STUDIES: tuple[Broken, ...] = (
    Broken(
        "the best reading is taken as a value that is reached",
        "read_studies",
        ((judge, "best_proven_setting", _best_reading), (incumbent, "incumbent", _best_reading)),
        partial(read_studies.run, 1, ("chain",), 1, points=50),
    ),
    Broken(
        "a batch goes on from its reading instead of its value",
        "read_studies",
        ((Model, "known_of", always(None)),),
        partial(read_studies.run, 1, ("chain", "controls", "join"), 2, points=100),
    ),
    Broken(
        "a run is feasible if its reading is",
        "read_studies",
        ((Rules, "feasible", _by_reading),),
        partial(read_studies.run, 3, ("chain", "controls", "join"), 2, points=50),
    ),
)
