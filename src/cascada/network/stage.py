"""Stages of a process: inputs, outputs and assumptions."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import LARGEST_SCALE, MOST_SDS, SMALLEST_SCALE, Array, check_scale
from cascada.errors import ArgumentError
from cascada.kernels import OperatorKernel, Separable, Stationary
from cascada.near_names import with_near_names
from cascada.network.error import (
    ESTIMATE,
    Bounded,
    Error,
    Forwards,
    SubGaussian,
    as_error,
    bounded_part,
    error_of_output,
    is_estimate,
    sub_gaussian_part,
)
from cascada.network.limits import Interval, as_intervals
from cascada.network.stage_options import (
    BoundsByValue,
    check_intervals,
    check_noise,
    given_constants,
    norm_bound_or_by_value,
    norm_bounds_by_value,
    prior_sds,
)
from cascada.network.stock import Reachable, check_stock
from cascada.space import Choice, Control, Integer, Real


@dataclass(frozen=True, eq=False, init=False)
class Stage:
    """A stage with named controls and outputs, its parents, and the assumptions about it.

    * `controls`: name → `Real`, `Integer` or `Choice`; a control named by several stages is one coordinate.
    * `outputs`: names; by default one, the stage's own name.
    * `parents`: stages (all their outputs) or "stage.output"; None means the stage before in `chain`, `feed_forward`
      and `multi_output_chain`, and no parent in `Network`.
    * `kernel`: a scalar kernel for independent outputs; `Separable` or `BlockKernel` for one joint norm. It acts on the
      parents' outputs, then the controls, in this order.
    * `norm_bound` (B) and `lipschitz` (L, per user unit): one number, or one per modelled output. With a `Choice`, B
      bounds the function of each value by itself, and may be a dict: value → B.
    * `offset`: constant prior mean; B bounds ‖f − offset‖.
    * `passes`: outputs that are exact copies of the input of the same name: never modelled.
    * `known`: the function is a cheap formula, evaluated and never modelled; bounds come from its values and
      `lipschitz`, or from `interval`, called with (low, high) pairs and returning such a pair (or a list of pairs).
      Where kernels or norms are estimated it needs neither; then there is no gap.
    * `limits`: output → (low, high), None for no limit: what a result must satisfy. The best setting is sought among
      those that do.
    * `ranges`: output → (low, high): what is physically possible, an assumption like B. Bounds are intersected with it.
    * `failure`: "infeasible" counts a run in which the stage fails as one that breaks a limit.
    * `function`: called with the inputs by name; may be passed to `maximise` instead.
    * `error`: how far a reading may be from the value: `Bounded(0.01)`, or 0.01 for the same; one number, or one per
      modelled output. `SubGaussian(0.05)` for scatter: bounds then hold with a probability. Both: their sum.
      "estimate" for stages without a kernel: the noise of every output is estimated with its kernel.
      By default readings are exact.
    * `forwards`: what the next stages are set to: the stage's true "value", or its "reading".
    * `timeout`: seconds after which a call of the function fails; `retries`: how often a failed call is repeated before
      the run fails.
    * `cost` of one run of the stage; `reachable`: whether it can be run only directly after its parents ("run"), also
      on outputs of them that were kept ("stock"), or at any inputs ("any"); `portions`: how many runs of each later
      stage one of its outputs feeds, `math.inf` for a file.
    """

    name: str
    controls: Mapping[str, Control]
    outputs: tuple[str, ...]
    parents: tuple[str, ...] | None
    kernel: Stationary | OperatorKernel | None
    norm_bound: Array | None  #: the largest one, if the values of a choice have different ones
    #: By value of its only choice without `alike`, if they were given so. An argument for `dataclasses.replace` only.
    norm_bounds: Mapping[str, Array] | None
    lipschitz: Array | None
    offset: Array
    passes: tuple[str, ...]
    known: bool
    function: Callable[..., Any] | None
    interval: Callable[..., Any] | None
    timeout: float | None
    retries: int
    limits: Mapping[str, Interval]
    ranges: Mapping[str, Interval]
    failure: Literal["fail", "infeasible"]
    error: Error | Literal["estimate"] | None
    forwards: Forwards
    cost: float  #: 0 for a formula
    reachable: Reachable
    portions: float

    @with_near_names
    def __init__(
        self,
        name: str,
        controls: Mapping[str, Control] | None = None,
        outputs: Sequence[str] | None = None,
        parents: Sequence[str] | str | None = None,
        kernel: Stationary | OperatorKernel | None = None,
        norm_bound: ArrayLike | Mapping[str, ArrayLike] | None = None,
        lipschitz: ArrayLike | None = None,
        offset: ArrayLike = 0.0,
        passes: Sequence[str] = (),
        known: bool = False,
        function: Callable[..., Any] | None = None,
        interval: Callable[..., Any] | None = None,
        timeout: float | None = None,
        retries: int = 0,
        limits: Mapping[str, tuple[float | None, float | None]] | None = None,
        ranges: Mapping[str, tuple[float | None, float | None]] | None = None,
        failure: Literal["fail", "infeasible"] = "fail",
        error: Error | ArrayLike | Literal["estimate"] | None = None,
        forwards: Forwards = "value",
        cost: float = 1.0,
        reachable: Reachable = "run",
        portions: float = 1,
        norm_bounds: Mapping[str, Array] | None = None,
    ) -> None:
        def fail(text: str) -> ArgumentError:
            return ArgumentError(f"stage {name!r}: {text}")

        if not isinstance(name, str) or not name.strip() or "." in name:
            raise ArgumentError(f"a stage's name must be a word without a dot; got {name!r}.")
        if not isinstance(controls or {}, Mapping):
            raise fail(f"controls must be a dict such as {{'x': Real(0, 1)}}; got {controls!r}.")
        for control, range_ in (controls or {}).items():
            if not isinstance(range_, Real | Integer | Choice):
                raise fail(
                    f"control {control!r} must be Real(low, high), Integer(low, high) or Choice([...]); got {range_!r}."
                )
        names = (name,) if outputs is None else (outputs,) if isinstance(outputs, str) else tuple(outputs)
        if not names or any(not isinstance(o, str) or not o.strip() or "." in o for o in names):
            raise fail(f"outputs must be one or more names without a dot; got {outputs!r}.")
        if len(set(names)) != len(names):
            raise fail(f"output names must differ; got {', '.join(names)}.")
        passes = (passes,) if isinstance(passes, str) else tuple(passes)
        strange = [p for p in passes if p not in names]
        if strange:
            raise fail(f"passes must name outputs of the stage; got {', '.join(map(repr, strange))}.")
        if len(set(passes)) != len(passes):
            raise fail(f"passes must name every output once; got {', '.join(passes)}.")
        named = [p for p in passes if isinstance((controls or {}).get(p), Choice)]
        if named:
            raise fail(
                f"passes: {named[0]!r} is a choice, whose values are names, and outputs are numbers; leave it out."
            )
        alike = [name for name, one in (controls or {}).items() if isinstance(one, Choice) and one.alike is not None]
        if alike and isinstance(kernel, OperatorKernel):
            raise fail(
                f"alike= of control {alike[0]!r} is not supported with the joint norm of the kernel {kernel!r}; leave "
                f"alike= out, or use a kernel with one norm per output."
            )
        given_parents = () if parents is None else (parents,) if isinstance(parents, str | Stage) else tuple(parents)
        if not all(isinstance(parent, str) for parent in given_parents):
            raise fail(f"parents must be names, 'stage' or 'stage.output'; got {parents!r}.")
        modelled = 0 if known else len(names) - len(tuple(passes))

        def constants(values: ArrayLike | None, what: str) -> Array | None:
            if values is None:
                return None
            size = len(names) if known else modelled
            joint = isinstance(kernel, OperatorKernel)
            try:
                array = np.asarray(values, dtype=np.float64)
            except (TypeError, ValueError):
                raise fail(f"{what} must be a number; got {values!r}.") from None
            if not np.all(np.isfinite(array)) or not np.all(array > 0):
                raise fail(f"{what} must be finite and above 0; got {values!r}.")
            if joint and array.ndim:
                raise fail(f"{what} is one number for a kernel with a joint norm; got {values!r}.")
            if array.ndim > 1 or (array.ndim == 1 and array.shape != (size,)):
                raise fail(f"{what} must be one number or one per modelled output ({size}); got {values!r}.")
            return array if joint else np.array(np.broadcast_to(array, (size,)))

        def check(values: ArrayLike, what: str, *limits: float) -> None:
            try:
                check_scale(values, what, *limits)
            except ArgumentError as error:
                raise fail(str(error)) from None

        if known:
            if kernel is not None or norm_bound is not None:
                raise fail("a known stage is never modelled: give it no kernel and no norm_bound.")
        elif interval is not None:
            raise fail("interval= is for known stages; set known=True.")
        for what, called in (("function", function), ("interval", interval)):
            if called is not None and not callable(called):
                raise fail(f"{what} must be a function that is called with the inputs by name; got {called!r:.100}.")
        if kernel is not None and not isinstance(kernel, Stationary | OperatorKernel):
            raise fail(f"kernel must be a kernel such as Matern(2.5); got {kernel!r}.")
        if modelled and kernel is None and norm_bound is not None:
            raise fail("norm_bound bounds the norm under a kernel: give kernel= as well, or neither to estimate both.")
        if modelled and isinstance(kernel, Separable):
            kernel.matrix_for(modelled)
        offsets = np.asarray(offset, dtype=np.float64)
        if offsets.ndim > 1 or (offsets.ndim == 1 and offsets.shape != (modelled,)) or not np.all(np.isfinite(offsets)):
            raise fail(f"offset must be one finite number or one per modelled output ({modelled}); got {offset!r}.")
        if timeout is not None and (not _number(timeout) or not 0 < timeout < np.inf):
            raise fail(f"timeout must be a number of seconds above 0, or None; got {timeout!r}.")
        if not _number(retries) or not isinstance(retries, int) or retries < 0:
            raise fail(f"retries must be a whole number, 0 or more; got {retries!r}.")
        if failure not in ("fail", "infeasible"):
            raise fail(f"failure must be 'fail' or 'infeasible'; got {failure!r:.100}.")
        try:
            wanted, possible = as_intervals(limits, "limits", names), as_intervals(ranges, "ranges", names)
        except ArgumentError as mistake:
            raise fail(str(mistake)) from None
        check_intervals(fail, wanted, possible, passes)
        if forwards not in ("value", "reading"):
            raise fail(f"forwards must be 'value' or 'reading'; got {forwards!r}.")
        try:
            errors, noisy = as_error(error, modelled), is_estimate(error)
        except ArgumentError as found:
            raise fail(str(found)) from None
        if errors is not None and isinstance(kernel, OperatorKernel) and not isinstance(kernel, Separable):
            raise fail(
                f"error= is not supported with the kernel {kernel!r}; use Separable(...) or a kernel with one norm per "
                f"output, or leave error= out."
            )
        if sub_gaussian_part(errors) is not None and isinstance(kernel, OperatorKernel):
            raise fail(
                f"error=SubGaussian(...) is not supported with the joint norm of the kernel {kernel!r}; use a kernel "
                f"with one norm per output, or error=Bounded(...)."
            )
        if noisy:
            given = {"kernel": kernel, "norm_bound": norm_bound, "lipschitz": lipschitz}
            check_noise(fail, modelled, [word for word, value in given.items() if value is not None])
        price, where, feeds = check_stock(fail, bool(known), cost, reachable, portions)
        norm_bound, by_value = norm_bound_or_by_value(fail, norm_bound, norm_bounds), None
        if isinstance(norm_bound, Mapping):
            bounds_by_value = norm_bounds_by_value(fail, controls or {}, norm_bound)
            by_value = BoundsByValue(
                {value: given_constants(constants(b, f"norm_bound of {value!r}")) for value, b in bounds_by_value}
            )
        single = cast("ArrayLike | None", norm_bound if by_value is None else by_value.largest)
        bounds, slopes = constants(single, "norm_bound"), constants(lipschitz, "lipschitz")
        check(np.abs(offsets).max(initial=SMALLEST_SCALE), "offset", 0.0, LARGEST_SCALE)
        if slopes is not None:
            check(slopes, "lipschitz", 1e-200, 1e200)
        if bounds is not None and kernel is not None:
            for some in (bounds, *(by_value or {}).values()):
                check(some, "norm_bound")
            ratios = np.abs(offsets).max(initial=0.0) / prior_sds(kernel)
            check(ratios, "offset, in prior sds of the kernel,", 0.0, MOST_SDS)
            check(bounds * prior_sds(kernel), "norm_bound times the prior sd of the kernel")
        values = {
            "name": name,
            "controls": dict(controls or {}),
            "outputs": names,
            "parents": None if parents is None else given_parents,
            "kernel": kernel,
            "norm_bound": bounds,
            "norm_bounds": by_value,
            "lipschitz": slopes,
            "offset": np.array(np.broadcast_to(offsets, (modelled,))),
            "passes": tuple(passes),
            "known": bool(known),
            "function": function,
            "interval": interval,
            "timeout": None if timeout is None else float(timeout),
            "retries": retries,
            "limits": wanted,
            "ranges": possible,
            "failure": failure,
            "error": ESTIMATE if noisy else errors,
            "forwards": forwards,
            "cost": price,
            "reachable": where,
            "portions": feeds,
        }
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)

    def assuming(
        self, norm_bound: Array | None, lipschitz: Array | None, norm_bounds: Mapping[str, Array] | None = None
    ) -> "Stage":
        """The same stage with other bounds of its norm and slope; `norm_bounds` by value of a choice."""
        stage, by_value = copy(self), None if norm_bounds is None else BoundsByValue(norm_bounds)
        object.__setattr__(stage, "norm_bound", norm_bound if by_value is None else by_value.largest)
        object.__setattr__(stage, "norm_bounds", by_value)
        object.__setattr__(stage, "lipschitz", lipschitz)
        return stage

    def part(self, output: str) -> "Stage":
        """The same stage with this output only."""
        stage, j = copy(self), self.modelled.index(output) if output in self.modelled else None
        values = {
            "name": self.name if len(self.outputs) == 1 else f"{self.name}.{output}",
            "outputs": (output,),
            "passes": tuple(o for o in self.passes if o == output),
            "offset": self.offset[:0] if j is None else self.offset[j : j + 1],
            "norm_bound": None if j is None or self.norm_bound is None else self.norm_bound[j : j + 1],
            "norm_bounds": None
            if j is None or self.norm_bounds is None
            else BoundsByValue({value: bound[j : j + 1] for value, bound in self.norm_bounds.items()}),
            "lipschitz": None if j is None or self.lipschitz is None else self.lipschitz[j : j + 1],
            "limits": {o: interval for o, interval in self.limits.items() if o == output},
            "ranges": {o: interval for o, interval in self.ranges.items() if o == output},
            "error": None if j is None else ESTIMATE if isinstance(self.error, str) else error_of_output(self.error, j),
        }
        for attribute, value in values.items():
            object.__setattr__(stage, attribute, value)
        return stage

    def fitted(self, kernel: Stationary, offset: ArrayLike) -> "Stage":
        """The same stage with another kernel and constant means, one for each modelled output."""
        stage = copy(self)
        object.__setattr__(stage, "kernel", kernel)
        object.__setattr__(stage, "offset", np.atleast_1d(np.asarray(offset, dtype=np.float64)))
        return stage

    def with_noise(self) -> "Stage":
        """The same stage with noise that is estimated."""
        stage = copy(self)
        object.__setattr__(stage, "error", ESTIMATE)
        return stage

    @property
    def estimated(self) -> bool:
        """Whether its kernel or its norm bound has to be estimated from data."""
        return bool(self.modelled) and (self.kernel is None or self.norm_bound is None)

    @property
    def unbounded(self) -> bool:
        """Whether it is a formula of which nothing bounds the values."""
        return self.known and self.lipschitz is None and self.interval is None

    @property
    def noisy(self) -> bool:
        """Whether the noise of its readings has to be estimated from data."""
        return self.error == ESTIMATE

    @property
    def read_with_errors(self) -> bool:
        """Whether its readings may differ from its values by given errors, bounded or sub-Gaussian."""
        return self.error is not None and not self.noisy

    @property
    def bounded_error(self) -> Bounded | None:
        """The bound of the errors of its readings; None if there is none: exact readings, or only scatter."""
        return bounded_part(self.error)

    @property
    def sub_gaussian(self) -> SubGaussian | None:
        """The scatter of its readings; None if there is none."""
        return sub_gaussian_part(self.error)

    @property
    def error_bound(self) -> Array:
        """How far a reading without its scatter may be from the value, for every modelled output, (p,)."""
        modelled, error = len(self.modelled), self.bounded_error
        return np.zeros(modelled) if error is None else np.array(error.per_output(modelled))

    def error_of(self, output: str) -> float:
        """How far a reading of this output may be from the value; 0 if it is exact, copied or computed.

        It is infinite for scatter.
        """
        if output not in self.modelled:
            return 0.0
        position = self.modelled.index(output)
        return np.inf if self.error_scale[position] > 0 else float(self.error_bound[position])

    @property
    def error_scale(self) -> Array:
        """R: the scale of the scatter of every modelled output, (p,); 0 if there is none."""
        modelled, error = len(self.modelled), self.sub_gaussian
        return np.zeros(modelled) if error is None else np.array(error.per_output(modelled))

    @property
    def modelled(self) -> tuple[str, ...]:
        """The outputs that have a posterior: neither known nor passed on."""
        return () if self.known else tuple(o for o in self.outputs if o not in self.passes)

    @property
    def modelled_positions(self) -> list[int]:
        """The positions of the modelled outputs among all outputs."""
        return [self.outputs.index(output) for output in self.modelled]

    @property
    def joint(self) -> bool:
        """Whether the outputs share one norm."""
        return isinstance(self.kernel, OperatorKernel)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
