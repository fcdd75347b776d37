"""From the log of a stored study to what a study in memory learns of it."""

from cascada.errors import ContradictionError
from cascada.study.events import Event
from cascada.study.study import Study


def refutes(event: Event, described: int) -> bool:
    """Whether an event says that what is assumed since the event `described` is wrong.

    What a bound showed speaks against the assumptions of its time, what somebody said holds for any.
    """
    return event.kind == "note" and "refuted" in event.data and event.data.get("assumed") in (None, described)


def teach(study: Study, event: Event, described: int) -> None:
    """Let a study in memory, which knows of all events before, learn from the next one.

    `described` is the event that says what is assumed.
    """
    if refutes(event, described):
        study.refute(str(event.data["refuted"]))
    if event.trial is None:
        return
    number, kind = event.trial, event.kind
    if number == len(study.trials):
        begin = study.enqueue_trial if kind == "enqueued" else study.begin_trial
        begin(event.data["controls"])
    elif kind == "asked":
        study.begin_waiting(number)
    elif kind == "expired":
        study.put_back([number])
    elif kind in ("observed", "told"):
        try:
            study.tell(number, event.data["outputs"])
        except ContradictionError as error:  # it is in the log, so it is said, and not lost
            study.refute(str(error))
    elif kind in ("failed", "abandoned"):
        end = study.fail if kind == "failed" else study.abandon
        end(number, str(event.data.get("reason")))
