"""Soundness of studies with random histories: partial, repeated, abandoned, reopened and amended trials.

Every process is one of `problems.certified`, so every assumption is true, also with a larger norm bound. After each
step nothing may be refuted, the proven bound must be at least the true optimum, and the gap at least the true regret.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.kernels import Matern, SquaredExponential, Stationary
from cascada.network import Network
from cascada.problems import Problem, certified
from cascada.problems.problem import Optimum
from cascada.study import Study, Trial
from tests.soundness import truths
from tests.soundness.harness import Ledger

STRUCTURES = ("chain", "controls", "feed-forward", "multi-output", "join", "known")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(2.5))
ALGORITHMS = ("gpn_ucb", "gpn_ei", "random_search", "oi")
_CANDIDATES = 300
_PENDING = 3  # the most pending trials
_POINTS = 20  # points of the predictions that are checked after each step


def run(steps: int, seed: int, structures: Sequence[str] = STRUCTURES) -> Ledger:
    """Check one history in memory, one with candidates, and one in a store for every structure."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        rng = np.random.default_rng([seed, s, 10])
        problem = certified(structure, int(rng.integers(1 << 30)), KERNELS[(seed + s) % len(KERNELS)])
        if rng.uniform() < 0.5:
            problem = minimised(problem)
        with tempfile.TemporaryDirectory() as folder:
            for history in (InMemory(problem, rng), Listed(problem, rng), Stored(problem, rng, Path(folder))):
                with history.opened():
                    play(ledger, history, steps)
    return ledger


def minimised(problem: Problem) -> Problem:
    """The same process, of which the smallest objective is sought; `answer` is minus that."""

    def answer() -> Optimum:
        return Problem(problem.name, problem.summary, problem.network, lambda points: -problem.values(points)).best

    return Problem(f"{problem.name}, minimised", problem.summary, problem.network.mirrored(), problem.values, answer)


def play(ledger: Ledger, history: "History", steps: int) -> None:
    """Take random steps, and check the study's claims after each of them."""
    for _ in range(steps):
        name = str(history.rng.choice(history.actions))
        note = f"{history.problem.name}, {history.kind}, {name} after {history.done}"
        ledger[f"{history.kind}: step accepted"].attempt(getattr(history, name), note)
        history.done.append(name)
        check_claims(ledger, history, note)


