"""Tests of trials with fixed controls, of contexts and of decision tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cascada as cd
from cascada.cli.main import app
from cascada.report import write_report
from cascada.study.slice import Slice
from tests.missing import need_module

K = cd.SquaredExponential(1.0)


def process(**options: Any) -> cd.Network:
    """A chain of two stages with a logarithmic context."""
    first = {"x": cd.Real(-2, 2), "h": cd.Real(0.5, 60, log=True, context=True)}
    return cd.chain(
        cd.Stage("f", controls=first, kernel=K, norm_bound=2.0, **options),
        cd.Stage("g", controls={"y": cd.Real(-2, 2)}, kernel=K, norm_bound=3.0),
    )


def run(study: cd.Study, trial: cd.Trial) -> None:
    """Run the process, whose best x depends on h."""
    x, h, y = (float(trial.controls[name]) for name in ("x", "h", "y"))
    f = float(np.exp(-((x - 0.5 * np.log(h) + 1) ** 2) / 2))
    study.tell(trial, {"f": f, "g": float(np.exp(-((f - 0.8) ** 2 + (y - f) ** 2) / 2))})


def study_after(runs: int, **options: Any) -> cd.Study:
    study = cd.Study(process(), **options)
    for i in range(runs):
        trial = study.ask(context={"h": float(np.random.default_rng(i).uniform(0.6, 59))})
        if trial is not None:
            run(study, trial)
    return study


def test_a_trial_has_the_fixed_and_the_measured_values_exactly() -> None:
    study = study_after(3)
    trial = study.ask(context={"h": 59.999}, fixed={"y": 0.1})
    assert trial is not None
    assert (trial.controls["h"], trial.controls["y"]) == (59.999, 0.1)
    asked = study.events[-1]
    assert (asked.data["fixed"], asked.data["context"]) == ({"y": 0.1}, {"h": 59.999})
    assert "fixed" not in study.events[1].data


@pytest.mark.parametrize("algorithm", ["gpn_mixed", "gpn_ucb", "gpn_ei", "cei", "cucb", "oi", "random_search"])
def test_every_algorithm_keeps_to_what_is_fixed(algorithm: str) -> None:
    network = cd.chain(
        cd.Stage("f", controls={"x": cd.Real(0, 2), "t": cd.Real(1, 60, log=True)}, kernel=K, norm_bound=2.0)
    )
    study = cd.Study(network, algorithm=algorithm, seed=3)
    for value in (60, 7.3, 60, 1):
        trial = study.ask(fixed={"t": value})
        assert trial is not None
        assert trial.controls["t"] == value
        study.tell(trial, {"f": float(np.sin(trial.controls["x"]) * np.exp(-(np.log(value) ** 2) / 20))})
    assert len({trial.controls["x"] for trial in study.trials if trial.controls["t"] == 60}) == 2


def test_nothing_is_asked_for_where_no_setting_with_the_fixed_value_can_be_better() -> None:
    network = cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 6)}, kernel=K, norm_bound=1.0))
    two = cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 6), "y": cd.Real(0, 0.1)}, kernel=K, norm_bound=1.0))
    study = cd.Study(two)
    study.add_trial({"x": 3.0, "y": 0.05}, {"f": 0.99})
    assert study.ask(fixed={"x": 0.0}) is None
    assert study.ask() is not None
    assert network.context == ()


def test_candidates_are_those_with_the_fixed_values() -> None:
    network = cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 2), "n": cd.Integer(1, 3)}, kernel=K, norm_bound=1.0))
    study = cd.Study(network, candidates=cd.Grid({"x": 5, "n": 3}))
    found = study.ask(5, fixed={"n": 2})
    assert {trial.controls["n"] for trial in found} == {2}
    assert len({trial.controls["x"] for trial in found}) == 5
    assert study.ask(fixed={"n": 2}) is None
    with pytest.raises(cd.ArgumentError, match=r"no candidate has x = 0.3"):
        study.ask(fixed={"x": 0.3})


def test_waiting_trials_are_returned_for_their_own_context_only() -> None:
    study = study_after(2)
    waiting = study.enqueue_trial({"x": 0.0, "h": 3.0, "y": 1.0})
    other = study.ask(context={"h": 4.0})
    assert other is not None
    assert other.number != waiting.number
    found = study.ask(context={"h": 3.0})
    assert found is not None
    assert found.number == waiting.number


def test_a_context_that_was_run_until_its_gap_is_small_needs_no_more_runs() -> None:
    study = cd.Study(process(), tolerance=0.05)
    for _ in range(40):
        trial = study.ask(context={"h": 10.0})
        if trial is None:
            break
        run(study, trial)
    certificate = study.certificate(context={"h": 10.0})
    assert trial is None
    assert certificate.kind == "proven"
    assert certificate.gap is not None
    assert certificate.gap <= 0.05
    assert "at h = 10.0 gives a value higher than" in str(certificate)
    assert study.certificate().gap is None
    assert "depends on h" in str(study.certificate())


def test_the_next_point_of_a_context_follows_from_the_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    study = cd.Study.open(url, "humid", process())
    for i in range(4):
        trial = study.ask(context={"h": 1.0 + i})
        assert trial is not None
        run(study, trial)
    study.close()
    points = []
    for _ in range(2):
        again = cd.Study.open(url, "humid").branch()
        trial = again.ask(context={"h": 2.5})
        assert trial is not None
        points.append(dict(trial.controls))
    assert points[0] == points[1]
    certificate = cd.Study.open(url, "humid").certificate(context={"h": 2.5})
    assert certificate.gap is not None


def test_a_study_with_contexts_has_a_report(tmp_path: Path) -> None:
    need_module("plotly", "report")
    study = cd.Study(process())
    trial = study.ask(context={"h": 1.0})
    assert trial is not None
    run(study, trial)
    page = tmp_path / "page.html"
    write_report(study, "humid", page)
    assert page.stat().st_size > 10_000


def test_a_study_without_norms_learns_over_contexts() -> None:
    plain = {"x": cd.Real(-2, 2), "h": cd.Real(0, 1, context=True)}
    study = cd.Study(cd.chain(cd.Stage("f", controls=plain)))
    for i in range(16):
        trial = study.ask(context={"h": float(np.random.default_rng(i).uniform())})
        assert trial is not None
        study.tell(trial, {"f": -((trial.controls["x"] - 2 * trial.controls["h"] + 1) ** 2)})
    assert len({trial.controls["x"] for trial in study.trials[:6]}) == 6  # the design moves on from run to run
    trial = study.ask(context={"h": 0.9})
    assert trial is not None
    assert abs(trial.controls["x"] - 0.8) < 0.1


def test_the_command_line_takes_contexts_and_fixed_controls(tmp_path: Path) -> None:
    (tmp_path / "humid.toml").write_text(
        '[[stage]]\nname = "f"\ncommand = ["true"]\nkernel = { type = "matern", nu = 2.5 }\nnorm_bound = 2\n'
        '[stage.controls]\nx = { low = 0, high = 2 }\nn = { low = 1, high = 64, log = true, type = "integer" }\n'
        "h = { low = 0, high = 1, context = true }\n"
    )
    url = ["--storage", f"sqlite:///{tmp_path}/s.db", "--study", "humid"]

    def call(*words: str) -> Any:
        return CliRunner().invoke(app, [*words[:1], *url, *words[1:]])

    spec = ["--spec", str(tmp_path / "humid.toml")]
    asked = call("ask", *spec, "--context", '{"h": 0.4}', "--fix", '{"n": 8}', "--json")
    assert asked.exit_code == 0, asked.output
    controls = json.loads(asked.stdout)["controls"]
    assert (controls["h"], controls["n"]) == (0.4, 8)
    assert call("tell", "0", '{"f": 0.7}').exit_code == 0
    status = call("status", "--context", '{"h": 0.5}', "--json")
    assert status.exit_code == 0, status.output
    assert json.loads(status.stdout)["certificate"]["context"] == {"h": 0.5}
    for words, message in (
        (["ask"], "depends on the context h"),
        (["ask", "--context", "[0.4]"], "--context must be a JSON object"),
        (["ask", "--context", '{"h": 3}'], "context: control 'h' must lie in [0, 1]"),
        (["ask", "--context", '{"h": 0}', "--fix", '{"n": 2.5}'], "fixed: control 'n' must be a whole number"),
    ):
        refused = call(*words)
        assert refused.exit_code != 0
        assert message in " ".join(refused.stderr.split()), refused.stderr


OTHER = cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 1), "y": cd.Real(0, 1)}, kernel=K, norm_bound=1.0))
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no context": (lambda: cd.Study(process()).ask(), "depends on the context h; missing: h"),
    "a context without one": (
        lambda: cd.Study(OTHER).ask(context={"x": 1}),
        "got 'x', but this process has no context",
    ),
    "an unknown context": (
        lambda: cd.Study(process()).ask(context={"h": 1, "z": 1}),
        "the context of this process is h",
    ),
    "a fixed context": (
        lambda: cd.Study(process()).ask(context={"h": 1}, fixed={"h": 1}),
        "give its value as context=, not as fixed=",
    ),
    "unknown fixed": (lambda: cd.Study(OTHER).ask(fixed={"z": 1}), "fixed must name controls, which are x, y; got 'z'"),
    "mistyped fixed": (
        lambda: cd.Study(cd.chain(cd.Stage("f", controls={"force": cd.Real(0, 1), "y": cd.Real(0, 1)}))).ask(
            fixed={"forc": 1}
        ),
        r"got 'forc' \(did you mean force\?\)",
    ),
    "all fixed": (lambda: cd.Study(OTHER).ask(fixed={"x": 1, "y": 1}), "nothing is left to choose"),
    "fixed outside": (lambda: cd.Study(OTHER).ask(fixed={"x": 2}), r"fixed: control 'x' must lie in \[0, 1\]; got 2"),
    "fixed as a list": (lambda: cd.Study(OTHER).ask(fixed=[1]), "fixed must be a dict"),  # type: ignore[call-overload]
    "EI": (lambda: cd.Study(OTHER, algorithm="ei").ask(fixed={"x": 1}), "do not work with the algorithm ExpectedImp"),
    "maximise": (
        lambda: cd.maximise(process(), [lambda **_: 0.0, lambda **_: 0.0], budget=3, progress=False),
        "does not work with maximise",
    ),
    "candidates": (
        lambda: cd.Study(process(), candidates=[[0, 1, 0]]),
        "candidates= does not work with context=True, which h has",
    ),
    "revise": (lambda: _begun().revise(0), "revise does not work with context=True, which h has"),
    "context only": (
        lambda: cd.chain(cd.Stage("f", controls={"h": cd.Real(0, 1, context=True)})),
        "at least one control that is chosen",
    ),
    "context as a number": (lambda: cd.Real(0, 1, context=1), "context must be True or False"),  # type: ignore[arg-type]
    "a table before the first run": (lambda: cd.Study(process()).table(), "at least one complete run"),
    "a table without a context": (lambda: cd.Study(OTHER).table(), "this process has none"),
    "contexts in disorder": (lambda: study_after(1).table({"h": [2, 1]}), "at least two numbers in ascending order"),
    "contexts outside": (lambda: study_after(1).table({"h": [2, 61]}), r"within \[0.5, 60\]"),
    "contexts of others": (lambda: study_after(1).table({"x": [0, 1]}), "must give the ends of boxes for h"),
}


def _begun() -> cd.Study:
    study = cd.Study(process())
    study.ask(context={"h": 1})
    return study


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_supported_is_refused_with_both_names(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(cd.ArgumentError, match=message):
        make()


def test_a_decision_table_covers_all_contexts_and_holds() -> None:
    controls = {"x": cd.Real(-1, 1), "h": cd.Real(1, 8, log=True, context=True)}
    study = cd.Study(cd.chain(cd.Stage("f", controls=controls, kernel=K, norm_bound=2.0)))

    def true(x: Any, h: float) -> Any:
        return np.exp(-((x - 0.7 * np.log(h) + 0.7) ** 2) / 2)

    for h in np.geomspace(1, 8, 7):
        for _ in range(2):
            trial = study.ask(context={"h": float(h)})
            assert trial is not None
            study.tell(trial, {"f": float(true(trial.controls["x"], float(h)))})
    table = study.table(tolerance=0.15, rows=8)
    assert table.kind == "proven"
    assert table.gap is not None
    assert table.gap <= 0.15
    assert 1 < len(table.rows) < 8
    assert [row.contexts["h"][0] for row in table.rows] == [1.0, *(row.contexts["h"][1] for row in table.rows[:-1])]
    assert table.rows[-1].contexts["h"][1] == 8
    given = study.table({"h": [1, 2, 8]})
    assert [row.contexts["h"] for row in given.rows] == [(1, 2), (2, 8)]
    x = np.linspace(-1, 1, 401)
    for row in (*table.rows, *given.rows):
        assert row.controls is not None
        assert row.gap is not None
        assert row.at_least is not None
        low, high = row.contexts["h"]
        for h in np.geomspace(float(low), float(high), 25):
            best, value = float(true(x, h).max()), float(true(row.controls["x"], h))
            assert best - row.gap <= value
            assert row.at_least <= value
            assert best <= row.bound
    assert str(table).count("of the best whatever it is") == len(table.rows)


def test_a_slice_of_beliefs_changes_the_box_and_nothing_else() -> None:
    study = study_after(3)
    part = Slice.of(study.network, study._settings, None, {"h": 5.0})
    assert part is not None
    beliefs = part.within(study.beliefs)
    assert beliefs.stages == study.beliefs.stages
    assert beliefs.network.nodes == study.network.nodes
    np.testing.assert_array_equal(part.domain.decode(part.domain.lower[None])[0, 1], 5.0)
