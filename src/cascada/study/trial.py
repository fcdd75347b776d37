"""One run of the process, as it was asked for and as far as it was observed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["running", "complete", "failed"]


@dataclass(frozen=True)
class Trial:
    """A run: its number, controls in user units, the outputs observed so far, and the objective once it is known."""

    number: int
    controls: Mapping[str, float | int]
    outputs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    state: State = "running"
    value: float | None = None
    reason: str | None = None  # why it failed
