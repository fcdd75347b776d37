"""Fakes of the peers' libraries with the calls made by the adapters, which validate arguments like the real ones.

They choose points at random, so that whole runs are possible.
"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest


def install(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    """Make `import` find these modules instead of installed ones; two underscores in a name mean a dot."""
    for name, content in modules.items():
        module = ModuleType(name.replace("__", "."))
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)


class Tensor:
    """Needed because scipy checks whether an array is a tensor of a loaded torch."""


class Distribution:
    """A range of Optuna."""

    def __init__(self, low: float, high: float, log: bool = False, step: float | None = None) -> None:
        self.low, self.high, self.log, self.step = low, high, log, step


class IntDistribution(Distribution):
    """A range of whole numbers."""


class CategoricalDistribution:
    """Values without an order."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices = choices


class FakeStudy:
    """Trials as (state, params, value)."""

    def __init__(self, sampler: Any) -> None:
        self.sampler, self.trials, self.rng = sampler, list[Any](), np.random.default_rng(sampler.seed)

    def ask(self, distributions: dict[str, Any]) -> Any:
        params: dict[str, Any] = {}
        for name, each in distributions.items():
            if isinstance(each, CategoricalDistribution):
                params[name] = each.choices[int(self.rng.integers(len(each.choices)))]
                continue
            whole = isinstance(each, IntDistribution)
            params[name] = (
                int(self.rng.integers(int(each.low), int(each.high) + 1)) if whole else self.rng.uniform(0.2, 0.9)
            )
        self.trials.append(SimpleNamespace(params=params, value=None, state="running", distributions=distributions))
        return self.trials[-1]

    def tell(self, trial: Any, value: float | None = None, state: str | None = None) -> None:
        assert trial.state == "running"
        trial.value, trial.state = value, state or "complete"

    def add_trial(self, trial: Any) -> None:
        self.trials.append(trial)


class Optuna:
    """The module; `studies` lists the created studies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.studies: list[FakeStudy] = []
        install(
            monkeypatch,
            optuna={
                "logging": SimpleNamespace(WARNING=30, set_verbosity=lambda _level: None),
                "samplers": SimpleNamespace(TPESampler=_options("tpe"), GPSampler=_options("gp")),
                "distributions": SimpleNamespace(
                    FloatDistribution=Distribution,
                    IntDistribution=IntDistribution,
                    CategoricalDistribution=CategoricalDistribution,
                ),
                "trial": SimpleNamespace(create_trial=_create_trial, TrialState=SimpleNamespace(FAIL="failed")),
                "create_study": self._create_study,
            },
            torch={"Tensor": Tensor},
        )

    def _create_study(self, direction: str, sampler: Any) -> FakeStudy:
        assert direction == "maximize"
        self.studies.append(FakeStudy(sampler))
        return self.studies[-1]


def _create_trial(params: dict[str, Any], distributions: dict[str, Any], value: float) -> Any:
    assert set(params) == set(distributions)
    return SimpleNamespace(params=params, value=value, state="complete", distributions=distributions)


def _options(kind: str) -> Any:
    return lambda **options: SimpleNamespace(kind=kind, **options)


class BayesOpt:
    """The module bayes_opt; `registered` holds the points of the last optimiser, `made` its options."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registered: list[tuple[dict[str, float], float]] = []
        self.made: dict[str, Any] = {}
        acquisition = SimpleNamespace(ExpectedImprovement=_options("ei"))
        install(monkeypatch, bayes_opt={"BayesianOptimization": self._make, "acquisition": acquisition})

    def _make(self, **options: Any) -> Any:
        self.made, self.registered = options, []
        rng = np.random.default_rng(options["random_state"])

        def suggest() -> dict[str, float]:
            return {name: rng.uniform() for name in options["pbounds"]}

        return SimpleNamespace(suggest=suggest, register=self._register)

    def _register(self, params: dict[str, float], target: float) -> None:
        assert all(low <= params[name] <= high for name, (low, high) in self.made["pbounds"].items())
        self.registered.append((params, target))


class BoTorch:
    """The modules of BoTorch and torch, with arrays as tensors; `asked` holds the arguments of each acquisition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seeds: list[int] = []
        self.asked: list[Any] = []
        self._rng = np.random.default_rng(0)
        torch = {
            "manual_seed": self._manual_seed,
            "tensor": lambda rows, dtype: np.array(rows, dtype=dtype),
            "float64": np.float64,
            "Size": tuple,
            "Tensor": Tensor,
        }
        install(
            monkeypatch,
            torch=torch,
            botorch={},
            botorch__acquisition={"qLogExpectedImprovement": self._acquisition},
            botorch__models={"SingleTaskGP": self._model},
            botorch__models__transforms={"Standardize": _options("standardize")},
            botorch__fit={"fit_gpytorch_mll": self._fit},
            botorch__sampling={"SobolQMCNormalSampler": lambda size, seed: (size, seed)},
            botorch__optim={"optimize_acqf": self._optimize},
            gpytorch={},
            gpytorch__mlls={"ExactMarginalLogLikelihood": lambda _likelihood, model: model},
        )

    def _manual_seed(self, seed: int) -> None:
        self.seeds.append(seed)

    def _model(self, points: Any, values: Any, outcome_transform: Any) -> Any:
        assert points.shape[0] == values.shape[0]
        assert values.shape[1] == outcome_transform.m == 1
        return SimpleNamespace(points=points, values=values, likelihood=None, fitted=False)

    def _fit(self, model: Any) -> None:
        model.fitted = True

    def _acquisition(self, model: Any, best_f: float, sampler: Any) -> Any:
        assert model.fitted
        self.asked.append(SimpleNamespace(model=model, best_f=best_f, sampler=sampler))
        return self.asked[-1]

    def _optimize(self, _score: Any, bounds: Any, q: int, num_restarts: int, raw_samples: int) -> Any:
        assert (q, num_restarts > 0, raw_samples > 0) == (1, True, True)
        return self._rng.uniform(bounds[0], bounds[1])[None], None
