"""`cascada measure`: what one stage gave at inputs of its own, without a run."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cascada.cli.output import print_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, object_from, opened
from cascada.cli.tell_stage import as_number
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.study import Study


def measure(
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="The stage's name.")],
    inputs: Annotated[
        str, typer.Argument(metavar="JSON", help='All its inputs, as in \'{"moisture": 2.5, "force": 30}\'.')
    ],
    values: Annotated[list[str], typer.Argument(metavar="VALUES…", help="A number for each of its outputs, in order.")],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    replace: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Replace the measurement of this number, which was wrong.", min=0),
    ] = None,
    json_output: Json = False,
) -> None:
    """Tell what a stage gave at inputs of its own choice: data of this stage, and no run.

    The inputs are outputs of the stages before it, and its controls. With --spec, the study is created if it does not
    exist yet.

    For example: cascada measure --storage sqlite:///alloy.db --study alloy press '{"moisture": 2.5, "force": 30}' 25.1
    """
    given = object_from(inputs, "JSON")
    if given is None:
        raise ArgumentError("JSON must be an object with the inputs of the stage; got nothing.")
    numbers = [as_number(value) for value in values]
    found = opened(storage, study, spec, create=True)
    if replace is None:
        measured = found.measure(stage, given, numbers)
    else:
        _check_same(found, replace, stage, given)
        measured = found.correct_measurement(replace, numbers)
    if json_output:
        print_json(asdict(measured))
    else:
        say(f"Measurement {measured.number} of {measured.stage} was stored.")
    certificate = found.certificate()
    if certificate.kind == "refuted":
        say(
            f"The data now refute an assumption: {' '.join(certificate.evidence)}\nIf the measurement is wrong, "
            f"give the command again with the right outputs and --replace {measured.number}.",
            err=True,
        )


def _check_same(study: Study, number: int, stage: str, inputs: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` if a measurement is of another stage, or at other inputs."""
    for before in study.measurements[number : number + 1]:
        if (before.stage, dict(before.inputs)) != (stage, dict(inputs)):
            raise ArgumentError(
                f"measurement {number} is of {before.stage} at {dict(before.inputs)}; got {stage} at {dict(inputs)}. "
                f"Only its outputs can be replaced: give the same stage and inputs."
            )
