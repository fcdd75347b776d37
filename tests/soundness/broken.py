"""Deliberately broken versions of the library, each of which the harness must report.

A harness without violations proves something only if it finds real errors. Every entry replaces one function or
constant of the library by a wrong one, and names the part of the harness that must report violations.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from cascada.confidence import BallBelief, Belief, Boxes, belief, cells
from cascada.confidence.radius import tight_radius
from cascada.gp import SeparablePosterior, block_posterior, posterior, separable_posterior
from cascada.kernels import Stationary
from cascada.network import beliefs, consistency, enclosure, feasibility, prior, run_values, slack
from cascada.search import bounds, feasible, incumbent, leaves, safe
from cascada.search import robust as robust_search
from cascada.study import context, model, safety, validation
from cascada.study import incumbent as study_incumbent
from cascada.study.table import _Maker
from tests.soundness import (
    contexts,
    crowds,
    extremes,
    histories,
    limits,
    matrices,
    neighbours,
    ranges,
    refusals,
    robust,
    scales,
    subsets,
    wrong_limits,
    wrong_slices,
)
from tests.soundness import safe as safe_mode
from tests.soundness.harness import Ledger, is_violated


@dataclass(frozen=True)
class Broken:
    """A broken version of the library, and the part of the harness that must report it."""

    name: str
    part: str  # of the harness
    replacements: tuple[tuple[Any, str, Any], ...]  # an object, an attribute, and the wrong value
    run: Callable[[], Ledger]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Context in which the library is broken."""
        with ExitStack() as stack:
            for owner, attribute, wrong in self.replacements:
                stack.enter_context(mock.patch.object(owner, attribute, wrong))
            yield

    def caught(self) -> Ledger:
        """The report of the harness on the broken library."""
        with self.applied():
            return self.run()

    def is_caught(self) -> bool:
        """Whether the harness reports a violation; it ends at the first one."""
        with self.applied():
            return is_violated(self.run)


