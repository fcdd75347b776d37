"""Selective reports: what makes bounds from readings with scatter hold with no known probability any more.

Such bounds hold if every reading is reported as it was read, in the order of the runs, and if all that they assume was
fixed before the first reading. A reading that is replaced, withdrawn or lost because of its value breaks this, and so
does a run that was picked from the past. The log shows all of these. The gap is *estimated* from then on.
"""

from collections.abc import Mapping
from typing import Any

from cascada.errors import StoreError
from cascada.network import Network
from cascada.store.event import Event
from cascada.store.trial import Trial

# What bounds from scatter assume of a stage.
_FIXED = ("kernel", "norm_bound", "offset", "error")


def selection(event: Event, trial: Trial) -> str | None:
    """Why an event about a trial makes the readings a selection; None if it does not."""
    number = trial.number
    if event.kind == "corrected" and trial.outputs:
        return f"trial {number} was corrected"
    if event.kind == "retracted":
        return f"a reading of trial {number} was retracted"
    if event.kind == "failed" and trial.outputs:
        return f"trial {number} failed after a stage was read"
    if event.data.get("past") is True:
        return f"trial {number} was added as a run of the past"
    return None


def amendment(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Why an amended description changes what was fixed before the first reading; None if it does not."""
    old, new = (
        [{key: stage.get(key) for key in _FIXED} for stage in description.get("stages", ())]
        for description in (before, after)
    )
    return None if old == new else "kernels, norm bounds, offsets or errors were amended"


def nominal_of(network: Network, data: Any, trial: Trial) -> dict[str, tuple[float, ...]]:
    """The nominal inputs of stages from an event about a trial; `StoreError` if they are invalid."""
    found = {}
    try:
        for name, places in dict(data).items():
            place = tuple(float(x) for x in places)
            if len(place) != len(network.node(name).inputs) or not all(abs(x) < float("inf") for x in place):
                raise ValueError
            found[str(name)] = place
    except (LookupError, TypeError, ValueError):
        raise StoreError(f"the nominal inputs of trial {trial.number} are invalid: {data!r:.100}.") from None
    return found
