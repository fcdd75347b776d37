"""Calibration of an epidemic model to its observed course, as in Astudillo and Frazier (NeurIPS 2021).

Two groups of people of the same size, in three periods. In each, a part γ of the infected recovers, and every infected
person of group j infects a part β_ij of the healthy ones of group i:

    y_i ← y_i·(1 − γ) + (1 − y_i)·Σ_j β_ij·y_j,    y = (1 %, 1 %) at first.

The 13 controls are the four rates β of every period and γ, all in [0, 1]. The stages are the periods, whose outputs
are the infected in percent; γ is a control of all of them. The last stage is a known formula: the squared distance of
the course from the observed one, negated. The observed course is that of the parameters `TRUE_RATES` and
`TRUE_RECOVERY`, so the best value is 0. Other parameters have the same course: there are 13 of them and six
observations.

A stage calls the model for one period. The published network has six nodes of one output each, two a period.
"""

from dataclasses import dataclass

import numpy as np

from cascada.network import Network, Stage
from cascada.problems.function_networks import Kernel
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real

INFECTED = 1.0  # percent of each group, at the start
TRUE_RATES = (
    (0.30, 0.05, 0.10, 0.70),
    (0.60, 0.05, 0.10, 0.80),
    (0.20, 0.05, 0.10, 0.20),
)  # of every period: β₁₁, β₁₂, β₂₁, β₂₂
TRUE_RECOVERY = 0.5
RATES = ("b11_", "b12_", "b21_", "b22_")  # controls, before the number of the period


def epidemic(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """The rates of three periods and of recovery → the infected of two groups after each period → −squared distance."""
    unit = Real(0.0, 1.0)
    periods = [
        Stage(
            f"period {k}",
            {**{f"{rate}{k}": unit for rate in RATES}, "recovery": unit},
            outputs=[f"first{k}", f"second{k}"],
            parents=[f"period {k - 1}"] if k > 1 else None,
            kernel=kernel,
            norm_bound=norm_bound,
            function=Period(k),
        )
        for k in (1, 2, 3)
    ]
    fit = Fit(observed())
    network = Network(
        [
            *periods,
            Stage(
                "fit",
                parents=[stage.name for stage in periods],
                known=True,
                function=fit,
                interval=fit.between,
            ),
        ]
    )
    true = {f"{rate}{k}": value for k, row in enumerate(TRUE_RATES, 1) for rate, value in zip(RATES, row, strict=True)}
    point = [{**true, "recovery": TRUE_RECOVERY}[name] for name in network.controls]
    answer = Optimum(np.array([point]), 0.0, "analytic")
    summary = "4 rates a period and recovery → the infected after 3 periods → fit"
    return Problem("epidemic", summary, network, ValueTable(network), answer)


@dataclass(frozen=True)
class Period:
    """The model for one period: the infected of both groups afterwards, in percent."""

    k: int

    def __call__(self, **values: Column) -> tuple[Column, Column]:
        one = values.get(f"first{self.k - 1}", INFECTED) / 100.0
        two = values.get(f"second{self.k - 1}", INFECTED) / 100.0
        b11, b12, b21, b22 = (values[f"{rate}{self.k}"] for rate in RATES)
        stay = 1.0 - values["recovery"]
        return (
            100.0 * (one * stay + (1.0 - one) * (b11 * one + b12 * two)),
            100.0 * (two * stay + (1.0 - two) * (b21 * one + b22 * two)),
        )


@dataclass(frozen=True)
class Fit:
    """The squared distance of a course from the observed one, negated."""

    observed: tuple[tuple[str, float], ...]

    def __call__(self, **values: Column) -> Column:
        return -sum((values[name] - seen) ** 2 for name, seen in self.observed)

    def between(self, **pairs: tuple[float, float]) -> tuple[float, float]:
        """The interval of fits for intervals of outputs, rounded outwards."""
        nearest = farthest = 0.0
        for name, seen in self.observed:
            low, high = (end - seen for end in pairs[name])
            slack = 1e-15 * (abs(seen) + max(abs(low), abs(high)))  # of a difference of two numbers
            nearest += max(low - slack, -high - slack, 0.0) ** 2
            farthest += (max(abs(low), abs(high)) + slack) ** 2
        return -farthest * (1.0 + 1e-14), -nearest * (1.0 - 1e-14)


def observed() -> tuple[tuple[str, float], ...]:
    """The observed infected of both groups after every period, by name of the output."""
    state: dict[str, Column] = {}
    for k, row in enumerate(TRUE_RATES, 1):
        rates = {f"{rate}{k}": value for rate, value in zip(RATES, row, strict=True)}
        both = Period(k)(**state, **rates, recovery=TRUE_RECOVERY)
        state = {f"first{k}": both[0], f"second{k}": both[1]} | state
    return tuple(sorted(state.items()))
