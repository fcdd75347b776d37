"""Trials as tables: CSV, written and read, and pandas DataFrames. Errors in a file name its line."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from typing import TYPE_CHECKING, Any

from cascada.errors import ArgumentError
from cascada.literals import number_from
from cascada.network import Network
from cascada.store.trial import Trial

if TYPE_CHECKING:
    from cascada.study.study import Study

_DELIMITERS = (",", ";", "\t")

#: The column that says whether a run satisfies the limits, and its cells.
FEASIBLE = "feasible"
FEASIBLE_CELLS = {True: "yes", False: "no", None: ""}

#: Controls, outputs by stage, and what to call the run in an error.
Run = tuple[dict[str, float | str], dict[str, list[float]], str]


def output_columns(network: Network) -> list[tuple[str, str, int]]:
    """Every output as a column: its heading, its stage, and its position there."""
    columns = []
    for node in network.nodes:
        name = node.stage.name
        for j, output in enumerate(node.stage.outputs):
            short = name == output and name not in network.domain.names  # else the heading is that of a control
            columns.append((name if short else f"{name}.{output}", name, j))
    return columns


def trials_csv(network: Network, trials: Iterable[Trial]) -> str:
    """Controls and outputs of trials as CSV that `read_runs` reads; a trial without outputs of a run is left out.

    If the process has limits, the last column says whether the run satisfies them.
    """
    columns, judged = output_columns(network), _has_feasible_column(network)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*network.domain.names, *(heading for heading, _, _ in columns), *([FEASIBLE] * judged)])
    for trial in trials:
        if trial.outputs and trial.closed:  # the outputs of a step at inputs of its own are of no run
            seen = [repr(trial.outputs[stage][j]) if stage in trial.outputs else "" for _, stage, j in columns]
            seen += [FEASIBLE_CELLS[trial.feasible]] * judged
            controls = (trial.controls[name] for name in network.domain.names)
            writer.writerow([*(value if isinstance(value, str) else repr(value) for value in controls), *seen])
    return text.getvalue()


def _has_feasible_column(network: Network) -> bool:
    """Whether tables say which runs satisfy the limits: not if there are none, or if the name is taken."""
    return bool(network.limits) and FEASIBLE not in {*network.domain.names, *_outputs(network)}


def trials_dataframe(network: Network, trials: Iterable[Trial]) -> Any:
    """A pandas DataFrame with a column for every control and every output; `ArgumentError` without pandas."""
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ArgumentError("trials_dataframe needs pandas: pip install pandas.") from None
    return pandas.DataFrame([_record(network, trial) for trial in trials])


def _record(network: Network, trial: Trial) -> dict[str, Any]:
    outputs = {
        f"{stage}.{output}": value
        for stage, values in trial.outputs.items()
        for output, value in zip(network.node(stage).stage.outputs, values, strict=True)
    }
    judged = {FEASIBLE: trial.feasible} if _has_feasible_column(network) else {}
    money = {"step": ", ".join(trial.steps), "cost": trial.cost} if network.priced else {}
    first = {"number": trial.number, "state": trial.state, "value": trial.value}
    return {**first, **judged, **money, **trial.controls, **outputs}


def add_runs(study: "Study", lines: Iterable[str], *, ignore_unknown: bool = False) -> int:
    """Add past runs from the lines of a CSV file, all of them or none; return how many. See `read_runs`."""
    return len(study.add_trials(read_runs(study.network, lines, ignore_unknown=ignore_unknown)))


def read_runs(network: Network, lines: Iterable[str], *, ignore_unknown: bool = False) -> list[Run]:
    """Past runs from the lines of a CSV file.

    Its header names the controls, and outputs as "stage.output" or, for a single output, "stage"; an empty cell was not
    observed. Cells are separated by commas, semicolons or tabs; without commas between cells, a comma in a number is a
    decimal comma. Other columns are errors, unless `ignore_unknown`; a column "feasible" follows from the outputs.
    """
    table = _Table.parsed(list(lines), network)
    header = _header(*table.rows[0], network, ignore_unknown)
    runs = [_run(header, cells, line, table.decimal_commas) for line, cells in table.rows[1:]]
    if not runs:
        raise ArgumentError("the file needs a header and at least one run. Nothing was added.")
    return runs


@dataclass(frozen=True)
class _Table:
    rows: list[tuple[int, list[str]]]  # line and cells, blank lines left out
    decimal_commas: bool

    @classmethod
    def parsed(cls, lines: list[str], network: Network) -> "_Table":
        names = {*network.domain.names, *_outputs(network)}
        first = next((line for line in lines if line.strip()), "").strip()

        def fit(delimiter: str) -> tuple[int, int]:
            cells = first.split(delimiter)
            return sum(cell.strip(' "') in names for cell in cells), len(cells)

        delimiter = max(_DELIMITERS, key=fit)  # by the right one most cells of the header are names that are known
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            rows = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
        except csv.Error as error:
            raise ArgumentError(f"line {reader.line_num}: {error}. Nothing was added.") from None
        if not rows:
            raise ArgumentError("the file needs a header and at least one run. Nothing was added.")
        return cls(rows, delimiter != ",")


@dataclass(frozen=True)
class _Column:
    name: str
    place: tuple[str, int] | None = None  # stage and position of an output; None for a control
    ignored: bool = False
    named: bool = False  # a choice, whose cells are values as text


def _outputs(network: Network) -> dict[str, tuple[str, int]]:
    """The stage and position of every output, by each name that a header may have for it."""
    places = {
        f"{node.stage.name}.{output}": (node.stage.name, j)
        for node in network.nodes
        for j, output in enumerate(node.stage.outputs)
    }
    return places | {node.stage.name: (node.stage.name, 0) for node in network.nodes if len(node.stage.outputs) == 1}


def _header(line: int, cells: Sequence[str], network: Network, ignore_unknown: bool) -> list[_Column]:
    names, places, controls = [cell.strip() for cell in cells], _outputs(network), network.domain.names
    strange = [name for name in names if name not in places and name not in controls]
    # Whether a run satisfies the limits follows from its outputs.
    unknown = [name for name in strange if name != FEASIBLE or not _has_feasible_column(network)]
    missing = [name for name in controls if name not in names]
    if missing or (unknown and not ignore_unknown):
        wrong = [f"no column for {', '.join(missing)}"] if missing else []
        wrong += [f"unknown column {_with_near(name, [*controls, *places])}" for name in unknown if not ignore_unknown]
        ignore = " To leave the unknown columns out, say --ignore-unknown." if unknown and not missing else ""
        raise ArgumentError(
            f"line {line}: {'; '.join(wrong)}. Columns are the controls {', '.join(sorted(controls))} and any of the "
            f"outputs {', '.join(places)}; got {', '.join(names)}.{ignore} Nothing was added."
        )
    known = [name for name in names if name not in strange]
    found = [name if name in controls else places[name] for name in known]
    if len(set(found)) != len(found):
        raise ArgumentError(
            f"line {line}: every column needs a name of its own, and two columns must not name the same output; got "
            f"{', '.join(names)}. Nothing was added."
        )
    choices = [name for name, control in network.domain.controls.items() if control.unordered]
    return [
        _Column(n, None if n in controls else places.get(n), ignored=n in strange, named=n in choices) for n in names
    ]


def _with_near(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)


def _run(header: Sequence[_Column], cells: Sequence[str], line: int, decimal_commas: bool) -> Run:
    if len(cells) != len(header):
        raise ArgumentError(f"line {line}: {len(cells)} cells where the header has {len(header)}. Nothing was added.")
    controls: dict[str, float | str] = {}
    observed: dict[str, dict[int, float]] = {}
    for column, cell in zip(header, cells, strict=True):
        if column.ignored or (column.place is not None and not cell.strip()):
            continue
        if column.named:
            controls[column.name] = cell.strip()
            continue
        value = _number(cell, column.name, line, decimal_commas)
        if column.place is None:
            controls[column.name] = value
        else:
            observed.setdefault(column.place[0], {})[column.place[1]] = value
    if not observed:
        raise ArgumentError(f"line {line}: the run has no outputs; leave it out. Nothing was added.")
    outputs: Mapping[str, dict[int, float]] = observed
    return controls, {stage: [values[j] for j in sorted(values)] for stage, values in outputs.items()}, f"line {line}"


def _number(text: str, name: str, line: int, decimal_commas: bool) -> float:
    plain = text.strip().replace(",", ".") if decimal_commas and "." not in text else text.strip()
    found = number_from(plain)
    if found is None:
        raise ArgumentError(f"line {line}: {name} must be a number; got {text!r:.100}. Nothing was added.")
    return found
