"""The certificate: how good the best run is, and the words for what it rests on and what refutes it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.calibration.noise import noise_sd
from cascada.network import Beliefs, Network, Node, Stage, StageBelief
from cascada.network.beliefs import observations, stretch
from cascada.network.floor import Floor
from cascada.network.latent import forwards_error
from cascada.network.limits import in_words
from cascada.outwards import Shown, agreeing, apart, as_given, as_percent, rounded_down
from cascada.space import ControlValue

GapKind = Literal["proven", "confident", "estimated", "refuted"]

_DIGITS = 6  # of an assumed bound: enough for a reader


@dataclass(frozen=True)
class RecommendedSetting:
    """A setting that is recommended instead of the best run, and what it gives at least (at most, if minimised).

    With limits or bounded errors it need not have been run, and `at_least` is proven; `reading` is its best reading, to
    within ± `error`, if readings have errors and it was run. With noise it is the run with the best mean, and both
    `at_least` and its mean, `estimate`, are estimated. The certificate's kind says which.
    """

    controls: Mapping[str, ControlValue]
    at_least: float
    estimate: float | None = None
    reading: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Certificate:
    """`best` is the best value seen, `bound` what no setting can beat, `gap` the distance between them.

    With limits, `best` and `bound` are about settings that satisfy them. If a setting is `recommended`, the gap is that
    of its proven value, which is better than `best`. With noise or errors `best` is None, because no value is known
    exactly: `best_reading` is the best that was read, and the gap is that of the recommended setting.

    *proven* when every kernel and norm bound was given: it holds for every process that satisfies the assumptions and
    agrees with the data. *confident* when in addition stages are read with scatter: then it holds with a probability
    of at least `confidence`, now and at every later step. *estimated* when some kernels or norm bounds were not given,
    or were refuted and enlarged, or when readings with scatter were selected. *refuted* (no gap) when the data
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
    #: What an estimated bound still lacks before its gap is shown, in words; empty once it lacks nothing.
    missing: str = ""
    #: How many corrections of the study it takes into account: a later one may raise the bound.
    corrections: int = 0
    #: How many of the runs the bounds rest on, if not on all of them: see `cascada.study.selection`.
    runs_used: int | None = None
    #: A setting that is proven to satisfy the limits and to give more than the best run, if there is one.
    recommended: RecommendedSetting | None = None
    #: The limits, in words.
    limits: tuple[str, ...] = ()
    #: An upper bound of the margin by which a setting can satisfy the limits, as long as none is known that does: in
    #: units of the output if there is one limit, else each in units of its own. Below 0 no setting satisfies them.
    margin: float | None = None
    #: The unit of the margin of every limit, in units of its output.
    units: tuple[float, ...] = ()
    #: With noise or errors, the best value that was read: the one with the luckiest error.
    best_reading: float | None = None
    #: With bounded errors, about the smallest gap that can be expected, also before the first run, and whether it is
    #: reached.
    floor: Floor | None = None
    #: The probability with which a *confident* gap holds; None for other kinds.
    confidence: float | None = None
    #: The context that it is for, by name; None without one.
    context: Mapping[str, ControlValue] | None = None
    #: The context controls, if it is for no context: then it has no bound, because the best setting depends on them.
    depends_on: tuple[str, ...] = ()
    #: Stages that are formulas without bounds of their values: with one there is no gap.
    unbounded: tuple[str, ...] = ()
    #: How far uncertain controls can be from their settings, by name: then all values are those of the worst case.
    deviations: Mapping[str, float] = field(default_factory=dict)

    @property
    def answer(self) -> Literal["optimum", "infeasible"]:
        """What the study found out: how good the best setting is, or that no setting satisfies the limits."""
        return "infeasible" if self.margin is not None and self.margin < 0 else "optimum"

    @property
    def reached(self) -> float | None:
        """The value from which the gap is counted: that of the best run, or that of the recommended setting."""
        return self.best if self.recommended is None else self.recommended.at_least

    @property
    def shown(self) -> Shown | None:
        """Best value, bound and gap as texts, rounded so that the printed statement is true; None without a gap."""
        if self.reached is None or self.bound is None or self.gap is None:
            return None
        return agreeing(self.reached, self.bound, self.maximised)

    def __repr__(self) -> str:
        shown = self.shown
        gap = "no gap" if shown is None else f"best {shown.best}, bound {shown.bound}, gap {shown.gap}"
        return f"Certificate({self.kind}: {gap}; {self.evaluations} complete runs)"

    def _repr_html_(self) -> str:
        from cascada.study.cards import certificate_card  # imported where notebooks show it

        return certificate_card(self)

    def __str__(self) -> str:
        if self.kind == "refuted":
            return f"The data refute an assumption, so nothing is proven. {' '.join(self.evidence)}"
        rests = "\n".join(f"  - {line}" for line in self.assumptions)
        if self.answer == "infeasible":
            return f"{self.infeasibility} This rests on:\n{rests}"
        shown = self.shown
        if shown is None and self.depends_on:
            names = ", ".join(self.depends_on)
            return (
                f"The best setting depends on {names}. So there is a gap for a given context only: "
                f"certificate(context=…), `cascada status --context`. It would rest on:\n{rests}"
            )
        if shown is None and self.unbounded:
            names = " and ".join(map(repr, self.unbounded))
            return (
                f"Nothing bounds the formula of {names}, so there is no gap. Give it interval= or lipschitz= for an "
                f"estimated gap. It would rest on:\n{rests}"
            )
        if shown is None:
            seen = self.best is not None or self.best_reading is not None
            why = "The estimated bounds contradict the runs" if seen or self.context else "No complete run yet"
            if not self.evaluations:
                why = "No complete run yet"
            if not seen and self.evaluations:
                why = f"No setting is known that satisfies {' and '.join(self.limits)}"
            if seen and self.missing:
                why = f"Too few runs yet to trust an estimated bound: {self.missing}"
            floor = "" if self.floor is None else f"{self.floor.in_words()} "
            return f"{why}. So there is no gap. {floor}It would rest on:\n{rests}"
        word = "higher" if self.maximised else "lower"
        best = "the best feasible" if self.limits else "the best"
        runs = "one run" if self.evaluations == 1 else f"{best} of {self.evaluations} runs"
        runs = "the best run at this context" if self.context else runs
        guess = "if the estimates below hold, " if self.kind == "estimated" else ""
        guess += f"in the worst case over {self._deviations}, " if self.deviations else ""
        that = f" that satisfies {' and '.join(self.limits)}" if self.limits else ""
        found = f"So {runs}, {shown.best}, is within {shown.gap} of the best possible."
        if self.recommended is not None:
            # With all digits: what is proven of this setting may not hold for one next to it.
            setting = ", ".join(f"{name} = {as_given(value)}" for name, value in self.recommended.controls.items())
            feasible = " satisfies the limits and" if self.limits else ""
            which = f"The setting {setting} was not run. It{feasible}"
            if self.deviations:
                which = f"The setting {setting}, whatever the deviation ({self._deviations}),"
            if self.recommended.estimate is not None:
                which = f"The run at {setting} has the best mean, {self.recommended.estimate:.6g}. It"
            elif self.recommended.reading is not None:
                which = f"The setting {setting}{feasible}"
            least = "at least" if self.maximised else "at most"
            found = f"{which} gives {least} {shown.best}{self._own_reading}, which is within {shown.gap} of the best "
            found += "possible."
            if self.best_reading is not None:
                found += f" The best reading was {self.best_reading:.6g}."
            found += "" if self.floor is None else f"\n{self.floor.in_words(self.gap)}"
        return (
            f"{self.certainty}: {guess}no setting in {self.over}{that} gives a value {word} than "
            f"{shown.bound}.\n{found} This rests on:\n{rests}\n({self.cells:,} cells, {self.seconds:.2f} s)"
        )

    @property
    def _own_reading(self) -> str:
        """The reading of the recommended setting, in parentheses; empty if it was not read."""
        if self.recommended is None or self.recommended.reading is None:
            return ""
        error = f" ± {as_given(self.recommended.error)}" if self.recommended.error else ""
        return f" (its reading was {self.recommended.reading:.6g}{error})"

    @property
    def certainty(self) -> str:
        """How sure the statement is, as its first words."""
        return certainty(self.kind, self.confidence)

    @property
    def _deviations(self) -> str:
        return ", ".join(f"{name} ± {as_given(size)}" for name, size in self.deviations.items())

    @property
    def infeasibility(self) -> str:
        """The sentence that no setting satisfies the limits, with the distance of the nearest one."""
        assert self.margin is not None, "only asked if no setting satisfies the limits"
        # Less than the product by more than the rounding of the margin of a run and of the product.
        least = [rounded_down(-self.margin * unit * (1 - 8 * UNIT_ROUNDOFF), 3) for unit in self.units]
        proven = (
            f"{self.certainty}: no setting in {self.over} satisfies {' and '.join(self.limits)}; every setting misses"
        )
        if len(self.limits) == 1:
            return f"{proven} it by at least {least[0]}."
        each = ", or ".join(f"{limit} by at least {miss}" for limit, miss in zip(self.limits, least, strict=True))
        return f"{proven} at least one of them: {each}."


