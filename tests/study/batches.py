"""Runs that are revised after every stage, and what each revision says compared with the true process.

`violations` lists every statement of a revision that the true process contradicts.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.network import Network, Outputs
from cascada.process import Process
from cascada.store.trial import Trial
from cascada.study import Revision, Study
from tests.thorough import THOROUGH

_COMPLETIONS = 300 if THOROUGH else 100  # random ways to go on, each a run of the process
_ROUNDING = 1e-9  # of the process itself


@dataclass(frozen=True)
class Revised:
    """A trial as it was revised, and the revision."""

    trial: Trial
    revision: Revision


def stage_outputs(process: Process, trial: Trial, name: str) -> tuple[float, ...]:
    """What a stage of a trial gives; the stages before it were run."""

    class Stop(Exception):
        pass

    found: list[tuple[float, ...]] = []

    def ended(stage: str, outputs: tuple[float, ...]) -> None:
        if stage == name:
            found.append(outputs)
            raise Stop

    with suppress(Stop):
        process.run(trial.controls, {k: v for k, v in trial.outputs.items() if k != name}, ended=ended)
    return found[0]


def revisions(study: Study, process: Process, runs: int, costs: Mapping[str, float] | None = None) -> Iterator[Revised]:
    """Run a study stage by stage; every run is revised after every stage, and discarded where the revision says so."""
    for _ in range(runs):
        trial = study.ask()
        if trial is None:
            return
        for node in study.network.nodes:
            if node.stage.known or trial.state != "running":
                continue
            trial = study.tell_stage(trial, node.stage.name, stage_outputs(process, trial, node.stage.name))
            if trial.state != "running":
                break
            yield Revised(trial, study.revise(trial, apply=True, costs=costs))
            trial = study.trials[trial.number]


def violations(network: Network, process: Process, found: Revised, rng: np.random.Generator) -> list[str]:
    """The wrong statements of a revision: of its bound, of what is sure, and of the controls that are fixed."""
    trial, revision, sign = found.trial, found.revision, network.sign
    wrong = []
    fixed = fixed_controls(network, trial)
    for said in (revision.controls, revision.surest or {}):
        wrong += [f"{name} is fixed" for name in fixed if name in said and said[name] != trial.controls[name]]
    if revision.bound is not None:
        best = max((value(network, process(c)) for c in completions(network, trial, fixed, rng)), default=-np.inf)
        if sign * revision.bound < best - _ROUNDING:
            wrong.append(f"bound {revision.bound}, but {sign * best} is possible")
    if revision.surest is not None and revision.least is not None:
        # With the controls that can be set: those of stages that were run are what they were.
        reached = value(network, process({**revision.surest, **{name: trial.controls[name] for name in fixed}}))
        if reached < sign * revision.least - _ROUNDING:
            wrong.append(f"at least {revision.least}, but it gives {sign * reached}")
    return wrong


def fixed_controls(network: Network, trial: Trial) -> set[str]:
    """The controls of stages that were run: those with outputs of their own, in a network without unmeasured stages."""
    done = [name for name in trial.outputs if not network.node(name).stage.known]
    return {control for name in done for control in network.node(name).stage.controls}


def completions(
    network: Network, trial: Trial, fixed: set[str], rng: np.random.Generator
) -> Iterator[dict[str, float | int]]:
    """The plan, and random ways to go on."""
    domain = network.domain
    points: Array = rng.uniform(domain.lower, domain.upper, (_COMPLETIONS, domain.dimension))
    for row in [domain.row(trial.controls), *domain.decode(points)]:
        yield {**domain.named(row), **{name: trial.controls[name] for name in fixed}}


def value(network: Network, outputs: Outputs) -> float:
    """What is maximised, −∞ if a limit is broken."""
    found = network.objective_of(outputs)
    assert found is not None
    return -np.inf if network.is_feasible(outputs) is False else network.sign * found
