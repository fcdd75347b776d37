"""The settings of a study: its algorithm, candidates, seed, and when it stops."""

import sys
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from cascada.algorithms import (
    CUCB,
    GPNEI,
    GPNUCB,
    GPUCB,
    Algorithm,
    CascadedEI,
    ExpectedImprovement,
    GPNMixed,
    NonAdaptive,
    OptimisticImprovement,
    by_name,
)
from cascada.arrays import Array
from cascada.calibration import Calibration
from cascada.calibration.drawable import check_probable
from cascada.errors import ArgumentError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Network
from cascada.network.argument import as_network
from cascada.network.latent import forwards_error
from cascada.network.noise import with_noise
from cascada.network.scatter import CONFIDENCE, as_confidence
from cascada.search.robust import MOST_UNCERTAIN
from cascada.space import CandidatesLike, Domain, as_candidates
from cascada.study.certificate import Certificate
from cascada.study.step_options import check_step_options

OnViolation = Literal["stop", "enlarge"]
#: The kind of gap that ends a study at its tolerance; a proven one always does.
StopOn = Literal["proven", "probable", "estimated"]

# Algorithms that choose points by the objective alone.
_WITHOUT_LIMITS = (GPUCB, ExpectedImprovement, NonAdaptive, CUCB, OptimisticImprovement)
# Those that choose points by bounds, which say nothing of failures, as well.
_WITHOUT_FAILURES = (*_WITHOUT_LIMITS, GPNUCB, GPNMixed)
# Those that take readings as exact.
_WITHOUT_ERRORS = (*_WITHOUT_LIMITS, CascadedEI, GPNEI)


@dataclass(frozen=True, eq=False)
class Listed:
    """Candidates in user units (n, d), exactly as they were given, and their coordinates."""

    rows: Array
    coordinates: Array

    @classmethod
    def of(cls, rows: Array, domain: Domain) -> "Listed":
        """From validated rows in user units."""
        return cls(rows, domain.encode(rows))

    def at(self, point: Array) -> Array | None:
        """The candidate (d,) in user units with these coordinates; None if there is none."""
        same = (self.coordinates == point).all(axis=1)
        return self.rows[same.argmax()] if same.any() else None

    def __contains__(self, row: Array) -> bool:
        return bool((self.rows == row).all(axis=1).any())