def certainty(kind: GapKind, confidence: float | None) -> str:
    """How sure a statement of this kind is, as its first words."""
    if confidence is None:
        return kind.capitalize()
    return f"With probability at least {as_percent(confidence)}, now and at every later step"


def assumptions(beliefs: Beliefs) -> tuple[str, ...]:
    """What the bounds rest on, stage by stage."""
    lines, nodes = [], beliefs.network.nodes
    for stage in beliefs.stages:
        given = stage.node.stage
        if given.known:
            how = "without bounds" if given.lipschitz is None else f"with L = {_at_most(given.lipschitz)}"
            how = how if given.interval is None else "with its interval function"
            lines.append(f"{given.name}: a known formula {how}")
        elif given.modelled:
            slope = "" if given.lipschitz is None else f", Lipschitz constant {_at_most(given.lipschitz)}"
            both = any(node.stage.kernel is None and stage.node.columns[0] in node.columns for node in nodes)
            kernel, number = (_short(given.kernel), "{:g}".format) if both else (str(given.kernel), as_given)
            sign = "+" if len(given.offset) == 1 and given.offset[0] < 0 else "−"
            shift = f" of f {sign} {_listed(np.abs(given.offset) if sign == '+' else given.offset, number)}"
            shift = shift if given.offset.any() else ""
            bound: object = given.norm_bound
            guess = "" if bound is not None else ", kernel and B estimated" if both else ", B estimated"
            bound = stage.belief.norm_bound if bound is None and stage.belief is not None else bound
            size = (
                _at_most(bound) + _for_values(stage.node) if given.norm_bounds is None else _by_value(given.norm_bounds)
            )
            lines.append(f"{given.name}: norm{shift} ≤ {size} under {kernel}{slope}{guess}")
        for output, interval in given.ranges.items():
            lines.append(f"{given.name}: {in_words(output, interval)} at every setting (its range)")
    lines += noise_assumptions(beliefs)
    return tuple(lines)