def check_claims(ledger: Ledger, history: "History", note: str) -> None:
    """Check the certificate and the bounds against the truth."""
    problem, kind, study = history.problem, history.kind, history.study
    refined = {"cells": 300} if history.rng.uniform() < 0.3 else {}
    certificate = ledger[f"{kind}: certificate"].attempt(lambda: study.certificate(**refined), note)
    if certificate is None:
        return
    ledger[f"{kind}: not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
    ledger[f"{kind}: best run"].verdict(
        certificate.best == history.best, f"{note}: {certificate.best} instead of {history.best}"
    )
    if certificate.bound is not None and certificate.gap is not None and history.best is not None:
        sign, optimum = problem.network.sign, history.optimum
        margins = np.array([sign * certificate.bound - optimum, certificate.gap - (optimum - sign * history.best)])
        width = np.array([certificate.gap]) / truths.NORM
        ledger[f"{kind}: proven bound and gap"].add(margins / truths.NORM, width, note)
    domain = problem.network.domain
    Z = history.rng.uniform(domain.lower, domain.upper, (_POINTS, domain.dimension))
    if study.trials:  # near runs, where bounds are sharp
        runs = np.array([domain.row(trial.controls) for trial in study.trials])
        Z[::2] = runs[history.rng.integers(len(runs), size=len(Z[::2]))]
        Z[::4] += 10 ** history.rng.uniform(-9, -1, (len(Z[::4]), 1))
        Z = np.clip(Z, domain.lower, domain.upper)
    truth = problem.values(Z)[:, domain.dimension :]
    ledger[f"{kind}: bounds at points"].try_boxes(
        lambda: truths.output_boxes(study.beliefs, Boxes(Z, Z)), truth, truths.NORM, note
    )


class History:
    """A study with random steps and true outputs."""

    kind: str
    actions: tuple[str, ...] = (
        "ask",
        "ask",
        "tell_stage",
        "tell_stage",
        "tell_stage",
        "tell",
        "tell",
        "add",
        "give_up",
    )

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.network = problem.network
        self.optimum = problem.optimum[1]
        self.pending: dict[int, Trial] = {}
        self.best: float | None = None  # the best complete run, counted independently
        self.done: list[str] = []
        self.study: Any = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Context in which the study is open."""
        raise NotImplementedError

    def outputs(self, controls: dict[str, Any]) -> dict[str, list[float]]:
        """The outputs of the process."""
        values = self.problem.values(self.network.domain.row(controls)[None])[0]
        return {node.stage.name: values[list(node.columns)].tolist() for node in self.network.nodes}

    def ask(self) -> None:
        """Ask for one more trial."""
        trial = self.study.ask() if len(self.pending) < _PENDING else None
        if trial is not None:
            self.pending[trial.number] = trial

    def ask_two(self) -> None:
        """Ask for two trials at the same time."""
        for trial in self.study.ask(2) if len(self.pending) < _PENDING else ():
            self.pending[trial.number] = trial

    def tell_stage(self) -> None:
        """Tell a random stage of a random trial, before or after its parents, possibly again."""
        trial = self._any()
        if trial is None:
            return
        name = str(self.rng.choice([node.stage.name for node in self.network.nodes]))
        self._note(self.study.tell_stage(trial.number, name, self.outputs(dict(trial.controls))[name]))

    def tell(self) -> None:
        """Tell all stages of a random trial, or only the last one."""
        trial = self._any()
        if trial is None:
            return
        outputs = self.outputs(dict(trial.controls))
        if self.rng.uniform() < 0.2:
            outputs = {self.network.objective[0]: outputs[self.network.objective[0]]}
        self._note(self.study.tell(trial.number, outputs))

    def add(self) -> None:
        """Add an earlier run at random controls, complete or partial."""
        domain = self.network.domain
        point: Array = self.rng.uniform(domain.lower, domain.upper)
        controls = domain.named(domain.decode(point[None])[0])
        outputs = self.outputs(controls)
        kept = [name for name in outputs if self.rng.uniform() < 0.8]
        self._note(self.study.add_trial(controls, {name: outputs[name] for name in kept}))

    def give_up(self) -> None:
        """Fail or abandon a trial with some or no observed outputs."""
        trial = self._any()
        if trial is not None:
            del self.pending[trial.number]
            (self.study.fail if self.rng.uniform() < 0.5 else self.study.abandon)(trial.number, "given up")

    def _any(self) -> Trial | None:
        numbers = list(self.pending)
        return None if not numbers else self.pending[numbers[int(self.rng.integers(len(numbers)))]]

    def _note(self, trial: Trial) -> None:
        if trial.state == "complete":
            self.pending.pop(trial.number, None)
            assert trial.value is not None, "a complete trial has a value"
            sign = self.network.sign
            self.best = trial.value if self.best is None else sign * max(sign * self.best, sign * trial.value)


class InMemory(History):
    """A study in memory, with any algorithm: a certificate does not depend on how points were chosen."""

    kind = "in memory"

    @contextmanager
    def opened(self) -> Iterator[None]:
        algorithm = str(self.rng.choice(ALGORITHMS))
        self.study = Study(self.network, algorithm=algorithm, seed=int(self.rng.integers(100)))
        yield


class Listed(History):
    """A study in memory whose controls are a list of candidates; runs may lie elsewhere."""

    kind = "candidates"

    @contextmanager
    def opened(self) -> Iterator[None]:
        domain = self.network.domain
        candidates = self.rng.uniform(domain.lower, domain.upper, (_CANDIDATES, domain.dimension))
        self.optimum = float((self.network.sign * self.problem.objective(candidates)).max())
        self.study = Study(self.network, candidates=candidates)
        yield


class Stored(History):
    """A study in a SQLite file that is closed and reopened, sometimes with other true bounds."""

    kind = "stored"
    actions = (*History.actions, "reopen", "amend", "amend")

    def __init__(self, problem: Problem, rng: np.random.Generator, folder: Path) -> None:
        super().__init__(problem, rng)
        self.url = f"sqlite:///{folder / 'study.db'}"

    @contextmanager
    def opened(self) -> Iterator[None]:
        self.study = Study.open(self.url, "history", self.network)
        try:
            yield
        finally:
            self.study.close()

    def reopen(self) -> None:
        """Close and reopen the study; observations and pending trials are in the log."""
        self.study.close()
        self.study = Study.open(self.url, "history", self.network)

    def amend(self) -> None:
        """Continue with norm bounds that are 1 to 3 times the true norms."""
        self.study.close()
        factor = float(self.rng.choice([1.0, 1.5, 3.0]))
        stages = [
            stage if stage.norm_bound is None else stage.assuming(factor * stage.norm_bound, None)
            for stage in self.problem.network.stages
        ]
        network = Network(stages, objective=".".join(self.problem.network.objective))
        self.network = network if self.problem.network.sign > 0 else network.mirrored()
        self.study = Study.open(self.url, "history", self.network, amend=True)
