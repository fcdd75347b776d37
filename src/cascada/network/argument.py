"""Validation of a network that a caller passes."""

from typing import Any

from cascada.errors import ArgumentError
from cascada.network.network import Network
from cascada.network.stage import Stage


def as_network(value: Any) -> Network:
    """The network itself; `ArgumentError` that says how to make one if it is something else."""
    if isinstance(value, Network):
        return value
    stages = value if isinstance(value, list | tuple) else [value]
    if stages and all(isinstance(stage, Stage) for stage in stages):
        what = "a Stage" if isinstance(value, Stage) else f"a {type(value).__name__} of stages"
        call = "chain(stage)" if isinstance(value, Stage) else "chain(*stages), or Network(stages)"
        raise ArgumentError(f"network must be a Network; got {what}. Make a network of it: {call}.")
    hint = "Make one of stages: chain(a, b)."
    if isinstance(value, str):
        hint += " A stored study is opened with Study.open(url, name); a built-in problem or a file with load(name)."
    raise ArgumentError(f"network must be a Network; got {value!r:.100}. {hint}")
