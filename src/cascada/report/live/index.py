"""The rows of the list of studies: runs, best value, gap and its kind, and the time of the last event."""

from collections.abc import Mapping
from typing import Any

from cascada.outwards import no_better
from cascada.report.live.view import View
from cascada.store.address import error_text
from cascada.store.database import Head, Store
from cascada.store.summary import StudySummary, summarised

_COMPUTED_LATER = "–"  # no bound is computed for the list; one is when a page shows the study


class Index:
    """The studies of a store, each summarised again when its log has grown."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Head, StudySummary | str]] = {}  # a text says why there is no summary

    def read(self, store: Store, heads: Mapping[str, Head]) -> None:
        """Summarise the studies whose logs have grown since the last call."""
        for name, head in heads.items():
            if name not in self._known or self._known[name][0] != head:
                self._known[name] = head, _summary(store, name)

    def rows(self, heads: Mapping[str, Head], views: Mapping[str, View]) -> list[dict[str, Any]]:
        """Return one row for each study, with the gap if it was computed for a page that shows the study."""
        known = {name: found for name, (_, found) in self._known.items() if name in heads}
        return [_row(name, found, views.get(name)) for name, found in known.items()]


def _summary(store: Store, name: str) -> StudySummary | str:
    try:
        return summarised(name, store.get(name)[1])
    except Exception as error:  # a log may be damaged in any way; the others are listed all the same
        return error_text(error)


def _row(name: str, found: StudySummary | str, view: View | None) -> dict[str, Any]:
    if isinstance(found, str):
        return {"name": name, "error": found}
    best = None if found.best is None else no_better(found.best, 6, found.objective["sense"] == "maximise")
    judged = None if view is None else view.judged
    gap = _COMPUTED_LATER if found.gap_kind != "refuted" else found.gap_kind
    if judged is not None:
        gap = judged[1] if judged[0] == "none" else f"{judged[0]} ({judged[1]})"
    complete, every = found.trials["complete"], sum(found.trials.values())
    runs = str(complete) if complete == every else f"{complete} of {every}"
    return {"name": name, "runs": runs, "best": best or "–", "gap": gap, "last": found.last_event}