def _for_values(node: Node) -> str:
    """Of which values of choices a norm bound is, in words; empty without choices."""
    own = [node.input_names[j] for j, choice in node.choices.items() if choice.alike is None]
    shared = {node.input_names[j]: choice.alike for j, choice in node.choices.items() if choice.alike is not None}
    words = [f"for every {' and '.join(own)}"] if own and node.categories is not None else []
    words += [f"over all values of {name} together, alike {as_given(a)}" for name, a in shared.items()]
    return f" ({'; '.join(words)})" if words else ""


def _by_value(norm_bounds: Mapping[str, Array]) -> str:
    return " or ".join(f"{_at_most(bound)} for {value!r}" for value, bound in norm_bounds.items())


def noise_assumptions(beliefs: Beliefs) -> list[str]:
    """What is assumed of the noise of the stages."""
    if beliefs.network.read_with_errors:
        return _errors(beliefs.network)
    parts = [stage for stage in beliefs.stages if stage.node.stage.noisy and stage.belief is not None]
    if not parts:
        return ["every run is exact: no noise"]
    sizes = ", ".join(f"{stage.node.stage.name} {noise_sd(stage):.3g}" for stage in parts)
    return [f"readings have independent noise with the standard deviations {sizes}, estimated"]


def _errors(network: Network) -> list[str]:
    """What is assumed of readings with bounded errors."""
    sizes = [f"{node.stage.name} is read {_error(node.stage)}" for node in network.nodes if node.stage.modelled]
    forwarding = [node.stage.name for node in network.nodes if forwards_error(node.stage)]
    lines = [", ".join(sizes)]
    if network.scattered:
        lines.append("every reading is reported as it was read, and the scales of the scatter were chosen before")
    if forwarding:
        lines.append(
            f"the stages after {' and '.join(forwarding)} are run at its readings; a value is what a setting gives "
            f"without errors"
        )
    return lines


