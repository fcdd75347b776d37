"""A posterior for every category of the inputs: what is learned in one says nothing of the others."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, as_points
from cascada.gp.categories import Categories
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.posterior import Posterior, Prediction, PredictionGradient

R = TypeVar("R", Prediction, OperatorPrediction, PredictionGradient)


@dataclass(frozen=True, eq=False)
class SplitPosterior:
    """Posteriors of the inputs without codes, one for each category."""

    categories: Categories
    parts: tuple[Posterior | OperatorPosterior, ...]

    @property
    def dimension(self) -> int:
        """d: the number of inputs, codes included."""
        return self.categories.dimension

    @property
    def output_count(self) -> int:
        """p: the number of outputs."""
        return self.parts[0].output_count

    @property
    def count(self) -> int:
        """t: the number of observations in all categories, without repeats."""
        return sum(part.count for part in self.parts)

    @cached_property
    def inputs(self) -> Array:
        """X (t, d) with codes, category by category."""
        found = [np.empty((0, self.dimension))]
        for codes, part in zip(self.categories.codes, self.parts, strict=True):
            X = np.empty((part.count, self.dimension))
            X[:, self._others] = part.inputs
            X[:, list(self.categories.columns)] = codes
            found.append(X)
        return np.concatenate(found)

    def predict(self, Z: ArrayLike) -> Any:
        """The prediction at the rows of Z, each by the posterior of its category."""
        points = as_points(Z, "Z", self.dimension)
        found = [(rows, self.parts[i].predict(points[rows][:, self._others])) for i, rows in self._groups(points)]
        if not found:
            return self.parts[0].predict(points[:, self._others])
        return _gathered(found, len(points))

    def predict_gradient(self, Z: ArrayLike) -> PredictionGradient:
        """The same with gradients in the inputs; 0 for codes."""
        points = as_points(Z, "Z", self.dimension)
        found = []
        for i, rows in self._groups(points):
            at = self._scalar(i).predict_gradient(points[rows][:, self._others])
            gradients = self._with_codes(at.mean_gradient), self._with_codes(at.sd_gradient)
            found.append((rows, PredictionGradient(at.mean, at.sd, *gradients)))
        if not found:
            n, p, d = 0, self.output_count, self.dimension
            return PredictionGradient(np.empty((n, p)), np.empty(n), np.empty((n, p, d)), np.empty((n, d)))
        return _gathered(found, len(points))

    def mean_gradient(self, Z: ArrayLike) -> tuple[Array, Array]:
        """The means (n, p) and their gradients (n, p, d); 0 for codes."""
        points = as_points(Z, "Z", self.dimension)
        mean = np.empty((len(points), self.output_count))
        gradient = np.zeros((*mean.shape, self.dimension))
        for i, rows in self._groups(points):
            mean[rows], slopes = self._scalar(i).mean_gradient(points[rows][:, self._others])
            gradient[rows] = self._with_codes(slopes)
        return mean, gradient

    def _groups(self, points: Array) -> Any:
        return self.categories.groups(points)

    @cached_property
    def _others(self) -> list[int]:
        return self.categories.others

    def _scalar(self, category: int) -> Posterior:
        part = self.parts[category]
        assert isinstance(part, Posterior), "gradients are asked of outputs by themselves"
        return part

    def _with_codes(self, gradient: Array) -> Array:
        """Gradients (..., d) with 0 for codes."""
        found = np.zeros((*gradient.shape[:-1], self.dimension))
        found[..., self._others] = gradient
        return found


def _gathered(found: list[tuple[Any, R]], n: int) -> R:
    """One prediction of n rows from those of some rows each."""
    first = found[0][1]
    values: dict[str, Array] = {}
    for field in fields(first):
        some: Array = getattr(first, field.name)
        values[field.name] = whole = np.empty((n, *some.shape[1:]))
        for rows, part in found:
            whole[rows] = getattr(part, field.name)
    return type(first)(**values)
