"""GPN-EI beside pending runs."""

import math
from itertools import combinations

import pytest

from cascada.network import Stage, chain
from cascada.space import Real
from cascada.store.trial import Trial
from cascada.study import Study

SIDE = 4.0
NETWORK = chain(Stage("f", controls={"x": Real(-2, 2), "y": Real(-2, 2)}), Stage("g"))


def outputs(trial: Trial) -> dict[str, float]:
    """A valley towards the maximum, where several runs with small gains follow each other."""
    x, y = trial.controls["x"], trial.controls["y"]
    f = math.hypot(x - 0.3, 4 * (y - 0.25 * x**2))
    return {"f": f, "g": math.exp(-f) + 0.1 * f}


def distance(one: Trial, other: Trial) -> float:
    """The largest difference of a control, in sides of the box."""
    return max(abs(one.controls[name] - other.controls[name]) for name in ("x", "y")) / SIDE


@pytest.mark.parametrize("seed", range(3))
def test_pending_runs_are_not_made_in_one_place(seed: int) -> None:
    study = Study(NETWORK, seed=seed)
    for _ in range(10):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outputs(trial))
    pending = study.ask(4)
    closest = min(distance(one, other) for one, other in combinations(pending, 2))
    assert closest > 1e-3
