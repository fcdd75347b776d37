"""Fits that are kept: the same as computed ones to the last bit, and computed once."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cascada.calibration import Calibration, kept
from cascada.calibration.fit import Fit, fit_output
from cascada.calibration.kept import kept_fit
from cascada.network import Stage, chain
from cascada.space import Real
from cascada.study import Study

X = np.random.default_rng(0).uniform(size=(9, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2
ONES = np.ones(2)
FIRST = fit_output(X[:5], Y[:5], ONES, Calibration(), None)
ARGUMENTS: tuple[Any, ...] = (X, Y, ONES, Calibration(), FIRST)
OTHERS: dict[str, tuple[Any, ...]] = {
    "inputs": (X + 1e-9 * X**2, *ARGUMENTS[1:]),
    "shape": (X.reshape(18, 1), np.append(Y, Y), ONES[:1], Calibration(), None),
    "outputs": (X, Y + 1e-9 * X[:, 0], *ARGUMENTS[2:]),
    "ranges": (X, Y, np.array([1.0, 2.0]), *ARGUMENTS[3:]),
    "settings": (X, Y, ONES, Calibration("matern"), None),
    "no start": (*ARGUMENTS[:4], None),
    "another start": (*ARGUMENTS[:4], replace(FIRST, log_scales={s: t + 0.1 for s, t in FIRST.log_scales.items()})),
    "a start in other units": (*ARGUMENTS[:4], replace(FIRST, ranges=2 * ONES)),
    "fewer shapes": (*ARGUMENTS[:4], replace(FIRST, log_scales=dict(list(FIRST.log_scales.items())[:1]))),
}


def bits(fit: Fit) -> list[Any]:
    models = [(model.kernel, model.offset) for model in (fit.likely, fit.general, fit.cautious)]
    return [models, fit.ranges.tobytes(), fit.count, [(shape, t.tobytes()) for shape, t in fit.log_scales.items()]]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> None:
    kept._computed.cache_clear()


def test_the_same_arguments_give_the_same_fit() -> None:
    found = kept_fit(*ARGUMENTS)
    assert kept_fit(X.copy(), Y.copy(), ONES.copy(), Calibration(), replace(FIRST, count=0)) is found
    assert bits(fit_output(*ARGUMENTS)) == bits(found)


@pytest.mark.parametrize("other", OTHERS)
def test_a_fit_to_other_arguments_is_computed(other: str) -> None:
    found = kept_fit(*ARGUMENTS)
    assert kept_fit(*OTHERS[other]) is not found
    assert bits(kept_fit(*OTHERS[other])) == bits(fit_output(*OTHERS[other]))


def test_a_study_with_the_same_data_computes_no_fit() -> None:
    network = chain(Stage("f", controls={"x": Real(0, 1)}), Stage("g"))

    def told() -> Study:
        study = Study(network)
        for x in (0.1, 0.4, 0.8, 0.3, 0.9):
            study.add_trial({"x": x}, {"f": np.sin(5 * x), "g": np.cos(5 * x)})
        return study

    one = told().certificate()
    computed = kept._computed.cache_info().misses
    assert computed > 0
    other = told().certificate()
    assert kept._computed.cache_info().misses == computed
    assert (other.bound, other.gap, other.assumptions) == (one.bound, one.gap, one.assumptions)
