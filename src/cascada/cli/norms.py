"""`cascada norms`: what the runs of a study say of the norms of its stages, and bounds to continue with."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from cascada.cli.output import certificate_json, print_json
from cascada.cli.stored import Json, Storage, TheOnlyOne, followed, one_study
from cascada.cli.terminal import say
from cascada.outwards import as_given
from cascada.study.norms import Norms, StageNorms, norms_of

_GROWS = 1.2  # by more than this factor in the second half of the observations: it still grows


def norms(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="The process, as for `cascada run`.")],
    study: TheOnlyOne = None,
    storage: Storage = None,
    json_output: Json = False,
) -> None:
    """Suggest norm bounds from the runs of a study: per stage the kernel, the smallest norm that the runs allow, how it
    grew, a bound B with its margin, and the gap that these bounds would prove.

    A bound from the runs is a guess with a margin: what it proves rests on it. Nothing is stored; to continue with the
    bounds, write them into the process and run it with --amend.

    For example: cascada norms process.toml --storage sqlite:///alloy.db --study alloy
    """
    found = norms_of(followed(storage, one_study(storage, study), spec))
    if json_output:
        print_json(_json(found))
        return
    for one in found.stages:
        say(_in_words(one) + "\n")
    say(_conclusion(found))


def _in_words(one: StageNorms) -> str:
    how = "fitted to the runs" if one.fitted else "as given"
    lines = [f"{one.stage}: {one.kernel} ({how})"]
    if any(one.offset):
        lines.append(f"  offset    {_numbers(one.offset)}")
    joint = len(one.norms[-1]) < len(one.outputs)
    for j, bound in enumerate(one.suggested):
        name = "" if len(one.suggested) == 1 else f"{one.outputs[j]}: "
        values = [norms[j] for norms in one.norms]
        grown = ", ".join(f"{value:.4g} after {n}" for n, value in zip(one.counts, values, strict=True))
        lines.append(f"  {name}smallest norm that the observations allow{' (joint)' if joint else ''}: {grown}")
        given = "" if one.given is None else f" (given: {as_given(one.given[min(j, len(one.given) - 1)])})"
        lines.append(f"  {name}suggested B = {as_given(bound)}, {one.margins[j]:.2g} times that{given}")
        if values[1] and values[-1] / values[1] > _GROWS:
            lines.append(
                f"  {name}it still grows: a shorter lengthscale or a rougher kernel may fit better; more runs will tell"
            )
    return "\n".join(lines)


def _conclusion(found: Norms) -> str:
    certificate = found.certificate
    if certificate is None:
        return f"These bounds would prove no gap: {found.why_not}."
    shown = certificate.shown
    if certificate.kind == "refuted" or shown is None:
        return f"These bounds would prove no gap. {certificate}"
    return (
        f"With these bounds the same runs prove a gap of {shown.gap}: best {shown.best}, bound {shown.bound}. "
        f"The proof is as good as the bounds are."
    )


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(map(as_given, values))


def _json(found: Norms) -> dict[str, Any]:
    return {
        "stages": [asdict(one) | {"kernel": str(one.kernel), "margins": list(one.margins)} for one in found.stages],
        "certificate": None if found.certificate is None else certificate_json(found.certificate),
        "why_not": found.why_not,
    }
