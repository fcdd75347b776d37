"""Beliefs about stages that are sums: additive models choose points, and the gap does not depend on them."""

from functools import cache

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration import Calibrated, Calibration, calibrate
from cascada.confidence import Belief
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import Additive
from cascada.network import Beliefs, Stage, chain
from cascada.space import Integer, Real
from cascada.study import Study
from tests.calibration.cases import without_sums
from tests.network.cases import Functions, points, values

CONTROLS = {name: Real(-1, 1) for name in ("a", "b", "c")}
NETWORK = chain(Stage("f", controls=CONTROLS, outputs=["u", "v"]), Stage("g"))
FUNCTIONS: Functions = {  # u and g are sums, v is a product
    "f": lambda a, b, c: [np.cos(3 * a) + np.sin(2 * b) + c**2, np.cos(2 * a) * np.cos(2 * b) * np.cos(2 * c)],
    "g": lambda u, v: -((u - 1) ** 2) - v,
}


@cache
def rows(n: int) -> Array:
    found = values(NETWORK, FUNCTIONS, points(NETWORK, n, np.random.default_rng(0)))
    found.setflags(write=False)
    return found


def calibrated(data: Array, before: Calibrated | None = None, **options: object) -> Calibrated:
    return calibrate(NETWORK, data, Calibration(**options), SMALLEST_JITTER, before)  # type: ignore[arg-type]


def additive(beliefs: Beliefs) -> dict[str, bool]:
    return {stage.node.stage.name: isinstance(stage.node.stage.kernel, Additive) for stage in beliefs.stages}


def check_the_same(one: Beliefs, other: Beliefs) -> None:
    """Check that beliefs are equal to the last digit."""
    for left, right in zip(one.stages, other.stages, strict=True):
        assert left.node.stage.kernel == right.node.stage.kernel
        np.testing.assert_array_equal(left.node.stage.offset, right.node.stage.offset)
        a, b = left.belief, right.belief
        assert isinstance(a, Belief)
        assert isinstance(b, Belief)
        np.testing.assert_array_equal(a.norm_bound, b.norm_bound)
        np.testing.assert_array_equal(a.radius, b.radius)
        np.testing.assert_array_equal(a.posterior.whitened, b.posterior.whitened)
    for row in rows(5)[:, :3]:
        for stage, prediction in one.predict(dict(zip("abc", row, strict=True))).items():
            again = other.predict(dict(zip("abc", row, strict=True)))[stage]
            for field in ("mean", "sd", "lower", "upper"):
                np.testing.assert_array_equal(getattr(prediction, field), getattr(again, field))


def test_points_are_chosen_by_additive_models_if_outputs_are_sums() -> None:
    found = calibrated(rows(30))
    assert additive(found.acting) == {"f.u": True, "f.v": False, "g": True}
    assert additive(found.judging) == {"f.u": False, "f.v": False, "g": False}
    for stage in found.acting.stages:
        belief = stage.belief
        assert isinstance(belief, Belief)
        assert belief.kernel is stage.node.stage.kernel
        assert belief.radius[0] == pytest.approx(1.0, rel=0.05)  # the requested width
        assert not belief.evidence


def test_an_additive_model_predicts_better() -> None:
    """The errors of both models are consistent with their sds."""
    found = calibrated(rows(20))
    at = values(NETWORK, FUNCTIONS, points(NETWORK, 40, np.random.default_rng(1)))
    away: dict[str, list[float]] = {"acting": [], "judging": []}
    for row in at:
        controls = dict(zip("abc", row[:3].tolist(), strict=True))
        for name, beliefs in (("acting", found.acting), ("judging", found.judging)):
            prediction = beliefs.predict(controls)["f.u"]
            away[name].append(float(prediction.mean[0] - row[3]))
            assert abs(away[name][-1]) < 4 * prediction.sd[0]
    assert 10 * np.std(away["acting"]) < np.std(away["judging"])


