"""Cascada's algorithms as a sampler of Optuna: `study.optimize`, storages and dashboard are Optuna's, points are ours.

The trials of the study are all there is to know: see `optuna_replay`. Needs the extra `optuna`.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from cascada.algorithms import Algorithm
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, RefutedError
from cascada.integrations.optuna_objective import StagewiseObjective
from cascada.integrations.optuna_replay import Replay, Snapshot
from cascada.integrations.optuna_runs import POINT, is_at, read
from cascada.network import Network
from cascada.process import Functions
from cascada.space import Domain
from cascada.study import Study
from cascada.study.certificate import Certificate

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

try:
    from optuna.samplers import BaseSampler

    _MISSING = None
except ImportError as missing:  # said when a sampler is made: whoever only looks at this file needs no Optuna
    BaseSampler = object  # type: ignore[assignment, misc]
    _MISSING = str(missing)


class CascadaSampler(BaseSampler):
    """Suggests every control of a network together; learns from the outputs of stages that trials have as attributes.

    Options are those of `cascada.Study`. The study's direction decides whether the objective is maximised. One sampler
    may serve several threads; every process makes its own.
    """

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
    ) -> None:
        if _MISSING is not None:
            raise ArgumentError(
                f"CascadaSampler needs Optuna, which could not be imported ({_MISSING}). "
                f"Run: pip install 'cascada[optuna]'."
            )
        if not isinstance(network, Network):
            raise ArgumentError(f"network must be a Network, such as chain(...) makes; got {network!r}.")
        self.network = network
        self._options: dict[str, Any] = {
            "algorithm": algorithm,
            "seed": seed,
            "horizon": horizon,
            "tolerance": tolerance,
            "stop_on_estimated": stop_on_estimated,
            "on_violation": on_violation,
            "calibration": calibration,
        }
        Study(network, **self._options)  # what is wrong with an option is said now, not in the first trial
        self._begin()

    def __repr__(self) -> str:
        return f"CascadaSampler({self.network!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"network": self.network, "_options": self._options}  # all else follows from the storage

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

    def objective(self, functions: Functions = None) -> StagewiseObjective:
        """An objective for `study.optimize` that runs the stages and stores what each of them gives.

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
        """How far the best run of a study can be from the best possible: see `cascada.Study.certificate`."""
        network = self._directed(study)
        with self._lock:
            snapshot = self._replay.snapshot(network, study.get_trials(deepcopy=False))
        certificate = snapshot.study.certificate(tolerance=tolerance, cells=cells, seconds=seconds)
        return replace(certificate, evidence=tuple(map(snapshot.translated, certificate.evidence)))

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
        """Nothing, so that Optuna asks for every control by itself: only then can its range be seen, and refused.

        The controls are chosen together all the same, when the first of them is asked for.
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
        """Refuse what nothing can be learned from, as soon as it is seen; Optuna keeps the trial all the same."""
        if state.name not in ("COMPLETE", "PRUNED"):
            return  # it has failed, and that should be heard of
        for name, distribution in trial.distributions.items():
            self._check_distribution(trial, name, distribution)  # those of enqueued controls were not seen before
        reading = read(self._directed(study), trial, state.name, values[0] if values else None)
        for text in reading.remarks:
            self._replay.warn(text)
        for error in reading.errors:
            raise error

    def reseed_rng(self) -> None:
        """Nothing: random numbers follow from the seed and how many trials there are."""

    # ---- inside

    def _directed(self, study: "optuna.Study") -> Network:
        """The network, minimised or maximised as the study says."""
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

    def _check_distribution(self, trial: "FrozenTrial", name: str, given: "BaseDistribution") -> None:
        wanted = self.distributions.get(name)
        if wanted is None:
            raise ArgumentError(
                f"trial {trial.number} suggests {name!r}, which is no control of the network. Its controls are "
                f"{', '.join(self.network.controls)}; CascadaSampler has no other parameters."
            )
        if wanted != given:
            raise ArgumentError(
                f"trial {trial.number} suggests {name!r} as {given}, but in the network it is {wanted}. They must "
                f"agree in range, type, log and step: change one of them."
            )

    def _chosen(self, study: "optuna.Study", trial: "FrozenTrial") -> dict[str, float | int]:
        """The point of a trial, written down where others see it."""
        network = self._directed(study)
        while True:
            snapshot = self._replay.snapshot(network, study.get_trials(deepcopy=False), asking=trial.number)
            before = [dict(other.controls) for other in snapshot.study.trials]
            for _ in range(snapshot.choosing):
                _asked(snapshot)  # theirs
            point = _asked(snapshot)
            if point is None:
                _end(study)
            # At once and whole: Optuna stores parameters only as the objective gets to them.
            study._storage.set_trial_system_attr(trial._trial_id, POINT, point)
            # Somebody who saw other trials may have chosen the same in the meantime; whoever sees that chooses again.
            others = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
            if point in before or not any(is_at(network, other, point) for other in others):
                return point


def _asked(snapshot: Snapshot) -> dict[str, float | int] | None:
    try:
        trial = snapshot.study.ask()
    except RefutedError as error:
        raise RefutedError(
            f"{snapshot.translated(str(error))} The sampler suggests no more points from these trials. If a bound is "
            f"wrong, give CascadaSampler a network with another one, or on_violation='enlarge'; if a trial is, begin "
            f"a study without it."
        ) from error
    return None if trial is None else dict(trial.controls)


def _end(study: "optuna.Study") -> NoReturn:
    """Stop `study.optimize`, and run nothing in this trial."""
    from optuna import TrialPruned

    with suppress(RuntimeError):  # there is nothing to stop where trials are asked for one by one
        study.stop()
    raise TrialPruned("no point is worth a run any more: the gap is within the tolerance, or all were run.")


def _distributions(domain: Domain) -> dict[str, "BaseDistribution"]:
    from optuna.distributions import FloatDistribution, IntDistribution

    return {
        name: IntDistribution(int(control.low), int(control.high))
        if control.integer
        else FloatDistribution(control.low, control.high, log=control.log)
        for name, control in domain.controls.items()
    }
