"""Loading of a process from a TOML file, whose stages are commands or are run by people."""

import tomllib
from pathlib import Path
from typing import Any, Literal

from cascada.errors import ArgumentError
from cascada.kernels import Additive, Matern, Radial, SquaredExponential, Stationary
from cascada.network import Network, Stage, chain
from cascada.network.error import Error, error_of_parts
from cascada.process.command import Command
from cascada.space import Choice, Control, Integer, Real
from cascada.specs.toml_tables import (
    KERNELS,
    ChoiceTable,
    ControlTable,
    ErrorTable,
    FileTable,
    IntervalTable,
    MaternTable,
    Problems,
    StageTable,
    as_key,
    shown,
)

_LARGEST = 1 << 20  # bytes; a process of a hundred stages has a twentieth of it


def load_toml(path: Path) -> Network:
    """Return the network that a file describes, with a `Command` for every stage that has one.

    A stage without the key `parents` follows the stage before it in the file, as in `chain`; `parents = []` means none.
    Commands run in the file's folder. Raises one `ArgumentError` that lists all mistakes in the file.
    """
    document, problems = _parsed(path), Problems(str(path))
    file = problems.read(FileTable, document, "")
    tables = document.get("stage")
    stages: list[Stage] = []
    for i, table in enumerate(tables if isinstance(tables, list) else []):
        name = table.get("name") if isinstance(table, dict) else None
        problems.about = f"stage {name!r:.100}" if isinstance(name, str) else f"the [[stage]] number {i + 1}"
        stage = _stage(table, f"stage[{i}]", path.resolve().parent, problems)
        stages += [] if stage is None else [stage]
    problems.raise_any()
    assert file is not None, "raise_any raises if it could not be read"
    try:
        network = chain(*stages, objective=file.objective)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None
    return network.mirrored() if file.sense == "minimise" else network


def _stage(content: Any, path: str, folder: Path, problems: Problems) -> Stage | None:
    """Return a stage; if it is invalid, add its mistakes to `problems` and return None."""
    before = len(problems.found)
    table = problems.read(StageTable, content, path)
    inner = content if isinstance(content, dict) else {}
    controls: dict[str, Control] = {}
    if isinstance(inner.get("controls"), dict):
        for name, one in inner["controls"].items():
            control = _control(name, one, f"{path}.controls.{as_key(name)}", problems)
            controls |= {} if control is None else {name: control}
    kernel = _kernel(inner["kernel"], f"{path}.kernel", problems) if isinstance(inner.get("kernel"), dict) else None
    limits, ranges = (_intervals(inner.get(key), f"{path}.{key}", problems) for key in ("limits", "ranges"))
    error = None if table is None else _error(table.error, f"{path}.error", problems)
    if table is None or len(problems.found) > before:
        return None
    try:
        return Stage(
            table.name,
            controls=controls,
            outputs=table.outputs,
            parents=table.parents,
            kernel=kernel,
            norm_bound=table.norm_bound,
            lipschitz=table.lipschitz,
            offset=table.offset,
            passes=table.passes,
            function=None if table.command is None else Command(table.command, folder, table.timeout),
            timeout=table.timeout,
            retries=table.retries,
            limits=limits,
            ranges=ranges,
            failure=table.failure,
            error=error,
            forwards=table.forwards,
            cost=table.cost,
            reachable=table.reachable,
            portions=table.portions,
        )
    except ArgumentError as error:
        problems.add(path, f"is wrong: {str(error).removeprefix(f'stage {table.name!r}: ')}")
        return None


def _error(
    content: float | list[float] | dict[str, Any] | Literal["estimate"] | None, path: str, problems: Problems
) -> Error | float | list[float] | Literal["estimate"] | None:
    """The sizes of a bounded error as a number or a list; an error from a table of its parts; or "estimate"."""
    if not isinstance(content, dict):
        return content
    table = problems.read(ErrorTable, content, path)
    if table is None:
        return None
    if not content:
        problems.add(path, "needs bounded or sub_gaussian, such as { bounded = 0.01 }.")
        return None
    try:
        return error_of_parts(table.bounded, table.sub_gaussian)
    except ArgumentError as error:
        problems.add(path, f"is wrong: {error}")
        return None


