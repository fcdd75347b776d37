"""Tests of studies with choices: stores, tables, slices, contexts, batches and what is refused."""

import json
import math
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from cascada import (
    ArgumentError,
    Choice,
    Grid,
    Matern,
    Network,
    Real,
    Separable,
    SquaredExponential,
    Stage,
    Study,
    chain,
    maximise,
    minimise,
)
from cascada.cli.main import app
from cascada.process.command import Command
from cascada.store.description import describe, network_from
from cascada.study.tabular import add_runs, trials_csv

WOODS = ("oak", "pine", "elm")
KERNEL = SquaredExponential(0.5)
HEIGHT = {"oak": 1.0, "pine": 0.6, "elm": -0.5}


def network(choice: Choice | None = None, **press: Any) -> Network:
    """A process whose first stage has a choice, with given norms."""
    wood = Choice(WOODS) if choice is None else choice
    cut = Stage("cut", {"wood": wood, "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    return chain(cut, Stage("press", {"y": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0, **press))


def cut(wood: str, x: float) -> float:
    return HEIGHT[wood] * math.exp(-2 * (x - 0.3) ** 2)


def press(cut: float, y: float) -> float:
    return math.exp(-2 * ((cut - 0.8) ** 2 + (y + 0.2) ** 2))


def outputs(controls: Any) -> dict[str, float]:
    """The outputs of both stages."""
    first = cut(controls["wood"], controls["x"])
    return {"cut": first, "press": press(first, controls["y"])}


def run(study: Study, count: int) -> None:
    """Run what the study asks for."""
    for _ in range(count):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outputs(trial.controls))


@pytest.mark.parametrize("alike", [None, 0.5])
def test_the_best_value_is_found_and_proven(alike: float | None) -> None:
    process = network(Choice(WOODS, alike=alike))
    result = maximise(process, [cut, press], budget=40, tolerance=0.2, progress=False)
    assert result.gap_kind == "proven"
    assert result.gap is not None
    assert result.gap <= 0.2
    assert result.best is not None
    assert result.best.controls["wood"] == "oak"


def test_a_minimum_lies_at_another_value() -> None:
    result = minimise(network(), [cut, press], budget=8, progress=False)
    assert result.best is not None
    assert result.best.controls["wood"] in WOODS
    assert result.certificate.bound is not None
    assert result.certificate.bound <= 0.0


def test_a_stored_study_goes_on_at_the_same_point(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.db'}"
    with closing(Study.open(address, "s", network=network())) as study:
        run(study, 4)
        gap = study.certificate().gap
    with closing(Study.open(address, "s")) as again:
        assert again.certificate().gap == gap
        assert again.network.domain.controls["wood"] == Choice(WOODS)
        following = again.ask()
        assert following is not None
    alone = Study(network())
    run(alone, 4)
    expected = alone.ask()
    assert expected is not None
    assert following.controls["wood"] == expected.controls["wood"]


def test_a_choice_with_other_values_is_another_study(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.db'}"
    with closing(Study.open(address, "s", network=network())):
        pass
    for other in (Choice(("oak", "pine")), Choice(WOODS, alike=0.5)):
        with pytest.raises(ArgumentError, match="stored otherwise"):
            Study.open(address, "s", network=network(other), amend=True)


@pytest.mark.parametrize("choice", [Choice(WOODS), Choice(WOODS, alike=0.25), Choice(["oak"], context=True)])
def test_descriptions_give_the_choice_back(choice: Choice) -> None:
    stage = Stage("a", {"wood": choice, "x": Real(0, 1)}, kernel=KERNEL, norm_bound=1.0)
    described = json.loads(json.dumps(describe(chain(stage), {})))
    assert described["stages"][0]["controls"]["wood"]["values"] == list(choice.values)
    assert network_from(described).domain.controls["wood"] == choice


def test_norm_bounds_by_value_are_stored_and_can_be_amended(tmp_path: Path) -> None:
    def process(pine: float) -> Network:
        bounds = {"oak": 2.0, "pine": pine, "elm": 1.0}
        return chain(Stage("a", {"wood": Choice(WOODS), "x": Real(0, 1)}, kernel=KERNEL, norm_bound=bounds))

    address = f"sqlite:///{tmp_path / 'a.db'}"
    with closing(Study.open(address, "s", network=process(1.0))):
        pass
    with closing(Study.open(address, "s", network=process(3.0), amend=True)):
        pass
    with closing(Study.open(address, "s")) as study:
        bounds = study.network.stages[0].norm_bounds
    assert bounds is not None
    assert {name: bound.item() for name, bound in bounds.items()} == {"oak": 2.0, "pine": 3.0, "elm": 1.0}


def test_candidates_are_kept_by_their_values(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.db'}"
    grid = Grid({"wood": ["elm", "oak"], "x": 3, "y": 3})
    with closing(Study.open(address, "s", network=network(), candidates=grid)) as study:
        run(study, 2)
    with closing(Study.open(address, "s")) as again:
        trial = again.ask()
        assert trial is not None
        assert trial.controls["wood"] in ("elm", "oak")


def test_a_table_of_runs_can_be_read_back() -> None:
    study = Study(network())
    run(study, 3)
    text = trials_csv(study.network, study.trials)
    assert text.splitlines()[1].startswith(("oak,", "pine,", "elm,"))
    copy = Study(network())
    assert add_runs(copy, text.splitlines()) == 3
    assert [trial.controls for trial in copy.trials] == [trial.controls for trial in study.trials]
    with pytest.raises(ArgumentError, match="control 'wood' must be one of 'oak', 'pine', 'elm'; got 'ash'"):
        add_runs(copy, text.replace(text.splitlines()[1].split(",")[0], "ash").splitlines())


def test_a_choice_can_be_fixed_for_one_trial() -> None:
    study = Study(network())
    run(study, 3)
    trial = study.ask(fixed={"wood": "elm"})
    assert trial is not None
    assert trial.controls["wood"] == "elm"
    with pytest.raises(ArgumentError, match="fixed: control 'wood' must be one of"):
        study.ask(fixed={"wood": "ash"})


def test_a_choice_may_be_a_context() -> None:
    study = Study(network(Choice(WOODS, context=True)))
    for wood in (*WOODS, *WOODS):
        trial = study.ask(context={"wood": wood})
        assert trial is not None
        assert trial.controls["wood"] == wood
        study.tell(trial, outputs(trial.controls))
    certificate = study.certificate(context={"wood": "oak"})
    assert certificate.bound is not None
    assert certificate.bound >= 1.0 - 1e-9


def test_a_decision_table_has_rows_for_each_value_of_a_choice() -> None:
    study = Study(network(Choice(WOODS, context=True)))
    for _ in range(3):
        for wood in WOODS:
            trial = study.ask(context={"wood": wood})
            assert trial is not None
            study.tell(trial, outputs(trial.controls))
    table = study.table()
    assert table.kind == "proven"
    assert [row.contexts for row in table.rows] == [{"wood": wood} for wood in WOODS]
    assert str(table).splitlines()[1].startswith("  wood = 'oak': x = ")
    settings = [{"x": float(x), "y": float(y)} for x in np.linspace(-1, 1, 21) for y in np.linspace(-1, 1, 21)]
    for row in table.rows:
        assert row.controls is not None
        assert row.at_least is not None
        assert row.gap is not None
        assert "wood" not in row.controls
        values = [outputs({**row.contexts, **setting})["press"] for setting in (row.controls, *settings)]
        assert row.at_least <= values[0]
        assert max(values) <= row.bound
        assert max(values) - values[0] <= row.gap
        certificate = study.certificate(context=dict(row.contexts))
        assert certificate.bound is not None
        assert certificate.bound >= max(values)
    assert [row.contexts["wood"] for row in study.table({"wood": ["elm", "oak"]}).rows] == ["elm", "oak"]
    with pytest.raises(ArgumentError, match="rows must be at least 3"):
        study.table(rows=2)
    for wrong in ("oak", ["ash"], [], ["oak", "oak"], [0, 1], 3):
        with pytest.raises(ArgumentError, match="must be a list of some of its values, 'oak', 'pine', 'elm'"):
            study.table({"wood": wrong})  # type: ignore[dict-item]


def test_a_decision_table_has_choices_among_contexts_and_controls() -> None:
    controls: dict[str, Any] = {
        "wood": Choice(WOODS[:2], context=True),
        "h": Real(0, 1, context=True),
        "glue": Choice(["hot", "cold"]),
    }
    study = Study(chain(Stage("f", controls, kernel=SquaredExponential(1.0), norm_bound=1.0)))

    def true(wood: str, h: float, glue: str) -> float:
        return 0.6 * math.exp(-((h - (0.2 if glue == "hot" else 0.9)) ** 2) / 2) * (1.0 if wood == "oak" else 0.5)

    for wood in WOODS[:2]:
        for glue in ("hot", "cold"):
            for h in (0.0, 0.3, 0.7, 1.0):
                study.add_trial({"wood": wood, "h": h, "glue": glue}, {"f": true(wood, h, glue)})
    table = study.table(tolerance=0.03, rows=8)
    assert table.gap is not None
    assert table.gap <= 0.03
    assert {row.contexts["wood"] for row in table.rows} == set(WOODS[:2])
    for wood in WOODS[:2]:  # the rows of each value cover all contexts
        ends = [row.contexts["h"] for row in table.rows if row.contexts["wood"] == wood]
        assert ends[0][0] == 0
        assert ends[-1][1] == 1
        assert all(a[1] == b[0] for a, b in pairwise(ends))
    for row in table.rows:
        assert row.controls is not None
        assert row.gap is not None
        assert row.at_least is not None
        wood, (low, high) = str(row.contexts["wood"]), row.contexts["h"]
        for h in np.linspace(float(low), float(high), 9):
            value, best = true(wood, h, str(row.controls["glue"])), max(true(wood, h, g) for g in ("hot", "cold"))
            assert row.at_least <= value
            assert best - value <= row.gap
            assert best <= row.bound


def test_a_batch_can_be_revised_where_its_choice_is_still_open() -> None:
    first = Stage("cut", {"x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    glued = Stage("glue", {"glue": Choice(["hot", "cold"]), "y": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    study = Study(chain(first, glued))
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell_stage(trial, "cut", [0.5 * trial.controls["x"]])
        revision = study.revise(trial)
        assert revision.controls["glue"] in ("hot", "cold")
        assert revision.bound is not None
        bonus = 0.4 if trial.controls["glue"] == "hot" else 0.0
        study.tell_stage(trial, "glue", [bonus + 0.5 * math.exp(-2 * trial.controls["y"] ** 2)])
    assert study.certificate().kind == "proven"


def test_pending_runs_do_not_repeat_each_other() -> None:
    study = Study(network())
    run(study, 2)
    trials = [study.ask() for _ in range(3)]
    points = {tuple(trial.controls.items()) for trial in trials if trial is not None}
    assert len(points) == 3


def test_limits_hold_for_the_best_value() -> None:
    result = maximise(network(limits={"press": (None, 0.9)}), [cut, press], budget=10, progress=False)
    assert result.best is not None
    assert result.best.value is not None
    assert result.best.value <= 0.9


def test_a_wrong_norm_is_named_with_its_value() -> None:
    study = Study(network())
    study.add_trial({"wood": "oak", "x": 0.0, "y": 0.0}, {"cut": 0.5, "press": 0.5})
    study.add_trial({"wood": "pine", "x": 0.0, "y": 0.0}, {"cut": 5.0, "press": 0.5})
    certificate = study.certificate()
    assert certificate.kind == "refuted"
    assert any("norm_bound for wood = 'pine' is given as 2, but trial 1" in text for text in certificate.evidence)


def test_what_a_proof_rests_on_says_of_which_values_a_norm_is() -> None:
    study = Study(network())
    run(study, 1)
    assert any("norm ≤ 2 (for every wood) under" in line for line in study.certificate().assumptions)
    study = Study(network(Choice(WOODS, alike=0.5)))
    run(study, 1)
    text = "norm ≤ 2 (over all values of wood together, alike 0.5) under"
    assert any(text in line for line in study.certificate().assumptions)


@pytest.mark.parametrize("algorithm", ["gp_ucb", "ei", "non_adaptive", "cucb", "oi"])
def test_algorithms_that_need_an_order_are_refused(algorithm: str) -> None:
    with pytest.raises(ArgumentError, match="the choice 'wood' does not work with the algorithm"):
        Study(network(), algorithm=algorithm)


@pytest.mark.parametrize("kernel", [None, Matern(2.5, 0.5)])
def test_unknown_norms_are_estimated_with_how_alike_values_are(kernel: Any) -> None:
    first = Stage("cut", {"wood": Choice(WOODS), "x": Real(-1, 1)}, kernel=kernel)
    process = chain(first, Stage("press", {"y": Real(-1, 1)}))
    result = maximise(process, [cut, press], budget=14, progress=False)
    assert result.best is not None
    assert result.best.value is not None
    assert result.best.value > 0.97
    assert result.certificate.kind == "estimated"


def test_the_likelihood_tells_alike_values_from_others() -> None:
    def estimated(height: dict[str, float]) -> float:
        study = Study(chain(Stage("cut", {"wood": Choice(WOODS), "x": Real(-1, 1)})), algorithm="random_search")
        for i, x in enumerate(np.linspace(-1, 1, 18)):
            wood = WOODS[i % 3]
            study.add_trial({"wood": wood, "x": float(x)}, {"cut": height[wood] * math.sin(3 * x)})
        kernel = study.beliefs.stages[0].node.stage.kernel
        return kernel.alike[0]  # type: ignore[union-attr]

    assert estimated({"oak": 1.0, "pine": 1.0, "elm": 1.0}) > 0.9
    assert estimated({"oak": 1.0, "pine": -1.0, "elm": 0.1}) < 0.6


def test_joint_norms_of_every_value() -> None:
    first = Stage(
        "cut", {"wood": Choice(WOODS), "x": Real(-1, 1)}, outputs=["a", "b"], kernel=Separable(KERNEL), norm_bound=2.0
    )
    study = Study(chain(first, Stage("press", kernel=KERNEL, norm_bound=2.0)))
    for _ in range(4):
        trial = study.ask()
        assert trial is not None
        value = cut(trial.controls["wood"], trial.controls["x"])
        study.tell(trial, {"cut": [value, 0.2 * value], "press": press(value, 0.0)})
    assert study.certificate().kind == "proven"


def test_a_probable_gap_is_refused() -> None:
    process = chain(Stage("cut", {"wood": Choice(WOODS), "x": Real(-1, 1)}))
    with pytest.raises(ArgumentError, match="a probable gap is not defined with the choice 'wood'"):
        Study(process, stop_on="probable", tolerance=0.1)
    assert Study(process).probable_gap_if_defined() is None


@pytest.mark.parametrize("reachable", ["stock", "any"])
def test_stages_with_choices_are_run_step_by_step(reachable: Any) -> None:
    first = Stage(
        "cut",
        {"wood": Choice(WOODS), "x": Real(-1, 1)},
        kernel=KERNEL,
        norm_bound=2.0,
        cost=10,
        reachable="stock",
        portions=math.inf,
    )
    glue = Stage(
        "glue",
        {"glue": Choice(["hot", "cold"]), "y": Real(-1, 1)},
        kernel=KERNEL,
        norm_bound=2.0,
        cost=1,
        reachable=reachable,
    )
    study = Study(chain(first, glue))
    for _ in range(5):
        step = study.ask_step()
        assert step is not None
        inputs = dict(step.inputs)
        if step.stage == "cut":
            assert inputs["wood"] in WOODS
            study.tell_stage(step, cut(**inputs))
        else:
            share = 1.0 if inputs["glue"] == "hot" else 0.7
            study.tell_stage(step, share * press(inputs["cut"], inputs["y"]))
    assert study.certificate().kind == "proven"


def test_what_is_printed_of_a_run_names_its_values() -> None:
    result = maximise(network(), [cut, press], budget=3, progress=False)
    assert "wood = " in str(result)
    study = Study(network())
    run(study, 2)
    for shown in (study.best_trial, study.certificate(), study):
        assert str(shown)
    page = study.best_trial._repr_html_()  # type: ignore[union-attr]
    assert any(wood in page for wood in WOODS)


def test_the_error_of_a_failed_stage_names_the_value() -> None:
    def broken(wood: str, x: float) -> float:
        raise ValueError(f"no saw for {wood}, {x}")

    study = Study(chain(Stage("cut", {"wood": Choice(WOODS), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)))
    result = study.optimise([broken], budget=1, progress=False)
    assert result.trials[0].state == "failed"
    assert "at wood=oak, x=0" in str(result.trials[0].reason)


def test_a_command_gets_the_value_as_text(tmp_path: Path) -> None:
    program = "import json, sys; print(json.dumps({'cut': len(json.load(sys.stdin)['wood'])}))"
    command = Command([sys.executable, "-c", program])
    assert command(wood="pine", x=0.5) == {"cut": 4}
    file = tmp_path / "process.toml"
    words = json.dumps([sys.executable, "-c", program])
    file.write_text(
        f"""
[[stage]]
name = "cut"
command = {words}
[stage.controls]
wood = {{ type = "choice", values = ["oak", "pine"] }}
"""
    )
    printed = CliRunner().invoke(app, ["run", str(file), "--budget", "3"])
    assert printed.exit_code == 0, printed.output
    assert "wood         pine" in printed.output
