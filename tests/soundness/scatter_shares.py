"""How many stages with scatter are broken: by the bounds of the library, and by deliberately wrong versions of them.

A share of the first kind must not exceed the risk, and one of the second kind has to, or the test could not fail.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from cascada.arrays import Array
from cascada.confidence import averages
from cascada.confidence.averages import FACTORS, AveragedFit, ScatteredRows
from tests.soundness import scatter
from tests.soundness.scatter import CASES, RISK, Reader, adaptive, counted_again, honest, placed_afterwards

#: Processes in a whole run.
PROCESSES = 150

_merged, _fits = ScatteredRows.merged, averages.averaged_fits


@dataclass(frozen=True)
class Version:
    """The library or a wrong version of it: what replaces its parts, and how readings are made."""

    name: str
    case: tuple[float, float]  # the scale of the scatter, and how far true inputs are from nominal ones
    read: Reader = honest
    patches: tuple[tuple[Any, str, Any], ...] = ()
    wrong: bool = True

    def share(self, processes: int) -> float:
        """The share of processes of one stage that are broken."""
        with ExitStack() as stack:
            for patch in self.patches:
                stack.enter_context(mock.patch.object(*patch))
            return adaptive(*self.case, processes, self.read)

    def is_right(self, share: float) -> bool:
        """Whether the share is as it must be."""
        return share > RISK if self.wrong else share <= RISK


def _without_bias(self: ScatteredRows, most: int) -> tuple[ScatteredRows, Array]:
    rows, count = _merged(self, most)
    return ScatteredRows(rows.places, rows.values, 0.0 * rows.bias), count


def _mean_without_bias(_self: AveragedFit, points: Array, slopes: bool) -> Array:
    return np.zeros((1 + points.shape[1] if slopes else 1, len(points)))


def _free_errors(output: Any, rows: ScatteredRows) -> Any:
    """ρ² from which the whole yᵀ(K + λI)⁻¹y is taken, although the errors use up a part of it."""
    fits = _fits(output, rows)
    spent = float(fits[0].belief.posterior.spent[0])
    lefts = [float(fit.belief.radius[0]) ** 2 - spent / factor for fit, factor in zip(fits, FACTORS, strict=True)]
    return [AveragedFit(output, fit.belief.posterior, fit.bias, left) for fit, left in zip(fits, lefts, strict=True)]


VERSIONS: tuple[Version, ...] = (
    *(Version(f"R = {scale:g}, inputs off by {away:g}", (scale, away), wrong=False) for scale, away in CASES),
    Version("a reading counts 32 times", CASES[0], counted_again),
    Version("nominal inputs are chosen after the reading", CASES[0], placed_afterwards),
    Version("the radius leaves out the bias", CASES[-1], patches=((ScatteredRows, "merged", _without_bias),)),
    Version("the mean leaves out the bias", CASES[-1], patches=((AveragedFit, "_moved", _mean_without_bias),)),
    Version("the radius leaves out the errors", CASES[0], patches=((scatter, "averaged_fits", _free_errors),)),
)


def report(rounds: float, log: Callable[[str], None]) -> tuple[str, bool]:
    """A Markdown table of all shares, and whether each is as it must be. `rounds`: a part of the usual processes."""
    lines, right = ["| version | processes | broken | allowed |", "|---|---:|---:|---:|"], True
    count = max(10, round(rounds * PROCESSES))
    for version in VERSIONS:
        share = version.share(count)
        log(f"scatter, {version.name}: {share:.3f} of {count} processes broken")
        right &= version.is_right(share)
        must = f"more than {RISK:g}" if version.wrong else f"{RISK:g}"
        what = f"wrong: {version.name}" if version.wrong else version.name
        lines.append(f"| {what} | {count} | {share:.3f} | {must} |")
    return "\n".join(lines), right