@pytest.mark.parametrize("n", [0, 1, 4, 20])
def test_the_gap_is_judged_as_if_sums_were_not_tried(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    found = calibrated(rows(n))
    monkeypatch.setattr(Calibration, "shapes", without_sums)
    check_the_same(found.judging, calibrated(rows(n)).judging)


def test_the_gap_is_judged_without_sums_after_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits start at the last ones, which include additive kernels."""
    counts = (8, 9, 31, 33)
    found: list[Calibrated] = []
    for n in counts:
        found.append(calibrated(rows(n), found[-1] if found else None))
    assert any(additive(found[-1].acting).values())
    monkeypatch.setattr(Calibration, "shapes", without_sums)
    general: list[Calibrated] = []
    for n in counts:
        general.append(calibrated(rows(n), general[-1] if general else None))
    for one, other in zip(found, general, strict=True):
        check_the_same(one.judging, other.judging)
        assert one.changes == other.changes


def test_the_gap_of_a_study_is_judged_without_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    def observed() -> Study:
        study = Study(chain(Stage("f", controls={"a": Real(-1, 1), "b": Real(-1, 1)})))
        for a, b in rows(11)[:, :2].tolist():
            study.add_trial({"a": a, "b": b}, {"f": np.cos(3 * a) + np.sin(2 * b)})
        return study

    one = observed()
    gap = one.certificate(cells=200).gap
    assert additive(one.model.acting) == {"f": True}
    monkeypatch.setattr(Calibration, "shapes", without_sums)
    other = observed()
    assert additive(other.model.acting) == {"f": False}
    assert other.certificate(cells=200).gap == gap
    assert gap is not None


@pytest.mark.parametrize("family", ["matern", "se"])
def test_a_requested_family_is_used(family: str) -> None:
    found = calibrated(rows(20), family=family)
    for beliefs in (found.acting, found.judging):
        assert not any(additive(beliefs).values())


def test_an_interaction_that_appears_late_is_learned() -> None:
    """On a grid of integers a sum is determined by few runs, and from thirty runs on not every run is refitted."""
    network = chain(Stage("f", controls={"m": Integer(0, 7), "n": Integer(0, 7)}))
    grid = np.array([[m, n] for m in range(8) for n in range(8) if m < 6 or n < 6])
    seen = np.concatenate([np.random.default_rng(0).permutation(grid)[:34], [[7, 7], [6, 6], [7, 6], [6, 7]]])
    study = Study(network)
    sums: list[bool] = []
    for m, n in seen.tolist():
        if len(sums) == 35:
            asked = study.ask()
            assert asked is not None
            study.abandon(asked)
        interaction = 2.0 if m >= 6 and n >= 6 else 0.0
        study.add_trial({"m": m, "n": n}, {"f": np.sin(m) + np.cos(0.7 * n) + interaction})
        sums.append(additive(study.model.acting)["f"])
    assert sums[33:] == [True, False, False, False, False], "at once, and without a new fit"
    assert study.best_trial is not None
    assert study.best_trial.controls["m"] >= 6


@pytest.mark.parametrize(("interaction", "believed"), [(0.0, True), (1e-3, False), (1e-2, False)])
def test_an_additive_model_that_misses_runs_is_rejected(interaction: float, believed: bool) -> None:
    """With some noise a sum would explain a small interaction well; but there is no noise."""
    network = chain(Stage("f", controls=CONTROLS))
    at = points(network, 60, np.random.default_rng(0))
    functions: Functions = {
        "f": lambda a, b, c: [np.cos(3 * a) + np.cos(3 * b) + np.cos(3 * c) + interaction * np.sin(5 * a * b)]
    }
    found = calibrate(network, values(network, functions, at), Calibration(), SMALLEST_JITTER)
    assert additive(found.acting) == {"f": believed}
    fit = found.fits["f", "f"]
    assert isinstance(fit.likely.kernel, Additive) == believed, "what is stored is what points are chosen by"
    belief = found.acting.stages[0].belief
    assert isinstance(belief, Belief)
    missed = belief.posterior.predict(belief.posterior.inputs).mean - belief.posterior.outputs
    assert np.abs(missed).max() < 1e-3 * belief.posterior.outputs.std()
