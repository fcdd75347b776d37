"""The probable gap of studies: determinism, transformations, levels, refusals, stopping, and where it is shown."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.network import Network
from cascada.process import Process
from cascada.study.reader import Reader

X, Y = {"x": cd.Real(0, 1)}, {"y": cd.Real(0, 1)}


def first(x):
    return math.sin(4 * x)


def second(first, y):
    return first - (y - 0.3) ** 2


def network(shift: float = 0.0, scale: float = 1.0, **options) -> Network:
    return cd.chain(
        cd.Stage("first", X, function=first),
        cd.Stage("second", Y, function=lambda first, y: shift + scale * second(first, y), **options),
    )


def told(study: cd.Study, count: int, seed: int = 0) -> Any:
    """The study after runs at random points, which do not depend on the outputs."""
    process, rng = Process(study.network), np.random.default_rng(seed)
    for _ in range(count):
        point = study.network.domain.decode(study.network.domain.encode(rng.uniform(0, 1, (1, 2))))[0]
        trial = study.begin_trial(study.network.domain.named(point))
        study.tell(trial, process(trial.controls))
    return study


@cache
def known(count: int = 14, shift: float = 0.0, scale: float = 1.0, sign: int = 1) -> Any:
    net = network(shift, scale)
    return told(cd.Study(net if sign > 0 else net.mirrored()), count)


def test_it_is_the_same_for_the_same_study_and_seed():
    found = known().probable_gap(seed=3)
    again = told(cd.Study(network()), 14).probable_gap(seed=3)
    assert again == found
    assert known().probable_gap(seed=4).gains != found.gains
    assert known().branch().probable_gap(seed=3) == found


def test_the_gap_covers_the_regret_and_is_an_order_statistic_of_the_gains():
    found = known().probable_gap()
    values = [trial.value for trial in known().trials]
    assert found.best == max(values)
    assert len(found.gains) == 64
    assert list(found.gains) == sorted(found.gains)
    assert min(found.gains) >= 0
    assert found.gap == max(found.gains[-1], found.gap)
    assert found.gap >= 1 - found.best
    controls = known().network.domain.row(found.controls)
    assert controls.shape == (2,)


def test_the_gap_grows_with_the_level():
    gaps = [known().probable_gap(level).gap for level in (0.5, 0.7, 0.8, 0.9, 0.95)]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[-1]


@pytest.mark.parametrize(("shift", "scale"), [(100.0, 1.0), (0.0, 1024.0)])
def test_it_follows_a_shift_and_a_scale_of_the_objective(shift, scale):
    before, after = known().probable_gap(), known(shift=shift, scale=scale).probable_gap()
    np.testing.assert_allclose(after.gains, scale * np.array(before.gains), rtol=1e-2, atol=1e-3 * scale)
    assert after.gap == pytest.approx(scale * before.gap, rel=1e-2)
    assert after.best == pytest.approx(shift + scale * before.best)


def test_minimising_the_negative_gives_the_same_gap():
    before, after = known().probable_gap(), known(scale=-1.0, sign=-1).probable_gap()
    assert after.gap == pytest.approx(before.gap, rel=1e-2)
    assert after.best == -before.best


def test_a_study_in_a_store_has_the_same_gap(tmp_path):
    url = f"sqlite:///{tmp_path / 'store.db'}"
    stored = told(cd.Study.open(url, "one", network()), 14)
    found = stored.probable_gap()
    assert found == known().probable_gap()
    stored.close()
    reopened = cd.Study.open(url, "one", network())
    assert reopened.probable_gap() == found
    assert [event.kind for event in reopened.events].count("told") == 14
    reopened.close()


def test_with_few_runs_it_says_how_many_are_missing():
    found = known(8).probable_gap()
    assert found.gap is None
    assert str(found) == ("There is no probable gap: it takes 9 complete runs at different settings, and there are 8.")
    assert known(9).probable_gap().gap is not None


def test_candidates_that_were_all_run_leave_no_gain():
    points = np.random.default_rng(0).uniform(size=(12, 2))
    study: Any = cd.Study(network(), candidates=points)
    process = Process(study.network)
    for point in points:
        trial = study.begin_trial(study.network.domain.named(point))
        study.tell(trial, process(trial.controls))
    found = study.probable_gap()
    assert found.gains[-1] < 1e-3
    assert found.controls is None or study.network.domain.row(found.controls) in points


def test_with_limits_only_feasible_runs_count():
    limited = told(cd.Study(network(limits={"second": (None, 0.5)})), 14)
    found = limited.probable_gap()
    assert found.best == limited.best_trial.value <= 0.5
    assert found.gap is not None
    assert found.best + found.gains[-1] <= 0.5 + 1e-6
    assert "the best feasible of 14 runs" in str(found)


def test_without_a_feasible_run_there_is_no_gap():
    found = told(cd.Study(network(limits={"second": (5.0, None)})), 14).probable_gap()
    assert found.gap is None
    assert "no run satisfies the limits" in str(found)


def test_a_stage_with_a_given_kernel_is_drawn_under_it():
    given = network(kernel=cd.Matern(2.5, (1.0, 0.8)), offset=0.1)
    found = told(cd.Study(given), 14).probable_gap()
    assert 0 < found.gap < 2


KERNEL: dict[str, Any] = {"kernel": cd.Matern(2.5, 0.5), "norm_bound": 3.0}


@pytest.mark.parametrize(
    ("built", "words"),
    [
        (lambda: cd.chain(cd.Stage("f", X, **KERNEL)), "for stages without a kernel or norm_bound"),
        (lambda: cd.chain(cd.Stage("f", X), cd.Stage("g", Y, error="estimate")), "not defined with error="),
        (lambda: cd.chain(cd.Stage("f", {"x": cd.Real(0, 1, context=True)}), cd.Stage("g", Y)), "context=True, which"),
        (lambda: cd.chain(cd.Stage("f", {"x": cd.Real(0, 1, deviation=0.1)}), cd.Stage("g", Y)), "deviation=, which x"),
        (lambda: cd.chain(cd.Stage("f", X), cd.Stage("g", Y, reachable="stock")), "reachable=, which stage 'g' has"),
        (lambda: cd.chain(cd.Stage("f", {"x": cd.Choice(["a", "b"])}), cd.Stage("g", Y)), "the choice 'x'"),
        (
            lambda: cd.chain(cd.Stage("f", X, ["a", "b"], kernel=cd.Separable(cd.Matern(2.5))), cd.Stage("g", Y)),
            "joint norm of Separable",
        ),
    ],
)
def test_it_is_refused_by_name_where_it_is_not_defined(built, words):
    with pytest.raises(cd.ArgumentError, match=words):
        cd.Study(built()).probable_gap()
    with pytest.raises(cd.ArgumentError, match=words):
        cd.Study(built(), stop_on="probable")


@pytest.mark.parametrize("level", [0.2, 0.99, "high", True, math.nan])
def test_an_invalid_level_is_refused(level):
    with pytest.raises(cd.ArgumentError, match=r"level must be a number between 0\.5 and 0\.95"):
        known().probable_gap(level)


@pytest.mark.parametrize("seed", [-1, 0.5, "a"])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(cd.ArgumentError, match="seed must be a whole number"):
        known().probable_gap(seed=seed)


def test_the_statement_names_its_limits_and_the_cheapest_check():
    found = known().probable_gap()
    assert str(found).startswith(f"Probable, 95 %: the best of 14 runs, {found.best!r}, is within ")
    assert "running it is the cheapest check" in str(found)
    assert "A narrow peak or a kink that no run came near is not in this. It is no proof." in str(found)
    assert all(f"{name} = {value!r}" in str(found) for name, value in found.controls.items())


# ---- stopping


def test_a_probable_gap_ends_a_run_where_only_that_is_asked_for():
    tolerance = 0.05
    result: Any = cd.maximise(network(), budget=30, tolerance=tolerance, stop_on="probable", progress=False)
    assert result.status == "tolerance"
    assert result.probable.gap <= tolerance
    assert result.gap is None or result.gap_kind == "estimated"
    assert len(result.trials) % 3 == 0  # d + 1
    assert str(result.probable) in str(result)
    proven = cd.maximise(network(), budget=len(result.trials) + 1, tolerance=tolerance, progress=False)
    assert proven.status == "budget"
    assert [t.controls for t in proven.trials[:-1]] == [t.controls for t in result.trials]


def test_asking_never_computes_it(monkeypatch):
    study = told(cd.Study(network(), tolerance=10.0, stop_on="probable"), 14)

    def computed(*_: object) -> None:
        raise AssertionError("the probable gap was computed")

    monkeypatch.setattr(Reader, "probable_gap", computed)
    assert study.ask() is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stop_on": "sure"}, "stop_on must be 'proven', 'probable' or 'estimated'; got 'sure'"),
        ({"stop_on": "probable", "stop_on_estimated": True}, "stop_on_estimated=True means stop_on='estimated'"),
        ({"stop_on": ["estimated"]}, "stop_on must be"),
    ],
)
def test_invalid_kinds_of_gap_are_refused(options, words):
    with pytest.raises(cd.ArgumentError, match=words):
        cd.Study(network(), **options)


def test_stop_on_estimated_is_another_name():
    kind, alias = {"stop_on": "estimated"}, {"stop_on_estimated": True}
    for options in (kind, alias, kind | alias):
        assert cd.Study(network(), **options)._settings.stop_on == "estimated"
    assert cd.Study(network())._settings.stop_on == "proven"
