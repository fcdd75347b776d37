"""A point of the history of a bound."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundAfter:
    """The bound of the objective after some of the runs."""

    trial: int  # the highest number of these runs
    bound: float
    kind: str
