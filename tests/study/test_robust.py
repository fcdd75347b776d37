"""Tests of studies with uncertain controls, whose worst case is maximised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.search.robust import Deviations
from cascada.space import Domain

K = cd.SquaredExponential(0.3)
CENTRES, HEIGHTS = np.array([-1.0, 0.5, 0.8, 1.1, 1.4]), np.array([1.0, 0.55, 0.35, 0.35, 0.55])
DEVIATION = 0.3


def value(x: Any) -> Any:
    """A narrow peak at −1, the nominal optimum, and a broad one around 0.95."""
    return np.exp(-((np.asarray(x)[..., None] - CENTRES) ** 2) / 2 / 0.09) @ HEIGHTS


def worst(x: float) -> float:
    return float(value(np.linspace(x - DEVIATION, x + DEVIATION, 2001)).min())


def network(**options: Any) -> cd.Network:
    controls = {"x": cd.Real(-2, 2, deviation=DEVIATION)}
    return cd.chain(cd.Stage("f", controls=controls, kernel=K, norm_bound=2.0, **options))


def proven(study: cd.Study, sign: int = 1) -> cd.Study:
    while (trial := study.ask(limit=40)) is not None:
        study.tell(trial, {"f": sign * float(value(trial.controls["x"]))})
    return study


@pytest.mark.parametrize("sign", [1, -1])
def test_the_robust_optimum_is_proven_where_the_nominal_one_loses_a_third(sign: int) -> None:
    process = network() if sign > 0 else network().mirrored()
    certificate = proven(cd.Study(process, tolerance=0.02), sign).certificate()
    best = max(worst(x) for x in np.linspace(-1.7, 1.7, 341))
    assert best - worst(-1.0) > 0.3  # what the nominal optimum loses
    assert certificate.kind == "proven"
    assert certificate.gap is not None
    assert certificate.gap <= 0.02
    assert certificate.recommended is not None
    assert certificate.bound is not None
    assert certificate.best is None
    reached = worst(float(certificate.recommended.controls["x"]))
    assert sign * certificate.recommended.at_least <= reached
    assert best - 1e-6 <= sign * certificate.bound
    assert best - reached <= certificate.gap
    assert "in the worst case over x ± 0.3, no setting" in str(certificate)


def test_the_proof_is_found_in_a_store_as_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    study = cd.Study.open(url, "off", network(), tolerance=0.1)
    proven(study)
    study.close()
    again = cd.Study.open(url, "off", tolerance=0.1)
    assert again.network.domain.controls["x"].deviation == DEVIATION
    gap = again.certificate().gap
    assert gap is not None
    assert gap <= 0.1
    with pytest.raises(cd.CascadaError, match="deviation"):
        cd.Study.open(url, "off", cd.chain(cd.Stage("f", controls={"x": cd.Real(-2, 2)}, kernel=K, norm_bound=2.0)))


def test_unknown_norms_are_estimated() -> None:
    study = cd.Study(cd.chain(cd.Stage("f", controls={"x": cd.Real(-2, 2, deviation=DEVIATION)})))
    for _ in range(16):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"f": float(value(trial.controls["x"]))})
    certificate = study.certificate()
    assert certificate.kind == "estimated"
    assert certificate.recommended is None or worst(float(certificate.recommended.controls["x"])) > 0.5


@pytest.mark.parametrize("log", [False, True])
def test_shifted_cells_contain_every_shifted_setting(log: bool) -> None:
    rng = np.random.default_rng(3)
    domain = Domain({"x": cd.Real(0.2, 7.0, log=log, deviation=0.1), "y": cd.Real(0, 1)})
    deviations = Deviations.of(domain)
    settings = deviations.settings
    lower = rng.uniform(settings.lower, settings.upper, (300, 2))
    upper = np.minimum(lower + 10.0 ** rng.uniform(-16, 0, (300, 2)), settings.upper)
    least, most = np.zeros((300, 2)), np.zeros((300, 2))
    least[:, 0], most[:, 0] = np.sort(rng.uniform(-0.1, 0.1, (300, 2)), axis=1).T
    cells = deviations.moved(Boxes(lower, upper), least, most)
    for share in (0.0, 0.3, 1.0):
        inside = settings.decode(lower + share * (upper - lower))
        for part in (0.0, 0.7, 1.0):
            used: Array = domain.encode(np.clip(inside + least + part * (most - least), [0.2, 0.0], [7.0, 1.0]))
            assert np.all(cells.lower <= used)
            assert np.all(used <= cells.upper)
    whole = deviations.moved(
        Boxes(settings.lower[None], settings.upper[None]), -deviations.size[None], deviations.size[None]
    )
    np.testing.assert_allclose(whole.lower[0], domain.lower, atol=1e-12)
    np.testing.assert_allclose(whole.upper[0], domain.upper, atol=1e-12)


def with_candidates() -> cd.Study:
    return cd.Study(network(), candidates=[[0.0]])


def several(count: int) -> cd.Network:
    controls = {f"x{i}": cd.Real(-2, 2, deviation=0.1) for i in range(count)}
    return cd.chain(cd.Stage("f", controls=controls, kernel=K, norm_bound=2.0))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "negative": (lambda: cd.Real(0, 1, deviation=-0.1), "deviation must be a finite number of at least 0"),
    "too wide": (lambda: cd.Real(0, 1, deviation=0.5), "the range must be wider than twice the deviation"),
    "steps": (lambda: cd.Real(0, 1, step=0.1, deviation=0.1), "deviation= does not work with step="),
    "context": (lambda: cd.Real(0, 1, context=True, deviation=0.1), "deviation= does not work with context=True"),
    "limits": (
        lambda: cd.Study(network(limits={"f": (0, None)})),
        "deviation=, which x has, does not work with limits=",
    ),
    "candidates": (with_candidates, "does not work with candidates="),
    "algorithm": (lambda: cd.Study(network(), algorithm="ei"), "with the algorithm ExpectedImprovement"),
    "fixed": (lambda: cd.Study(several(2)).ask(fixed={"x0": 0.0}), "fixed= does not work with deviation="),
    "too many": (lambda: cd.Study(several(4)), "at most 3 controls"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_defined_is_refused_with_both_names(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(cd.ArgumentError, match=message):
        make()
