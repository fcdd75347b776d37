"""A study that minimises the negated process takes the points of one that maximises the process, with estimates too."""

import math

import pytest

from cascada.network import Network, Stage, chain
from cascada.space import Real
from cascada.study import Study

NETWORK = chain(Stage("f", controls={"x": Real(-2, 2), "y": Real(-2, 2)}, outputs=["u", "v"]), Stage("g"))


def path(network: Network, algorithm: str, runs: int) -> tuple[list[tuple[float, float]], float | None]:
    """The points of a study, and its last gap."""
    study, points = Study(network, algorithm=algorithm, seed=3), []
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        x, y = trial.controls["x"], trial.controls["y"]
        points.append((x, y))
        u, v = math.sin(2 * x) + y, 0.5 * x * abs(y)
        study.tell(trial, {"f": [u, v], "g": network.sign * (100.1 + math.cos(u) - 0.3 * v)})
    return points, study.certificate().gap


@pytest.mark.parametrize("algorithm", ["auto", "gpn_ucb", "cei", "ei"])
def test_the_mirrored_process_takes_the_same_path(algorithm: str) -> None:
    assert path(NETWORK.mirrored(), algorithm, 11) == path(NETWORK, algorithm, 11)
