"""A random search that ends when its best trial is proven to be within 0.3 of the optimum."""

import math

import optuna
import optunahub

hub = optunahub.load_local_module(package="callbacks/certified_terminator", registry_root="./package/")


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -2, 2)
    y = trial.suggest_float("y", -2, 2)
    return 1.5 * math.exp(-0.5 * ((x - 0.4) ** 2 + (y + 0.3) ** 2))


stage = hub.Stage(
    "value",
    controls={"x": hub.Real(-2, 2), "y": hub.Real(-2, 2)},
    kernel=hub.SquaredExponential(1.0),  # the objective has norm 1.5 under this kernel
    norm_bound=2.0,
)
terminator = hub.CertifiedTerminatorCallback(hub.chain(stage), tolerance=0.3)
study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction="maximize")
study.optimize(objective, n_trials=100, callbacks=[terminator])
print(len(study.trials), "trials, best value", study.best_value)
print(terminator.certificate)