@dataclass(frozen=True, eq=False)
class Settings:
    """Validated settings of a study."""

    algorithm: Algorithm
    listed: Listed | None = None  #: the candidates; None for the box
    tolerance: float | None = None
    stop_on: StopOn = "proven"
    seed: int = 0
    on_violation: OnViolation = "stop"
    jitter: float = SMALLEST_JITTER
    horizon: int | None = None  #: the planned number of runs, for algorithms that plan ahead
    calibration: Calibration = field(default_factory=Calibration)  #: for a network without norms
    safe: bool = False  #: whether only settings are run that are proven to satisfy the limits
    confidence: float = CONFIDENCE  #: the probability with which bounds from readings with scatter hold
    #: Whether other processes can continue the study: then its points follow from the log alone.
    shared: bool = False

    @classmethod
    def of(
        cls,
        network: Network,
        *,
        algorithm: str | Algorithm = "auto",
        candidates: CandidatesLike | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        stop_on: StopOn | None = None,
        stop_on_estimated: bool = False,
        on_violation: OnViolation = "stop",
        jitter: float = SMALLEST_JITTER,
        horizon: int | None = None,
        calibration: Calibration | None = None,
        safe: bool = False,
        confidence: float | None = None,
        shared: bool = False,
    ) -> "Settings":
        """From the options of a study; `ArgumentError` names the one that is invalid."""
        as_network(network)
        _check(on_violation, tolerance, seed, horizon)
        chosen = resolved(algorithm, network)
        _check_combination(network, chosen, on_violation)
        _check_choices(network, chosen)
        _check_context(network, candidates)
        _check_uncertain(network, chosen, candidates)
        _check_safe(network, safe, on_violation)
        _check_errors(network, chosen, on_violation)
        _check_scatter(network, safe, confidence)
        check_step_options(network, candidates=candidates is not None, safe=safe)
        with_noise(network)  # raises if the noise of a stage cannot be estimated
        return cls(
            algorithm=chosen,
            listed=None if candidates is None else Listed.of(as_candidates(candidates, network.domain), network.domain),
            tolerance=tolerance,
            stop_on=_stop_on(stop_on, stop_on_estimated, network),
            seed=seed,
            on_violation=on_violation,
            jitter=jitter,
            horizon=horizon,
            calibration=calibration or Calibration(),
            safe=safe,
            confidence=CONFIDENCE if confidence is None else as_confidence(confidence),
            shared=shared,
        )

    def with_tolerance(self, tolerance: float) -> "Settings":
        """The same settings with another tolerance; `ArgumentError` if it is invalid."""
        _check(self.on_violation, tolerance, self.seed, self.horizon)
        return replace(self, tolerance=tolerance)

    def is_met_by(self, certificate: Certificate) -> bool:
        """Whether the gap is within the tolerance: a proven one, or an estimated one if that may stop the study."""
        if certificate.answer == "infeasible":
            return True
        enough = certificate.kind in ("proven", "confident") or (
            certificate.kind == "estimated" and self.stop_on_estimated
        )
        small = certificate.gap is not None and self.tolerance is not None and certificate.gap <= self.tolerance
        return enough and small

    @property
    def stop_on_estimated(self) -> bool:
        """Whether an estimated gap ends the study at its tolerance."""
        return self.stop_on == "estimated"

    @property
    def candidates(self) -> Array | None:
        """The coordinates of the candidates (n, d); None for the box."""
        return None if self.listed is None else self.listed.coordinates

    @property
    def adaptive(self) -> bool:
        """Whether points depend on observations; if not, all of them are known in advance."""
        return self.safe or bool(getattr(self.algorithm, "adaptive", True))

    @property
    def uses_beliefs(self) -> bool:
        """Whether points depend on what was learned from the runs."""
        return self.safe or bool(getattr(self.algorithm, "uses_beliefs", True))


def resolved_name(algorithm: str, network: Network) -> str:
    """The name of the algorithm that "auto" stands for; any other name as it is.

    Without norms nothing can be proven, and another algorithm finds better settings: docs/choosing.md.
    """
    return ("gpn_ei" if network.estimated else "gpn_mixed") if algorithm == "auto" else algorithm


def stored_name(algorithm: str, network: Network) -> str:
    """The name of the algorithm that "auto" stands for in a store; any other name as it is.

    Only version 0.1.0 stored "auto". Its studies keep the algorithm that it meant.
    """
    return "gpn_ucb" if algorithm == "auto" and not network.estimated else resolved_name(algorithm, network)


#: Names that "auto" stands for, or has stood for. A study that is stored with one of them may be opened with "auto".
AUTOMATIC = ("auto", "gpn_mixed", "gpn_ucb", "gpn_ei")


def resolved(algorithm: str | Algorithm, network: Network) -> Algorithm:
    """The algorithm itself, from its name, from "module:Class", or as it is given."""
    return by_name(resolved_name(algorithm, network) if isinstance(algorithm, str) else algorithm)


def as_stop_on(value: Any) -> StopOn | None:
    """The kind of gap with this name, None for None; `ArgumentError` if there is none."""
    kinds: tuple[StopOn, ...] = get_args(StopOn)
    if value is not None and value not in kinds:
        raise ArgumentError(f"stop_on must be 'proven', 'probable' or 'estimated'; got {value!r:.100}.")
    return None if value is None else next(kind for kind in kinds if kind == value)


def _stop_on(stop_on: Any, stop_on_estimated: Any, network: Network) -> StopOn:
    """The kind of gap that ends a study; `ArgumentError` if the two options are invalid or contradict each other."""
    kind = as_stop_on(stop_on)
    if kind is None:
        return "estimated" if stop_on_estimated else "proven"
    if stop_on_estimated and kind != "estimated":
        raise ArgumentError(
            f"stop_on_estimated=True means stop_on='estimated'; got stop_on={kind!r} as well. Leave one of them out."
        )
    if kind == "probable":
        check_probable(network)
    return kind


