"""Rescue of a study whose store does not hold what was written to it: its log as a file that can be imported."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from cascada.errors import CascadaError, StoreError
from cascada.execution.workers import EndedRun
from cascada.store.trial import Trial
from cascada.study.study import Study
from cascada.whole_file import write_whole


def rescued(study: Study, untold: Sequence[EndedRun], error: StoreError) -> StoreError:
    """The error that ends a run. Where the store does not hold all that is known here, it says where that is kept.

    `untold`: runs that ended and could not be told.
    """
    if not untold:
        try:
            study.verify()
        except StoreError as found:
            error = found
        else:
            return error
    lines = _log(study, untold)
    path = _written(study.place, "\n".join(lines) + "\n")
    said = str(error).rstrip(".")
    if path is None:
        return StoreError(
            f"{said}. The {len(lines)} events of the study {study.name!r} that are known here could not be written to "
            f"another file either: they are lost unless the store comes back."
        )
    return StoreError(
        f"{said}. The {len(lines)} events of the study {study.name!r} that are known here, with all results, were "
        f"written to {path}; `cascada import` makes a study of them in another store, or under another name."
    )


def told(study: Study, run: EndedRun) -> Trial:
    """Tell the outputs of a run; return its trial as it is then."""
    number = run.trial.number
    if study.trials[number].controls == run.trial.controls or not run.outputs:
        return study.tell(number, run.outputs, tries=run.tries) if run.tries else study.tell(number, run.outputs)
    # Another worker took the trial over and revised it, or the store was lost while it was revised here. So these are
    # outputs at other controls: a run of its own.
    study.put_back([number])
    return study.add_trial(run.trial.controls, run.outputs)


def _log(study: Study, untold: Sequence[EndedRun]) -> list[str]:
    """The log as it is known here, with the runs that could not be told."""
    branch = study.branch()
    for run in untold:
        with suppress(CascadaError):  # one that contradicts the others, which was reported
            trial = told(branch, run)
            if run.failure is not None and trial.state not in ("complete", "partial"):
                branch.fail(trial, run.failure, tries=run.tries)
    return [event.to_json() for event in branch.events]


def _written(place: Path, text: str) -> Path | None:
    """A new file beside `place`; if it cannot be written there, in the working folder or among temporary files."""
    for folder in (place.parent, Path.cwd(), Path(tempfile.gettempdir())):
        for number in count(1):
            path = folder / f"{place.name}.rescued{'' if number == 1 else f'-{number}'}.jsonl"
            try:
                write_whole(path, text, new=True, private=True)  # the store may be private, too
            except FileExistsError:
                continue
            except OSError:
                break
            return path
    return None
