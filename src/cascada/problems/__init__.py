"""Built-in problems, by name."""

from collections.abc import Callable, Mapping
from functools import partial

from cascada.errors import ArgumentError
from cascada.problems.certified import STRUCTURES, certified
from cascada.problems.problem import Problem
from cascada.problems.sampled import PAPER_GRID, sampled_chain

PROBLEMS: Mapping[str, Callable[[], Problem]] = {
    **{f"certified-{name}": partial(certified, name) for name in STRUCTURES},
    "sampled-chain": sampled_chain,
}


def by_name(name: str) -> Problem:
    """A built-in problem."""
    if name not in PROBLEMS:
        raise ArgumentError(f"there is no problem {name!r}; the built-in ones are {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]()


__all__ = ["PAPER_GRID", "PROBLEMS", "STRUCTURES", "Problem", "by_name", "certified", "sampled_chain"]
