"""The process: a network with the functions of its stages, which runs stage by stage."""

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cascada.errors import ArgumentError
from cascada.network import Network, Node, Stage
from cascada.network.outputs import Outputs, StageError, UnusableResult, as_outputs_of, failure_text
from cascada.process.command import Command, CommandError
from cascada.process.time_limit import called_within

Functions = Sequence[Callable[..., Any]] | Mapping[str, Callable[..., Any]] | Callable[..., Any] | None


class RunStopped(Exception):
    """Raised by what is called after a stage, to end the run there."""


class Process:
    """A network with the functions of its stages: called with controls, it returns the outputs of every stage.

    Raises `ArgumentError` if functions are missing, superfluous or not callable with the inputs of their stages.
    """

    def __init__(self, network: Network, functions: Functions = None) -> None:
        self.network = network
        self._whole = functions if callable(functions) else None
        own = [stage.name for stage in network.stages if stage.function is not None and not stage.known]
        if self._whole is not None and own:
            raise ArgumentError(
                f"stage {own[0]!r} has a function of its own in addition to evaluate(); give one or the other."
            )
        limited = [stage.name for stage in network.stages if stage.timeout is not None or stage.retries]
        if self._whole is not None and limited:
            raise ArgumentError(
                f"stage {limited[0]!r} has a timeout or retries, which evaluate() cannot keep: it runs all stages in "
                f"one call. Give a function for every stage, or leave out timeout and retries."
            )
        self._functions = {} if self._whole else _limited(network, _by_stage(network, functions))
        for node in network.nodes if not self._whole else ():
            _check_signature(node, self._functions[node.stage.name])

    def __call__(self, controls: Mapping[str, float]) -> Outputs:
        """Return the outputs of every stage; raise `StageError`, with the outputs so far, if a stage fails."""
        return self.run(controls)

    def check_programs(self, done: Collection[str]) -> None:
        """Raise `ArgumentError` if a stage that is not `done` is a command that cannot be started here.

        Call it before the first run: an earlier stage may take hours.
        """
        for name, function in self._functions.items():
            if isinstance(function, Command) and name not in done:
                try:
                    function.check_program()
                except CommandError as error:
                    raise ArgumentError(
                        f"stage {name!r}: {error}. Nothing was started. A program that an earlier stage makes can be "
                        f'called by a shell: ["sh", "-c", "exec ./made"].'
                    ) from None

    def run(
        self,
        controls: Mapping[str, float],
        done: Mapping[str, tuple[float, ...]] | None = None,
        *,
        began: Callable[[str], None] | None = None,
        ended: Callable[[str, tuple[float, ...]], Mapping[str, float] | None] | None = None,
        limited: bool = True,
        only: Collection[str] = (),
    ) -> Outputs:
        """Return the outputs of every stage; run only those that are not `done`, whose outputs are known already.

        With `only`, run these stages, and return their outputs; what they are run on is `done`, or a formula of it.
        `began` is called when a try of a stage begins, and `ended` when a stage has ended: it may return other controls
        for the stages that follow, or raise `RunStopped`, after which the outputs so far are returned. Without
        `limited`, the caller enforces time limits, because it can end this process. Raises `StageError` if a stage
        fails.
        """
        if self._whole is not None:
            if only:
                raise ArgumentError(
                    "single stages are run by a function for every stage; got one evaluate(), which runs all of them "
                    "in one call."
                )
            if began is not None:
                began(self.network.nodes[0].stage.name)
            return self._run_whole(controls)
        values = [controls[name] for name in self.network.controls]  # by column
        outputs: Outputs = {}
        for node in self.network.nodes:
            name = node.stage.name
            inputs = {name: values[j] for name, j in zip(node.input_names, node.inputs, strict=True)}
            if done is not None and name in done:
                outputs[name] = tuple(done[name])
            elif only and name not in only and not (node.stage.known and _are_known(inputs.values())):
                values += (math.nan,) * len(node.columns)  # neither known nor needed
                continue
            else:
                try:
                    outputs[name] = self._outputs(node, inputs, limited, began)
                except (Exception, SystemExit) as error:  # the function is the user's: it may raise anything
                    tries = f" (in the last of {node.stage.retries + 1} tries)" if node.stage.retries else ""
                    raise StageError(name, controls, failure_text(error) + tries, outputs) from error
                if ended is not None:
                    try:
                        controls = ended(name, outputs[name]) or controls
                    except RunStopped:
                        return outputs
                    values[: len(controls)] = [controls[name] for name in self.network.controls]
            values += outputs[name]
        return {name: outputs[name] for name in outputs if name in only} if only else outputs

    @property
    def by_stage(self) -> bool:
        """Whether stages are run one after the other; one `evaluate` function runs all of them."""
        return self._whole is None

    def stops_itself(self, stage: str) -> bool:
        """Return whether a stage enforces its own time limit and ends all processes that it started."""
        return isinstance(self._functions.get(stage), Command)

    def _outputs(
        self, node: Node, inputs: Mapping[str, float], limited: bool, began: Callable[[str], None] | None
    ) -> tuple[float, ...]:
        """Return the outputs of a stage; its function is called again after an error if retries are left."""
        stage, function = node.stage, self._functions[node.stage.name]
        for _ in range(stage.retries):
            with suppress(Exception, SystemExit):  # only the error of the last try is reported
                return as_outputs_of(node, self._called(node, function, inputs, limited, began))
        return as_outputs_of(node, self._called(node, function, inputs, limited, began))

    def _called(
        self,
        node: Node,
        function: Callable[..., Any],
        inputs: Mapping[str, float],
        limited: bool,
        began: Callable[[str], None] | None,
    ) -> Any:
        if began is not None:
            began(node.stage.name)  # the time limit applies to each try
        seconds = node.stage.timeout
        if seconds is None or not limited or self.stops_itself(node.stage.name):
            return function(**inputs)
        return called_within(seconds, function, inputs)

    def _run_whole(self, controls: Mapping[str, float]) -> Outputs:
        assert self._whole is not None, "only called for a single evaluate function"
        outputs: Outputs = {}
        first = self.network.nodes[0].stage.name
        try:
            results = self._whole(**controls)
            if not isinstance(results, Mapping):
                raise UnusableResult(f"must return a dict of stages to outputs; got {type(results).__name__}")
        except (Exception, SystemExit) as error:  # the function is the user's: it may raise anything
            raise StageError(first, controls, failure_text(error), outputs) from error
        for node in self.network.nodes:
            try:
                if node.stage.name not in results:
                    raise UnusableResult("has no entry in what evaluate() returned")
                outputs[node.stage.name] = as_outputs_of(node, results[node.stage.name])
            except UnusableResult as error:
                raise StageError(node.stage.name, controls, failure_text(error), outputs) from error
        return outputs


