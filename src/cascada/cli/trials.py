"""`cascada trials`: all trials of a study as a table."""

from cascada.cli.output import print_json, print_table, rounded, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, opened


def trials(study: StudyName, storage: Storage = None, spec: Spec = None, json_output: Json = False) -> None:
    """Print all trials of a study: state, controls, outputs of every stage, value. --json prints an array of them."""
    found = opened(storage, study, spec)
    all_trials = found.trials
    if json_output:
        print_json([trial_json(trial) for trial in all_trials])
        return
    controls = found.network.domain.names
    outputs = [(node.stage.name, j, name) for node in found.network.nodes for j, name in enumerate(node.stage.outputs)]
    headings = [stage if stage == name else f"{stage}.{name}" for stage, _, name in outputs]
    rows = []
    for trial in all_trials:
        seen = [trial.outputs[stage][j] if stage in trial.outputs else None for stage, j, _ in outputs]
        numbers = [*(trial.controls[name] for name in controls), *seen, trial.value]
        rows.append([str(trial.number), trial.state, *map(rounded, numbers), trial.reason or ""])
    print_table(["trial", "state", *controls, *headings, "value", ""], rows)
