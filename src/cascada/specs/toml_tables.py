"""The keys of a TOML file that describes a process, and the messages about invalid ones.

Each table is validated by itself against a flat model. So one error lists all mistakes in a file, each with its key and
in our own words: `stage[1].controls.T1.low (stage 'grind') must be a number; got "350"`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, ValidationError

from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean

_NAMES = "a name or a list of names"
_PER_OUTPUT = "a number, or a list with one for every output"
_PER_VALUE = f"{_PER_OUTPUT}, or a table of these by value of a choice"
_INTERVALS = "a table such as { moisture = { max = 3.0 } }"
_PER_INPUT = "a number above 0, or a list with one for every input"


class Table(BaseModel):
    """The base of all tables. The description of a key completes the sentence "… must be"."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class FileTable(Table):
    """The whole file."""

    objective: str | None = Field(None, description='a name in quotation marks, "stage.output"')
    sense: Literal["maximise", "minimise"] = Field("maximise", description='"maximise" or "minimise"')
    stage: list[Any] = Field(min_length=1, description="a list of tables: each begins with [[stage]]")


class StageTable(Table):
    """One `[[stage]]`."""

    name: str = Field(description="a name in quotation marks")
    command: list[str] | None = Field(
        None, min_length=1, description='a list of words such as ["awk", "-f", "melt.awk"]: no shell reads it'
    )
    controls: dict[str, Any] = Field({}, description="a table: it begins with [stage.controls]")
    outputs: str | list[str] | None = Field(None, description=_NAMES)
    parents: str | list[str] | None = Field(None, description='a list of names, "stage" or "stage.output"')
    passes: str | list[str] = Field([], description=_NAMES)
    timeout: float | None = Field(None, description="a number of seconds above 0")
    retries: int = Field(0, description="a whole number, 0 or more")
    kernel: dict[str, Any] | None = Field(None, description='a table such as { type = "matern", nu = 2.5 }')
    norm_bound: float | list[float] | dict[str, float | list[float]] | None = Field(None, description=_PER_VALUE)
    lipschitz: float | list[float] | None = Field(None, description=_PER_OUTPUT)
    offset: float | list[float] = Field(0.0, description=_PER_OUTPUT)
    limits: dict[str, Any] = Field({}, description=_INTERVALS)
    ranges: dict[str, Any] = Field({}, description=_INTERVALS)
    failure: Literal["fail", "infeasible"] = Field("fail", description='"fail" or "infeasible"')
    error: float | list[float] | dict[str, Any] | Literal["estimate"] | None = Field(
        None,
        description='a number, a list with one for every output, a table such as { bounded = 0.01 }, or "estimate"',
    )
    forwards: Literal["value", "reading"] = Field("value", description='"value" or "reading"')
    cost: float = Field(1.0, description="a number above 0")
    reachable: Literal["run", "stock", "any"] = Field("run", description='"run", "stock" or "any"')
    portions: int | Annotated[float, AllowInfNan(True)] = Field(1, description="a whole number, 1 or more, or inf")


class IntervalTable(Table):
    """The limit or the range of an output."""

    min: float | None = Field(None, description="a number")
    max: float | None = Field(None, description="a number")


class ErrorTable(Table):
    """`error = { bounded = …, sub_gaussian = … }`."""

    bounded: float | list[float] = Field(0.0, description=_PER_OUTPUT)
    sub_gaussian: float | list[float] = Field(0.0, description=_PER_OUTPUT)


class ControlTable(Table):
    """A control, in `[stage.controls]`."""

    low: float = Field(description="a number")
    high: float = Field(description="a number")
    log: bool = Field(False, description="true or false")
    type: Literal["real", "integer"] = Field("real", description='"real", "integer" or "choice"')
    step: float | None = Field(None, description="a number above 0")
    deviation: float = Field(0.0, description="a number, 0 or more")
    context: bool = Field(False, description="true or false: whether it is measured before a run, not chosen")


class ChoiceTable(Table):
    """A control with `type = "choice"`."""

    type: Literal["choice"]
    values: list[str] = Field(min_length=1, description='a list of names such as ["oak", "pine"]')
    alike: float | None = Field(None, description="a number of at least 0 and below 1")
    context: bool = Field(False, description="true or false: whether it is known before a run, not chosen")


class KernelTable(Table):
    """The keys that all kernels have."""

    type: str
    lengthscale: float | list[float] = Field(1.0, description=_PER_INPUT)
    variance: float = Field(1.0, description="a number above 0")
    additive: bool = Field(False, description="true or false: whether the effects of the inputs add up")


class MaternTable(KernelTable):
    """`kernel = { type = "matern", … }`."""

    type: Literal["matern"]
    nu: float = Field(description="a number above 0, such as 2.5")


class SquaredExponentialTable(KernelTable):
    """`kernel = { type = "squared-exponential", … }`."""

    type: Literal["squared-exponential"]


#: Type of a kernel → its table.
KERNELS: Mapping[str, type[KernelTable]] = {"matern": MaternTable, "squared-exponential": SquaredExponentialTable}

T = TypeVar("T", bound=Table)


@dataclass
class Problems:
    """The mistakes in a file, collected while it is read."""

    file: str
    about: str = ""  # the stage that is being read, by name if it has one
    found: list[str] = field(default_factory=list)

    def add(self, path: str, what: str) -> None:
        """Add a mistake at the key `path`."""
        self.found.append(f"{path}{self.about and f' ({self.about})'} {what}")

    def read(self, model: type[T], table: Any, path: str) -> T | None:
        """Return a table as its model; if it is invalid, add one mistake per key and return None."""
        if not isinstance(table, dict):
            self.add(path, f"must be a table; got {shown(table)}")
            return None
        try:
            return model.model_validate(table)
        except ValidationError as error:
            for key, kind in {str(one["loc"][0]): one["type"] for one in error.errors()}.items():
                where = f"{path}.{as_key(key)}".removeprefix(".")
                if kind == "extra_forbidden":
                    self.add(where, f"is not known{_hint(key, model)}")
                elif kind == "missing":
                    self.add(where, f"is missing: it must be {model.model_fields[key].description}")
                else:
                    self.add(where, f"must be {model.model_fields[key].description}; got {shown(table[key])}")
            return None

    def raise_any(self) -> None:
        """Raise one `ArgumentError` with all mistakes, if there are any."""
        if self.found:
            raise ArgumentError(f"{self.file}: " + ";\n".join(one.rstrip(".") for one in self.found) + ".")


def _hint(key: str, model: type[Table]) -> str:
    """Return a hint about an unknown key: where it belongs, a similar key, or all keys."""
    if model is StageTable and key in FileTable.model_fields:
        return ": it stands at the top of the file, above the first [[stage]]"
    if model is FileTable and key in StageTable.model_fields:
        return ": it belongs to a stage, below its [[stage]]"
    return did_you_mean(key, model.model_fields) or f"; the keys here are {', '.join(model.model_fields)}"


def as_key(key: str) -> str:
    """Return a key in TOML syntax, shortened if it is long."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", key) else shown(key)


def shown(value: Any) -> str:
    """Return a value in approximate TOML syntax, shortened if it is long."""
    text = "true" if value is True else "false" if value is False else repr(value)
    text = f'"{value}"' if isinstance(value, str) and value.isprintable() else text
    return text if len(text) <= 100 else f"{text[:100]}…"