def _error(stage: Stage) -> str:
    """How a stage is read."""
    bound = "" if stage.bounded_error is None else f"to ±{_at_most(stage.error_bound)}"
    if stage.sub_gaussian is None:
        return bound or "exactly"
    scatter = f"with sub-Gaussian scatter of scale {_at_most(stage.error_scale)}"
    return f"{bound} and {scatter}" if bound else scatter


def refutations(
    beliefs: Beliefs, learned: Callable[[StageBelief], tuple[Array, Sequence[int]]], trials: Sequence[int]
) -> tuple[str, ...]:
    """What the data say against the assumptions, in words; empty if nothing.

    `learned` gives the rows (t, V) that a stage learned, and their labels: the number of a trial, or ~k for measurement
    k. `trials` are those of the runs.
    """
    lines = []
    for stage in beliefs.stages:
        given, name = stage.node.stage, stage.node.stage.name
        for found in beliefs.evidence.get(name, ()):
            if found.assumption == "lipschitz":  # given per user unit, judged per coordinate
                assert given.lipschitz is not None, "evidence is against a given bound"
                constant = float(given.lipschitz.flat[found.output or 0])
                steepest = found.smallest / stretch(stage.node)
                found = replace(found, given=constant, smallest=steepest, needed=steepest)
            values, labels = learned(stage)
            numbers = [labels[row] for row in observations(stage, values)]
            if beliefs.network.read_with_errors:  # rows are runs
                numbers = list(trials)
            lines.append(f"Stage {name!r}: {found.in_words(found.of_output(given.modelled), numbers)}")
    return tuple(lines)


def beaten(best: float, bound: float, sign: int) -> str:
    """The contradiction between a run and a bound that it beats, both of what is maximised, in words."""
    value, limit = apart(sign * best, sign * bound)
    word = "more" if sign > 0 else "less"
    return f"a run gave {value}, but by the assumptions no setting gives {word} than {limit}."


def _short(kernel: object) -> str:
    """An estimated kernel, rounded to five digits."""
    return re.sub(r"\d+\.\d{5,}(e[-+]?\d+)?", lambda found: f"{float(found[0]):.5g}", str(kernel))


def _at_most(values: object) -> str:
    """Assumed upper bounds: a printed bound that is larger would be a weaker assumption, which proves less."""

    def text(value: float) -> str:
        short = float(f"{value:.{_DIGITS}g}") == value
        return as_given(value) if short else rounded_down(value, _DIGITS)

    return _listed(values, text)


def _listed(values: object, text: Callable[[float], str]) -> str:
    array = [float(v) for v in getattr(values, "flat", [values])]
    return text(array[0]) if len(set(array)) == 1 else "(" + ", ".join(map(text, array)) + ")"
