"""A process of two stages: the sampler learns from the output of each, and says how far from the best it can be."""

import math

import optuna
import optunahub

hub = optunahub.load_local_module(package="samplers/cascada", registry_root="./package/")

kernel = hub.SquaredExponential(1.0)
mix = hub.Stage("mix", controls={"dose": hub.Real(-2, 2)}, kernel=kernel, norm_bound=2.0)
cure = hub.Stage("cure", controls={"heat": hub.Real(-2, 2)}, kernel=kernel, norm_bound=2.0)
sampler = hub.CascadaSampler(hub.chain(mix, cure), tolerance=0.01)
objective = sampler.objective(
    [
        lambda dose: 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2),
        lambda mix, heat: 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (heat + 0.3) ** 2)),
    ]
)

study = optuna.create_study(sampler=sampler, direction="maximize")
study.optimize(objective, n_trials=40)
print(study.best_params, study.best_value)
print(sampler.certificate(study))