def _are_known(inputs: Collection[Any]) -> bool:
    """Whether no input of a stage is NaN, which stands for what is not known."""
    return not any(isinstance(value, float) and math.isnan(value) for value in inputs)


def _check_signature(node: Node, function: Callable[..., Any]) -> None:
    """Raise `ArgumentError` if a function cannot be called with the stage's inputs, before an expensive stage runs."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        signature.bind(**dict.fromkeys(node.input_names, 0.0))
    except TypeError:
        raise ArgumentError(
            f"the function of stage {node.stage.name!r} is called with {', '.join(node.input_names)} by name; "
            f"it takes {signature}."
        ) from None


def _limited(network: Network, functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions with the time limits of the stages set on commands, which enforce them themselves."""

    def limited(stage: Stage, function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, Command) and function.timeout is None and stage.timeout is not None:
            return Command(function.argv, function.folder, stage.timeout)
        return function

    return {stage.name: limited(stage, functions[stage.name]) for stage in network.stages}


def _by_stage(network: Network, functions: Any) -> dict[str, Callable[..., Any]]:
    """Return one function per stage, from a list in stage order, a dict by name, or the stages themselves."""
    own = {stage.name: stage.function for stage in network.stages if stage.function is not None}
    lacking = [stage.name for stage in network.stages if stage.name not in own]
    if functions is None:
        functions = {}
    if isinstance(functions, Mapping):
        others = dict(functions)
    elif isinstance(functions, Sequence):
        names = lacking if len(functions) == len(lacking) else [stage.name for stage in network.stages]
        if len(functions) != len(names):
            raise ArgumentError(
                f"functions must hold one function for each of the stages {', '.join(names)}; got {len(functions)}."
            )
        others = dict(zip(names, functions, strict=True))
    else:
        raise ArgumentError(f"functions must be a list, a dict or one callable; got {functions!r}.")
    unknown = [name for name in others if name not in {stage.name for stage in network.stages}]
    if unknown:
        raise ArgumentError(
            f"functions must have the names of stages as keys; got {', '.join(map(repr, unknown))}. "
            f"The stages are {', '.join(stage.name for stage in network.stages)}."
        )
    both = [name for name in others if name in own]
    if both:
        raise ArgumentError(f"stage {both[0]!r} has a function of its own and another in functions; give one.")
    missing = [name for name in lacking if name not in others]
    if missing:
        raise ArgumentError(
            f"no function for {', '.join(map(repr, missing))}: give functions= or Stage(function=). Where people run "
            f"the stages, ask for settings and tell what they gave (`cascada ask`, `cascada tell`)."
        )
    for name, function in others.items():
        if not callable(function):
            raise ArgumentError(f"the function of stage {name!r} must be callable; got {function!r}.")
    return own | others
