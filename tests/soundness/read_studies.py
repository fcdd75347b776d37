"""Soundness of whole studies whose stages are read with bounded errors.

Studies of every structure ask for points and are told readings, some stage by stage, some while others are pending,
with past runs and repeats among them. After every step nothing may be refuted, no setting may give more than the bound,
the recommended setting must give what it is said to give, and the gap must be at least its true regret. With limits, it
and all runs that are called feasible must satisfy them. What a batch can still give must lie within its bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.network import Network
from cascada.network.latent import forwards_error
from cascada.study import Study, Trial
from tests.soundness import readings
from tests.soundness.harness import Ledger
from tests.soundness.readings import KERNELS, KINDS, STRUCTURES, Case, coded

_RUNS = 7
_POINTS = 200
_ROUNDING = 1e-9
LIMITED = ("chain", "controls", "join", "known")


@dataclass(frozen=True, eq=False)
class Truth:
    """A case with its true values at many settings (n, V), some of them near the best, and its true limits."""

    case: Case
    settings: Array  # user units
    values: Array

    @classmethod
    def of(cls, case: Case, points: int, rng: np.random.Generator) -> "Truth":
        """At random settings, and at settings around the best of them."""
        network = case.network
        domain, sign, column = network.domain, network.sign, network.objective_column
        X = coded(domain, rng.uniform(domain.lower, domain.upper, (points, domain.dimension)), rng)
        values = case.problem.values(domain.decode(X))
        for scale in (0.1, 0.01):
            top = X[int((sign * values[:, column]).argmax())]
            near = top + scale * (domain.upper - domain.lower) * rng.standard_normal((points // 4, domain.dimension))
            near[:, domain.choices] = top[domain.choices]
            X = np.concatenate([X, np.clip(near, domain.lower, domain.upper)])
            values = case.problem.values(domain.decode(X))
        return cls(case, domain.decode(X), values)

    def feasible(self, values: Array) -> Array:
        """Which rows of values (n, V) satisfy the limits."""
        found = np.ones(len(values), dtype=bool)
        for limit in self.case.network.limits:
            found &= (values[:, limit.column] >= limit.low) & (values[:, limit.column] <= limit.high)
        return found

    def past(self, rng: np.random.Generator) -> Array:
        """A setting (d,); with limits, one whose value is close to a limit, within or not."""
        limits, i = self.case.network.limits, int(rng.integers(len(self.settings)))
        if limits:
            apart = np.abs(self.values[:, limits[0].column] - limits[0].high)
            i = int(np.argsort(apart)[rng.integers(5)])
        return self.settings[i]

    def at(self, controls: Mapping[str, float | int]) -> Array:
        """The true values (1, V) of a setting."""
        return self.case.problem.values(self.case.network.domain.row(controls)[None])


def run(
    seed: int,
    structures: tuple[str, ...] = STRUCTURES,
    kernels: int = 2,
    every: int = 1,
    points: int = _POINTS,
    runs: int = _RUNS,
) -> Ledger:
    """Studies of every structure, kernel and kind of errors, or of every third combination; with and without limits."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        for k, kernel in enumerate(KERNELS[:kernels]):
            for e, kind in enumerate(KINDS):
                if (s + k + e) % every:
                    continue
                rng = np.random.default_rng([seed, s, k, e])
                one = readings.case(structure, kernel, kind, rng)
                check_study(ledger, structure, one, points, runs, rng)
                if structure in LIMITED:
                    check_study(ledger, f"{structure}, limits", limited(one, rng), points, runs, rng)
    return ledger


def limited(one: Case, rng: np.random.Generator) -> Case:
    """The case with a limit on an output of the first stage that about half of all settings satisfy."""
    network = one.network
    node = network.nodes[0]
    X = coded(network.domain, rng.uniform(network.domain.lower, network.domain.upper, (50, len(network.controls))), rng)
    middle = float(np.median(one.problem.values(network.domain.decode(X))[:, node.columns[0]]))
    stage = node.stage.assuming(node.stage.norm_bound, node.stage.lipschitz, node.stage.norm_bounds)  # a copy
    object.__setattr__(stage, "limits", {stage.outputs[0]: (-np.inf, middle)})
    found = network.assuming({stage.name: stage})
    found.__dict__.pop("limits", None)  # cached
    return replace(one, network=found)


def check_study(ledger: Ledger, name: str, one: Case, points: int, runs: int, rng: np.random.Generator) -> None:
    """Check one study of a case after each of its steps."""
    note = f"{one.kind} errors {[s.error_bound.tolist() for s in one.network.stages]}"
    truth = Truth.of(one, points, rng)
    options: dict[str, Any] = {"replayable": bool(rng.random() < 0.5)}
    if rng.random() < 0.25:
        chosen = rng.integers(len(truth.settings), size=12)
        truth = replace(truth, settings=truth.settings[chosen], values=truth.values[chosen])
        domain = one.network.domain
        options["candidates"] = [domain.named(row) for row in truth.settings] if domain.choices else truth.settings
    study = Study(one.network, algorithm="gpn_ucb" if rng.random() < 0.3 else "auto", **options)
    for _ in range(runs):
        done = ledger[f"{name}: asked and told"].attempt(lambda: _step(ledger, name, study, truth, rng, note), note)
        if done is None:
            return
        _check(ledger, name, study, truth, note)


