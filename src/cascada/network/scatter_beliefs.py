"""Beliefs about a network that is read with scatter: with the given probability all bounds hold, at all times at once.

Single readings are bounded by what scatter exceeds with a small probability only, and are learned as those with bounded
errors are. In addition every output with scatter is bounded by averages over its readings. Both hold together on one
event, so their bounds are intersected and derived from each other.

The nominal input of a reading must not depend on it. It is the middle of what is known of the true input just before:
from earlier reports, and from the stages of the same run that come before. A repeat of a run takes that of the run.
`nominal_inputs` returns them before a report is learned. Learning the same reports with the same nominal inputs again
gives the same beliefs, bit for bit.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.confidence import Boxes, Evidence
from cascada.confidence.averages import (
    AveragedFit,
    ScatteredOutput,
    ScatteredRows,
    averaged_fits,
    intervals_of_bias,
)
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.jet_bounds import jet_bounds
from cascada.confidence.reading_evidence import ConfidentEvidence, Conflict
from cascada.errors import ArgumentError, RefutedError
from cascada.network.beliefs import StageBelief
from cascada.network.latent import Latent
from cascada.network.network import Network
from cascada.network.node import Node
from cascada.network.read_beliefs import ROUNDS_AT_ONCE, ReadBeliefs, image
from cascada.network.reading_evidence import conflict
from cascada.network.scatter import Scatter
from cascada.network.scatter_latent import ScatterLatent
from cascada.network.stage_values import bounded, computed, copied

#: Nominal inputs by the name of the stage.
Nominal = Mapping[str, Sequence[float]]


@dataclass(frozen=True, eq=False)
class ScatterBeliefs(ReadBeliefs):
    """One belief per stage from readings with scatter, bounded or not; immutable."""

    latent: ScatterLatent

    @classmethod
    def begun(cls, network: Network, stages: tuple[StageBelief, ...], scatter: Scatter) -> "ScatterBeliefs":
        """Before the first run."""
        return cls(network, stages, ScatterLatent.begun(network, scatter))

    @property
    def confidence(self) -> float:
        """The probability with which all bounds hold, now and after all later reports."""
        return self.latent.scatter.confidence

    # ---- learning

    def append(
        self,
        values: Array,
        *,
        each: bool = False,  # noqa: ARG002
        runs: Sequence[int] | None = None,
        nominal: Sequence[Nominal | None] | None = None,
    ) -> "ScatterBeliefs":
        """The beliefs after more reports, one after the other: rows (n, V) of `run_values`, NaN where nothing was read.

        `runs` names the run of every row: a reading that was reported before is not a second one. Without it every row
        is a run of its own. `nominal` are what `nominal_inputs` returned for each row before it was learned; a stage
        without one is not averaged there. With runs and nominal inputs for all rows, these are learned at once. Without
        them, or where they are None, nominal inputs are computed, and the rows are learned one after the other. Raises
        `ArgumentError` if a reading of a run differs from what was reported of it before.
        """
        if runs is not None and nominal is not None and all(chosen is not None for chosen in nominal):
            return self._with_reports(values, runs, [chosen or {} for chosen in nominal])
        after = self
        for i, row in enumerate(values):
            run = _new_run(after.latent) if runs is None else runs[i]
            chosen = None if nominal is None else nominal[i]
            after = after._with_reports(
                row[None], [run], [after.nominal_inputs(row, run) if chosen is None else chosen]
            )
        return after

    def nominal_inputs(self, values: Array, run: int | None = None) -> dict[str, tuple[float, ...]]:
        """The nominal inputs of the stages with scatter of which a report (V,) contains a new reading.

        They do not depend on the reading of the stage itself, nor on new readings of stages after it. A stage is left
        out if nothing is known of its inputs.
        """
        latent, row = self._with_controls(self.latent, values, run, self._boxes(values[None]))
        known = latent.row(row)
        found: dict[str, tuple[float, ...]] = {}
        for stage in self.stages:
            node, name = stage.node, stage.node.stage.name
            inputs = known.inputs(node)
            if _is_new(latent, row, node, values):
                if name in latent.nominal:
                    place = _of_repeat(latent.nominal[name], latent.groups()[name], row)
                    if place is None and bounded(inputs)[0]:
                        place = inputs.centre[0]
                    if place is not None:
                        found[name] = tuple(float(x) + 0.0 for x in place)
                latent = latent.with_reading(row, node, values[list(node.columns)], None)
                known = replace(latent.row(row), values=known.values)
            known = self._seen(stage, known, inputs)
        return found

    def _seen(self, stage: StageBelief, known: ScatterLatent, inputs: Boxes) -> ScatterLatent:
        """One run with what follows for a stage's outputs from its inputs and readings; nothing is learned."""
        known = copied(stage, known, inputs)
        if stage.node.stage.known:
            known = computed(stage, known, inputs)
        elif stage.belief is not None:
            columns = stage.node.modelled_columns
            known = known.intersected(columns, known.read(stage.node))
            if not self.evidence:
                with suppress(RefutedError):  # learning the report shows it
                    known = known.intersected(columns, image(stage, inputs))
        # Readings may contradict each other. Then a middle is as good a nominal input as any.
        ends = np.stack([known.values.lower, known.values.upper])
        return replace(known, values=Boxes(ends.min(axis=0), ends.max(axis=0)))

    def _with_controls(
        self, latent: ScatterLatent, values: Array, run: int | None, before: Boxes
    ) -> tuple[ScatterLatent, int]:
        """The latent values with a row for a run at the reported controls, and its position.

        The box `before` (1, V) contains the values at these controls, whatever is read.
        """
        controls = values[: self.network.domain.dimension]
        if run is None or run not in latent.runs:
            latent = latent.with_run(_new_run(latent) if run is None else run, controls)
            return latent.with_row(len(latent) - 1, controls, before), len(latent) - 1
        row = latent.runs.index(run)
        if np.array_equal(latent.readings[row, : len(controls)], controls):
            return latent, row
        _check_unchanged(latent, row, controls)
        return latent.with_row(row, controls, before), row

    def _boxes(self, values: Array) -> Boxes:
        """Boxes (n, V) of the values at the controls of reports, whatever was read; infinite if they contradict."""
        try:
            return self.before_reading(values)
        except RefutedError:
            return self.unknown(values)

    def _with_reports(self, values: Array, runs: Sequence[int], nominal: Sequence[Nominal]) -> "ScatterBeliefs":
        """The beliefs after reports (n, V) of runs, learned at once."""
        if not len(values):
            return self
        latent, boxes = self.latent, self._boxes(values)
        for i, report in enumerate(values):
            before = Boxes(boxes.lower[[i]], boxes.upper[[i]])
            latent, row = self._with_controls(latent, report, runs[i], before)
            latent = _reported(latent, row, report, nominal[i])
        grown = replace(self, latent=latent)
        if self.evidence:
            return grown  # no function is left
        return grown.learned() if len(values) == 1 else grown.learned(ROUNDS_AT_ONCE)

    # ---- what averages say

    def averaged(self, part: StageBelief, belief: BoundedBelief, latent: Latent, runs: IntArray) -> BoundedBelief:
        """The belief about a stage, or a category, with averages over its readings with scatter in some runs."""
        assert isinstance(latent, ScatterLatent), "that of these beliefs"
        node, whole = part.node, self.network.node(part.node.stage.name)
        if node.stage.name not in latent.nominal:
            return belief
        places = latent.nominal[node.stage.name][:, [whole.inputs.index(column) for column in node.inputs]]
        used = runs[np.isfinite(places[runs]).all(axis=1)]
        if not len(used):
            return belief
        inputs = latent.inputs(node)
        risk = latent.scatter.risk_of_average(1 if whole.categories is None else len(whole.categories))
        box = Boxes(inputs.lower[used], inputs.upper[used])
        middle, half = _bias(belief, places[used], box)
        seen, offset = latent.readings[used][:, node.modelled_columns], node.stage.offset
        values = seen - offset - middle
        # The reading is exact to its last digit, and so are the differences.
        digits = 4 * UNIT_ROUNDOFF * (np.abs(seen) + np.abs(offset) + np.abs(middle))
        bias = half + node.stage.error_bound + digits
        order = latent.turns[used][:, node.modelled_columns]
        fits: list[AveragedFit] = []
        for j, column in enumerate(node.modelled_columns):
            if column in latent.scatter.first:
                rows = np.flatnonzero(order[:, j])
                rows = rows[np.argsort(order[rows, j], kind="stable")]
                one = ScatteredOutput(
                    belief.kernel,
                    float(belief.norm_bound[j]),
                    float(node.stage.error_scale[j]),
                    latent.scatter.first[column],
                    risk,
                    j,
                    len(offset),
                )
                fits += averaged_fits(one, ScatteredRows(places[used][rows], values[rows, j], bias[rows, j]))
        return belief.averaged(tuple(fits))

    # ---- evidence

    def conflict(self, node: Node) -> Conflict:
        """What a contradiction at a stage refutes, at the confidence of these beliefs."""
        return conflict(self.network, node, self.confidence)

    def stage_evidence(self, stage: StageBelief, raw: Latent, groups: IntArray) -> tuple[Evidence, ...]:
        """Evidence of the readings alone against the assumptions of one stage, at the confidence of these beliefs."""
        found = super().stage_evidence(stage, raw, groups)
        if any(one.assumption == "error" for one in found):  # repeats: what they say of the scale has no number
            return (self.conflict(stage.node),)
        return tuple(ConfidentEvidence.of(one, self.confidence) for one in found)