def _check_combination(network: Network, algorithm: Algorithm, on_violation: OnViolation) -> None:
    """Raise `ArgumentError` for options that do not work together."""
    if network.limits and isinstance(algorithm, _WITHOUT_LIMITS):
        raise ArgumentError(
            f"limits do not work with the algorithm {type(algorithm).__name__}, which ignores them; leave algorithm= "
            f"out, or use 'gpn_mixed', 'gpn_ucb', 'gpn_ei' or 'random_search'."
        )
    _check_failures(network, algorithm)
    if on_violation == "enlarge" and any(stage.ranges for stage in network.stages):
        raise ArgumentError(
            "ranges do not work with on_violation='enlarge', because a wrong range cannot be enlarged by data; leave "
            "on_violation= out, and amend the range if a run leaves it."
        )


def _check_choices(network: Network, algorithm: Algorithm) -> None:
    """Raise `ArgumentError` if there are choices, and the algorithm models the objective over an ordered box."""
    names = [network.domain.names[j] for j in network.domain.choices]
    if names and isinstance(algorithm, _WITHOUT_LIMITS):
        raise ArgumentError(
            f"the choice {names[0]!r} does not work with the algorithm {type(algorithm).__name__}, whose bounds need "
            f"an order of values; leave algorithm= out, or use 'gpn_mixed', 'gpn_ucb', 'gpn_ei', 'cei' or "
            f"'random_search'."
        )


def _check_context(network: Network, candidates: CandidatesLike | None) -> None:
    """Raise `ArgumentError` if there are candidates and a context, which takes values that no candidate has."""
    if network.context and candidates is not None:
        raise ArgumentError(
            f"candidates= does not work with context=True, which {', '.join(network.context)} has: a measured value is "
            f"none of a list. Leave one of them out, or use Integer or Real(step=…) for controls with few values."
        )


def _check_uncertain(network: Network, algorithm: Algorithm, candidates: CandidatesLike | None) -> None:
    """Raise `ArgumentError` if uncertain controls meet something for which their worst case is not defined."""
    if not network.uncertain:
        return
    who = f"deviation=, which {', '.join(network.uncertain)} has,"
    unlike = not isinstance(algorithm, GPNUCB | GPNMixed | GPNEI)
    refused = {
        "limits=": bool(network.limits),
        "error=": network.read_with_errors or network.noisy,
        "failure='infeasible'": any(stage.failure == "infeasible" for stage in network.stages),
        "context=True": bool(network.context),
        "candidates=": candidates is not None,
        f"the algorithm {type(algorithm).__name__}": unlike,
    }
    for word, given in refused.items():
        if given:
            raise ArgumentError(f"{who} does not work with {word}; leave one of them out.")
    if len(network.uncertain) > MOST_UNCERTAIN:
        raise ArgumentError(f"{who} is possible for at most {MOST_UNCERTAIN} controls; leave it out for some of them.")


def _check_failures(network: Network, algorithm: Algorithm) -> None:
    """Raise `ArgumentError` if failures count as infeasible, but the algorithm or the norms make nothing of it."""
    name = next((stage.name for stage in network.stages if stage.failure == "infeasible"), None)
    if name is None:
        return
    if not network.estimated:
        raise ArgumentError(
            f"stage {name!r}: failure='infeasible' does not work with a norm_bound for every stage: a failed run "
            f"proves nothing about other settings, and a setting that is proven to be feasible might fail. Leave out "
            f"the norm_bound of some stage, or give a limit on an output that shows when the stage is about to fail."
        )
    if isinstance(algorithm, _WITHOUT_FAILURES):
        raise ArgumentError(
            f"stage {name!r}: failure='infeasible' does not work with the algorithm {type(algorithm).__name__}, which "
            f"ignores failures; leave algorithm= out, or use 'gpn_ei', 'cei' or 'random_search'."
        )