def _step(ledger: Ledger, name: str, study: Study, truth: Truth, rng: np.random.Generator, note: str) -> bool:
    """A past run, a repeat, a run told stage by stage, or two at once."""
    kind, candidates = rng.random(), study._settings.listed
    if kind < 0.15 and study.trials:
        old = study.trials[int(rng.integers(len(study.trials)))]
        study.add_trial(old.controls, _read(truth.case, old.controls, rng))
    elif kind < 0.3 and candidates is None:
        controls = study.network.domain.named(truth.past(rng))
        study.add_trial(controls, _read(truth.case, controls, rng))
    elif kind < 0.45:
        trials = study.ask(2)
        _check(ledger, f"{name}, pending", study, truth, note)
        for each in trials:
            study.tell(each, _read(truth.case, each.controls, rng))
    else:
        trial = study.ask()
        if trial is None:
            return True
        outputs = _read(truth.case, trial.controls, rng)
        for stage in list(outputs)[:-1]:
            study.tell_stage(trial, stage, outputs[stage])
            if rng.random() < 0.5 and study.trials[trial.number].state == "running":
                _check_batch(ledger, name, study, trial, truth, note)
        study.tell(trial, outputs)
        if rng.random() < 0.2:  # a mistake, and its correction
            first = study.network.nodes[0].stage
            right = study.trials[trial.number].outputs[first.name]
            wrong = [value + 1e-3 * (j in first.modelled_positions) for j, value in enumerate(right)]
            study.correct(trial, first.name, wrong)
            study.correct(trial, first.name, right)
    return True


def _read(case: Case, controls: Mapping[str, float | int], rng: np.random.Generator) -> dict[str, list[float]]:
    """The readings of a run, by stage."""
    network = case.network
    X = network.domain.encode(network.domain.row(controls)[None])
    read = case.run(X, rng)[1][0]
    return {node.stage.name: [float(value) for value in read[list(node.columns)]] for node in network.nodes}


def _check(ledger: Ledger, name: str, study: Study, truth: Truth, note: str) -> None:
    found, network = study.certificate(), truth.case.network
    ledger[f"{name}: nothing refuted"].verdict(found.kind == "proven", f"{note}: {found.evidence}")
    feasible = truth.feasible(truth.values)  # of a few candidates perhaps none
    ledger[f"{name}: not infeasible"].verdict(found.answer == "optimum" or not feasible.any(), note)
    if found.bound is None or found.gap is None or found.recommended is None:
        return
    sign, column = network.sign, network.objective_column
    reached = sign * truth.values[feasible, column]
    tally = ledger[f"{name}: no setting exceeds the bound"]
    tally.add(sign * found.bound - reached + _ROUNDING, np.array([found.gap]), note)
    own = truth.at(found.recommended.controls)
    value = sign * float(own[0, column])
    ledger[f"{name}: the recommended setting"].add(
        np.array([value - sign * found.recommended.at_least + _ROUNDING]), np.array([found.gap]), note
    )
    ledger[f"{name}: the gap"].add(found.gap - (reached - value) + _ROUNDING, np.array([found.gap]), note)
    if network.limits:
        ledger[f"{name}: the recommended setting is feasible"].verdict(bool(truth.feasible(own)[0]), note)
        if not any(map(forwards_error, network.stages)):
            for trial in study.trials:
                right = trial.feasible is None or trial.feasible == bool(truth.feasible(truth.at(trial.controls))[0])
                ledger[f"{name}: feasible runs"].verdict(right, f"{note}: trial {trial.number}")


def _check_batch(ledger: Ledger, name: str, study: Study, trial: Trial, truth: Truth, note: str) -> None:
    """What can still be done with a batch lies within its bounds."""
    network: Network = truth.case.network
    if any(map(forwards_error, network.stages)) or study._settings.listed is not None:
        return
    found = study.revise(trial)
    if found.bound is None or not np.isfinite(found.bound):
        return
    fixed = {
        control for done in study.state.rules.begun(study.trials[trial.number]) for control in _controls(network, done)
    }
    names = list(network.domain.names)
    rows = truth.settings.copy()
    for control in fixed:
        rows[:, names.index(control)] = network.domain.row(trial.controls)[names.index(control)]
    values = truth.case.problem.values(rows)
    some = network.sign * values[truth.feasible(values), network.objective_column]
    ledger[f"{name}: a batch"].add(network.sign * found.bound - some + _ROUNDING, np.zeros(1), note)
    if found.surest is not None and found.least is not None:
        own = network.sign * float(truth.at(found.surest)[0, network.objective_column])
        ledger[f"{name}: the surest end of a batch"].add(
            np.array([own - network.sign * found.least + _ROUNDING]), np.zeros(1), note
        )


def _controls(network: Network, stage: str) -> list[str]:
    return list(network.node(stage).stage.controls)
