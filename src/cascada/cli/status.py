"""`cascada status`: list the studies of a store, or print the state of one."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cascada.cli.output import (
    certificate_json,
    feasibility,
    gap_lines,
    number_text,
    print_json,
    print_table,
    probable_json,
    recommended_lines,
    settings,
    trial_json,
)
from cascada.cli.stock import money_json, spent_lines, stock_lines
from cascada.cli.stored import Context, Json, OneOrAll, Spec, Storage, followed, object_from, store_at
from cascada.cli.terminal import say
from cascada.store.summary import summarised
from cascada.store.trial import counted

if TYPE_CHECKING:
    from cascada.store.event import Event
    from cascada.study.certificate import Certificate
    from cascada.study.reader import Reader


def status(
    study: OneOrAll = None,
    storage: Storage = None,
    spec: Spec = None,
    context: Context = None,
    probable: Annotated[
        bool,
        typer.Option("--probable", help="Compute the probable gap as well, if kernels or norms are not known."),
    ] = False,
    json_output: Json = False,
) -> None:
    """List the studies of a store, or print the state of one.

    Of one study: trials by state, the best run, its gap and the assumptions behind it, open trials with their controls.
    With --context, the gap is that of the best setting for this context. With --probable, the probable gap is printed
    as well: how far the best run is from that of processes drawn from the runs.
    """
    if study is None:
        store = store_at(storage, read_only=True)
        try:
            rows = [_listed(name, store.get(name)[1]) for name in store.studies()]
        finally:
            store.close()
        _print_list(rows, json_output)
        return
    found = followed(storage, study, spec)
    certificate = found.certificate(context=object_from(context, "--context"))
    content = _content(found, certificate)
    drawn = found.probable_gap() if probable else None
    if drawn is not None:
        content["probable"] = probable_json(drawn)
    if json_output:
        print_json(content)
    else:
        say(_text(found, content, certificate) + ("" if drawn is None else f"\n\n{drawn}"))


def _listed(name: str, events: "Sequence[Event]") -> dict[str, Any]:
    """Return a row of the list. It is read from the log alone, so the formulas of known stages are not needed."""
    found = summarised(name, events)
    return {
        "study": name,
        "objective": dict(found.objective),
        "trials": dict(found.trials),
        "last_event": found.last_event,
    }


def _print_list(rows: list[dict[str, Any]], json_output: bool) -> None:
    if json_output:
        print_json({"studies": rows})
        return
    if not rows:
        say("The store has no studies.")
        return
    states = max((row["trials"] for row in rows), key=len)
    table = [
        [row["study"], "{sense} {stage}.{output}".format(**row["objective"])]
        + [str(row["trials"].get(state) or "") for state in states]
        + [_time(row["last_event"])]
        for row in rows
    ]
    print_table(["study", "objective", *states, "last event"], table)


def _content(study: "Reader", certificate: "Certificate") -> dict[str, Any]:
    trials, best = study.trials, study.best_trial
    asked = {event.trial: event for event in study.events if event.kind == "asked"}
    known = certificate.gap is not None or certificate.kind == "refuted"
    still_open = []
    for trial in trials:
        if trial.state in ("waiting", "running"):
            event = asked.get(trial.number) if trial.state == "running" else None
            by = {"worker": event and event.data.get("worker"), "asked_at": event and event.at}
            still_open.append(trial_json(trial) | by)
    return {
        "study": study.name,
        "trials": counted(trial.state for trial in trials),
        "best": None if best is None else trial_json(best),
        "gap": certificate.gap,
        "gap_kind": certificate.kind if known else None,
        "certificate": certificate_json(certificate) | {"text": str(certificate)},
        "open": still_open,
        "corrections": {str(number): list(texts) for number, texts in study.state.notes.items()},
    } | (money_json(study) if study.network.priced else {})


def _text(study: "Reader", content: Mapping[str, Any], certificate: "Certificate") -> str:
    from cascada.study.step_trial import controls_set

    states = ", ".join(f"{count} {state}" for state, count in content["trials"].items() if count)
    infeasible = sum(trial.feasible is False for trial in study.trials)
    states += f" ({infeasible} infeasible)" if infeasible else ""
    lines = [f"study       {study.name}", f"trials      {states or 'none'}"]
    lines += [f"limits      {', '.join(certificate.limits)}"] if certificate.limits else []
    lines += spent_lines(content) if study.network.priced else []
    best = content["best"]
    if best is not None:
        what = "best value" if certificate.best_reading is None else "best reading"
        lines += [
            f"{what:<11} {best['value']!r} (trial {best['number']})",
            "best settings",
            settings(best["controls"]),
        ]
    elif certificate.limits and certificate.evaluations:
        lines.append("best value  none: no run satisfied the limits")
    lines += recommended_lines(certificate)
    lines += gap_lines(certificate)
    lines += ["", str(certificate)]
    for trial in content["open"]:
        since = "" if trial["asked_at"] is None else f" since {_time(trial['asked_at'])} by {trial['worker']}"
        step = f", step {', '.join(trial['steps'])}" if "steps" in trial else ""
        lines += [
            "",
            f"trial {trial['number']}{step}, {trial['state']}{since}",
            settings(controls_set(study.network, study.trials[trial["number"]])),
        ]
        for stage, values in trial["outputs"].items():
            lines.append(f"  {stage:<12} {', '.join(map(number_text, values))} (told)")
        if trial["feasible"] is False:
            lines.append(f" {feasibility(study.trials[trial['number']], study.network)}")
    lines += stock_lines(content) if study.network.priced else []
    if content["corrections"]:
        lines += ["", "corrections"]
        lines += [f"  trial {n:<6} {text}" for n, texts in content["corrections"].items() for text in texts]
    return "\n".join(lines)


def _time(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
