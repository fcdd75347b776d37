"""Evidence: observations that contradict an assumption, and the smallest value of the assumption that they allow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.gp.rounding import square_rounding
from cascada.outwards import apart, rounded_down

# A bound that has to be raised by this factor is less likely to be wrong than readings that are taken as exact.
_SUSPICIOUS = 2.0
_NOT_EXACT = " Or the readings are not exact: then say how far they may be off with error= at the stage."


@dataclass(frozen=True)
class Evidence:
    """The observations `rows` refute that `assumption` holds with the value `given`.

    These rows are possible only with a value above `needed`, all observations only with a value above `smallest`.
    """

    assumption: str  # "norm_bound" or "lipschitz"
    output: int | None  # which output, None for a joint assumption
    rows: tuple[int, ...]
    given: float
    smallest: float
    needed: float
    hint: str = ""  # a further sentence, with a blank before it
    category: str = ""  # " for wood = 'oak'" where a category has bounds of its own

    def __str__(self) -> str:
        return self.in_words(("" if self.output is None else f" of output {self.output}") + self.category)

    def of_output(self, names: Sequence[str]) -> str:
        """The suffix that names the output, " of …", if the stage has several outputs, and the category."""
        return ("" if self.output is None or len(names) == 1 else f" of {names[self.output]}") + self.category

    def in_words(self, of_output: str, trials: Sequence[int] | None = None) -> str:
        """The message: what was assumed, which observations contradict it, and what to do.

        `trials` are the labels of the trials behind the observations, by the number of the observation (`label_text`).
        """
        noun = "observation" if trials is None else "trial"
        numbers = sorted(self.rows if trials is None else {int(trials[row]) for row in self.rows})
        given, needed = apart(self.given, self.needed)
        more = rounded_down(self.smallest, 6)
        others = f", and all {noun}s together only with more than {more}" if float(more) > float(needed) else ""
        hint = self.hint or (_NOT_EXACT if self.smallest > _SUSPICIOUS * self.given else "")
        return (
            f"The {self.assumption}{of_output} is given as {given}, but {listed(noun, numbers)} possible only with "
            f"more than {needed}{others}. Raise it well above that, as other runs may need more, or check those "
            f"{noun}s.{hint}"
        )


def label_text(label: int) -> str:
    """The name of a run by its label: its number, or ~k for a measurement of a single stage."""
    return f"trial {label}" if label >= 0 else f"measurement {~label}"


def listed(noun: str, numbers: Sequence[int]) -> str:
    """A subject: "trial 3 is", "trials 3 and 7 are", "trials 0 to 5 are", "6 of the trials 0 to 9 are".

    Negative numbers are labels of measurements: "trial 3 and measurement 0 are".
    """
    if numbers[0] < 0:
        measured, runs = sorted(~n for n in numbers if n < 0), [n for n in numbers if n >= 0]
        if not runs:
            return listed("measurement", measured)
        parts = [listed(word, some).rsplit(" ", 1)[0] for word, some in ((noun, runs), ("measurement", measured))]
        return f"{' and '.join(parts)} are"
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return f"{noun} {first} is"
    if len(numbers) == 2:
        return f"{noun}s {first} and {last} are"
    some = "" if last - first + 1 == len(numbers) else f"{len(numbers)} of the "
    return f"{some}{noun}s {first} to {last} are"


def norm_evidence(
    spent: Array, rows: IntArray, norm_bound: Array, budget: Array, joint: bool = False, hint: str = ""
) -> tuple[Evidence, ...]:
    """Evidence against ‖f_j‖ ≤ B_j; `spent` (t, p) is the part of R_j² ≥ B_j² that every observation uses up.

    The norm of the smallest function through the data, up to the jitter, grows row by row: the rows named are the first
    ones that use up more than R². R² − B² covers errors of the outputs and does not count towards the norm.
    """
    total = np.cumsum(spent, axis=0) * (1.0 - square_rounding(len(spent)))  # yᵀ(K+λI)⁻¹y, rounded down
    found = []
    for j in np.flatnonzero(np.any(total > budget, axis=0)):
        last = int(np.argmax(total[:, j] > budget[j]))
        errors = (budget[j] - norm_bound[j] ** 2) * (1 + 8 * UNIT_ROUNDOFF)
        needed, smallest = (float(np.sqrt(max(total[i, j] - errors, 0.0))) for i in (last, -1))
        given, names = float(norm_bound[j]), tuple(int(r) for r in rows[: last + 1])
        up = float(np.nextafter(given, np.inf))  # rounding may have removed a tiny excess
        output = None if joint else int(j)
        found.append(Evidence("norm_bound", output, names, given, max(smallest, up), max(needed, up), hint))
    return tuple(found)


def lipschitz_evidence(
    inputs: Array,
    outputs: Array,
    rows: IntArray,
    lipschitz: Array,
    output_error: Array | float = 0.0,
    joint: bool = False,
    codes: tuple[int, ...] = (),
) -> tuple[Evidence, ...]:
    """Evidence against |f_j(x) − f_j(x')| ≤ L_j‖x − x'‖₂: the pair of observations with the steepest chord.

    With `joint`, the chord is ‖f(x) − f(x')‖₂ over all outputs, against one L. Only inputs that agree in the columns
    `codes` are compared: L says nothing between values without an order.
    """
    if codes and len(inputs):
        group = np.unique(inputs[:, list(codes)], axis=0, return_inverse=True)[1].reshape(-1)
        every = [
            lipschitz_evidence(inputs[some], outputs[some], rows[some], lipschitz, output_error, joint)
            for some in (np.flatnonzero(group == number) for number in range(int(group.max()) + 1))
        ]
        worst: dict[int | None, Evidence] = {}
        for one in (one for found in every for one in found):
            if one.output not in worst or worst[one.output].smallest < one.smallest:
                worst[one.output] = one
        return tuple(worst.values())
    if len(inputs) < 2:
        return ()
    from scipy.spatial.distance import pdist, squareform  # slow to import

    distances = pdist(inputs)
    columns = [outputs] if joint else [outputs[:, [j]] for j in range(outputs.shape[1])]
    errors = np.broadcast_to(np.asarray(output_error, dtype=np.float64), (len(columns),))
    reach = float(np.abs(inputs).max())
    # Rounded inputs may be equal although the exact ones differ by a few roundings.
    separation = np.maximum(distances, max(8 * UNIT_ROUNDOFF * reach, np.finfo(np.float64).tiny))
    found = []
    for j, column in enumerate(columns):
        # Outputs, and inputs that are outputs of earlier stages, are exact up to a few roundings: no evidence.
        rounding = 64 * UNIT_ROUNDOFF * (np.abs(column).max() + lipschitz[j] * reach) + 32 * errors[j]
        change = pdist(column) * (1.0 - 16 * UNIT_ROUNDOFF) - rounding
        slopes = np.where(change > lipschitz[j] * distances, change / separation, 0.0)
        if slopes.any():
            a, b = np.unravel_index(int(squareform(slopes).argmax()), (len(rows), len(rows)))
            names = tuple(sorted((int(rows[a]), int(rows[b]))))
            output = None if joint else j
            steepest = float(slopes.max())
            found.append(Evidence("lipschitz", output, names, float(lipschitz[j]), steepest, steepest))
    return tuple(found)
