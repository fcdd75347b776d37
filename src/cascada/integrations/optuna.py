"""A sampler for Optuna that uses cascada's algorithms; study, storage and dashboard are Optuna's.

The sampler's state follows from the trials of the study alone: see `optuna_replay`. Needs the extra `optuna`.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from cascada.algorithms import Algorithm
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, RefutedError
from cascada.integrations.optuna_constraints import (
    ConstraintsFunction,
    called,
    constraints_of,
    excesses,
    store,
)
from cascada.integrations.optuna_objective import StagewiseObjective, distribution_of
from cascada.integrations.optuna_replay import Replay, Snapshot
from cascada.integrations.optuna_runs import POINT, is_at, read
from cascada.near_names import did_you_mean, with_near_names
from cascada.network import Network
from cascada.network.argument import as_network
from cascada.process import Functions
from cascada.space import ControlValue, Domain
from cascada.study import Study
from cascada.study.certificate import Certificate

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

try:
    from optuna.samplers import BaseSampler

    _MISSING = None
except ImportError as missing:  # raised when a sampler is created, so that this module can be imported without Optuna
    BaseSampler = object  # type: ignore[assignment, misc]
    _MISSING = str(missing)


class CascadaSampler(BaseSampler):
    """Optuna sampler that suggests all controls of a network jointly and learns from stage outputs in trial attributes.

    Options are those of `cascada.Study`. The study's direction decides whether the objective is maximised. The limits
    of the network are Optuna's constraints; `constraints_func`, as for samplers of Optuna 4, may give their values. One
    sampler may serve several threads; every process creates its own. Raises `ArgumentError` if Optuna is missing or an
    option is invalid.
    """

    @with_near_names
    def __init__(
        self,
        network: Network,
        *,
        algorithm: str | Algorithm = "auto",
        seed: int = 0,
        horizon: int | None = None,
        tolerance: float | None = None,
        stop_on_estimated: bool = False,
        on_violation: Literal["stop", "enlarge"] = "stop",
        calibration: Calibration | None = None,
        constraints_func: ConstraintsFunction | None = None,
    ) -> None:
        if _MISSING is not None:
            raise ArgumentError(
                f"CascadaSampler needs Optuna, which could not be imported ({_MISSING}). "
                f"Run: pip install 'cascada[optuna]'."
            )
        network = as_network(network)
        scattered = next((stage.name for stage in network.stages if stage.sub_gaussian is not None), None)
        if scattered is not None:
            raise ArgumentError(
                f"CascadaSampler does not support error=SubGaussian(...), which stage {scattered!r} has: Optuna does "
                f"not say what was known before a reading. Use cascada.Study, or give error=Bounded(...)."
            )
        if network.uncertain:
            raise ArgumentError(
                f"deviation=, which {', '.join(network.uncertain)} has, does not work with Optuna, where the best run "
                f"is the result. Use cascada.Study."
            )
        if network.stepwise:
            raise ArgumentError(
                "reachable='stock' and reachable='any' do not work with Optuna, whose trials are whole runs; leave "
                "reachable= out, or use a Study."
            )
        if network.context:
            raise ArgumentError(
                f"context=True, which {', '.join(network.context)} has, does not work with Optuna, whose trials have "
                f"no context. Use cascada.Study and ask(context=…)."
            )
        if constraints_func is not None and not callable(constraints_func):
            raise ArgumentError(
                f"constraints_func must be a function of a trial, or None; got {constraints_func!r:.100}."
            )
        self.network, self._constraints_func = network, constraints_func
        self._options: dict[str, Any] = {
            "algorithm": algorithm,
            "seed": seed,
            "horizon": horizon,
            "tolerance": tolerance,
            "stop_on_estimated": stop_on_estimated,
            "on_violation": on_violation,
            "calibration": calibration,
        }
        Study(network, **self._options)  # validates the options now, not in the first trial
        self._begin()

    def __repr__(self) -> str:
        return f"CascadaSampler({self.network!r})"

    def __getstate__(self) -> dict[str, Any]:
        kept = ("network", "_options", "_constraints_func")  # everything else follows from the storage
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def _begin(self) -> None:
        self._replay, self._lock = Replay(self._options), threading.Lock()

    # ---- what users call

    @property
    def distributions(self) -> dict[str, "BaseDistribution"]:
        """The controls as Optuna's distributions, for `study.ask(sampler.distributions)`."""
        return _distributions(self.network.domain)

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of Optuna's constraints, one for each end of a limit of the network, in the order of a list."""
        return tuple(constraint.name for constraint in constraints_of(self.network))

    def objective(self, functions: Functions = None) -> StagewiseObjective:
        """Return an objective for `study.optimize` that runs the stages and stores the outputs of each.

        `functions` are those of `cascada.maximise`: a list in stage order, a dict by name, one `evaluate(**controls)`,
        or none when every `Stage` has its own.
        """
        return StagewiseObjective(self.network, functions)

    def certificate(
        self,
        study: "optuna.Study",
        *,
        tolerance: float | None = None,
        cells: int | None = None,
        seconds: float | None = None,
    ) -> Certificate:
        """Return the certificate of a study's best run, that is, its gap: see `cascada.Study.certificate`."""
        network = self._directed(study)
        with self._lock:
            snapshot = self._replay.snapshot(network, study.get_trials(deepcopy=False))
        certificate = snapshot.study.certificate(tolerance=tolerance, cells=cells, seconds=seconds)
        words = (certificate.evidence, certificate.assumptions)
        evidence, assumptions = (tuple(map(snapshot.translated, texts)) for texts in words)
        return replace(certificate, evidence=evidence, assumptions=assumptions)

    # ---- what Optuna calls

    def infer_relative_search_space(
        self,
        study: "optuna.Study",
        trial: "FrozenTrial",  # noqa: ARG002
    ) -> dict[str, "BaseDistribution"]:
        self._directed(study)
        return self.distributions

    def sample_relative(
        self,
        study: "optuna.Study",
        trial: "FrozenTrial",  # noqa: ARG002
        search_space: dict[str, "BaseDistribution"],  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return nothing, so that Optuna calls `sample_independent` for every control, which validates its range.

        All controls are still chosen jointly, in the first of these calls.
        """
        self._directed(study)
        return {}

    def sample_independent(
        self,
        study: "optuna.Study",
        trial: "FrozenTrial",
        param_name: str,
        param_distribution: "BaseDistribution",
    ) -> Any:
        self._directed(study)
        self._check_distribution(trial, param_name, param_distribution)
        point = trial.system_attrs.get(POINT)
        if point is None or set(point) != set(self.network.controls):
            with self._lock:
                point = self._chosen(study, trial)
        return point[param_name]

    def after_trial(
        self,
        study: "optuna.Study",
        trial: "FrozenTrial",
        state: "TrialState",
        values: Sequence[float] | None,
    ) -> None:
        """Raise if the ended trial is invalid, and warn if it is of little use; Optuna keeps it in both cases."""
        if state.name not in ("COMPLETE", "PRUNED"):
            return  # an error here would hide the one that made the trial fail
        for name, distribution in trial.distributions.items():
            self._check_distribution(trial, name, distribution)  # enqueued controls were not validated before
        if self._constraints_func is not None:
            store(self.network, study, trial, called(self._constraints_func, self.network, trial))
        reading = read(self._directed(study), trial, state.name, values[0] if values else None)
        if reading.run is not None and not reading.errors:
            store(self.network, study, trial, excesses(self.network, reading.run.outputs))
        for text in reading.remarks:
            self._replay.warn(text)
        for error in reading.errors:
            raise error

    def reseed_rng(self) -> None:
        """Do nothing: random numbers depend only on the seed and the number of trials."""

    # ---- inside

    def _directed(self, study: "optuna.Study") -> Network:
        """Return the network with the direction of the study; `ArgumentError` if the two do not fit."""
        if len(study.directions) != 1:
            raise ArgumentError(
                f"CascadaSampler has one objective, but the study has {len(study.directions)} directions. Name the "
                f"output in the network, objective='stage.output', and give one direction."
            )
        sign = 1 if study.directions[0].name == "MAXIMIZE" else -1
        if self.network.sign < sign:
            raise ArgumentError(
                "the study maximises, but the network was mirrored, to be minimised. Give the network as it was "
                "before mirrored(): the sampler follows the direction of the study."
            )
        return self.network if self.network.sign == sign else self.network.mirrored()

    def _check_distribution(self, trial: "FrozenTrial", name: str, distribution: "BaseDistribution") -> None:
        expected = self.distributions.get(name)
        if expected is None:
            raise ArgumentError(
                f"trial {trial.number} suggests {name!r}, which is not a control of the network"
                f"{did_you_mean(name, self.network.controls)}. Its controls are {', '.join(self.network.controls)}; "
                f"CascadaSampler has no other parameters."
            )
        if distribution != expected:
            raise ArgumentError(
                f"trial {trial.number} suggests {name!r} as {distribution}, but in the network it is {expected}. They "
                f"must agree in range, type, log and step: change one of them."
            )

    def _chosen(self, study: "optuna.Study", trial: "FrozenTrial") -> dict[str, ControlValue]:
        """Choose the point of a trial, store it as an attribute, where other processes see it, and return it."""
        network = self._directed(study)
        while True:
            snapshot = self._replay.snapshot(network, study.get_trials(deepcopy=False), asking=trial.number)
            before = [dict(other.controls) for other in snapshot.study.trials]
            for _ in range(snapshot.choosing):
                _asked(snapshot)  # the points that other processes choose now
            point = _asked(snapshot)
            if point is None:
                _end(study)
            # The whole point at once: Optuna stores a parameter only when the objective suggests it.
            study._storage.set_trial_system_attr(trial._trial_id, POINT, point)
            # A process that saw other trials may have chosen the same point meanwhile; then this one chooses again.
            others = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
            if point in before or not any(is_at(network, other, point) for other in others):
                return point


def _asked(snapshot: Snapshot) -> dict[str, ControlValue] | None:
    try:
        trial = snapshot.study.ask()
    except RefutedError as error:
        raise RefutedError(
            f"{snapshot.translated(str(error))} The sampler suggests no more points from these trials. If a bound is "
            f"wrong, give CascadaSampler a network with another one, or on_violation='enlarge'; if a trial is wrong, "
            f"begin a study without it."
        ) from error
    return None if trial is None else dict(trial.controls)


def _end(study: "optuna.Study") -> NoReturn:
    """Stop `study.optimize`, and prune this trial."""
    from optuna import TrialPruned

    with suppress(RuntimeError):  # `stop` raises outside of `study.optimize`
        study.stop()
    raise TrialPruned("no point is worth a run any more: the gap is within the tolerance, or all were run.")


def _distributions(domain: Domain) -> dict[str, "BaseDistribution"]:
    return {name: distribution_of(control) for name, control in domain.controls.items()}
