"""How good the best run is, as one object that can be read as a paragraph."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cascada.network import Beliefs

GapKind = Literal["proven", "estimated", "refuted"]


@dataclass(frozen=True)
class Certificate:
    """`best` is the best value seen, `bound` what no setting can beat, `gap` the distance between them.

    *proven* when every kernel and norm bound was given: it holds for every process that satisfies the assumptions and
    agrees with the data. *estimated* when some were not, or were refuted and enlarged. *refuted* (no gap) when the data
    contradict an assumption.
    """

    kind: GapKind
    best: float | None
    bound: float | None
    gap: float | None
    #: How many complete runs there are.
    evaluations: int
    #: What the gap rests on, in words.
    assumptions: tuple[str, ...]
    #: What the data say against the assumptions, in words.
    evidence: tuple[str, ...]
    #: Spent on all searches for a bound so far, like `seconds`.
    cells: int
    seconds: float
    #: What stopped the last of them.
    stopped: str
    #: What the bound holds for: the box of controls, or the candidates.
    over: str
    maximised: bool = True
    #: How far the test is that an estimated bound has to pass before a gap is shown, in words; empty once it has.
    missing: str = ""

    def __str__(self) -> str:
        if self.kind == "refuted":
            return f"The data refute an assumption, so nothing is proven. {' '.join(self.evidence)}"
        rests = "\n".join(f"  - {line}" for line in self.assumptions)
        if self.best is None or self.bound is None or self.gap is None:
            why = "No complete run yet" if self.best is None else "The estimated bounds contradict the runs"
            if self.best is not None and self.missing:
                why = f"Too few runs yet to trust an estimated bound: {self.missing}"
            return f"{why}. So there is no gap. It would rest on:\n{rests}"
        word = "higher" if self.maximised else "lower"
        runs = "one run" if self.evaluations == 1 else f"the best of {self.evaluations} runs"
        guess = "if the estimates below hold, " if self.kind == "estimated" else ""
        return (
            f"{self.kind.capitalize()}: {guess}no setting in {self.over} gives a value {word} than {self.bound:.6g}.\n"
            f"So {runs}, {self.best:.6g}, is within {self.gap:.3g} of the best possible. This rests on:\n{rests}\n"
            f"({self.cells:,} cells, {self.seconds:.2f} s)"
        )


def assumptions(beliefs: Beliefs) -> tuple[str, ...]:
    """What the bounds rest on, stage by stage."""
    lines, nodes = [], beliefs.network.nodes
    for stage in beliefs.stages:
        given = stage.node.stage
        if given.known:
            how = "its interval function" if given.interval is not None else f"L = {_numbers(given.lipschitz)}"
            lines.append(f"{given.name}: a known formula with {how}")
        elif given.modelled:
            slope = "" if given.lipschitz is None else f", Lipschitz constant {_numbers(given.lipschitz)}"
            sign = "+" if len(given.offset) == 1 and given.offset[0] < 0 else "−"
            shift = f" of f {sign} {_numbers(np.abs(given.offset) if sign == '+' else given.offset)}"
            shift = shift if given.offset.any() else ""
            bound: object = given.norm_bound
            both = any(node.stage.kernel is None and stage.node.columns[0] in node.columns for node in nodes)
            guess = "" if bound is not None else ", kernel and B estimated" if both else ", B estimated"
            bound = stage.belief.norm_bound if bound is None and stage.belief is not None else bound
            lines.append(f"{given.name}: norm{shift} ≤ {_numbers(bound)} under {_short(given.kernel)}{slope}{guess}")
    lines.append("every run is exact: no noise")
    return tuple(lines)


def refutations(beliefs: Beliefs) -> tuple[str, ...]:
    """What the data say against the assumptions, in words; empty when nothing."""

    return tuple(
        f"Stage {name!r}: {found.in_words(found.of_output(beliefs.network.node(name).stage.modelled))}"
        for name, evidence in beliefs.evidence.items()
        for found in evidence
    )


def _short(kernel: object) -> str:
    """A kernel with as many digits as a reader wants."""
    return re.sub(r"\d+\.\d{5,}(e[-+]?\d+)?", lambda found: f"{float(found[0]):.5g}", str(kernel))


def _numbers(values: object) -> str:
    array = [float(v) for v in getattr(values, "flat", [values])]
    return f"{array[0]:g}" if len(set(array)) == 1 else "(" + ", ".join(f"{v:g}" for v in array) + ")"
