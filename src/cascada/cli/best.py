"""`cascada best`: print the best run of a study."""

from cascada.cli.output import number_text, print_json, settings, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, followed
from cascada.cli.terminal import say
from cascada.errors import StoreError


def best(study: StudyName, storage: Storage = None, spec: Spec = None, json_output: Json = False) -> None:
    """Print the best complete run that satisfies the limits: its value, controls and outputs.

    `cascada status` prints its gap. The exit code is 1 when there is no such run yet.
    """
    stored = followed(storage, study, spec)
    found = stored.best_trial
    if found is None:
        complete = sum(trial.value is not None for trial in stored.trials)
        if complete:
            limits = " and ".join(map(str, stored.network.limits))
            raise StoreError(
                f"none of the {complete} complete runs of the study {study!r} satisfies {limits}; `cascada status` "
                f"says whether a setting can."
            )
        raise StoreError(f"no run of the study {study!r} is complete yet.")
    if json_output:
        print_json(trial_json(found))
        return
    names = [stage.name for stage in stored.network.stages if stage.name in found.outputs]
    outputs = {name: ", ".join(map(number_text, found.outputs[name])) for name in names}
    lines = [
        f"best value  {found.value!r} (trial {found.number})",
        "best settings",
        settings(found.controls),
        "outputs",
    ]
    say("\n".join([*lines, *(f"  {name:<12} {values}" for name, values in outputs.items())]))
