"""Problems of users: an object in a Python module, by the name "module:object"."""

from importlib import import_module

from cascada.errors import ArgumentError
from cascada.problems.problem import Problem


def imported_problem(name: str) -> Problem:
    """The problem with a name "module:object", where the object is a `Problem` or makes one without arguments."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ArgumentError(
            f"problem {name!r} could not be imported ({type(error).__name__}: {error}). Give module:object, where the "
            f"module is in this folder or installed."
        ) from error
    problem = found() if callable(found) else found
    if not isinstance(problem, Problem):
        raise ArgumentError(
            f"{name!r} must be a cascada.problems.Problem, or a function without arguments that makes one; got "
            f"{type(problem).__name__}."
        )
    return problem