def times(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """The same function with its result multiplied by a factor."""

    def scaled(*args: Any, **options: Any) -> Any:
        return factor * function(*args, **options)

    return scaled


def always(value: Any) -> Callable[..., Any]:
    """A function that returns this value for all arguments."""

    def constant(*_args: Any, **_options: Any) -> Any:
        return value

    return constant


def _same(self: Any, _error: Any) -> Any:
    return self


def _absolute_slack(*args: Any) -> Any:
    return _slack(*args) + 1e-9


def _padded(boxes: Boxes) -> Boxes:
    wide = _widened(boxes)
    return Boxes(wide.lower - 1e-12, wide.upper + 1e-12)


def _off(network: Any, controls: Any, outputs: Any) -> Any:
    """Runs whose outputs are a thousandth too large."""
    values = _run_values(network, controls, outputs)
    values[:, network.domain.dimension :] += 1e-3
    return values


def _exchanged(self: Any, observed: Any) -> None:
    """Learn a selection of runs, of which two neighbours have each other's outputs."""
    trials = list(observed)
    complete = [i for i, trial in enumerate(trials) if trial.value is not None][-2:]
    for i, j in (complete, complete[::-1]):
        trials[i] = replace(trials[i], outputs=observed[j].outputs, value=observed[j].value)
    _learn_selection(self, trials)


def _spent_by_all(self: Any, observed: Any) -> None:
    """Learn a selection, with bounds as narrow as if the data had used up three quarters of B² more."""
    _learn_selection(self, observed)
    stages = tuple(
        stage
        if stage.belief is None
        else replace(stage, belief=stage.belief.with_width(0.5 * float(np.min(stage.belief.radius))))
        for stage in self._fixed.stages
    )
    self._fixed = replace(self._fixed, stages=stages)


def _without_last_leaf(self: Any, rows: Any) -> Any:
    """Leaves without the one with the highest bound."""
    kept = _take(self, rows)
    return kept if len(kept) < 2 else _take(kept, kept.bound < kept.bound.max())


def _enclosing(wrong: Callable[..., Any]) -> tuple[tuple[Any, str, Any], ...]:
    """Replacements of `enclose_feasible` where it is used."""
    return tuple((module, "enclose_feasible", wrong) for module in (feasibility, feasible, limits))


_slack, _widened = slack.output_slack, Boxes.widened
_run_values, _take = run_values, leaves.Leaves.take
_learn_selection = model.Model._learn_selection

BROKEN: tuple[Broken, ...] = (
    Broken(
        "the computed eigenvalues of A are not raised by their rounding",
        "matrices",
        ((separable_posterior, "_decomposition_rounding", always(0.0)),),
        partial(matrices.run, 8, 1),
    ),
    Broken(
        "the rounding of outputs along small eigenvalues of A is forgotten",
        "matrices",
        ((SeparablePosterior, "error_budget", always(0.0)),),
        partial(matrices.run, 8, 1),
    ),
    Broken(
        "an output's share of the joint norm is A_jj instead of its root",
        "matrices",
        (
            (
                SeparablePosterior,
                "output_roots",
                property(lambda self: np.diag(self.kernel.matrix_for(self.output_count))),
            ),
        ),
        partial(matrices.run, 8, 1),
    ),
    Broken(
        "A is not equilibrated",
        "matrices",
        ((separable_posterior, "equilibrated", lambda matrix: (matrix, np.ones(len(matrix)))),),
        partial(matrices.run, 8, 1),
    ),
    Broken(
        "the last digit of a number with a large offset is taken as exact",
        "scales",
        ((Belief, "with_output_error", _same), (BallBelief, "with_output_error", _same)),
        partial(scales.run, 5, 1, ("chain", "controls")),
    ),
    Broken(
        "bounds are widened by 1e-12 in any units",
        "scales",
        ((Boxes, "widened", _padded),),
        partial(scales.run, 10, 1, ("chain",)),
    ),
    Broken(
        "observed values may lie 1e-9 outside of their bounds in any units",
        "refusals",
        tuple((module, "output_slack", _absolute_slack) for module in (consistency, validation, slack)),
        partial(refusals.run, 4, 1),
    ),
    Broken(
        "logarithms of controls are taken as exact",
        "neighbours",
        ((beliefs, "_logarithm_errors", always(np.zeros((1, 1)))),),
        partial(neighbours.run, 4, 1),
    ),
    Broken(
        "settings that share one floating-point logarithm are one setting",
        "neighbours",
        ((beliefs, "logarithmic_inputs", always([])), (prior, "logarithmic_inputs", always([]))),
        partial(neighbours.run, 4, 1),
    ),
    Broken(
        "the radius is a ten-thousandth too small",
        "extremes",
        ((belief, "tight_radius", times(tight_radius, 1 - 1e-4)),),
        partial(extremes.run, 1, 1),
    ),
    Broken(
        "the joint radius is a ten-thousandth too small",
        "extremes",
        ((BallBelief, "radius", property(times(vars(BallBelief)["radius"].func, 1 - 1e-4))),),
        partial(extremes.run, 1, 1),
    ),
    Broken(
        "the kernel's distance is a tenth too small",
        "extremes",
        ((Stationary, "distance", times(Stationary.distance, 0.9)),),
        partial(extremes.run, 1, 1),
    ),
    Broken(
        "what first-order terms leave of a cell is dropped",
        "extremes",
        ((cells, "_first_order", lambda _belief, _half, jet, *_: np.zeros_like(jet.mean)),),
        partial(extremes.run, 1, 1),
    ),
    Broken(
        "no jitter",
        "crowds",
        ((posterior, "jitters", lambda start, stop, _jitter, _rounding: np.zeros(stop - start)),),
        partial(crowds.run, 40, 1),
    ),
    Broken(
        "the weight of an error is that of a kernel without data",
        "crowds",
        ((block_posterior.BlockPosterior, "error_budget", lambda self, error: error.sum() / self.scale),),
        partial(crowds.run, 40, 1, 20),
    ),
    Broken(
        "outputs are learned a thousandth too large",
        "histories",
        ((model, "run_values", _off),),
        partial(histories.run, 10, 1, ("chain",)),
    ),
    Broken(
        "the search loses the cell with the highest bound",
        "histories",
        ((leaves.Leaves, "take", _without_last_leaf),),
        partial(histories.run, 10, 1, ("chain",)),
    ),
    Broken(
        "two selected runs have each other's outputs",
        "subsets",
        ((model.Model, "_learn_selection", _exchanged),),
        partial(subsets.run, 3, 1, ("chain",)),
    ),
    Broken(
        "the radius of a selection is smaller, as if other runs had used up a part of the norm",
        "subsets",
        ((model.Model, "_learn_selection", _spent_by_all),),
        partial(subsets.run, 3, 1, ("chain",)),
    ),
    Broken(
        "the bound is that of the lower ends",
        "histories",
        (
            (
                bounds,
                "objective_above",
                lambda network, enclosure: enclosure.boxes.lower[:, network.objective_column],
            ),
        ),
        partial(histories.run, 10, 1, ("chain",)),
    ),
    Broken(
        "the margin of the limits is computed from intervals that were cut to them",
        "limits",
        ((feasible.MarginBounds, "__call__", wrong_limits.margins_of_cut_boxes),),
        partial(limits.run, 6, 1, ("chain",), ("none",)),
    ),
    Broken(
        "an interval that is empty once it is cut is handed on",
        "limits",
        _enclosing(wrong_limits.enclosure(hand_on=True)),
        partial(limits.run, 4, 1, ("chain",), ("cut", "band")),
    ),
    Broken(
        "a cell whose cut intervals satisfy the limits is called feasible",
        "limits",
        _enclosing(wrong_limits.enclosure(cut_first=True)),
        partial(limits.run, 3, 1, ("chain",), ("cut",)),
    ),
    Broken(
        "the bound of a minimised objective is its upper end",
        "limits",
        ((feasibility.Feasibility, "above", wrong_limits.upper_of_any_sense),),
        partial(limits.run, 4, 5, ("chain",), ("cut",)),
    ),
    Broken(
        "the incumbent need not be proven to be feasible",
        "limits",
        ((incumbent, "_proven", wrong_limits.value_without_proof),),
        partial(limits.run, 4, 1, ("chain",), ("cut",)),
    ),
    Broken(
        "the range is a tenth too narrow",
        "ranges",
        ((enclosure, "within_ranges", wrong_limits.narrow_range),),
        partial(ranges.run, 2, 1, ("feed-forward",)),
    ),
    Broken(
        "a table of bounds is clipped to the range, also at inputs that no setting reaches",
        "ranges",
        ((beliefs.StageBelief, "tables", property(wrong_limits.clipped_tables)),),
        partial(ranges.run, 2, 1, ("chain",)),
    ),
    Broken(
        "a setting that may satisfy the limits is run in safe mode",
        "safe",
        ((safe, "proven_safe", wrong_limits.possibly_safe),),
        partial(safe_mode.run, 4, 1, ("chain",), ("cut",)),
    ),
    Broken(
        "the imagined outputs of pending runs prove that a setting is safe",
        "safe",
        ((safety, "nearest_safe", wrong_limits.safe_if_imagined),),
        partial(safe_mode.run, 4, 1, ("chain",), ("cut",)),
    ),
    Broken(
        "the bound at a context is that of a tree that was pruned over all contexts",
        "contexts",
        ((context, "_bound", wrong_slices.bound_of_whole_tree),),
        partial(contexts.run, 16, 2, ("feed-forward",), 13),
    ),
    Broken(
        "the worst case of a setting is that at some shifts instead of a cover of them",
        "robust",
        ((robust_search, "_over_parts", wrong_slices.at_middles),),
        partial(robust.run, 12, 1, ("chain",)),
    ),
    Broken(
        "the value of the best run is taken for its worst case",
        "robust",
        ((study_incumbent, "_robust", wrong_slices.best_run_as_incumbent),),
        partial(robust.run, 4, 1, ("chain",)),
    ),
    Broken(
        "the setting of a table is proven in the middle of its box only",
        "contexts",
        ((_Maker, "_lower", wrong_slices.lower_in_the_middle),),
        partial(contexts.run, 5, 0, ("chain",), 5),
    ),
)


def table(results: list[tuple[Broken, Ledger]]) -> str:
    """A Markdown table: what was broken, which part reported it, and how often."""
    lines = ["| broken | noticed by | checks | violations |", "|---|---|---:|---:|"]
    for broken, ledger in results:
        kinds = [tally.name for tally in ledger.tallies if tally.violations]
        where = f"{broken.part}: {', '.join(kinds[:2])}{' …' if len(kinds) > 2 else ''}" if kinds else "**nothing**"
        lines.append(f"| {broken.name} | {where} | {ledger.checks:,} | {ledger.violations:,} |")
    return "\n".join(lines)