def _bias(belief: BoundedBelief, places: Array, inputs: Boxes) -> tuple[Array, Array]:
    """Middles and half-widths (n, p) of f(v) − f(C), for inputs v in boxes around or beside nominal inputs C (n, d)."""
    known = bounded(inputs)
    n, p = len(places), len(belief.norm_bound)
    middle, half = np.zeros((n, p)), np.tile(2 * belief.largest_values * (1 + 8 * UNIT_ROUNDOFF), (n, 1))
    if not known.any():
        return middle, half
    C, box = places[known], Boxes(inputs.lower[known], inputs.upper[known])
    reach = np.maximum(np.maximum(C - box.lower, box.upper - C), 0.0) * (1 + 4 * UNIT_ROUNDOFF)
    most = np.minimum(belief.modulus(reach), half[known])
    lower, upper = -most, most
    if belief.kernel.curvature is not None:
        jet = jet_bounds(belief, C, slopes=True)
        remainder = belief.kernel.remainder(belief.kernel.scaled_norm(reach))
        assert remainder is not None, "the kernel has a derivative"
        assert jet.slope is not None, "slopes were asked for"
        assert jet.slope_width is not None, "slopes were asked for"
        rest = belief.norm_bound * remainder[:, None]
        away, width = box.centre - C, box.half + 2 * UNIT_ROUNDOFF * np.abs(C)
        centre, wide = intervals_of_bias(jet.slope, jet.slope_width, away, width, rest)
        lower, upper = np.maximum(lower, centre - wide), np.minimum(upper, centre + wide)
        if np.any(lower > upper):
            raise RefutedError("no slope agrees with the readings of the stage.")
    both = Boxes(lower, upper)
    middle[known], half[known] = both.centre, both.half
    return middle, half


