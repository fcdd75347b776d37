"""Evidence of readings with errors against the assumptions about one stage.

A number such as "B ≥ 2.3" is given only where it follows from the readings of the stage and of its parents alone. For
every vector a, readings y with |y_i − f(v_i)| ≤ ε_i and inputs v_i within η_i of the places C_i imply

    yᵀa − Σ ε_i|a_i| ≤ B·(sqrt(aᵀKa) + Σ d_k(η_i)·|a_i|).

The best a for exact inputs maximises 2yᵀa − aᵀKa − 2Σ ε_i|a_i|. Coordinate ascent finds it; every step is a witness.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.evidence import Evidence, listed
from cascada.confidence.read_rows import ReadRows
from cascada.kernels.stationary import Stationary
from cascada.outwards import apart, as_given, as_percent, rounded_down

_SWEEPS = 60
# The ascent is worth its time if a first witness needs this part of B.
_SUSPICIOUS = 0.8
_OR_ERROR = " Or the errors of the readings are larger than given: raise error= instead."


@dataclass(frozen=True)
class ReadingEvidence(Evidence):
    """Evidence against a norm bound or the errors of the readings: one of them is too small."""

    error: float = 0.0  # as given
    needed_error: float | None = None  # all rows are possible only with more, if inputs are exact

    def in_words(self, of_output: str, trials: Sequence[int] | None = None) -> str:
        noun = "observation" if trials is None else "trial"
        numbers = sorted(self.rows if trials is None else {int(trials[row]) for row in self.rows})
        given, needed = apart(self.given, self.needed)
        errors = "larger errors" if self.needed_error is None else f"errors of more than {self._needed_error_text}"
        return (
            f"The norm_bound{of_output} is given as {given} and the error as {as_given(self.error)}, but "
            f"{listed(noun, numbers)} possible only with a norm_bound of more than {needed}, or with {errors}. Raise "
            f"one of them well above that, as other runs may need more, or check those {noun}s."
        )

    @property
    def _needed_error_text(self) -> str:
        assert self.needed_error is not None, "asked only if it is known"
        return rounded_down(self.needed_error, 4)


@dataclass(frozen=True)
class Conflict(Evidence):
    """Several assumptions that cannot all be true with the readings; which of them is wrong is not known."""

    assumed: tuple[str, ...] = ()
    confidence: float | None = None  # the probability with which true assumptions are not refuted; None: always

    def in_words(self, of_output: str, trials: Sequence[int] | None = None) -> str:  # noqa: ARG002
        sure = "No" if self.confidence is None else f"At confidence {as_percent(self.confidence)}, no"
        return (
            f"{sure} values agree with all readings: at least one of these is too small: {', '.join(self.assumed)}. "
            f"Raise it, or check the readings."
        )

    @classmethod
    def of(cls, assumed: Sequence[str], confidence: float | None = None) -> "Conflict":
        """From the assumptions in words."""
        nan = float("nan")
        return cls("several", None, (), nan, nan, nan, assumed=tuple(assumed), confidence=confidence)


@dataclass(frozen=True)
class ConfidentEvidence(Evidence):
    """Evidence from readings with scatter: true assumptions are refuted with a small probability only."""

    confidence: float = 0.0
    inner: Evidence | None = None

    @classmethod
    def of(cls, evidence: Evidence, confidence: float) -> "ConfidentEvidence":
        """Evidence that holds with this probability."""
        inner = evidence
        if isinstance(inner, ReadingEvidence):
            inner = replace(inner, needed_error=None)  # the scale of the scatter has no such number
        named = (inner.assumption, inner.output, inner.rows, inner.given, inner.smallest, inner.needed)
        return cls(*named, category=inner.category, confidence=confidence, inner=inner)

    def in_words(self, of_output: str, trials: Sequence[int] | None = None) -> str:
        assert self.inner is not None, "made by `of` only"
        return f"At confidence {as_percent(self.confidence)}: {self.inner.in_words(of_output, trials)}"


def reading_evidence(belief: BoundedBelief, raw: ReadRows, reach: Array, error: Array) -> tuple[Evidence, ...]:
    """Evidence from rows without repeats, whose inputs are within `reach` (n, d) of their places.

    The boxes of the rows contain the errors of the readings, `error` (p,), and nothing else.
    """
    found: list[Evidence] = []
    if belief.lipschitz is not None:
        found += _too_steep(belief, raw, reach)
    if belief.assumption.joint is None:
        found += [one for j in range(len(error)) if (one := _too_large(belief, raw, reach, j, float(error[j])))]
    return tuple(found)


def _too_large(belief: BoundedBelief, raw: ReadRows, reach: Array, j: int, error: float) -> Evidence | None:
    kernel, bound = belief.kernel, float(belief.norm_bound[j])
    y, errors = raw.middle[:, j], raw.error[:, j]
    moved = kernel.distance(kernel.scaled_norm(reach))
    gram = kernel(raw.places, raw.places)
    weights = errors * np.sqrt(kernel.variance) / bound + 1e-8 * kernel.variance
    a = np.asarray(np.linalg.solve(gram + np.diag(weights), y), dtype=np.float64)
    if smallest_norm(kernel, gram, y, errors, moved, a) < _SUSPICIOUS * bound:
        return None
    a = witness(gram, y, errors)
    needed = smallest_norm(kernel, gram, y, errors, moved, a)
    if not needed > bound:
        return None
    rows = tuple(raw.numbers[i] for i in np.flatnonzero(a))
    factor = None
    weight = float(errors @ np.abs(a))
    if not moved.any() and weight > 0:
        factor = max(float(y @ a) * (1 - 1e-12) - bound * _norm_above(kernel, gram, a), 0.0) / weight
    return ReadingEvidence(
        "norm_bound",
        j,
        rows,
        bound,
        needed,
        needed,
        error=error,
        needed_error=None if factor is None else factor * error,
    )


def witness(gram: Array, y: Array, errors: Array) -> Array:
    """a (n,) that maximises 2yᵀa − aᵀKa − 2Σ ε_i|a_i|, by coordinate ascent with soft thresholds."""
    a, left = np.zeros(len(y)), y.copy()  # y − Ka
    diagonal = np.diag(gram) * (1 + 1e-9)
    for _ in range(_SWEEPS):
        before = a.copy()
        for i in range(len(y)):
            target = left[i] + diagonal[i] * a[i]
            new = np.sign(target) * max(abs(target) - errors[i], 0.0) / diagonal[i]
            if new != a[i]:
                left -= gram[:, i] * (new - a[i])
                a[i] = new
        if np.max(np.abs(a - before), initial=0.0) <= 1e-6 * np.max(np.abs(a), initial=0.0):
            break
    return a


def smallest_norm(kernel: Stationary, gram: Array, y: Array, errors: Array, moved: Array, a: Array) -> float:
    """A norm that every f with these readings exceeds, by the witness a (n,), rounded down."""
    size = np.abs(a)
    rounding = 4 * (len(y) + 8) * UNIT_ROUNDOFF * float(np.abs(y) @ size)
    gain = float(y @ a) - float(errors @ size) * (1 + 4 * (len(y) + 8) * UNIT_ROUNDOFF) - rounding
    spread = _norm_above(kernel, gram, a) + float(moved @ size) * (1 + 4 * (len(y) + 8) * UNIT_ROUNDOFF)
    return gain / spread * (1 - 8 * UNIT_ROUNDOFF) if gain > 0 and spread > 0 else 0.0


def _norm_above(kernel: Stationary, gram: Array, a: Array) -> float:
    """sqrt(aᵀKa), rounded up."""
    rounding = 4 * (len(a) + kernel.rounding) * UNIT_ROUNDOFF * kernel.variance * float(np.abs(a).sum()) ** 2
    return float(np.sqrt(max(float(a @ gram @ a), 0.0) + rounding)) * (1 + 4 * UNIT_ROUNDOFF)


def _too_steep(belief: BoundedBelief, raw: ReadRows, reach: Array) -> list[Evidence]:
    """Pairs of rows between which an output is steeper than L, whatever the errors."""
    found: list[Evidence] = []
    if len(raw) < 2:
        return found
    distance = np.linalg.norm(raw.places[:, None] - raw.places, axis=2)
    off = np.linalg.norm(reach, axis=1)
    distance = (distance + off[:, None] + off) * (1 + 16 * UNIT_ROUNDOFF) + np.finfo(float).tiny
    codes = raw.places[:, list(belief.kernel.codes)]
    distance[(codes[:, None] != codes).any(axis=2)] = np.inf  # L says nothing between values without an order
    assert belief.lipschitz is not None, "called only with a Lipschitz constant"
    for j, constant in enumerate(belief.lipschitz):
        change = np.maximum(raw.values.lower[:, None, j] - raw.values.upper[:, j], 0.0) * (1 - 4 * UNIT_ROUNDOFF)
        slopes = change / distance * (1 - 4 * UNIT_ROUNDOFF)
        if slopes.max() > constant:
            pair = np.unravel_index(int(slopes.argmax()), slopes.shape)
            rows = tuple(sorted(raw.numbers[int(i)] for i in pair))
            steepest = float(slopes.max())
            found.append(Evidence("lipschitz", j, rows, float(constant), steepest, steepest, hint=_OR_ERROR))
    return found
