"""The built-in problems and their names."""

from collections.abc import Callable, Mapping
from functools import partial

from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean
from cascada.problems.beamline import beamline
from cascada.problems.cascades import matyas_cascade, rosenbrock_cascade, sphere_cascade
from cascada.problems.certified_problem import STRUCTURES, certified
from cascada.problems.co2_compression import co2_compression
from cascada.problems.combustor import combustor
from cascada.problems.deceptive import half_rough, narrow_peak
from cascada.problems.epidemic import epidemic
from cascada.problems.fast_charge import fast_charge
from cascada.problems.function_networks import ackley, alpine2, drop_wave, rosenbrock
from cascada.problems.hard import hard_problem, hard_problems
from cascada.problems.imported import imported_problem
from cascada.problems.mixed import fermenter, func2c, func3c, paint_line
from cascada.problems.priced_networks import ackmat, manufacturing, tablet
from cascada.problems.problem import Optimum, Problem
from cascada.problems.sample_paths import sample_path_cascade
from cascada.problems.sampled_chain import PAPER_GRID, sampled_chain
from cascada.problems.solar_plant import pv_plant
from cascada.problems.supply_chain import supply_chain
from cascada.problems.two_step_ageing import ageing

#: Processes with unknown kernels and norms: `kernel` and `norm_bound` are None unless given.
PRACTICE: Mapping[str, Callable[..., Problem]] = {
    "drop-wave": drop_wave,
    "ackley": ackley,
    "rosenbrock-3": partial(rosenbrock, 3),
    "rosenbrock-5": partial(rosenbrock, 5),
    "alpine2": alpine2,
    "rosenbrock-cascade-3": partial(rosenbrock_cascade, 3),
    "rosenbrock-cascade-5": partial(rosenbrock_cascade, 5),
    "sphere-cascade-3": sphere_cascade,
    "matyas-cascade-3": matyas_cascade,
    "sample-path-cascade-3": partial(sample_path_cascade, 3),
    "sample-path-cascade-5": partial(sample_path_cascade, 5),
    "ackmat": ackmat,
    "ackmat-1-49": partial(ackmat, (1.0, 49.0)),
    "tablet": tablet,
    "manufacturing": manufacturing,
    "epidemic": epidemic,
    "narrow-peak": narrow_peak,
    "half-rough": half_rough,
    "ageing": ageing,
    "pv-plant": pv_plant,
}

#: Processes with choices, with unknown kernels and norms.
MIXED: Mapping[str, Callable[..., Problem]] = {
    "func2c": func2c,
    "func3c": func3c,
    "paint-line": paint_line,
    "fermenter": fermenter,
}

#: Processes computed by simulators of others, which are installed with the extras `simulators` and `simulators-torch`.
SIMULATORS: Mapping[str, Callable[..., Problem]] = {
    "combustor": combustor,
    "supply-chain": supply_chain,
    "beamline": beamline,
    "fast-charge": fast_charge,
    "co2-compression": co2_compression,
}

PROBLEMS: Mapping[str, Callable[[], Problem]] = {
    **{f"certified-{name}": partial(certified, name) for name in STRUCTURES},
    "sampled-chain": sampled_chain,
    **PRACTICE,
    **MIXED,
    **SIMULATORS,
}


def by_name(name: str) -> Problem:
    """Return a built-in problem, or that of a user, "module:object"; raise `ArgumentError` if there is none."""
    if ":" in name:
        return imported_problem(name)
    if name not in PROBLEMS:
        raise ArgumentError(
            f"there is no problem {name!r}{did_you_mean(name, PROBLEMS)}; the built-in ones are {', '.join(PROBLEMS)}."
        )
    return PROBLEMS[name]()


__all__ = [
    "MIXED",
    "PAPER_GRID",
    "PRACTICE",
    "PROBLEMS",
    "SIMULATORS",
    "STRUCTURES",
    "Optimum",
    "Problem",
    "ackley",
    "ackmat",
    "ageing",
    "alpine2",
    "beamline",
    "by_name",
    "certified",
    "co2_compression",
    "combustor",
    "drop_wave",
    "epidemic",
    "fast_charge",
    "fermenter",
    "func2c",
    "func3c",
    "half_rough",
    "hard_problem",
    "hard_problems",
    "manufacturing",
    "matyas_cascade",
    "narrow_peak",
    "paint_line",
    "pv_plant",
    "rosenbrock",
    "rosenbrock_cascade",
    "sample_path_cascade",
    "sampled_chain",
    "sphere_cascade",
    "supply_chain",
    "tablet",
]
