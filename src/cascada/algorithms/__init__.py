"""Algorithms, one file each; `by_name` finds them for `maximise` and the command line."""

from importlib import import_module
from typing import Any

from cascada.algorithms.algorithm import Algorithm, Situation, Suggestion, bound_certifies, point_key
from cascada.algorithms.cascaded_ei import CascadedEI
from cascada.algorithms.cucb import CUCB
from cascada.algorithms.expected_improvement import ExpectedImprovement
from cascada.algorithms.gp_ucb import GPUCB
from cascada.algorithms.gpn_ei import GPNEI
from cascada.algorithms.gpn_mixed import GPNMixed
from cascada.algorithms.gpn_ucb import GPNUCB
from cascada.algorithms.non_adaptive import NonAdaptive
from cascada.algorithms.optimistic_improvement import OptimisticImprovement
from cascada.algorithms.random_search import RandomSearch
from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean

NAMES: dict[str, type[Any]] = {
    "auto": GPNMixed,
    "gpn_mixed": GPNMixed,
    "gpn_ucb": GPNUCB,
    "gpn_ei": GPNEI,
    "non_adaptive": NonAdaptive,
    "cucb": CUCB,
    "oi": OptimisticImprovement,
    "cei": CascadedEI,
    "gp_ucb": GPUCB,
    "ei": ExpectedImprovement,
    "random_search": RandomSearch,
}


def by_name(algorithm: "str | Algorithm") -> Algorithm:
    """An algorithm by its name or by "module:Class"; an algorithm object is returned as it is.

    Raises `ArgumentError` if there is none.
    """
    if not isinstance(algorithm, str):
        if isinstance(algorithm, Algorithm) and not isinstance(algorithm, type):
            return algorithm
        lacking = [name for name in ("suggest", "recommend") if not hasattr(algorithm, name)]
        got = f"{algorithm!r:.100}"
        if isinstance(algorithm, type) and not lacking:
            got = f"the class {algorithm.__name__}; write {algorithm.__name__}()"
        elif len(lacking) == 1:
            got = f"{type(algorithm).__name__}, which has no {lacking[0]}"
        raise ArgumentError(f"algorithm must have the methods suggest and recommend; got {got}.")
    if algorithm in NAMES:
        return NAMES[algorithm]()
    module, colon, name = algorithm.partition(":")
    if not colon:
        raise ArgumentError(
            f"algorithm must be one of {', '.join(NAMES)}, or 'module:Class'; got {algorithm!r}"
            f"{did_you_mean(algorithm, NAMES)}."
        )
    try:
        found = import_module(module)
        if not hasattr(found, name):
            raise ArgumentError(f"module {module!r} has no attribute {name!r}{did_you_mean(name, vars(found))}")
        made = getattr(found, name)()
    except Exception as error:  # the user's class may raise anything
        raise ArgumentError(f"algorithm {algorithm!r} could not be imported: {error}.") from error
    return by_name(made)


__all__ = [
    "CUCB",
    "GPNEI",
    "GPNUCB",
    "GPUCB",
    "NAMES",
    "Algorithm",
    "CascadedEI",
    "ExpectedImprovement",
    "GPNMixed",
    "NonAdaptive",
    "OptimisticImprovement",
    "RandomSearch",
    "Situation",
    "Suggestion",
    "bound_certifies",
    "by_name",
    "point_key",
]
