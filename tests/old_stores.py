"""Stores that released versions of cascada wrote, and the script that makes them.

    python -m tests.old_stores FOLDER

writes four SQLite files, the exported log of each and expected.json: what the version that wrote them says of them. The
files in tests/data/stores were made so by cascada 0.1.0 (commit f17d074) and are never made anew; see the README there.
Only public functions are used, so that the script runs with later versions too. It then makes other stores.
"""

import json
import math
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import cascada as cd
from cascada.cli.main import app
from tests.environment import environment

FOLDER = Path(__file__).parent / "data" / "stores"
VERSION = "0.1.0"
Controls = Mapping[str, float]
Outputs = dict[str, Any]


def _bump(height: float, *distances: float) -> float:
    """A squared exponential kernel at these scaled distances: its norm is the height."""
    return height * math.exp(-0.5 * sum(distance**2 for distance in distances))


def taken(study: Any) -> cd.Trial:
    """The next trial, which must be there."""
    trial = study.ask()
    assert isinstance(trial, cd.Trial)
    return trial


# ---- plain: given norm bounds, every state of a trial, and every kind of event but "calibrated"

MATRIX = [[1.0, 0.3], [0.3, 0.5]]


def fired(norm_bound: float) -> cd.Network:
    """A chain with logarithmic, integer and real controls, an output that is passed on, an offset and a joint norm."""
    mix = cd.Stage(
        "mix",
        controls={"dose": cd.Real(0.1, 10.0, log=True), "grains": cd.Integer(1, 5)},
        outputs=["slurry", "grains"],
        kernel=cd.SquaredExponential((2.0, 4.0)),
        norm_bound=1.5,
        offset=0.25,
        passes=["grains"],
    )
    fire = cd.Stage(
        "fire",
        controls={"heat": cd.Real(-2.0, 2.0)},
        outputs=["hard", "tough"],
        parents=["mix.slurry", "mix.grains"],
        kernel=cd.Separable(cd.SquaredExponential((2.0, 6.0, 3.0)), MATRIX),
        norm_bound=1.2,
    )
    test = cd.Stage("test", outputs=["strength"], kernel=cd.Matern(2.5, 2.0), norm_bound=norm_bound)
    return cd.chain(mix, fire, test)


def run_fired(controls: Controls) -> Outputs:
    slurry = 0.25 + _bump(1.2, (math.log(controls["dose"]) - 0.4) / 2.0, (controls["grains"] - 3.0) / 4.0)
    near = _bump(1.0, (slurry - 1.0) / 2.0, (controls["grains"] - 2.0) / 6.0, (controls["heat"] - 0.5) / 3.0)
    hard, tough = 0.8 * near, 0.5 * near  # the kernel at one point times (0.8, 0.5), of joint norm 0.90
    r = math.sqrt(5.0) * math.hypot(hard - 0.2, tough - 0.6) / 2.0
    strength = 1.5 * (1.0 + r + r**2 / 3.0) * math.exp(-r)
    return {"mix": [slurry, controls["grains"]], "fire": [hard, tough], "test": strength}


def make_plain(url: str) -> None:
    study = cd.Study.open(url, "plain", fired(2.0), worker="lab")
    study.enqueue_trial({"dose": 1.0, "grains": 2, "heat": 0.0})
    for _ in range(6):  # complete
        trial = taken(study)
        study.tell(trial, run_fired(trial.controls))
    trial = taken(study)  # complete, told stage by stage
    for stage, outputs in run_fired(trial.controls).items():
        study.tell_stage(trial, stage, outputs)
    trial = taken(study)  # failed after its first stage
    study.tell_stage(trial, "mix", run_fired(trial.controls)["mix"])
    study.fail(trial, "the furnace broke")
    study.abandon(taken(study), "no time")
    trial = taken(study)  # running, its first stage observed
    study.tell_stage(trial, "mix", run_fired(trial.controls)["mix"])
    study.note("the norm bound of the test was too small")
    study.close()
    study = cd.Study.open(url, "plain", fired(2.5), amend=True, worker="lab")
    past = {"dose": 2.0, "grains": 3, "heat": -1.0}
    study.add_trial(past, {"mix": run_fired(past)["mix"]})  # abandoned, as it has no objective
    first, second = study.ask(2, lease=0.01)  # both leases expire: the first trial runs again, the second one waits
    time.sleep(0.1)
    again = taken(study)
    assert again.number == first.number
    study.tell(again, run_fired(again.controls))
    assert study.trials[second.number].state == "waiting"
    study.enqueue_trial({"dose": 4.0, "grains": 5, "heat": 1.0})
    study.close()


# ---- calibrated: neither kernels nor norm bounds


def cooked() -> cd.Network:
    heat = cd.Stage("heat", controls={"T": cd.Real(300.0, 400.0), "t": cd.Real(0.5, 20.0, log=True)}, outputs=["grown"])
    return cd.chain(heat, cd.Stage("cool", controls={"rate": cd.Integer(1, 8)}, outputs=["worth"]))


def run_cooked(controls: Controls) -> Outputs:
    grown = 3.0 + math.tanh((controls["T"] - 340.0) / 25.0) * math.log(controls["t"])
    worth = 20.0 - (grown - 4.0) ** 2 - 0.3 * (controls["rate"] - 5) ** 2 - 0.1 * grown * controls["rate"]
    return {"heat": grown, "cool": worth}


def make_calibrated(url: str) -> None:
    study = cd.Study.open(url, "calibrated", cooked())
    for _ in range(cd.Calibration().first(cooked()) + 14):
        trial = taken(study)
        study.tell(trial, run_cooked(trial.controls))
    study.close()