def _reported(latent: ScatterLatent, row: int, report: Array, nominal: Nominal) -> ScatterLatent:
    """With the new readings of a report (V,) of one run, in the order of the stages."""
    for node in latent.network.nodes:
        if not _is_new(latent, row, node, report):
            _check_same(latent, row, node, report)
            continue
        place = nominal.get(node.stage.name)
        if place is not None and len(place) != len(node.inputs):
            raise ArgumentError(
                f"stage {node.stage.name!r} has {len(node.inputs)} inputs; got {len(place)} nominal inputs."
            )
        outputs = report[list(node.columns)]
        latent = latent.with_reading(row, node, outputs, None if place is None else np.asarray(place, float))
    return latent


def _is_new(latent: ScatterLatent, row: int, node: Node, values: Array) -> bool:
    """Whether a report (V,) contains the first reading of a stage in a run."""
    return bool(np.isfinite(values[list(node.columns)]).any()) and not latent.was_read(row, node)


def _of_repeat(places: Array, groups: IntArray, row: int) -> Array | None:
    """The nominal input (d,) of the first run with the same true inputs; None if there is none."""
    same = np.flatnonzero((groups == groups[row]) & np.isfinite(places).all(axis=1))
    return places[same[0]] if len(same) else None


def _new_run(latent: ScatterLatent) -> int:
    """A name that no run has."""
    return max(latent.runs, default=-1) + 1


def _check_unchanged(latent: ScatterLatent, row: int, controls: Array) -> None:
    """Raise `ArgumentError` if a control of a stage that was read has changed."""
    changed = np.flatnonzero(latent.readings[row, : len(controls)] != controls)
    for node in latent.network.nodes:
        if latent.was_read(row, node) and any(column in changed for column in node.inputs):
            raise ArgumentError(
                f"run {latent.runs[row]}: a control of stage {node.stage.name!r} differs from the one with which the "
                f"stage was read. Report it as another run."
            )


def _check_same(latent: ScatterLatent, row: int, node: Node, values: Array) -> None:
    """Raise `ArgumentError` if a report contains another reading than the one that was reported before."""
    before, now = latent.readings[row, list(node.columns)], values[list(node.columns)]
    if np.any(np.isfinite(now) & (now != before)):
        raise ArgumentError(
            f"run {latent.runs[row]}: stage {node.stage.name!r} was reported as {before.tolist()} before; got "
            f"{now.tolist()}. A reading with scatter is reported once; learn a corrected one from the beginning."
        )
