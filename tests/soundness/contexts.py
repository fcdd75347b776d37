"""Soundness of certificates for contexts, of decision tables and of trials with fixed controls.

Every process is one of `problems.certified`, with one of its controls measured instead of chosen, or one of
`problems.certified_choices`, whose choice is measured. After each run the certificate for random contexts is compared
with the values at many settings there, and some decision tables with the values of their settings at many contexts.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.network import Network, Stage
from cascada.problems import Problem, certified
from cascada.problems.certified_choices import certified_choices
from cascada.space import Choice, Control, Real
from cascada.study import Study
from cascada.study.certificate import Certificate
from cascada.study.table import DecisionTable
from tests.soundness.harness import Ledger
from tests.soundness.truths import BOX, NORM

CHOICE = "choice"
STRUCTURES = ("chain", "controls", "join", "feed-forward", CHOICE)
_SETTINGS = 500  # at each context
_CONTEXTS = 2  # after each run
_IN_BOX = 8  # contexts of every row of a table


def run(steps: int, seed: int, structures: Sequence[str] = STRUCTURES, first: int = 0) -> Ledger:
    """Check one search of `steps` runs over random contexts for every structure; some are minimised.

    Certificates are checked from the run with the number `first` on.
    """
    ledger = Ledger()
    for s, structure in enumerate(structures):
        problem = certified_choices("first", seed) if structure == CHOICE else certified(structure, seed)
        names = problem.network.domain.names
        measured = "wood" if structure == CHOICE else names[seed % len(names)]
        old = problem.network.domain.controls[measured]
        given: Control = Choice(old.values, context=True) if isinstance(old, Choice) else Real(-BOX, BOX, context=True)
        problem = with_controls(problem, {measured: given}, minimised=(seed + s) % 3 == 2)
        check_search(
            ledger, f"{structure}, seed {seed}", problem, measured, (first, steps), np.random.default_rng([seed, s, 24])
        )
    return ledger


def with_controls(problem: Problem, controls: Mapping[str, Control], *, minimised: bool = False) -> Problem:
    """The same process with other declarations of some controls."""
    network = problem.network
    stages: list[Stage] = []
    for stage in network.stages:
        changed = copy(stage)
        ranges = {name: controls.get(name, control) for name, control in stage.controls.items()}
        object.__setattr__(changed, "controls", ranges)
        stages.append(changed)
    made = Network(stages, ".".join(network.objective))
    return Problem(problem.name, problem.summary, made.mirrored() if minimised else made, problem.values)


def drawn(control: Control, rng: np.random.Generator) -> float | str:
    """A random value of a control that is measured."""
    return str(rng.choice(control.values)) if isinstance(control, Choice) else float(rng.uniform(-BOX, BOX))


def check_search(
    ledger: Ledger, name: str, problem: Problem, measured: str, steps: tuple[int, int], rng: np.random.Generator
) -> None:
    """Check the certificates of random contexts after every run, and a table after the last one."""
    study, network = Study(problem.network), problem.network
    free = next(one for one in network.domain.names if one != measured)
    control = network.domain.controls[measured]
    for step in range(steps[1]):
        note, context = f"{name}, run {step}", {measured: drawn(control, rng)}
        several = network.domain.dimension > 2 and step % 4 == 3
        fixed = {free: float(rng.uniform(-BOX, BOX))} if several else None
        trial = ledger["suggestion"].attempt(lambda c=context, f=fixed: study.ask(context=c, fixed=f), note)  # type: ignore[misc]
        if trial is None:
            continue
        ledger["given values"].verdict(
            all(trial.controls[k] == v for k, v in {**context, **(fixed or {})}.items()), note
        )
        values = problem.values(network.domain.row(trial.controls)[None])[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)].tolist() for node in network.nodes})
        if step < steps[0]:
            continue
        for at in (context, *({measured: drawn(control, rng)} for _ in range(_CONTEXTS - 1))):
            certificate = ledger["certificate"].attempt(lambda c=at: study.certificate(context=c, cells=400), note)  # type: ignore[misc]
            if certificate is not None:
                check_certificate(ledger, problem, certificate, rng, f"{note}, {at}")
    table = ledger["table"].attempt(lambda: study.table(tolerance=0.3, rows=3), name)
    if table is not None:
        check_table(ledger, problem, table, rng, name)


def settings_at(problem: Problem, context: Mapping[str, Any], count: int, rng: np.random.Generator) -> Array:
    """Random settings (count, d) at a context."""
    domain = problem.network.domain
    points = domain.uniform(rng, count)
    for name, value in context.items():
        points[:, domain.names.index(name)] = domain.controls[name].coded(value, name)
    return points


def check_certificate(
    ledger: Ledger, problem: Problem, certificate: Certificate, rng: np.random.Generator, note: str
) -> None:
    """Check the bound, the gap and the recommended setting of a certificate for a context."""
    network, sign = problem.network, problem.network.sign
    ledger["not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
    if certificate.bound is None or certificate.gap is None or certificate.context is None:
        return
    points = settings_at(problem, certificate.context, _SETTINGS, rng)
    setting = certificate.recommended
    reached = certificate.best
    if setting is not None:
        row = network.domain.row(setting.controls)[None]
        # The search for the best setting goes on around the one that is recommended.
        near = np.clip(row + 0.05 * rng.standard_normal((_SETTINGS, row.shape[1])), -BOX, BOX)
        names = network.domain.names
        for name, value in certificate.context.items():
            near[:, names.index(name)] = network.domain.controls[name].coded(value, name)
        points = np.concatenate([points, near])
        reached = float(problem.values(row)[0, network.objective_column])
        more = sign * (reached - setting.at_least)
        ledger["value of the recommended setting"].add(np.array([more]) / NORM, np.zeros(1), note)
    assert reached is not None, "a certificate with a gap has a best run or a recommended setting"
    values = sign * problem.values(points)[:, network.objective_column]
    width = np.array([certificate.gap]) / NORM
    ledger["bound at a context"].add((sign * certificate.bound - values) / NORM, width, note)
    ledger["gap at a context"].add((certificate.gap - (values - sign * reached)) / NORM, width, note)


def check_table(ledger: Ledger, problem: Problem, table: DecisionTable, rng: np.random.Generator, note: str) -> None:
    """Check the rows of a decision table at many contexts of their boxes."""
    network, sign = problem.network, problem.network.sign
    for row in table.rows:
        if row.controls is None or row.at_least is None or row.gap is None:
            continue
        for share in np.linspace(0.0, 1.0, _IN_BOX):
            context = {
                name: ends if isinstance(ends, str) else (1 - share) * ends[0] + share * ends[1]
                for name, ends in row.contexts.items()
            }
            chosen = problem.values(network.domain.row({**row.controls, **context})[None])
            value = sign * float(chosen[0, network.objective_column])
            others = sign * problem.values(settings_at(problem, context, _SETTINGS, rng))[:, network.objective_column]
            width = np.array([row.gap]) / NORM
            ledger["setting of a table"].add(np.array([value - sign * row.at_least]) / NORM, width, note)
            ledger["gap of a table"].add((row.gap - (others - value)) / NORM, width, note)
            ledger["bound of a table"].add((sign * row.bound - others) / NORM, width, note)
