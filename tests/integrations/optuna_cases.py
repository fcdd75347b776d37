"""A process of two stages for tests, with and without norms; run as a program, a worker on a shared storage."""

import math
import sys
from collections.abc import Callable
from typing import Any

from tests.missing import need_module

need_module("optuna", "optuna")  # before anything that imports it
# ruff: noqa: E402
import optuna

from cascada.integrations.optuna import CascadaSampler
from cascada.kernels import SquaredExponential
from cascada.network import Network, Outputs, Stage, StageError, chain
from cascada.process import Process
from cascada.space import Control, Integer, Real
from cascada.study import Study, Trial

optuna.logging.set_verbosity(optuna.logging.ERROR)  # failed trials are logged as warnings

CONTROLS: dict[str, Control] = {"dose": Real(-2, 2), "heat": Real(0.1, 3, log=True), "turns": Integer(1, 4)}


def mix(dose: float) -> float:
    return math.sin(1.3 * dose)


def cure(mix: float, heat: float, turns: int) -> float:
    return math.cos(mix - 0.5) * math.exp(-0.3 * (math.log(heat) - 0.3) ** 2) - 0.05 * (turns - 3) ** 2


def fragile(mix: float, heat: float, turns: int) -> float:
    """Second stage that fails at some points, among them the first."""
    if 0.5 < heat < 0.6 or heat > 2:
        raise RuntimeError("it broke")
    return cure(mix, heat, turns)


FUNCTIONS: list[Callable[..., float]] = [mix, cure]


def network(norms: bool = True) -> Network:
    options: dict[str, Any] = {"kernel": SquaredExponential(1.0), "norm_bound": 3.0} if norms else {}
    first = Stage("mix", controls={"dose": CONTROLS["dose"]}, **options)
    return chain(first, Stage("cure", controls={name: CONTROLS[name] for name in ("heat", "turns")}, **options))


def created(sampler: CascadaSampler, **options: Any) -> optuna.Study:
    return optuna.create_study(sampler=sampler, direction=options.pop("direction", "maximize"), **options)


def own_study(study: Study, runs: int, functions: Any = FUNCTIONS) -> list[Trial]:
    """Add runs to a cascada study and return all its trials."""
    process = Process(study.network, functions)
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        try:
            study.tell(trial, process(trial.controls))
        except StageError as error:
            study.tell(trial, error.outputs)
            study.fail(trial, str(error))
    return list(study.trials)


def points(trials: Any) -> list[dict[str, float | int]]:
    """Return the points of trials of cascada or of Optuna."""
    return [dict(trial.controls if isinstance(trial, Trial) else trial.params) for trial in trials]


def finished(study: optuna.Study, outputs: Outputs, trial: Any) -> None:
    """Store the outputs of a trial's stages and tell Optuna its value."""
    for stage, values in outputs.items():
        trial.set_user_attr(f"cascada:{stage}", list(values))
    study.tell(trial, outputs["cure"][0])


def work(url: str, runs: int) -> None:
    """Run trials of a study in a shared storage."""
    sampler = CascadaSampler(network(), seed=3)
    study = optuna.load_study(study_name="shared", storage=url, sampler=sampler)
    study.optimize(sampler.objective(FUNCTIONS), n_trials=runs)


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
