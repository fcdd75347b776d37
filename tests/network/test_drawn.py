"""Processes of drawn functions: composition, copies, formulas, ranges and gradients."""

import numpy as np

from cascada import Matern, Network, Real, Stage
from cascada.gp.paths import Paths
from cascada.network.drawn import DrawnNetwork

NETWORK = Network(
    [
        Stage("mix", {"dose": Real(0, 1), "heat": Real(1, 10, log=True)}, ["level", "heat"], passes=["heat"]),
        Stage(
            "cost",
            {"dose": Real(0, 1)},
            ["cost"],
            parents=["mix"],
            known=True,
            lipschitz=1.0,
            function=lambda level, heat, dose: level * dose + 0.1 * heat,
        ),
        Stage("sell", outputs=["price", "rest"], parents=["cost"], ranges={"price": (-1.0, 1.0)}),
    ],
    objective="sell.price",
)
COUNT = 6


def process() -> tuple[DrawnNetwork, dict[tuple[str, str], Paths]]:
    rng = np.random.default_rng(0)

    def paths(inputs: int) -> Paths:
        kernels = [Matern(2.5, 0.7), Matern(1.5, 0.9)]
        points = np.linspace(0, 1, 4)[:, None] + 0.1 * rng.uniform(size=(4, inputs))
        return Paths(points, rng.standard_normal(4), kernels, [0.0, 0.1], COUNT // 2, rng)

    found = {("mix", "level"): paths(2), ("sell", "price"): paths(1), ("sell", "rest"): paths(1)}
    return DrawnNetwork(NETWORK, found), found


POINTS = np.random.default_rng(1).uniform([0, 0], [1, 2.3], (60, 2))
PATH = np.random.default_rng(2).integers(0, COUNT, 60)


def test_a_drawn_process_is_composed_stage_by_stage():
    drawn, paths = process()
    values, _ = drawn(POINTS, PATH)
    assert NETWORK.width == 7
    for point, s, row in zip(POINTS, PATH, values, strict=True):
        one = np.array([s])
        level = paths["mix", "level"](point[None], one)[0][0]
        heat = np.exp(point[1])
        cost = level * point[0] + 0.1 * heat
        price, rest = (paths["sell", output](np.array([[cost]]), one)[0][0] for output in ("price", "rest"))
        np.testing.assert_allclose(row, [*point, level, heat, cost, np.clip(price, -1.0, 1.0), rest], rtol=1e-9)


def test_gradients_of_a_drawn_process_are_difference_quotients():
    drawn, _ = process()
    values, gradients = drawn(POINTS, PATH, slopes=True)
    assert gradients is not None
    inside = np.abs(values[:, 5]) < 0.99  # away from the ends of the range, where the slope jumps
    assert inside.sum() > 5
    assert (np.abs(values[:, 5]) == 1.0).sum() > 5
    for j in range(2):
        step = 1e-5 * np.eye(2)[j]
        quotient = (drawn(POINTS + step, PATH)[0] - drawn(POINTS - step, PATH)[0]) / 2e-5
        np.testing.assert_allclose(gradients[inside, :, j], quotient[inside], rtol=1e-3, atol=1e-4)
