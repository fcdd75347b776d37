"""BoTorch's mixed optimiser as a contestant: a model of numbers and categories, optimised in turns."""

from importlib import import_module
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.experiments.peers import BoTorchPeer
from cascada.space import Domain

# The search has so many starts, the best of so many points.
RESTARTS, RAW_SAMPLES = 4, 128


class BoTorchMixedPeer(BoTorchPeer):
    """`MixedSingleTaskGP`, refitted after every run, qLogEI, and `optimize_acqf_mixed_alternating`.

    The latter moves numbers and categories in turn. `optimize_acqf_mixed` has a search for each combination of
    categories instead, of which there are up to 60. Numbers are scaled to [0, 1]; choices are codes.
    """

    def ask(self) -> Array:
        torch, domain = self._torch, self._domain
        sampler = import_module("botorch.sampling").SobolQMCNormalSampler(torch.Size([128]), seed=self._seed)
        score = self._score(self._model(), sampler)
        numbers = np.ones(domain.dimension)
        numbers[domain.choices] = domain.upper[domain.choices]
        bounds = torch.tensor(np.array([np.zeros(domain.dimension), numbers]), dtype=torch.float64)
        values = {j: [float(code) for code in range(round(domain.upper[j]) + 1)] for j in domain.choices}
        optimize = import_module("botorch.optim.optimize_mixed").optimize_acqf_mixed_alternating
        found, _ = optimize(score, bounds=bounds, cat_dims=values, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        return _user_units(domain, np.array(found.tolist()[0]))

    def tell(self, point: Array, value: float) -> None:
        coordinates = self._domain.encode(point[None])[0]
        scaled = np.clip((coordinates - self._domain.lower) / self._domain.sides, 0.0, 1.0)
        scaled[self._domain.choices] = coordinates[self._domain.choices]
        self._points.append(scaled.tolist())
        self._values.append([value])

    def _model(self) -> Any:
        torch, models = self._torch, import_module("botorch.models")
        points = torch.tensor(self._points, dtype=torch.float64)  # (n, d)
        values = torch.tensor(self._values, dtype=torch.float64)  # (n, 1)
        standardize = import_module("botorch.models.transforms").Standardize(m=1)
        model = models.MixedSingleTaskGP(points, values, cat_dims=self._domain.choices, outcome_transform=standardize)
        likelihood = import_module("gpytorch.mlls").ExactMarginalLogLikelihood(model.likelihood, model)
        import_module("botorch.fit").fit_gpytorch_mll(likelihood)
        return model


def _user_units(domain: Domain, scaled: Array) -> Array:
    """A point (d,) in user units."""
    coordinates = domain.lower + scaled * domain.sides
    coordinates[domain.choices] = np.rint(scaled[domain.choices])
    return domain.decode(coordinates[None])[0]
