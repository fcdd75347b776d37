"""Belief about a stage that may do anything else in each category: a belief for every category, each with its own B.

This is the weaker assumption: ‖f_c‖ ≤ B for every category c. One norm of all categories together, which `Coded`
kernels have, would be one budget for all of them. What one category uses up is not taken from the others; anchors,
radii and refutations are those of a category.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, IntArray, as_outputs, as_points
from cascada.confidence.belief import Belief
from cascada.confidence.belief_base import BeliefBase
from cascada.confidence.evidence import Evidence
from cascada.confidence.regions import Balls
from cascada.errors import ArgumentError
from cascada.gp.categories import Categories
from cascada.gp.split_posterior import SplitPosterior


@dataclass(frozen=True, eq=False)
class SplitBelief(BeliefBase[Any]):
    """Beliefs of the inputs without codes, one for each category; `names` say in evidence which one it is."""

    categories: Categories
    parts: tuple[BeliefBase[Any], ...]
    names: tuple[str, ...]
    numbers: tuple[IntArray, ...]  # which of all observations each category received
    received: int = 0

    @classmethod
    def of(cls, categories: Categories, parts: tuple[BeliefBase[Any], ...], names: tuple[str, ...]) -> Self:
        """From beliefs before any data."""
        return cls(categories, parts, names, (np.empty(0, dtype=np.int64),) * len(parts))

    @cached_property
    def posterior(self) -> SplitPosterior:  # type: ignore[override]
        """The posteriors of all categories."""
        return SplitPosterior(self.categories, tuple(part.posterior for part in self.parts))

    @property
    def norm_bound(self) -> Array:  # type: ignore[override]
        """The largest B of a category, for every output (p,)."""
        return np.max([np.atleast_1d(part.norm_bound) for part in self.parts], axis=0)

    @property
    def lipschitz(self) -> Array | float | None:  # type: ignore[override]
        """L, which is the same in every category."""
        return self.parts[0].lipschitz

    @property
    def tight(self) -> bool:  # type: ignore[override]
        """Whether radii are ρ_t."""
        return self.parts[0].tight

    @property
    def output_error(self) -> Array:  # type: ignore[override]
        """The largest error of an observed output in any category, (p,)."""
        return np.max([part.output_error for part in self.parts], axis=0)

    # ---- kind

    @property
    def joint(self) -> bool:
        """Whether the outputs share one norm in each category."""
        return self.parts[0].joint

    @property
    def has_output_beliefs(self) -> bool:
        """Whether every category has a belief about every output by itself."""
        return self.parts[0].has_output_beliefs

    @property
    def per_output(self) -> Belief | None:
        """None: there is one belief for every category. See `outputs_alone`."""
        return None

    @cached_property
    def outputs_alone(self) -> "SplitBelief | None":
        """The beliefs about every output by itself, for every category; None for a general operator-valued kernel."""
        parts = tuple(part.per_output for part in self.parts)
        alone = tuple(part for part in parts if part is not None)
        return replace(self, parts=alone) if len(alone) == len(parts) else None

    def with_part(self, category: int, part: BeliefBase[Any]) -> Self:
        """The same with another belief about a category, by its number."""
        return replace(self, parts=(*self.parts[:category], part, *self.parts[category + 1 :]))

    # ---- data

    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "SplitBelief":
        """The belief after more observations, each learned by its category. `each`: see `Posterior.append`."""
        inputs = as_points(X, "X", self.posterior.dimension)
        outputs = as_outputs(Y, "Y", len(inputs), self.posterior.output_count)
        parts, numbers = list(self.parts), list(self.numbers)
        others = self.categories.others
        for i, rows in self.categories.groups(inputs):
            parts[i] = parts[i].append(inputs[rows][:, others], outputs[rows], each=each)
            numbers[i] = np.append(numbers[i], self.received + rows)
        return replace(self, parts=tuple(parts), numbers=tuple(numbers), received=self.received + len(inputs))

    def with_output_error(self, error: Array) -> "SplitBelief":
        """The same belief if observed outputs may be off by `error`, (p,)."""
        return self._mapped(lambda part: part.with_output_error(error))

    @property
    def jitter(self) -> float:
        """λ of the posteriors, relative to the prior variance."""
        return self.parts[0].jitter

    # ---- assumptions

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """What the data say against B and L, with the category."""
        found: list[Evidence] = []
        for part, name, numbers in zip(self.parts, self.names, self.numbers, strict=True):
            for one in part.evidence:
                rows = tuple(int(numbers[row]) for row in one.rows)
                found.append(replace(one, rows=rows, category=name))
        return tuple(found)

    def with_lipschitz(self, constants: Mapping[int | None, float]) -> "SplitBelief":
        """The same belief with Lipschitz constants of at least these in every category."""

        def raised(part: BeliefBase[Any]) -> BeliefBase[Any]:
            known = np.atleast_1d(part.lipschitz) if part.lipschitz is not None else np.zeros(1)
            return part.with_lipschitz({j: max(value, float(known[j or 0])) for j, value in constants.items()})

        return self._mapped(raised)

    def with_width(self, width: float) -> "SplitBelief":
        """The same belief with the bounds μ ± width·σ, whatever its norm bounds."""
        return self._mapped(lambda part: part.with_width(width))

    @property
    def raw_lipschitz(self) -> Array | float | None:
        """The largest Lipschitz constant of a category in raw ℓ2 distance; None if none follows."""
        found = [part.raw_lipschitz for part in self.parts if part.raw_lipschitz is not None]
        if len(found) < len(self.parts):
            return None
        most = np.max([np.atleast_1d(constant) for constant in found], axis=0)
        return float(most[0]) if self.joint else most

    def modulus(self, differences: Array) -> Array:
        """The most that every output can change over differences within a category, (…, p), rounded up."""
        others = self.categories.others
        found: Array = np.max([part.modulus(differences[..., others]) for part in self.parts], axis=0)
        return found

    # ---- sizes

    @property
    def largest_sd(self) -> float:
        """The largest prior sd of the outputs."""
        return max(part.largest_sd for part in self.parts)

    @cached_property
    def largest_values(self) -> Array:
        """B·s, the largest |f| of every output in any category, (p,)."""
        return np.max([part.largest_values for part in self.parts], axis=0)

    # ---- predictions

    def radius_at(self, inputs: Array) -> Array:
        """The radius of every output at rows of inputs (n, d), (n, p)."""
        radii = np.array([part.radius_at(inputs[:1])[0] for part in self.parts])
        return np.asarray(radii[self.categories.of(inputs)])

    def predict_quickly(self, inputs: Array) -> Any:
        """The posteriors' prediction."""
        return self.posterior.predict(inputs)

    def output_sds(self, prediction: Any) -> Array:
        """The posterior sd of every output, (n, p)."""
        return self.parts[0].output_sds(prediction)

    def half_widths(self, prediction: Any, rounding: Array) -> Array:  # noqa: ARG002
        """Not available: a prediction does not say of which category it is."""
        raise ArgumentError("bounds of a stage with categories are made for one category at a time.")

    def sample(self, prediction: Any, shape: tuple[int, ...], xi: Array) -> Array:
        """Samples (n, S, p); see `BeliefBase.sample`."""
        return self.parts[0].sample(prediction, shape, xi)

    # ---- balls

    def region(self, inputs: Balls) -> Balls:  # noqa: ARG002
        """Not available: a ball of inputs contains several categories."""
        raise ArgumentError("a ball of inputs contains several categories; use boxes of one category.")

    def image(self, inputs: Balls, offset: Array) -> Balls:  # noqa: ARG002
        """Not available: see `region`."""
        raise ArgumentError("a ball of inputs contains several categories; use boxes of one category.")

    def _mapped(self, change: Any) -> Self:
        return replace(self, parts=tuple(change(part) for part in self.parts))