def _control(name: str, content: Any, path: str, problems: Problems) -> Control | None:
    if not name.strip() or "." in name:
        problems.add(path, "must have a name without dots")
    if not isinstance(content, dict):
        misplaced = ": what belongs to the stage stands above [stage.controls]"
        hint = misplaced if name in StageTable.model_fields else ""
        problems.add(path, f"must be a table such as {{ low = 0, high = 1 }}; got {shown(content)}{hint}")
        return None
    if content.get("type") == "choice":
        return _choice(content, path, problems)
    table = problems.read(ControlTable, content, path)
    if table is None:
        return None
    try:
        if table.type == "real":
            return Real(table.low, table.high, table.log, table.step, table.context, table.deviation)
        extra = table.step is not None or table.deviation
        if extra or not table.low.is_integer() or not table.high.is_integer():
            raise ArgumentError(
                f"an integer control needs whole numbers as its range, and no step or deviation; got {shown(content)}."
            )
        return Integer(int(table.low), int(table.high), table.log, table.context)
    except ArgumentError as error:
        problems.add(path, f"is wrong: {error}")
        return None


def _choice(content: dict[str, Any], path: str, problems: Problems) -> Choice | None:
    table = problems.read(ChoiceTable, content, path)
    if table is None:
        return None
    try:
        return Choice(table.values, table.alike, table.context)
    except ArgumentError as error:
        problems.add(path, f"is wrong: {error}")
        return None


def _intervals(content: Any, path: str, problems: Problems) -> dict[str, tuple[float | None, float | None]]:
    """Return intervals by output; add a mistake for each that is invalid."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for name, one in content.items() if isinstance(content, dict) else ():
        table = problems.read(IntervalTable, one, f"{path}.{as_key(name)}")
        found |= {} if table is None else {name: (table.min, table.max)}
    return found


def _kernel(content: dict[str, Any], path: str, problems: Problems) -> Stationary | None:
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in KERNELS:
        got = shown(kind) if "type" in content else "none"
        problems.add(f"{path}.type", f"must be {' or '.join(map(shown, KERNELS))}; got {got}")
        return None
    table = problems.read(KERNELS[kind], content, path)
    if table is None:
        return None
    scales = tuple(table.lengthscale) if isinstance(table.lengthscale, list) else table.lengthscale
    kernel: Radial
    try:
        if isinstance(table, MaternTable):
            kernel = Matern(table.nu, scales, table.variance)
        else:
            kernel = SquaredExponential(scales, table.variance)
    except ArgumentError as error:
        problems.add(path, f"is wrong: {error}")
        return None
    return Additive(kernel) if table.additive else kernel


def _parsed(path: Path) -> dict[str, Any]:
    """Return the tables of a file; `ArgumentError` if it is not TOML."""
    text = _text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error).replace("Cannot overwrite a value", "A key is given twice")
        end = f"at the end, line {text.rstrip().count(chr(10)) + 1}"
        raise ArgumentError(f"{path} is not TOML: {reason.replace('at end of document', end)}.") from None
    except (ValueError, RecursionError) as error:  # a number with too many digits, or tables nested too deeply
        raise ArgumentError(f"{path} cannot be read as TOML: {error}.") from None


def _text(path: Path) -> str:
    """Return the text of a file; `ArgumentError` if it is missing, too large or not UTF-8."""
    content = b""
    try:
        if not path.exists():
            raise ArgumentError(f"there is no file {path}; `cascada new {path}` writes one to start from.")
        if not path.is_file():
            raise ArgumentError(f"{path} must be a file; it is {'a folder' if path.is_dir() else 'something else'}.")
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ArgumentError(
                f"{path} is larger than {_LARGEST} bytes, too large for a description of a process; give another file."
            )
        return content.decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ArgumentError(f"{path} must be text in UTF-8; line {line} is not: {error.reason}.") from None
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror or error}.") from None
