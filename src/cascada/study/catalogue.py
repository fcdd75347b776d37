"""Studies in stores by name: opened or created, amended, read, listed, renamed and deleted."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cascada.algorithms import NAMES, Algorithm
from cascada.algorithms.foreign import ForeignAlgorithm
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, StoreError
from cascada.network import Network
from cascada.network.argument import as_network
from cascada.space import CandidatesLike, as_candidates, plain_candidates
from cascada.store.database import Store, StoredJournal
from cascada.store.description import (
    SETTINGS,
    amendable,
    completed,
    describe,
    describe_algorithm,
    differences,
    network_from,
    with_names,
)
from cascada.store.event import Event
from cascada.store.journal import Transaction
from cascada.store.study_name import checked_name
from cascada.store.summary import StudySummary, damage_reported, last_description, summarised
from cascada.study.follower import Follower
from cascada.study.readings import warn_of_errors
from cascada.study.settings import AUTOMATIC, OnViolation, Settings, StopOn, resolved_name, stored_name
from cascada.study.state import State
from cascada.study.study import Study


def open_study(
    storage: str | Store,
    name: str,
    network: Network | None = None,
    *,
    algorithm: str | Algorithm | None = None,
    seed: int | None = None,
    candidates: CandidatesLike | None = None,
    on_violation: OnViolation | None = None,
    calibration: Calibration | None = None,
    horizon: int | None = None,
    tolerance: float | None = None,
    stop_on: StopOn | None = None,
    stop_on_estimated: bool = False,
    safe: bool | None = None,
    confidence: float | None = None,
    worker: str = "main",
    amend: bool = False,
    create: bool = True,
    any_sense: bool = False,
    planned: int | None = None,
    lasting: bool = False,
) -> Study:
    """The study `name` in a store, given by its URL or opened before; the study owns it from then on.

    What is not given is as it is stored; for a new study it is what `Study` takes by default, and `network` is needed.
    A network or option that differs from what is stored is refused, and the error says where; with `amend=True`, other
    kernels, norm bounds, Lipschitz constants, offsets, limits and ranges are taken from now on, and the log says so.
    `tolerance`, `stop_on` and `stop_on_estimated` say when to stop, change no result and may differ each time.

    `create`: whether a study that is not there is created. `any_sense`: the network may be given maximised or
    minimised, and the stored sense counts. `planned`: the horizon of a study that is created. `lasting`: trials that
    are asked for under a lease stay under it when this process has ended.
    """
    checked_name(name)
    checked_name(worker)
    if network is not None:
        as_network(network)
    if not isinstance(calibration, Calibration | None):
        raise ArgumentError(f"calibration must be a Calibration, or None; got {calibration!r:.100}.")
    if candidates is not None and network is None:
        raise ArgumentError("candidates need the network that they are points of: give network=.")
    given = {
        "seed": seed,
        "candidates": None
        if candidates is None or network is None
        else plain_candidates(as_candidates(candidates, network.domain), network.domain),
        "on_violation": on_violation,
        "calibration": calibration,
        "horizon": horizon,
        "safe": safe,
        "confidence": confidence,
    }
    store = storage if isinstance(storage, Store) else Store(storage, create=network is not None)
    try:
        found = store.find(name)
        if found is None and not create:
            raise store.missing(name)
        with damage_reported(name):
            stored = None if found is None else last_description(name, found[1])[1]
        if stored is not None and algorithm == "auto":
            algorithm = _automatic(stored["settings"])
        settings = dict(SETTINGS if stored is None else stored["settings"])
        settings |= {key: value for key, value in given.items() if value is not None}
        if algorithm is not None:
            settings["algorithm"] = _described_algorithm(algorithm, None if stored is None else stored["settings"])
        if network is None:
            if stored is None:
                raise ArgumentError(
                    f"there is no study {name!r} in this store (it has {', '.join(store.studies()) or 'none'}); to "
                    f"create it, give its network."
                )
            with damage_reported(name):
                network = network_from(stored)
        if any_sense and stored is not None and (network.sign > 0) != (stored["objective"]["sense"] == "maximise"):
            network = network.mirrored()
        if stored is None and planned is not None:
            settings["horizon"] = planned
        if stored is None and isinstance(settings["algorithm"], str):
            settings["algorithm"] = resolved_name(settings["algorithm"], network)
        with damage_reported(name):
            description = describe(network, settings)
        options = study_options(settings, network, algorithm, calibration)
        options |= {"tolerance": tolerance, "stop_on": stop_on, "stop_on_estimated": stop_on_estimated}
        validated = Settings.of(network, **options, shared=True)  # before anything is written
        if found is None:
            found = _created(store, name, description) or store.get(name)  # another process may have been quicker
        journal, events = found
        described, stored = last_description(name, events)
        changed = _differences(stored, description, network)
        if changed:  # before the events, which another network cannot follow
            _check_amendable(name, stored, description, changed, amend)
        state = State.empty(network).replayed(events)
        if changed:
            state = journal.change(lambda log: _amended(log, name, state, described, description))
        warn_of_errors(network, tolerance)
        return Study.over(journal, state, validated, name=name, worker=worker, lasting=lasting)
    except BaseException:
        store.close()
        raise


def _automatic(stored: Mapping[str, Any]) -> str | None:
    """What "auto" means for a stored study: None for the stored algorithm, or the name of one stored as an object."""
    name = with_names(stored)["algorithm"]
    if not isinstance(name, str) or name not in AUTOMATIC:
        return "auto"
    return None if isinstance(stored["algorithm"], str) else name


def stored_description(store: Store, name: str) -> dict[str, Any] | None:
    """What a study is, by its log; None if there is none of this name."""
    found = store.find(name)
    return None if found is None else last_description(name, found[1])[1]


def _described_algorithm(algorithm: str | Algorithm, stored: Mapping[str, Any] | None) -> Any:
    """The algorithm that the caller gives, as it is stored: an object as "module:Class" if that is its stored name."""
    kind, name = type(algorithm), None if stored is None else stored["algorithm"]
    if name == f"{kind.__module__}:{kind.__qualname__}":
        with suppress(TypeError):  # the class needs arguments, or has slots
            if vars(kind()) == vars(algorithm):  # made like one that is named: without arguments
                return name
    return describe_algorithm(algorithm)


def study_options(
    settings: Mapping[str, Any],
    network: Network,
    algorithm: str | Algorithm | None = None,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """The options of `Settings.of` from those of a description."""
    options = dict(settings)
    if algorithm is not None:
        options["algorithm"] = algorithm
    elif not isinstance(options["algorithm"], str) or options["algorithm"] not in NAMES:
        options["algorithm"] = ForeignAlgorithm(options["algorithm"])
    else:
        options["algorithm"] = stored_name(options["algorithm"], network)
    stored = options["calibration"]
    if calibration is None and stored is not None:
        try:
            calibration = Calibration(**{key: value for key, value in stored.items() if key != "type"})
        except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
            raise StoreError(f"the calibration settings in the log are invalid: {error}.") from None
    return options | {"calibration": calibration}


def _created(store: Store, name: str, description: dict[str, Any]) -> tuple[StoredJournal, list[Event]] | None:
    """A new study; None if there is one of this name by now."""
    event = Event(0, "created", None, description, time.time())
    journal = store.create(name, [event])
    return None if journal is None else (journal, [event])


def _amended(log: Transaction, name: str, before: State, described: int, description: dict[str, Any]) -> State:
    """The state after an amendment, unless another process was quicker."""
    state = before.replayed(log.since(before.count))
    if state.described > described:
        raise StoreError(f"the study {name!r} was amended by another process at the same time; open it again.")
    event = Event(state.count, "amended", None, description, time.time())
    after = state.after(event)
    log.append(event)
    return after


def _differences(stored: Mapping[str, Any], description: Mapping[str, Any], network: Network) -> list[str]:
    """Where a description differs from the stored one; "auto" is the algorithm that it stands for."""
    old, new = ({**d, "settings": dict(d["settings"])} for d in (completed(stored), completed(description)))
    for settings in (old["settings"], new["settings"]):
        settings |= with_names(settings)
        if isinstance(settings["algorithm"], str):
            settings["algorithm"] = stored_name(settings["algorithm"], network)
    return differences(old, new)


def _check_amendable(
    name: str, stored: Mapping[str, Any], description: dict[str, Any], changed: list[str], amend: bool
) -> None:
    """Raise `ArgumentError` if a study may not be changed like this, or was not meant to be."""
    found = "; ".join(changed)
    if not amendable(stored, description | {"settings": stored["settings"]}) or any(
        text.startswith("settings.") for text in changed
    ):
        raise ArgumentError(f"the study {name!r} is stored otherwise: {found}. Open it as it is, or take another name.")
    if not amend:
        raise ArgumentError(
            f"the study {name!r} is stored otherwise: {found}. Open it as it is, take another name, or open it with "
            f"amend=True (--amend of `cascada run` and `cascada ask`) to go on with what is given."
        )


def follow(store: Store, name: str, networks: Sequence[Network] = ()) -> Follower:
    """The study of this name, to be read only. Its network is one of those given if it is the same, or the stored one.

    `ArgumentError` where the network has a formula and was not given; `StoreError` where the log cannot be read.
    """
    journal, events = store.get(name)
    with damage_reported(name):
        _, stored = last_description(name, events)
        settings = stored["settings"]
        either = (version for network in networks for version in (network, network.mirrored()))
        same = (network for network in either if not differences(stored, describe(network, settings)))
        network = next(same, None) or network_from(stored)
        state = State.empty(network).replayed(events)
        options = study_options(settings, network)
        return Follower(journal, state, Settings.of(network, **options, shared=True), events[-1], name=name)


def read_study(store: Store, name: str, network: Network | None = None) -> Follower:
    """The same for one network: `ArgumentError` if it is not that of the study, whichever way its objective counts."""
    if network is not None:
        stored = last_description(name, store.get(name)[1])[1]
        same_sense = (network.sign > 0) == (stored["objective"]["sense"] == "maximise")
        version = network if same_sense else network.mirrored()
        changed = _differences(stored, describe(version, stored["settings"]), version)
        if changed:
            raise ArgumentError(f"the study {name!r} is stored otherwise: {'; '.join(changed)}. Read it as it is.")
    return follow(store, name, [] if network is None else [network])


# ---- all studies of a store


def studies(url: str) -> list[StudySummary]:
    """All studies of the store at `url`, in the order of their creation; nothing is written."""
    store = Store(url, read_only=True)
    try:
        return [summarised(name, store.get(name)[1]) for name in store.studies()]
    finally:
        store.close()


def delete_study(url: str, name: str) -> None:
    """Delete a study with all its trials; `StoreError` if there is none, or if a process runs one of its trials."""
    _with_store(url, lambda store: store.delete(name))


def rename_study(url: str, name: str, new: str) -> None:
    """Give a study another name; `StoreError` if there is none, or if the name is taken."""
    _with_store(url, lambda store: store.rename(name, new))


def _with_store(url: str, act: Callable[[Store], None]) -> None:
    store = Store(url, create=False)
    try:
        act(store)
    finally:
        store.close()
