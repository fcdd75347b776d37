"""Opening a study in a store: created if it is not there, resumed if it is, refused where it is another one."""

import time
from collections.abc import Mapping
from typing import Any, Literal

from cascada.algorithms import Algorithm
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, StoreError
from cascada.network import Network
from cascada.space import CandidatesLike, as_candidates
from cascada.study.events import Event
from cascada.study.identity import amendable, canonical, describe, describe_algorithm, differences
from cascada.study.rebuilding import network_from
from cascada.study.store import Store, checked_name
from cascada.study.stored import StoredStudy
from cascada.study.study import Study


def open_study(
    url: str,
    name: str,
    network: Network | None = None,
    *,
    algorithm: str | Algorithm | None = None,
    seed: int | None = None,
    candidates: CandidatesLike | None = None,
    on_violation: Literal["stop", "enlarge"] | None = None,
    calibration: Calibration | None = None,
    horizon: int | None = None,
    tolerance: float | None = None,
    stop_on_estimated: bool = False,
    worker: str = "main",
    amend: bool = False,
) -> StoredStudy:
    """The study `name` in the store at `url`.

    What is not given is as it is stored; for a new study it is what `Study` takes by default, and `network` is needed.
    A network or option that differs from what is stored is refused, and the error says where; with `amend=True`, other
    kernels, norm bounds, Lipschitz constants and offsets are taken from now on, and the log says so. `tolerance` and
    `stop_on_estimated` say when to stop, belong to nobody's results and may differ each time.
    """
    checked_name(name)
    checked_name(worker)
    if not isinstance(network, Network | None):
        raise ArgumentError(f"network must be a Network, or None for the stored one; got {network!r:.100}.")
    if not isinstance(calibration, Calibration | None):
        raise ArgumentError(f"calibration must be a Calibration, or None; got {calibration!r:.100}.")
    given = {
        "algorithm": None if algorithm is None else describe_algorithm(algorithm),
        "seed": seed,
        "candidates": None if candidates is None or network is None else as_candidates(candidates, network.domain),
        "on_violation": on_violation,
        "calibration": calibration,
        "horizon": horizon,
    }
    if candidates is not None and network is None:
        raise ArgumentError("candidates need the network that they are points of: give network=.")
    store = Store(url)
    try:
        stored = stored_description(store, name)
        settings = dict(_DEFAULTS if stored is None else stored["settings"])
        settings |= {key: value for key, value in given.items() if value is not None}
        if network is None:
            if stored is None:
                raise ArgumentError(
                    f"there is no study {name!r} in this store (it has {store.studies() or 'none'}); to create it, "
                    f"give its network."
                )
            network = network_from(stored)
        description = describe(network, settings)
        options = study_options(settings, algorithm, calibration) | {
            "tolerance": tolerance,
            "stop_on_estimated": stop_on_estimated,
        }
        Study(network, **options)  # refuses what makes no sense before anything is written
        if stored is None:
            _create(store, name, description)
        described, stored = last_description(store, name)  # another process may have been quicker
        if canonical(stored) != canonical(description):
            described = _amend(store, name, described, stored, description, amend)
        return StoredStudy(store, name, network, options, described, worker)
    except BaseException:
        store.close()
        raise


_DEFAULTS: Mapping[str, Any] = {
    "algorithm": "auto",
    "seed": 0,
    "candidates": None,
    "on_violation": "stop",
    "calibration": None,
    "horizon": None,
}


def stored_description(store: Store, name: str) -> dict[str, Any] | None:
    """What a study is, by its log; None if there is none of this name."""
    return None if store.id_of(name) is None else last_description(store, name)[1]


def last_description(store: Store, name: str) -> tuple[int, dict[str, Any]]:
    """What a study is, and the number of the event that says so."""
    study = store.id_of(name)
    found = [] if study is None else store.events(study, kinds=("created", "amended"))
    if not found:
        raise StoreError(f"the log of the study {name!r} does not begin with its creation: it is no log of cascada.")
    return found[-1].number, checked_description(found[-1].data)


def checked_description(data: Any) -> dict[str, Any]:
    """What a log says of its study, if it has the parts of a description; `StoreError` if not."""
    whole = isinstance(data, Mapping) and set(data) == {"objective", "stages", "settings"}
    if not whole or not isinstance(data["stages"], list) or not all(isinstance(s, Mapping) for s in data["stages"]):
        raise StoreError("a study is described by its objective, stages and settings; the log has something else.")
    if not isinstance(data["settings"], Mapping) or set(data["settings"]) != set(_DEFAULTS):
        raise StoreError(f"the settings of a study are {', '.join(_DEFAULTS)}; the log has something else.")
    if not all("name" in stage for stage in data["stages"]):
        raise StoreError("every stage of a study has a name; one in the log has none.")
    return dict(data)


def _create(store: Store, name: str, description: dict[str, Any]) -> None:
    with store.create(name) as log:
        if log is not None:
            log.append(Event(0, "created", None, description, time.time()))


def _amend(
    store: Store, name: str, described: int, stored: Mapping[str, Any], description: dict[str, Any], amend: bool
) -> int:
    """Write down what the study is from now on; the number of that event."""
    found = "; ".join(differences(stored, description))
    if not amendable(stored, description):
        raise ArgumentError(f"the study {name!r} is stored otherwise: {found}. Open it as it is, or take another name.")
    if not amend:
        raise ArgumentError(
            f"the study {name!r} is stored otherwise: {found}. Open it as it is, take another name, or say amend=True "
            f"(--amend) to go on with what is given."
        )
    study = store.id_of(name)
    assert study is not None, "it has a description"
    with store.hold(study) as log:
        events = log.since(0)
        if any(event.kind == "amended" and event.number > described for event in events):
            raise StoreError(f"the study {name!r} was amended by another process at the same time; open it again.")
        log.append(Event(len(events), "amended", None, description, time.time()))
    return len(events)


def study_options(
    settings: Mapping[str, Any], algorithm: str | Algorithm | None = None, calibration: Calibration | None = None
) -> dict[str, Any]:
    """What `Study` is made with."""
    options = dict(settings)
    if algorithm is not None:
        options["algorithm"] = algorithm
    elif not isinstance(options["algorithm"], str):
        raise ArgumentError(
            f"the study was made with the algorithm {options['algorithm']}, which is no name: give algorithm= again."
        )
    stored = options["calibration"]
    if calibration is None and stored is not None:
        try:
            calibration = Calibration(**{key: value for key, value in stored.items() if key != "type"})
        except (AttributeError, TypeError) as error:
            raise StoreError(f"the log's calibration is none: {error}.") from None
    return options | {"calibration": calibration}
