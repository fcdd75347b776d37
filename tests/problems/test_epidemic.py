"""Tests of the epidemic model: its dynamics, the observed course, and the interval of the fit."""

import numpy as np
import pytest

from cascada.problems.epidemic import TRUE_RATES, TRUE_RECOVERY, observed
from tests.problems.search import practice, sobol


def test_the_course_follows_the_recursion_person_by_person() -> None:
    problem = practice("epidemic")
    names = problem.network.controls
    assert len(names) == 13
    for point in sobol(problem, 3):
        at = dict(zip(names, point, strict=True))
        state = np.array([0.01, 0.01])
        course = []
        for k in (1, 2, 3):
            beta = np.array([[at[f"b{i}{j}_{k}"] for j in (1, 2)] for i in (1, 2)])
            state = state * (1 - at["recovery"]) + (1 - state) * (beta @ state)
            course += [*(100 * state)]
        row = problem.values(point[None])[0]
        np.testing.assert_allclose(row[13:19], course, rtol=1e-13)
        seen = dict(observed())
        order = [f"{group}{k}" for k in (1, 2, 3) for group in ("first", "second")]
        assert row[19] == pytest.approx(
            -sum((y - seen[name]) ** 2 for y, name in zip(course, order, strict=True)), rel=1e-12
        )


def test_the_observed_course_is_that_of_the_published_parameters() -> None:
    """Computed by hand for the first period: 1 % of each group is infected before it."""
    seen = dict(observed())
    rates = TRUE_RATES[0]
    assert seen["first1"] == pytest.approx(1 - TRUE_RECOVERY + 0.99 * (rates[0] + rates[1]), rel=1e-14)
    assert seen["second1"] == pytest.approx(1 - TRUE_RECOVERY + 0.99 * (rates[2] + rates[3]), rel=1e-14)


def test_other_parameters_have_the_same_course() -> None:
    problem = practice("epidemic")
    point, value = problem.optimum
    other = point.copy()
    names = problem.network.controls
    a, b = names.index("b11_1"), names.index("b12_1")
    other[a], other[b] = other[a] - 0.02, other[b] + 0.02  # both groups have 1 % at first
    assert problem.objective(other[None])[0] == pytest.approx(value, abs=1e-20)


def test_the_interval_of_fits_contains_every_fit_and_is_tight() -> None:
    stage = next(stage for stage in practice("epidemic").network.stages if stage.known)
    assert stage.function is not None
    assert stage.interval is not None
    rng = np.random.default_rng(1)
    seen = dict(observed())
    for _ in range(100):
        low = {name: value + rng.uniform(-2, 1) for name, value in seen.items()}
        pairs = {name: (value, value + rng.uniform(0, 2)) for name, value in low.items()}
        below, above = stage.interval(**pairs)
        fits = [stage.function(**{name: rng.uniform(*pair) for name, pair in pairs.items()}) for _ in range(30)]
        ends = [stage.function(**{name: pair[end] for name, pair in pairs.items()}) for end in (0, 1)]
        assert below <= min(*fits, *ends)
        assert max(*fits, *ends) <= above <= 0
        nearest = {name: float(np.clip(seen[name], *pair)) for name, pair in pairs.items()}
        assert above == pytest.approx(stage.function(**nearest), rel=1e-9, abs=1e-12)
    exact = stage.interval(**{name: (value, value) for name, value in seen.items()})
    assert exact[0] <= 0 <= exact[1] + 1e-300
