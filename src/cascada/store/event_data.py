"""Data of events in the form in which cascada writes them, validated when a log is imported.

What the data mean is validated when events are replayed, which accepts more forms, as those who tell results do.
"""

from collections.abc import Mapping
from typing import Any

from cascada.errors import StoreError
from cascada.store.description import kernel_from
from cascada.store.event import Event, is_number, is_whole

_FITS = ("acting", "judging")


def check_data(event: Event) -> None:
    """Raise `StoreError` unless outputs, calibrations and notes have the form in which cascada writes them."""
    if event.kind == "calibrated":
        for output, fits in event.data.items():
            if not isinstance(fits, Mapping) or set(fits) != set(_FITS):
                raise StoreError(
                    f"a calibration of {output!r:.100} has the parts acting and judging; got {fits!r:.100}"
                )
            for fit in fits.values():
                _check_fit(output, fit)
    elif event.kind == "note":
        _check_note(event.data)
    elif event.kind in ("observed", "told"):
        outputs = event.data.get("outputs")
        if not isinstance(outputs, Mapping) or not all(map(_are_outputs, outputs.values())):
            raise StoreError(f"outputs must be a list of numbers for every stage; got {outputs!r:.100}")
    elif event.kind == "measured":
        outputs = event.data.get("outputs")
        if not isinstance(event.data.get("inputs"), Mapping) or not (outputs is None or _are_outputs(outputs)):
            raise StoreError(f"a measurement has inputs, and a list of numbers as outputs; got {event.data!r:.100}")
    elif event.kind == "corrected" and "outputs" in event.data and not _are_outputs(event.data["outputs"]):
        raise StoreError(f"outputs must be a list of numbers; got {event.data['outputs']!r:.100}")


def _are_outputs(values: Any) -> bool:
    return isinstance(values, list) and all(map(is_number, values))


def _check_fit(output: str, fit: Any) -> None:
    if not isinstance(fit, Mapping) or set(fit) != {"kernel", "offset", "observations"}:
        raise StoreError(f"a fit of {output!r:.100} has kernel, offset and observations; got {fit!r:.100}")
    if not isinstance(fit["kernel"], Mapping) or kernel_from(fit["kernel"], output) is None:
        raise StoreError(f"the kernel of {output!r:.100} must be one of cascada; got {fit['kernel']!r:.100}")
    if not is_number(fit["offset"]) or not is_whole(fit["observations"]):
        raise StoreError(f"offset and observations of {output!r:.100} must be numbers; got {fit!r:.200}")


def _check_note(data: Mapping[str, Any]) -> None:
    unknown = [key for key in data if key not in ("text", "refuted", "assumed", "trials", "tolerance")]
    if unknown:
        raise StoreError(f"a note has no field {unknown[0]!r:.100}")
    for key in ("text", "refuted"):
        if key in data and not isinstance(data[key], str):
            raise StoreError(f"{key!r} of a note must be a text; got {data[key]!r:.100}")
    if not (data.get("assumed") is None or is_whole(data["assumed"])):
        raise StoreError(f"'assumed' of a note must be the number of an event; got {data['assumed']!r:.100}")
    if "tolerance" in data and not (is_number(data["tolerance"]) and data["tolerance"] > 0):
        raise StoreError(f"'tolerance' of a note must be a number above 0; got {data['tolerance']!r:.100}")
    trials = data.get("trials", [])
    if not isinstance(trials, list) or not all(map(is_whole, trials)):
        raise StoreError(f"'trials' of a note must be numbers of trials; got {trials!r:.100}")
