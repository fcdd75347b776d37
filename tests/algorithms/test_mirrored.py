"""Minimising the negated process takes the same points as maximising the process."""

from typing import Any

import numpy as np
import pytest

from cascada.algorithms import (
    CUCB,
    GPNEI,
    GPNUCB,
    GPUCB,
    Algorithm,
    CascadedEI,
    ExpectedImprovement,
    OptimisticImprovement,
    Situation,
)
from cascada.kernels import Matern, Separable, SquaredExponential
from cascada.network import Network, Stage, chain, composite_mean, prior_beliefs
from cascada.network.sampling import sample_objective, standard_draws
from cascada.search import Joint
from cascada.space import Control, Integer, Real

X: dict[str, Control] = {"x": Real(-2, 2), "n": Integer(1, 3)}
Y: dict[str, Control] = {"y": Real(0.5, 4, log=True)}
SE = SquaredExponential(1.0)


def network(kind: str, sign: int) -> Network:
    """A process whose objective is times `sign`, and which is minimised if that is −1."""
    first = Stage("f", X, kernel=SE, norm_bound=200.0, lipschitz=300.0)
    last: dict[str, Any] = {"kernel": Matern(2.5), "norm_bound": 200.0, "lipschitz": 300.0, "offset": sign * 0.3}
    if kind == "chain":
        made = chain(first, Stage("g", Y, **last))
    elif kind == "formula":
        made = chain(
            first,
            Stage("g", Y, kernel=SE, norm_bound=200.0, lipschitz=300.0),
            Stage("k", known=True, lipschitz=9.0, function=lambda g: sign * (np.exp(g) + g)),
        )
    else:
        joint = Separable(SE, [[1.0, sign * 0.4], [sign * 0.4, 1.0]])
        second = Stage("g", Y, outputs=["a", "b"], kernel=joint, norm_bound=200.0, lipschitz=300.0)
        made = chain(first, second, objective="g.b")
    return made if sign > 0 else made.mirrored()


def situation(kind: str, sign: int, trial: int = 8) -> Situation:
    made = network(kind, sign)
    rng = np.random.default_rng(3)
    domain = made.domain
    points = domain.encode(domain.decode(rng.uniform(domain.lower, domain.upper, (8, 3))))
    outputs = rng.uniform(-1, 1, (8, made.width - 3))
    if kind == "formula":
        outputs[:, -1] = np.exp(outputs[:, -2]) + outputs[:, -2]
    outputs[:, -1] *= sign
    data = np.hstack([points, outputs])
    best = float((sign * data[:, -1]).max())
    beliefs = prior_beliefs(made).append(data)
    return Situation(beliefs, data, np.empty((0, 3)), None, best, trial)


ALGORITHMS: list[Algorithm] = [
    GPNEI(),
    GPNUCB(search="ascent"),
    CascadedEI(samples=64),
    CUCB(),
    OptimisticImprovement(),
    GPUCB(),
    ExpectedImprovement(),
]


@pytest.mark.parametrize("kind", ["chain", "formula", "joint"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("trial", [8, 9])  # of GPN-EI, a run at the mean and one of improvement
def test_the_mirrored_process_gets_the_same_point(algorithm: Algorithm, kind: str, trial: int) -> None:
    one, other = (algorithm.suggest(situation(kind, sign, trial), np.random.default_rng(5)).point for sign in (1, -1))
    assert one is not None
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["chain", "formula", "joint"])
def test_the_mirrored_process_has_the_same_joint_form_mean_and_samples(kind: str) -> None:
    one, other = (situation(kind, sign).beliefs for sign in (1, -1))
    rng = np.random.default_rng(7)
    size = Joint(one).size
    domain = one.network.domain
    points = np.hstack([rng.uniform(domain.lower, domain.upper, (40, 3)), rng.uniform(-1, 1, (40, size - 3))])
    for a, b in zip(Joint(one)(points), Joint(other)(points), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(Joint(one).values(points), Joint(other).values(points))
    x = points[:, :3]
    np.testing.assert_array_equal(composite_mean(one, x)[:, -1], -composite_mean(other, x)[:, -1])
    drawn = [sample_objective(b, x, standard_draws(b, 16, np.random.default_rng(1))) for b in (one, other)]
    np.testing.assert_allclose(drawn[0], drawn[1], rtol=1e-12, atol=1e-12)
    assert np.ptp(drawn[0]) > 0.1
