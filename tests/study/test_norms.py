"""Norms from the runs of a study: true lower bounds of the norm, suggestions with a margin, and what they prove."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import cascada as cd
from cascada.cli.main import app
from cascada.errors import ArgumentError
from cascada.kernels import Stationary
from cascada.study.norms import MARGIN, norms_of
from tests.network.cases import X, Y, stage, truth

CHAIN = cd.chain(stage("f", controls=X), stage("g", controls=Y))


def ran(network, functions, budget=8):
    study = cd.Study(network)
    study.optimise(functions, budget=budget, progress=False)
    return study


def test_the_smallest_norm_never_exceeds_the_true_one_and_never_falls():
    """The functions have norm 2 exactly."""
    found = norms_of(ran(CHAIN, truth(CHAIN, 1)))
    assert [one.stage for one in found.stages] == ["f", "g"]
    for one in found.stages:
        norms = np.array(one.norms)[:, 0]
        assert np.all(norms <= 2 * (1 + 1e-6))
        assert np.all(np.diff(norms) >= -1e-9)
        assert one.given == (2.0,)
        assert not one.fitted
        assert one.suggested[0] >= MARGIN * norms[-1]
        assert one.margins[0] == pytest.approx(one.suggested[0] / norms[-1])


def test_the_gap_of_the_suggestion_is_that_of_a_study_with_these_bounds():
    study = ran(CHAIN, truth(CHAIN, 1))
    found = norms_of(study)
    bounds = {one.stage: one.suggested[0] for one in found.stages}
    assumed = cd.chain(stage("f", controls=X, norm_bound=bounds["f"]), stage("g", controls=Y, norm_bound=bounds["g"]))
    other = cd.Study(assumed)
    other.add_trials([(t.controls, t.outputs, str(t.number)) for t in study.trials])
    assert found.certificate is not None
    assert found.certificate.kind == "proven"
    assert found.certificate.gap == other.certificate(cells=20_000).gap


def test_kernels_are_fitted_where_none_are_given():
    two = cd.Stage("f", controls=X, outputs=["u", "v"])
    network = cd.chain(two, cd.Stage("g", parents=["f.u", "f.v"]))
    functions = [lambda x: (math.sin(x), 5 + math.sin(3 * x)), lambda u, v: u * v]
    found = norms_of(ran(network, functions, 12))
    first = found.stages[0]
    assert first.fitted
    assert first.outputs == ("u", "v")
    assert len(first.norms[-1]) == len(first.suggested) == len(first.offset) == 2
    assert isinstance(first.kernel, Stationary)
    assert first.kernel.variance == 1.0
    assert found.certificate is not None


def test_readings_with_errors_and_few_runs_are_refused():
    with pytest.raises(ArgumentError, match="too few for its norm"):
        norms_of(ran(CHAIN, truth(CHAIN, 1), 2))
    noisy = cd.chain(cd.Stage("f", controls=X, error="estimate"))
    with pytest.raises(ArgumentError, match="have errors or noise"):
        norms_of(cd.Study(noisy))


def test_the_command_prints_what_the_function_returns(tmp_path):
    url = f"sqlite:///{tmp_path / 'wave.db'}"
    assert CliRunner().invoke(app, ["run", "drop-wave", "--budget", "8", "--storage", url]).exit_code == 0
    before = (tmp_path / "wave.db").read_bytes()
    done = CliRunner().invoke(app, ["norms", "drop-wave", "--storage", url, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    text = CliRunner().invoke(app, ["norms", "drop-wave", "--storage", url])
    for one in found["stages"]:
        assert f"{one['stage']}: {one['kernel']}" in text.stdout
        assert f"suggested B = {one['suggested'][0]:g}" in text.stdout
    assert "these bounds" in text.stdout
    assert (tmp_path / "wave.db").read_bytes() == before