def _check_safe(network: Network, safe: Any, on_violation: OnViolation) -> None:
    """Raise `ArgumentError` if safe mode is asked for and nothing can be proven, or there is nothing to prove."""
    if not isinstance(safe, bool):
        raise ArgumentError(f"safe must be True or False; got {safe!r:.100}.")
    if not safe:
        return
    if not network.limits:
        raise ArgumentError(
            "safe=True runs only settings that are proven to satisfy the limits, and the network has none; give a "
            "stage limits=, or leave safe= out."
        )
    forwarding = next((stage.name for stage in network.stages if forwards_error(stage)), None)
    if forwarding is not None:
        raise ArgumentError(
            f"safe=True does not work with forwards='reading' and an error at stage {forwarding!r}: the stages after "
            f"it are run at its readings, and what is proven is what they give at its values; leave one of them out."
        )
    if network.estimated:
        lacking = [repr(stage.name) for stage in network.stages if stage.estimated]
        who = f"stage {lacking[0]} lacks" if len(lacking) == 1 else f"stages {', '.join(lacking)} lack"
        raise ArgumentError(
            f"safe=True needs a given kernel and norm_bound at every stage, because estimated ones prove nothing; "
            f"{who} them. Give them, or leave safe= out."
        )
    if on_violation == "enlarge":
        raise ArgumentError(
            "safe=True does not work with on_violation='enlarge', because a proof does not hold with bounds that data "
            "have refuted; leave one of them out."
        )


def _check(on_violation: Any, tolerance: Any, seed: Any, horizon: Any) -> None:
    if on_violation not in ("stop", "enlarge"):
        raise ArgumentError(f"on_violation must be 'stop' or 'enlarge'; got {on_violation!r}.")
    number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if tolerance is not None and not (number and 0 <= tolerance <= sys.float_info.max):
        raise ArgumentError(f"tolerance must be a number of at least 0, or None; got {tolerance!r}.")
    if not _whole(seed) or seed < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0; got {seed!r}.")
    if horizon is not None and (not _whole(horizon) or horizon < 1):
        raise ArgumentError(f"horizon must be a whole number of runs, at least 1, or None; got {horizon!r}.")


def _check_errors(network: Network, algorithm: Algorithm, on_violation: OnViolation) -> None:
    """Raise `ArgumentError` for options that do not work with given errors of the readings."""
    read = next((stage for stage in network.stages if stage.read_with_errors), None)
    if read is None:
        return
    lacking = next((stage.name for stage in network.stages if stage.estimated), None)
    if lacking is not None:
        raise ArgumentError(
            f"stage {read.name!r} has error=, which needs a given kernel and norm_bound at every stage; "
            f"stage {lacking!r} lacks them. Give them, or error='estimate' at stages whose kernels are estimated."
        )
    if isinstance(algorithm, _WITHOUT_ERRORS):
        raise ArgumentError(
            f"stage {read.name!r} has error=, which does not work with the algorithm "
            f"{type(algorithm).__name__}, because it takes readings as exact; leave algorithm= out, or use "
            f"'gpn_mixed', 'gpn_ucb' or 'random_search'."
        )
    if on_violation == "enlarge":
        raise ArgumentError(
            f"stage {read.name!r} has error=, which does not work with on_violation='enlarge', because data "
            f"do not tell a norm_bound that is too small from an error that is; leave on_violation= out, and amend one "
            f"of them if the data refute them."
        )
    for word, names in (("context=True", network.context), ("deviation=", network.uncertain)):
        if names:
            raise ArgumentError(
                f"stage {read.name!r} has error=, which does not work with {word}, which {', '.join(names)} "
                f"has; leave one of them out."
            )


def _check_scatter(network: Network, safe: bool, confidence: Any) -> None:
    """Raise `ArgumentError` for options that do not work with scatter, or only with it."""
    scattered = next((stage.name for stage in network.stages if stage.sub_gaussian is not None), None)
    if scattered is None and confidence is not None:
        raise ArgumentError(
            f"confidence= is the probability with which bounds from readings with scatter hold, and no stage has "
            f"error=SubGaussian(...); got {confidence!r}. Leave it out."
        )
    if confidence is not None:
        as_confidence(confidence)
    if scattered is not None and safe:
        raise ArgumentError(
            f"safe=True does not work with error=SubGaussian(...) at stage {scattered!r}: with scatter nothing is "
            f"proven for sure. Leave one of them out, or give error=Bounded(...)."
        )


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
