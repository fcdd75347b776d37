"""Contestants of `benchmarks.limits_estimated`: cascada, Optuna's Gaussian process sampler and BoTorch, with limits.

cascada gets the outputs of every stage. The others get the objective and, for each end of a limit, by how much it is
exceeded. Each uses the defaults of its library, except for options that describe the benchmark (no noise).
"""

from importlib import import_module
from typing import Any, Protocol

import numpy as np

from benchmarks.limited_problems import LimitedProblem
from cascada.arrays import Array
from cascada.experiments.peers import from_unit, to_unit
from cascada.study import Study


class Contestant(Protocol):
    """Suggests points (d,) in user units, and receives rows of all values (V,)."""

    def ask(self) -> Array: ...

    def tell(self, point: Array, row: Array) -> None: ...


class Cascada:
    """A study with the algorithm for unknown norms."""

    def __init__(self, problem: LimitedProblem, seed: int) -> None:
        self._study = Study(problem.network, seed=seed)

    def ask(self) -> Array:
        trial = self._study.ask()
        assert trial is not None, "a box of real numbers is never exhausted"
        self._study.abandon(trial)  # its run is added when it is told
        return self._study.network.domain.row(trial.controls)

    def tell(self, point: Array, row: Array) -> None:
        network = self._study.network
        outputs = {node.stage.name: [float(row[j]) for j in node.columns] for node in network.nodes}
        self._study.add_trial(network.domain.named(point), outputs)


class RandomPoints:
    """Uniform random points."""

    def __init__(self, problem: LimitedProblem, seed: int) -> None:
        self._domain, self._rng = problem.network.domain, np.random.default_rng([seed, 7])

    def ask(self) -> Array:
        return self._domain.decode(self._rng.uniform(self._domain.lower, self._domain.upper)[None])[0]

    def tell(self, point: Array, row: Array) -> None:
        pass


class OptunaGP:
    """Optuna's `GPSampler` with constraints."""

    def __init__(self, problem: LimitedProblem, seed: int) -> None:
        optuna = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._problem, self._create = problem, optuna.trial.create_trial
        controls = problem.network.domain.controls
        self._distributions = {
            name: optuna.distributions.FloatDistribution(control.low, control.high, log=control.log)
            for name, control in controls.items()
        }
        sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=1, deterministic_objective=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._asked: Any = None

    def ask(self) -> Array:
        self._asked = self._study.ask(self._distributions)
        return np.array([self._asked.params[name] for name in self._distributions])

    def tell(self, point: Array, row: Array) -> None:
        network = self._problem.network
        value = network.sign * float(row[network.objective_column])
        constraints = {str(i): float(v) for i, v in enumerate(self._problem.excesses(row[None])[0])}
        if self._asked is None:
            params = dict(zip(self._distributions, point.tolist(), strict=True))
            self._study.add_trial(
                self._create(params=params, distributions=self._distributions, value=value, constraints=constraints)
            )
            return
        for key, excess in constraints.items():
            self._asked.set_constraint(key, excess)
        self._study.tell(self._asked, value)
        self._asked = None


class BoTorch:
    """Constrained qLogEI in the unit cube: one `SingleTaskGP` for the objective and for each end of a limit.

    As long as no run is feasible it is qLogProbabilityOfFeasibility.
    """

    def __init__(self, problem: LimitedProblem, seed: int) -> None:
        self._torch = import_module("torch")
        self._torch.manual_seed(seed)
        self._torch.set_num_threads(1)
        self._problem, self._seed = problem, seed
        self._points: list[list[float]] = []
        self._values: list[list[float]] = []  # the objective, then the excesses

    def ask(self) -> Array:
        torch, domain = self._torch, self._problem.network.domain
        points = torch.tensor(self._points, dtype=torch.float64)
        values = torch.tensor(self._values, dtype=torch.float64)
        models, transforms = import_module("botorch.models"), import_module("botorch.models.transforms")
        parts = [
            models.SingleTaskGP(points, values[:, [j]], outcome_transform=transforms.Standardize(m=1))
            for j in range(values.shape[1])
        ]
        model = models.ModelListGP(*parts)
        likelihood = import_module("gpytorch.mlls").SumMarginalLogLikelihood(model.likelihood, model)
        import_module("botorch.fit").fit_gpytorch_mll(likelihood)
        sampler = import_module("botorch.sampling").SobolQMCNormalSampler(torch.Size([512]), seed=self._seed)
        logei = import_module("botorch.acquisition.logei")
        constraints = [_excess(j) for j in range(1, values.shape[1])]
        feasible = (values[:, 1:] <= 0).all(dim=1)
        if feasible.any():
            score = logei.qLogExpectedImprovement(
                model,
                best_f=values[feasible, 0].max(),
                sampler=sampler,
                objective=import_module("botorch.acquisition.objective").GenericMCObjective(_objective),
                constraints=constraints,
            )
        else:
            score = logei.qLogProbabilityOfFeasibility(model, constraints=constraints, sampler=sampler)
        bounds = torch.tensor([[0.0] * domain.dimension, [1.0] * domain.dimension], dtype=torch.float64)
        found, _ = import_module("botorch.optim").optimize_acqf(
            score, bounds=bounds, q=1, num_restarts=10, raw_samples=512
        )
        return from_unit(domain, np.array(found.tolist()[0]))

    def tell(self, point: Array, row: Array) -> None:
        network = self._problem.network
        self._points.append(to_unit(network.domain, point).tolist())
        value = network.sign * float(row[network.objective_column])
        self._values.append([value, *self._problem.excesses(row[None])[0].tolist()])


def _objective(samples: Any, X: Any = None) -> Any:  # noqa: ARG001
    return samples[..., 0]


def _excess(j: int) -> Any:
    return lambda samples: samples[..., j]


CONTESTANTS = {"cascada": Cascada, "optuna-gp": OptunaGP, "botorch-qlogei": BoTorch, "random": RandomPoints}
PACKAGES = {"cascada": (), "optuna-gp": ("optuna", "torch"), "botorch-qlogei": ("botorch", "torch"), "random": ()}
