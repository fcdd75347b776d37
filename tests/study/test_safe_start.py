"""Safe studies whose first runs break a limit, and revisions of runs that have not begun."""

import cascada as cd
from cascada.study import Study

KERNEL = cd.SquaredExponential(1.0)


def network() -> cd.Network:
    first = cd.Stage("f", {"x": cd.Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0, limits={"f": (None, 0.2)})
    return cd.chain(first, cd.Stage("g", {"y": cd.Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0))


def first(x: float) -> float:
    return x / 4


def second(f: float, y: float) -> float:
    return (f + y) / 8


def test_a_start_that_breaks_a_limit_is_kept_and_ends_the_run() -> None:
    start = {"x": 1.5, "y": 0.0}
    result = cd.maximise(network(), [first, second], budget=5, safe=True, start=start, progress=False)
    assert result.status == "no safe setting"
    assert result.best is None
    assert [trial.controls for trial in result.trials] == [start]
    assert "No run satisfied the limits" in str(result)


def test_a_run_that_has_not_begun_goes_on_as_planned() -> None:
    study = Study(network())
    study.add_trial({"x": 0.1, "y": 0.0}, {"f": first(0.1), "g": second(first(0.1), 0.0)})
    trial = study.ask()
    assert trial is not None
    assert study.revise(trial).controls == trial.controls