# ---- minimised: candidates, an algorithm and a seed


def minimal() -> cd.Network:
    controls = {"a": cd.Real(0.01, 1.0, log=True), "b": cd.Real(-1.0, 1.0)}
    first = cd.Stage("first", controls=controls, kernel=cd.Matern(2.5), norm_bound=2.0)
    second = cd.Stage("second", controls={"c": cd.Real(-1.0, 1.0)}, kernel=cd.SquaredExponential(1.0), norm_bound=3.0)
    return cd.chain(first, second).mirrored()


def run_minimal(controls: Controls) -> Outputs:
    r = math.sqrt(5.0) * math.hypot(math.log(controls["a"]) + 2.0, controls["b"] - 0.3)
    first = 1.6 * (1.0 + r + r**2 / 3.0) * math.exp(-r)
    second = _bump(1.0, first, controls["c"] - 1.0) - _bump(2.0, first - 1.1, controls["c"] + 0.4)
    return {"first": first, "second": second}


def make_minimised(url: str) -> None:
    grid = cd.Grid({"a": 7, "b": 5, "c": 5})
    study = cd.Study.open(url, "minimised", minimal(), algorithm="gpn_ei", seed=7, candidates=grid, horizon=30)
    for _ in range(9):
        trial = taken(study)
        study.tell(trial, run_minimal(trial.controls))
    study.close()


# ---- refuted: bounds that were enlarged, and an assumption that the user took back


def small() -> cd.Network:
    kernel = cd.SquaredExponential(1.0)
    first = cd.Stage("first", controls={"x": cd.Real(-2.0, 2.0)}, kernel=kernel, norm_bound=0.5)
    return cd.chain(first, cd.Stage("second", kernel=cd.Additive(kernel), norm_bound=3.0))


def run_small(controls: Controls) -> Outputs:
    first = _bump(1.5, controls["x"] - 0.3)
    return {"first": first, "second": _bump(2.0, first - 0.8)}


def make_refuted(url: str) -> None:
    study = cd.Study.open(url, "refuted", small(), on_violation="enlarge")
    for _ in range(4):
        trial = taken(study)
        study.tell(trial, run_small(trial.controls))
    study.refute("the furnace drifts")
    study.close()


MAKERS: dict[str, Callable[[str], None]] = {
    "plain": make_plain,
    "calibrated": make_calibrated,
    "minimised": make_minimised,
    "refuted": make_refuted,
}
PROCESSES: dict[str, Callable[[Controls], Outputs]] = {
    "plain": run_fired,
    "calibrated": run_cooked,
    "minimised": run_minimal,
    "refuted": run_small,
}


# ---- what a version says of a store


def in_hex(values: Controls) -> dict[str, str]:
    return {name: float(value).hex() for name, value in values.items()}


def in_words(trial: cd.Trial) -> list[Any]:
    outputs = {stage: [value.hex() for value in values] for stage, values in trial.outputs.items()}
    value = None if trial.value is None else trial.value.hex()
    return [trial.state, in_hex(trial.controls), outputs, value, trial.reason]


def found(url: str, name: str) -> dict[str, Any]:
    """The trials, the best of them, the certificate, and the trials that are asked for next. The store is changed."""
    study = cd.Study.open(url, name)
    trials, best, certificate = study.trials, study.best_trial, study.certificate()
    numbers = {key: getattr(certificate, key) for key in ("best", "bound", "gap")}
    said = {
        "trials": [in_words(trial) for trial in trials],
        "best": None if best is None else best.number,
        "certificate": {key: None if value is None else float(value).hex() for key, value in numbers.items()}
        | {"kind": certificate.kind, "evidence": list(certificate.evidence)},
        "next": asked(study, len(trials)),
    }
    study.close()
    return said


def asked(study: Any, trials: int) -> list[Any]:
    """The numbers and controls of those that waited, and of the first new one; or what is raised."""
    made: list[Any] = []
    try:
        while not made or made[-1][0] < trials:
            trial = study.ask()
            made.append([trial.number, in_hex(trial.controls)])
    except cd.CascadaError as error:
        made.append(f"{type(error).__name__}: {error}")
    return made


def make(folder: Path) -> None:
    """Make all stores, their exported logs and expected.json."""
    expected: dict[str, Any] = {"environment": environment(), "stores": {}}
    for name, maker in MAKERS.items():
        path = folder / f"{name}-{VERSION}.sqlite3"
        maker(f"sqlite:///{path}")
        _compact(path)
        with tempfile.TemporaryDirectory() as other:
            copy = Path(other) / path.name
            shutil.copy(path, copy)
            expected["stores"][name] = found(f"sqlite:///{copy}", name)
        command = ["export", "--study", name, "--storage", f"sqlite:///{path}"]
        log = CliRunner().invoke(app, command, catch_exceptions=False)
        assert log.exit_code == 0, log.output
        _compact(path)
        path.with_suffix(".jsonl").write_text(log.stdout, encoding="utf-8")
    lines = [f'"{name}": ' + json.dumps(said) for name, said in expected["stores"].items()]
    text = '{"environment": ' + json.dumps(expected["environment"]) + ',\n"stores": {\n' + ",\n".join(lines) + "\n}}\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


def _compact(path: Path) -> None:
    """One small file with nothing beside it; it stays in the mode with a write-ahead log."""
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert not path.with_name(f"{path.name}-wal").exists()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    make(target)
