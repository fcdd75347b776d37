"""The summary of a study in sentences: the best run, its gap, and what to do next."""

from cascada.outwards import as_given
from cascada.report.theme import number
from cascada.study.certificate import Certificate
from cascada.study.reader import Reader

# A stage is named if its contribution is this many times that of the next stage, and at least this part of the gap.
_DECISIVE = 2.0
_FAIR_PART = 0.2


def summary(study: Reader, certificate: Certificate, contributions: dict[str, float]) -> list[str]:
    """Return the paragraphs of the summary."""
    best, stage, output = study.best_trial, *study.network.objective
    name = output if output == stage else f"{stage}.{output}"
    if best is None or best.value is None:
        return [*_without_best(study, certificate, name), _next(study, certificate, contributions)]
    settings = ", ".join(f"{control} = {number(value)}" for control, value in best.controls.items())
    runs = sum(trial.value is not None for trial in study.trials)
    others = _others(study)
    shown = certificate.shown
    own = shown is None or best.value != certificate.best or certificate.recommended is not None
    value = number(best.value) if shown is None or own else shown.best
    which = f"The best of {runs} complete runs{others}"
    if certificate.limits:
        which = f"Of {runs} complete runs{others}, the best that satisfies {' and '.join(certificate.limits)}"
    if study.noisy:
        which = f"The best reading in {runs} complete runs{others}"
    found = f"{which} {'was' if study.noisy else 'gave'} {name} = {value}, at {settings}."
    return [found, _gap(study, certificate), _next(study, certificate, contributions)]


def _without_best(study: Reader, certificate: Certificate, name: str) -> list[str]:
    """Return the paragraphs about a study without a run that satisfies the limits, or without a complete run."""
    runs = sum(trial.value is not None for trial in study.trials)
    if not runs and certificate.recommended is not None:
        return ["No run is complete yet.", _gap(study, certificate)]
    if not runs:
        floor = "" if certificate.floor is None else f" {certificate.floor.in_words()}"
        return [f"No run is complete yet, so nothing is known of {name}.{floor}"]
    none = "The complete run does not satisfy" if runs == 1 else f"None of the {runs} complete runs satisfies"
    found = f"{none} {' and '.join(certificate.limits)}."
    if certificate.answer == "infeasible":
        return [found, certificate.infeasibility]
    if certificate.kind == "refuted" or certificate.recommended is not None:
        return [found, _gap(study, certificate)]
    return [found, "Whether a setting satisfies the limits is not known yet."]


def _others(study: Reader) -> str:
    states = [trial.state for trial in study.trials]
    counts = {state: states.count(state) for state in ("partial", "failed", "abandoned", "running", "waiting")}
    others = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f" (besides {others})" if others else ""


