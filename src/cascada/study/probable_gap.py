"""The record of a probable gap, and its statement in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from cascada.outwards import as_given, as_percent, rounded_up

#: The default level, and the largest one: the largest gain of so many draws is no higher quantile.
LEVEL = 0.95


@dataclass(frozen=True)
class ProbableGap:
    """How far the best run is from the best possible with the probability `level`; `str` says it in words.

    `gap` is None as long as there are too few runs; `missing` says why. `gains` are those of the drawn processes over
    the best run, in increasing order, and `controls` the settings of the largest one: running them is the cheapest
    check. `widened` is the largest factor by which the runs asked for wider functions than the kernels.
    """

    gap: float | None
    level: float
    best: float | None
    evaluations: int
    gains: tuple[float, ...] = ()
    controls: Mapping[str, float | int] | None = None
    widened: float = 1.0
    missing: str = ""
    limits: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.gap is None or self.best is None:
            return f"There is no probable gap: {self.missing}."
        runs = f"the best {'feasible ' if self.limits else ''}of {self.evaluations} runs, {as_given(self.best)},"
        found = (
            f"Probable, {as_percent(self.level)}: {runs} is within {rounded_up(self.gap, 2)} of the best possible, if "
            f"the stages are elsewhere as the runs show them."
        )
        drawn = f"None of {len(self.gains)} processes drawn from the runs has a better value."
        if self.controls is not None:
            setting = ", ".join(f"{name} = {as_given(value)}" for name, value in self.controls.items())
            drawn = (
                f"The best of {len(self.gains)} processes drawn from the runs gains {rounded_up(self.gains[-1], 2)}, "
                f"at {setting}: running it is the cheapest check."
            )
        return f"{found}\n{drawn}\nA narrow peak or a kink that no run came near is not in this. It is no proof."
