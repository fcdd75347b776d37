"""Slices of a study: settings in which some controls have given values, fixed for one ask or given by the context.

A fixed control limits where the next run may be; the aim is still the best setting of all. A context is another
problem: the best setting for the values that were measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cascada.algorithms import GPUCB, ExpectedImprovement, NonAdaptive
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean
from cascada.network import Beliefs, Network
from cascada.space import Control, ControlValue, Domain
from cascada.store.trial import Trial
from cascada.study.settings import Settings

# Algorithms whose points do not follow from the box of the situation alone.
_OF_THE_WHOLE_BOX = (GPUCB, ExpectedImprovement, NonAdaptive)


@dataclass(frozen=True, eq=False)
class Slice:
    """Values of some controls in user units; all others are free."""

    network: Network  #: over the whole box
    fixed: Mapping[str, ControlValue]
    context: Mapping[str, ControlValue]

    @classmethod
    def of(
        cls,
        network: Network,
        settings: Settings,
        fixed: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> "Slice | None":
        """The slice that a user asked for; None for the whole box. Raises `ArgumentError` if it is invalid."""
        _check_names(network, fixed, context)
        if not fixed and not network.context:
            return None
        if network.uncertain:
            raise ArgumentError(
                f"fixed= does not work with deviation=, which {', '.join(network.uncertain)} has; use "
                f"enqueue_trial(controls) for a run of your choice."
            )
        if isinstance(settings.algorithm, _OF_THE_WHOLE_BOX):
            raise ArgumentError(
                f"fixed= and context= do not work with the algorithm {type(settings.algorithm).__name__}; leave "
                f"algorithm= out, or use 'gpn_mixed', 'gpn_ucb', 'gpn_ei' or 'random_search'."
            )
        part = cls(network, _values(network, fixed or {}, "fixed"), _values(network, context or {}, "context"))
        if settings.listed is not None and not part._listed(settings.listed.rows).any():
            raise ArgumentError(f"no candidate has {part}; fix a value that some candidate has.")
        return part

    def __str__(self) -> str:
        return " and ".join(f"{name} = {value!r}" for name, value in self.values.items())

    @property
    def values(self) -> dict[str, ControlValue]:
        """All given values."""
        return {**self.context, **self.fixed}

    @cached_property
    def controls(self) -> dict[str, Control]:
        """The given controls, each with its value only."""
        return {name: self.network.domain.controls[name].at(value) for name, value in self.values.items()}

    @cached_property
    def domain(self) -> Domain:
        """The box of the slice."""
        return self.network.within(self.controls).domain

    def within(self, beliefs: Beliefs) -> Beliefs:
        """The same beliefs over the slice."""
        return replace(beliefs, network=beliefs.network.within(self.controls))

    def candidates(self, settings: Settings) -> Array | None:
        """The coordinates of the candidates in the slice, (n, d); None for the box."""
        return None if settings.listed is None else settings.listed.coordinates[self._listed(settings.listed.rows)]

    def contains(self, trial: Trial) -> bool:
        """Whether a trial has these values."""
        return all(trial.controls[name] == value for name, value in self.values.items())

    def of_context(self) -> "Slice":
        """The slice of the same context, in which nothing is fixed."""
        return replace(self, fixed={})

    @property
    def logged(self) -> dict[str, Any]:
        """What the event `asked` says of it."""
        parts = {"fixed": dict(self.fixed), "context": dict(self.context)}
        return {word: values for word, values in parts.items() if values}

    def _listed(self, rows: Array) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """Which candidates (n, d) in user units have these values."""
        names = self.network.domain.names
        same = [rows[:, names.index(name)] == value for name, value in self.values.items()]
        return np.all(np.array(same).reshape(len(same), len(rows)), axis=0)


def _check_names(network: Network, fixed: Any, context: Any) -> None:
    for word, given in (("fixed", fixed), ("context", context)):
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(f"{word} must be a dict such as {{'force': 35}}; got {given!r:.100}.")
    measured, names = network.context, network.domain.names
    strange = [name for name in context or {} if name not in measured]
    missing = [name for name in measured if name not in (context or {})]
    if strange:
        known = f"the context of this process is {', '.join(measured)}" if measured else "this process has no context"
        raise ArgumentError(f"context must name controls with context=True; got {strange[0]!r:.100}, but {known}.")
    if missing:
        example = ", ".join(f"{name!r}: …" for name in measured)
        raise ArgumentError(
            f"the best setting depends on the context {', '.join(measured)}; missing: {', '.join(missing)}. Give what "
            f"was measured, context={{{example}}} (on the command line --context JSON)."
        )
    unknown = [name for name in fixed or {} if name not in names]
    if unknown:
        raise ArgumentError(
            f"fixed must name controls, which are {', '.join(names)}; got {unknown[0]!r:.100}"
            f"{did_you_mean(unknown[0], names)}."
        )
    both = [name for name in fixed or {} if name in measured]
    if both:
        raise ArgumentError(f"control {both[0]!r} has context=True: give its value as context=, not as fixed=.")
    if fixed and len(fixed) == len(names) - len(measured):
        raise ArgumentError(
            "fixed names every control, so nothing is left to choose; use enqueue_trial(controls) (cascada enqueue)."
        )


def _values(network: Network, given: Mapping[str, Any], word: str) -> dict[str, ControlValue]:
    """Validated values by name; `ArgumentError` if one is not a value of its control."""
    found: dict[str, ControlValue] = {}
    for name, value in given.items():
        domain = Domain({name: network.domain.controls[name]})
        try:
            found |= domain.named(domain.row({name: value}))
        except ArgumentError as error:
            raise ArgumentError(f"{word}: {error}") from None
    return {name: found[name] for name in network.domain.names if name in found}