def _gap(study: Reader, certificate: Certificate) -> str:
    if certificate.kind == "refuted":
        return f"The data refute an assumption, so nothing is proven. {' '.join(certificate.evidence)}"
    shown = certificate.shown
    if shown is None and certificate.unbounded:
        names = " and ".join(map(repr, certificate.unbounded))
        return (
            f"Nothing bounds the formula of {names}, so how far that is from the best possible cannot be said; "
            f"interval= or lipschitz= would bound it."
        )
    if shown is None and certificate.depends_on:
        names = " and ".join(certificate.depends_on)
        return (
            f"The best setting depends on {names}, so how far a setting is from the best can be said for given values "
            f"of {names} only: study.certificate(context=…) or cascada status --context for one of them, study.table() "
            f"for all."
        )
    if shown is None:
        why = f": too few runs to trust an estimated bound; {certificate.missing}" if certificate.missing else ""
        return f"How far that is from the best possible cannot be said yet{why}."
    word = "more" if study.network.sign > 0 else "less"
    over = certificate.over + (f" that satisfies {' and '.join(certificate.limits)}" if certificate.limits else "")
    if certificate.kind in ("proven", "confident"):
        proven = "It is proven that" if certificate.kind == "proven" else f"{certificate.certainty}:"
        sure = f"{proven} no setting in {over} gives {word} than {shown.bound}"
        if certificate.recommended is None:
            return f"{sure}: the best run is within {shown.gap} of the best possible."
        setting = ", ".join(f"{name} = {as_given(value)}" for name, value in certificate.recommended.controls.items())
        least = "at least" if certificate.maximised else "at most"
        run = "It" if certificate.recommended.reading is not None else "This setting was not run; it"
        feasible = "satisfy the limits and to " if certificate.limits else ""
        floor = "" if certificate.floor is None else f" {certificate.floor.in_words(certificate.gap)}"
        known = "is proven" if certificate.kind == "proven" else "is known with the same probability"
        return (
            f"{sure}. Recommended: {setting}. {run} {known} to {feasible}give {least} {shown.best}, which is within "
            f"{shown.gap} of the best possible.{floor}"
        )
    run = "so the best run"
    if certificate.best_reading is not None and certificate.recommended is not None:
        controls = certificate.recommended.controls.items()
        setting = ", ".join(f"{control} = {number(value)}" for control, value in controls)
        least = "at least" if study.network.sign > 0 else "at most"
        run = f"and the run with the best mean, at {setting}, gives {least} {shown.best}: it"
        if certificate.recommended.estimate is None:
            run = f"and the setting {setting} gives {least} {shown.best}: it"
    return (
        f"By estimate, no setting in {over} gives {word} than {shown.bound}, {run} "
        f"is within {shown.gap} of the best possible. This is not proven: {_estimated(study)} Such gaps are wide at "
        f"first; whether the best still improves says more."
    )


def _estimated(study: Reader) -> str:
    """Return why a gap is only estimated, as a clause."""
    if study.network.scattered and not study.network.estimated:
        return "readings with scatter were selected, or the runs are more than a model learns from."
    return "kernels or norms were estimated from the runs."


def _next(study: Reader, certificate: Certificate, contributions: dict[str, float]) -> str:
    if certificate.kind == "refuted":
        return (
            f"Next: look at the evidence below, then continue with a larger norm bound, {_larger_error(study)}another "
            f"kernel, or a corrected measurement; all runs are kept."
        )
    if certificate.answer == "infeasible":
        return "Next: continue with a limit that is loosened (amend=True, --amend); all runs are kept."
    open_ = sum(trial.state in ("running", "waiting") for trial in study.trials)
    waits = f" {open_} trial{'s are' if open_ > 1 else ' is'} open: results are awaited." if open_ else ""
    if certificate.gap is None:
        return f"Next: run the process at the settings that are asked for.{waits}"
    if (
        study.tolerance is not None
        and certificate.gap <= study.tolerance
        and certificate.kind in ("proven", "confident")
    ):
        return f"Next: nothing; the gap is within the tolerance of {as_given(study.tolerance)}.{waits}"
    which = _stage_to_know(study, certificate.gap, contributions)
    return f"Next: more runs, if a smaller gap is worth them.{which}{waits}"


def _larger_error(study: Reader) -> str:
    return "a larger error, " if study.network.read_with_errors else ""


def _stage_to_know(study: Reader, gap: float, contributions: dict[str, float]) -> str:
    """Return a sentence about the stage that contributes most to the gap, or an empty text if none stands out."""
    ranked = sorted(contributions, key=contributions.__getitem__, reverse=True)
    if len(ranked) < 2 or contributions[ranked[0]] <= _DECISIVE * contributions[ranked[1]]:
        return ""
    if study.network.scattered:  # past runs and other norm bounds would make the gap an estimate
        return ""
    if contributions[ranked[0]] < _FAIR_PART * gap:
        return ""
    if study.network.estimated:
        helps = "a kernel and a norm bound that you vouch for"
    else:
        helps = "a smaller norm bound that holds"
    return (
        f" Most of what is not known of the objective comes from the stage {ranked[0]!r}: past runs of it, or {helps}, "
        f"help most."
    )
