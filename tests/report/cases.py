"""Studies for tests of figures and pages: several structures, with and without norms, refuted, empty, odd names."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from cascada.kernels import Matern, Separable, SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Integer, Real
from cascada.study import Study

SE = SquaredExponential(1.0)
ODD = "<script>alert(1)</script>"


def proven() -> Network:
    return chain(
        Stage("mix", {"dose": Real(-2, 2)}, kernel=SE, norm_bound=2.0, function=_mix),
        Stage("cure", {"heat": Real(0.1, 9, log=True)}, kernel=SE, norm_bound=2.0, function=_cure),
    )


def estimated() -> Network:
    return chain(
        Stage("mix", {"dose": Real(-2, 2), "n": Integer(1, 4)}, outputs=["u", "v"], function=_two),
        Stage("cure", {"heat": Real(-1, 1)}, function=lambda u, v, heat: u - v * heat),
    )


def joint() -> Network:
    return chain(
        Stage("mix", {"dose": Real(-2, 2)}, ["u", "v"], kernel=Separable(Matern(2.5)), norm_bound=3.0, function=_pair),
        Stage("cure", kernel=Matern(2.5), norm_bound=2.0, function=lambda u, v: u * v),
        Stage("price", known=True, lipschitz=2.0, function=lambda cure: 2 * cure),
    ).mirrored()


def limited(low: float | None = None, high: float | None = 0.6) -> Network:
    """A chain whose first output has a limit, and a range that cuts its bounds."""
    mix, cure = proven().stages
    limits, ranges = {"mix": (low, high)}, {"mix": (0.0, 1.6)}
    first = Stage("mix", mix.controls, kernel=SE, norm_bound=2.0, function=_mix, limits=limits, ranges=ranges)
    return chain(first, cure)


def infeasible() -> Network:
    """The same with a limit that no setting satisfies; a few runs prove it."""
    return limited(1.55, None)


def odd() -> Network:
    kernel: Any = {"kernel": SE, "norm_bound": 2.0}
    return chain(
        Stage(ODD, {f"{ODD}x": Real(-2, 2)}, **kernel, function=_wave),
        Stage("b&b", outputs=['"'], **kernel, function=_wave),
    )


def ran(network: Network, runs: int = 9, **options: Any) -> Study:
    """Return a study with this many runs."""
    study = Study(network, algorithm="random_search" if not network.estimated else "auto", **options)
    if runs:
        study.optimise(budget=runs, progress=False)
    return study


@cache
def finished(network: Callable[[], Network], runs: int = 9) -> Study:
    """Return a study with this many runs, shared by all tests that do not change it."""
    return ran(network(), runs)


@cache
def recommending() -> Study:
    """Return a study whose certificate recommends a setting that was not run; shared, so it must not be changed."""
    study = Study(limited())
    while study.certificate().recommended is None:
        study.optimise(budget=len(study.trials) + 1, progress=False)
        assert len(study.trials) < 15, "some setting near the best run is better by a proof"
    return study


@cache
def unsatisfied() -> Study:
    """Return a study in which no run satisfies the limits, and it is not known whether a setting does."""
    study = Study(limited(None, 0.1))
    study.add_trial({"dose": 0.0, "heat": 1.0}, {"mix": _mix(0.0), "cure": _cure(_mix(0.0), 1.0)})
    return study


@cache
def impossible() -> Study:
    """Return a study in which it is proven that no setting satisfies the limits."""
    study = Study(infeasible())
    study.optimise(budget=9, progress=False)
    assert study.certificate().answer == "infeasible"
    return study


def refuted() -> Study:
    study = ran(proven(), 3)
    study.tell(study.begin_trial({"dose": 0.0, "heat": 1.0}), {"mix": 50.0, "cure": 1.0})
    return study


def _mix(dose: float) -> float:
    return 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2)


def _cure(mix: float, heat: float) -> float:
    return 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (math.log(heat) + 0.3) ** 2))


def _wave(**inputs: float) -> float:
    return 0.5 * math.sin(next(iter(inputs.values())))


def _two(dose: float, n: int) -> tuple[float, float]:
    return math.sin(dose) + 0.1 * n, math.cos(dose * n / 4)


def _pair(dose: float) -> tuple[float, float]:
    return math.sin(dose), 0.5 * math.cos(dose)
