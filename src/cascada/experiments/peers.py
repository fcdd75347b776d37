"""Other libraries as contestants of `cascada bench`: black-box optimisers that get only the final objective.

Each is a small class with `ask` and `tell`. It uses the defaults of its library except for options that describe the
benchmark (no noise, a given initial design). The libraries are optional and imported only when they are used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.space import Choice, Control, Domain


class Peer(Protocol):
    """An optimiser that maximises one number; points are (d,) in user units."""

    def ask(self) -> Array:
        """The next point."""
        ...

    def tell(self, point: Array, value: float) -> None:
        """Receive the value of a run at the suggested point or at another one."""
        ...


@dataclass(frozen=True)
class PeerKind:
    """A factory of peers (from a domain, a seed and the size of the initial design) and the packages it needs."""

    make: Callable[[Domain, int, int], Peer]
    packages: Mapping[str, str]  # module → name of the package to install

    @property
    def versions(self) -> dict[str, str]:
        """The installed versions of its packages."""
        return {package: _version(package) for package in self.packages.values()}


class OptunaPeer:
    """A sampler of Optuna with ask and tell; the initial design is added as trials."""

    def __init__(self, domain: Domain, sampler: Any) -> None:
        optuna = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # otherwise it prints a line per trial
        self._domain, self._trials = domain, optuna.trial
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._distributions = {
            name: _distribution(optuna.distributions, control) for name, control in domain.controls.items()
        }
        self._asked: Any = None

    def ask(self) -> Array:
        self._asked = self._study.ask(self._distributions)
        return np.array(self._domain.coded(self._asked.params))

    def tell(self, point: Array, value: float) -> None:
        params = self._domain.named(point)
        asked, self._asked = self._asked, None
        if asked is not None and asked.params == params:
            self._study.tell(asked, value)
            return
        if asked is not None:  # another point was run in its place
            self._study.tell(asked, state=self._trials.TrialState.FAIL)
        made = self._trials.create_trial(params=params, distributions=self._distributions, value=value)
        self._study.add_trial(made)


class BayesOptPeer:
    """Expected improvement of the package bayesian-optimization.

    It works in the unit cube, because its kernel has one lengthscale for all controls. It needs version 3 or newer,
    because the choices of older versions do not follow from the seed.
    """

    def __init__(self, domain: Domain, seed: int) -> None:
        module = import_module("bayes_opt")
        self._domain = domain
        self._optimizer = module.BayesianOptimization(
            f=None,
            pbounds=dict.fromkeys(domain.names, (0.0, 1.0)),
            acquisition_function=module.acquisition.ExpectedImprovement(xi=0.0),
            random_state=seed,
            verbose=0,
            allow_duplicate_points=True,  # two points may round to the same coordinates
        )

    def ask(self) -> Array:
        found = self._optimizer.suggest()
        return from_unit(self._domain, np.array([float(found[name]) for name in self._domain.names]))

    def tell(self, point: Array, value: float) -> None:
        coordinates = to_unit(self._domain, point)
        self._optimizer.register(params=dict(zip(self._domain.names, coordinates.tolist(), strict=True)), target=value)


class BoTorchPeer:
    """The usual loop of BoTorch in the unit cube: a `SingleTaskGP`, refitted after every run, and qLogEI."""

    def __init__(self, domain: Domain, seed: int) -> None:
        self._torch = import_module("torch")
        self._torch.manual_seed(seed)  # its only generator is global; a worker does one run at a time
        self._domain, self._seed = domain, seed
        self._points: list[list[float]] = []
        self._values: list[list[float]] = []

    def ask(self) -> Array:
        torch = self._torch
        sampler = import_module("botorch.sampling").SobolQMCNormalSampler(torch.Size([512]), seed=self._seed)
        score = self._score(self._model(), sampler)
        bounds = torch.tensor([[0.0] * self._domain.dimension, [1.0] * self._domain.dimension], dtype=torch.float64)
        optimize = import_module("botorch.optim").optimize_acqf
        found, _ = optimize(score, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
        return from_unit(self._domain, np.array(found.tolist()[0]))

    def tell(self, point: Array, value: float) -> None:
        self._points.append(to_unit(self._domain, point).tolist())
        self._values.append([value])

    def _model(self) -> Any:
        """The model fitted to all runs."""
        torch, models = self._torch, import_module("botorch.models")
        points = torch.tensor(self._points, dtype=torch.float64)  # (n, d)
        values = torch.tensor(self._values, dtype=torch.float64)  # (n, 1)
        standardize = import_module("botorch.models.transforms").Standardize(m=1)
        model = models.SingleTaskGP(points, values, outcome_transform=standardize)
        likelihood = import_module("gpytorch.mlls").ExactMarginalLogLikelihood(model.likelihood, model)
        import_module("botorch.fit").fit_gpytorch_mll(likelihood)
        return model

    def _score(self, model: Any, sampler: Any) -> Any:
        """The acquisition function, which is maximised."""
        module = import_module("botorch.acquisition")
        return module.qLogExpectedImprovement(model, best_f=max(self._values)[0], sampler=sampler)


def _distribution(distributions: Any, control: Control) -> Any:
    """The distribution of Optuna for a control."""
    if isinstance(control, Choice):
        return distributions.CategoricalDistribution(control.values)
    if control.integer:
        return distributions.IntDistribution(control.low, control.high, log=control.log)
    return distributions.FloatDistribution(control.low, control.high, log=control.log, step=control.step)


def to_unit(domain: Domain, point: Array) -> Array:
    """A point (d,) in user units as coordinates in the unit cube."""
    scaled = (domain.encode(point[None])[0] - domain.lower) / (domain.upper - domain.lower)
    return np.clip(scaled, 0.0, 1.0)


def from_unit(domain: Domain, unit: Array) -> Array:
    """A point (d,) of the unit cube in user units, rounded for integer controls."""
    return domain.decode((domain.lower + unit * (domain.upper - domain.lower))[None])[0]


def _tpe(domain: Domain, seed: int, initial: int) -> Peer:
    # By default the first ten trials are random; here the initial design replaces them.
    sampler = import_module("optuna").samplers.TPESampler(seed=seed, n_startup_trials=initial)
    return OptunaPeer(domain, sampler)


def _optuna_gp(domain: Domain, seed: int, initial: int) -> Peer:
    samplers = import_module("optuna").samplers
    sampler = samplers.GPSampler(seed=seed, n_startup_trials=initial, deterministic_objective=True)
    return OptunaPeer(domain, sampler)


def _bayes_opt(domain: Domain, seed: int, _initial: int) -> Peer:
    _check_ordered(domain, "bayes-opt")
    return BayesOptPeer(domain, seed)


def _botorch(domain: Domain, seed: int, _initial: int) -> Peer:
    _check_ordered(domain, "botorch-qlogei")
    return BoTorchPeer(domain, seed)


def _check_ordered(domain: Domain, name: str) -> None:
    """Raise `ArgumentError` if the process has choices, whose codes a model of numbers would take as distances."""
    if domain.choices:
        raise ArgumentError(
            f"algorithm {name!r} has no controls without an order; the process has the choice "
            f"{domain.names[domain.choices[0]]!r}. Use 'optuna-tpe' or 'optuna-gp'."
        )


PEERS: Mapping[str, PeerKind] = {
    "optuna-tpe": PeerKind(_tpe, {"optuna": "optuna"}),
    "optuna-gp": PeerKind(_optuna_gp, {"optuna": "optuna", "torch": "torch"}),
    "bayes-opt": PeerKind(_bayes_opt, {"bayes_opt": "bayesian-optimization"}),
    "botorch-qlogei": PeerKind(_botorch, {"torch": "torch", "botorch": "botorch"}),
}


def require(name: str) -> None:
    """Raise `ArgumentError` if a package of the peer is missing."""
    for module, package in PEERS[name].packages.items():
        try:
            import_module(module)
        except ImportError as error:
            raise ArgumentError(
                f"algorithm {name!r} needs the package {package}, which could not be imported ({error}). "
                f"Run: pip install {package}."
            ) from error


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
