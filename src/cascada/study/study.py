"""A study in memory: ask for points, tell what was observed, see how good the best can still be."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from cascada.algorithms import GPNEI, GPNUCB, Algorithm, NonAdaptive, Situation, Suggestion, by_name
from cascada.arrays import Array
from cascada.calibration import Calibration, stage_predictions
from cascada.errors import RefutedError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Beliefs, Network, Process, StagePrediction
from cascada.search import Candidates, Certificate, Leaves, SearchBudget, search
from cascada.space import CandidatesLike, as_candidates
from cascada.study.book import Book
from cascada.study.frame import trials_dataframe
from cascada.study.judge import certificate_of, check_bound
from cascada.study.knowledge import Knowledge
from cascada.study.listed import Listed
from cascada.study.observing import observed, stage_name
from cascada.study.one_thread import on_one_thread
from cascada.study.options import check_options
from cascada.study.recommendation import Recommendation, recommendation_at, recommended_point
from cascada.study.trial import State, Trial, how_many

if TYPE_CHECKING:
    from cascada.network.evaluation import Functions
    from cascada.study.result import Result
    from cascada.study.stored import StoredStudy

# Keeps an algorithm's random numbers apart from those of a problem that was drawn with the same seed.
_STREAM = 0xCA5CADA


class Study:
    """Trials of a network, the beliefs they lead to, and the points that an algorithm suggests.

    The only stateful part of the library. Told results are always kept; what they refute is said by the certificate.
    """

    def __init__(
        self,
        network: Network,
        *,
        algorithm: str | Algorithm = "auto",
        candidates: CandidatesLike | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        stop_on_estimated: bool = False,
        on_violation: Literal["stop", "enlarge"] = "stop",
        jitter: float = SMALLEST_JITTER,
        horizon: int | None = None,
        calibration: Calibration | None = None,
        replayable: bool = False,
    ) -> None:
        check_options(on_violation, tolerance, seed, horizon)
        self.network = network
        # Without norms nothing can be proven, and what does best in practice is another algorithm: docs/choosing.md.
        self.algorithm = GPNEI() if algorithm == "auto" and network.estimated else by_name(algorithm)
        self.tolerance, self.stop_on_estimated, self.seed = tolerance, stop_on_estimated, seed
        self._replayable = replayable  # points follow from what was told alone, not from what is kept for speed
        self.horizon = horizon  # how many runs there will be, for algorithms that plan ahead
        domain = network.domain
        self._listed = None if candidates is None else Listed.of(as_candidates(candidates, domain), domain)
        self._candidates = None if self._listed is None else self._listed.coordinates
        self._book = Book(network)
        self._calibration = calibration or Calibration()  # for a network without norms
        self._knowledge = Knowledge(network, self._calibration, jitter, on_violation)
        self._suggestion: Suggestion | None = None  # for the present data, with nothing pending
        self._at_hand: Certificate | None = None  # for the present data
        self._cache: Any = None  # what the algorithm's last suggestion left behind
        self._leaves: Leaves | None = None  # the tree of the certificate, when the algorithm has none
        self._cells, self._seconds = 0, 0.0  # spent on all searches so far

    def __repr__(self) -> str:
        best = self.best_trial
        return f"Study({self.network!r}; {len(self._book.trials)} trials, best {None if best is None else best.value})"

    @staticmethod
    def open(url: str, name: str, network: Network | None = None, **options: Any) -> "StoredStudy":
        """The study of this name in a store, created if it is not there: see `cascada.study.opening.open_study`."""
        from cascada.study.opening import open_study  # databases are imported where they are used

        return open_study(url, name, network, **options)

    # ---- asking and telling

    @overload
    def ask(self) -> Trial | None: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    def ask(self, n: int | None = None) -> Trial | list[Trial] | None:
        """A new trial to run, or None when no point is worth a run (the tolerance is reached, or all were run).

        With `n`, a list of up to so many trials, to be run side by side.
        """
        if n is not None:
            with self._book.all_or_none():
                return list(islice(iter(self._ask, None), how_many(n)))
        return self._ask()

    def enqueue_trial(self, controls: Mapping[str, Any]) -> Trial:
        """A trial at controls of your own choice; the next to be asked for."""
        return self._book.add(self._book.new(controls, "waiting"))

    def begin_trial(self, controls: Mapping[str, Any]) -> Trial:
        """A trial at controls of your own choice that you run now."""
        return self._book.add(self._book.new(controls))

    def add_trial(self, controls: Mapping[str, Any], outputs: Mapping[str, Any]) -> Trial:
        """A run of the past, with all or some of its outputs."""
        told = self._book.add(self._learned(self._book.new(controls), outputs))
        return told if told.state == "complete" else self.abandon(told, "added without its objective")

    def tell(self, trial: Trial | int, outputs: Mapping[str, Any]) -> Trial:
        """Tell the outputs of every stage, or of those that were observed; with the objective the trial is complete."""
        return self._book.put(self._learned(self._book.get(trial), outputs))

    def tell_stage(self, trial: Trial | int, stage: str, outputs: Any) -> Trial:
        """Tell the outputs of one stage as they come in."""
        return self.tell(trial, {stage_name(stage): outputs})

    def fail(self, trial: Trial | int, reason: str) -> Trial:
        """Say that a run failed; the stages that were observed are kept and used."""
        return self._end(trial, "failed", reason)

    def abandon(self, trial: Trial | int, reason: str = "abandoned") -> Trial:
        """Say that a trial will not be run; the stages that were observed are kept and used."""
        return self._end(trial, "abandoned", reason)

    def begin_waiting(self, number: int) -> None:
        """Mark a waiting trial as running."""
        self._book.taken_up(number)

    def put_back(self, numbers: Iterable[int]) -> None:
        """Let trials wait again that are not run any more, as far as they run."""
        for number in numbers:
            self._book.put_back(number)

    def optimise(self, functions: "Functions | Process" = None, *, budget: int, **options: Any) -> "Result":
        """Run the process until the study has `budget` trials: see `cascada.study.driving.optimise`."""
        from cascada.study.driving import optimise  # which is made of ask and tell

        return optimise(self, functions, budget=budget, **options)

    def refute(self, reason: str) -> None:
        """Say that an assumption is wrong (the process is not deterministic, say): nothing is proven from now on."""
        self._knowledge.refute(reason)
        self._at_hand = None

    # ---- what is known

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order in which they were asked for."""
        return tuple(self._book.trials)

    @property
    def beliefs(self) -> Beliefs:
        """What is believed of every stage."""
        return self._knowledge.judging

    @property
    def knowledge(self) -> Knowledge:
        """What the runs taught, and what speaks against the assumptions."""
        return self._knowledge

    @property
    def best_trial(self) -> Trial | None:
        """The complete trial with the best objective; the earliest where several are equal."""
        return self._book.best

    def trials_dataframe(self) -> Any:
        """All trials as a pandas DataFrame."""
        return trials_dataframe(self.network, self._book.trials)

    @on_one_thread
    def predict(self, controls: Mapping[str, Any]) -> dict[str, StagePrediction]:
        """Mean, sd and bounds of every stage at some controls."""
        return stage_predictions(self.network, self.beliefs.predict(controls))

    @property
    def gap(self) -> float | None:
        """How far the best run can be from the best possible; None before that is known, or when refuted."""
        return self.certificate().gap

    @property
    def refuted(self) -> bool:
        """Whether the data speak against the assumptions, as far as is known without a bound."""
        return self._knowledge.kind == "refuted"

    @property
    def adaptive(self) -> bool:
        """Whether the algorithm looks at what was told; if not, all its points are known beforehand."""
        return bool(getattr(self.algorithm, "adaptive", True))

    @property
    def within_tolerance(self) -> bool:
        """Whether the gap is within the tolerance: a proven one, or an estimated one if that may stop the study."""
        if self.tolerance is None:
            return False
        certificate = self.certificate()
        enough = certificate.kind == "proven" or (certificate.kind == "estimated" and self.stop_on_estimated)
        return enough and certificate.gap is not None and certificate.gap <= self.tolerance

    def certificate(
        self, *, tolerance: float | None = None, cells: int | None = None, seconds: float | None = None
    ) -> Certificate:
        """How good the best run is. Without limits, from the bound at hand; with them, after refining further."""
        if tolerance is not None or cells is not None or seconds is not None:
            return self._certify(SearchBudget(tolerance or 0.0, cells or 200_000, seconds))
        if self._at_hand is None:
            self._at_hand = self._certify(None)
        return self._at_hand

    @on_one_thread
    def _certify(self, limits: SearchBudget | None) -> Certificate:
        best = self._book.best_value
        if self.refuted or not np.isfinite(best) or self._untested:
            return self._certificate()
        try:
            bound, stopped = self._bound(limits, best)
        except RefutedError as error:
            self._knowledge.refuted_by(error)
            return self._certificate()
        return self._certificate(max(bound, best), stopped)

    def recommended(self) -> dict[str, float | int] | None:
        """What the algorithm recommends in the end, if that is not simply the best run."""
        point = recommended_point(self.algorithm, self._situation(()))
        return None if point is None else self._named(point)

    @on_one_thread
    def recommendation(self, certificate: Certificate | None = None) -> Recommendation | None:
        """The same with what it gives at least, and how far it can be from the best possible.

        Over a box the best possible is bounded by a `certificate` of this study: one that was refined, or that at hand.
        """
        controls = self.recommended()
        if controls is None:
            return None
        now = self._certificate()
        if certificate is None or (certificate.kind, certificate.assumptions) != (now.kind, now.assumptions):
            certificate = self.certificate()  # bounds survive more data, but not a changed assumption
        try:
            return recommendation_at(self.beliefs, controls, self._candidates, certificate)
        except RefutedError as error:
            self._knowledge.refuted_by(error)
            self._at_hand = None
            return recommendation_at(self.beliefs, controls, self._candidates, self._certificate())

    # ---- inside

    def _named(self, point: Array) -> dict[str, float | int]:
        """A suggested point (d,) in user units; a candidate exactly as it was given, logarithms or not."""
        given = None if self._listed is None else self._listed.given(point)
        domain = self.network.domain
        return domain.named(domain.decode(point[None])[0] if given is None else given)

    def _bound(self, limits: SearchBudget | None, best: float) -> tuple[float, str]:
        """An upper bound of what is maximised over the whole domain, and what stopped the search for it."""
        # Nobody else's bound is called proven; and a calibrated network is judged by other beliefs than it acts on.
        own = type(self.algorithm) is GPNUCB and not self.network.estimated
        if own and limits is None:
            suggestion = self._suggest()
            if suggestion.bound is not None:
                return self._checked(suggestion.bound, best), suggestion.stopped
        started = time.monotonic()
        if self._candidates is not None:
            upper = Candidates.of(self._candidates).follow(self.beliefs).upper(self.beliefs)
            self._count(len(upper), started)
            return self._checked(float(upper.max()), best), "every candidate"
        leaves = self._cache if own and isinstance(self._cache, Leaves) else self._leaves
        if leaves is None:
            leaves = Leaves.root(self.network.domain)
        wanted = SearchBudget(self.tolerance or 0.0, cells=2_000) if limits is None else limits
        run = self._situation(()).best_run
        outcome = search(self.beliefs, leaves, best, len(self._knowledge.told), wanted, prove=True, best_run=run)
        if limits is None and not self._replayable:  # a tree that grew over many looks does not follow from the log
            self._leaves = outcome.leaves
        self._count(outcome.cells, started)
        return outcome.bound, outcome.stopped

    def _checked(self, bound: float, best: float) -> float:
        """A bound over all points that were run, refused when a run beats it."""
        domain, run = self.network.domain, self._situation(()).best_run
        inside = self._listed is None or all(domain.row(t.controls) in self._listed for t in self._book.trials)
        if inside and run is not None:
            check_bound(self.beliefs, bound, best, run)
        return bound

    def _count(self, cells: int, started: float) -> None:
        self._cells += cells
        self._seconds += time.monotonic() - started

    def _certificate(self, bound: float | None = None, stopped: str = "no bound") -> Certificate:
        missing = str(self._knowledge.probation) if self._untested else ""
        spent = self._cells, self._seconds, stopped
        return certificate_of(self._book, self._knowledge, self._candidates, bound, spent, missing)

    @on_one_thread
    def _ask(self) -> Trial | None:
        waiting = self._book.taken_up()
        if waiting is not None:
            return waiting
        if self.within_tolerance:  # first, as this look at the bound may refute
            return None
        found = self._knowledge.evidence()
        if found:
            raise RefutedError(" ".join(found))
        pending = self._book.running
        suggestion = self._suggest() if not pending else self._suggest_beside(pending)
        return None if suggestion.point is None else self.begin_trial(self._named(suggestion.point))

    def _suggest(self) -> Suggestion:
        """The suggestion for the data told so far; computed once, so that asking twice changes nothing."""
        if self._suggestion is None:
            self._suggestion = self._suggest_beside(())
            self._cache = None if self._replayable else self._suggestion.cache
        return self._suggestion

    def _suggest_beside(self, pending: Sequence[Trial]) -> Suggestion:
        started, situation = time.monotonic(), self._situation(pending)
        try:
            suggestion = self._chooser.suggest(situation, self._generator())
        except RefutedError:
            if not self.network.estimated:
                raise
            # An estimate of ours contradicts the data; this algorithm does not rest on bounds.
            suggestion = GPNEI().suggest(replace(situation, cache=None), self._generator())
        self._count(suggestion.cells, started)
        return suggestion

    @property
    def _untested(self) -> bool:
        """Whether the gap would rest on estimated bounds that runs after the design have not tested enough."""
        all_run = self._listed is not None and self._book.covers(self._listed.rows)  # then nothing is estimated
        return self.network.estimated and not self._knowledge.probation.passed and not all_run

    @property
    def _learning(self) -> bool:
        """Whether the first points, which are a design, are still being asked for."""
        return self.network.estimated and len(self._book.trials) < self._calibration.first(self.network)

    @property
    def _chooser(self) -> Algorithm:
        """What chooses the next point: at first a design, where norms have to be estimated."""
        design = NonAdaptive(runs=self._calibration.first(self.network))
        return design if self._learning and self.adaptive else self.algorithm

    def _situation(self, pending: Sequence[Trial]) -> Situation:
        known = self._knowledge
        # A gap that may not stop the study, or is not judged by these beliefs, is no reason to stop searching. Nor is
        # one in a study that is replayed, with another tolerance perhaps: its points must not depend on it.
        blind = self._replayable or self.network.estimated or (known.enlarged and not self.stop_on_estimated)
        return Situation(
            beliefs=known.acting,
            data=known.told,
            pending=known.pending(pending),
            candidates=self._candidates,
            best=self._book.best_value,
            trial=len(self._book.trials),
            tolerance=0.0 if blind else self.tolerance or 0.0,
            cache=self._cache,
            taken=frozenset(self._book.taken),
            horizon=self.horizon,
            untested=known.to_probe(pending, self._book.best_value),
        )

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([_STREAM, self.seed, len(self._book.trials)])

    @on_one_thread
    def _learned(self, before: Trial, outputs: Mapping[str, Any]) -> Trial:
        """A trial with these outputs too, once all that follows from them is learned; else nothing is changed."""
        told = observed(self.beliefs, before, outputs)
        self._book.repeats.check(told)
        if any(name not in before.outputs for name in outputs):
            if self._knowledge.learn(told):
                self._cache = self._leaves = None  # their bounds rest on what is not assumed any more
            self._suggestion = None
            self._book.repeats.add(told)
        self._at_hand = None
        return told

    def _end(self, trial: Trial | int, state: State, reason: str) -> Trial:
        ended = self._book.end(trial, state, reason)
        self._suggestion = None  # it may be the point that failed
        return ended
