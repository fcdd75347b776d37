"""Named lists of problems for `cascada bench --suite`."""

from collections.abc import Mapping
from importlib.util import find_spec

from cascada.errors import ArgumentError

#: Processes that others published or simulate; see docs/suite.md.
SUITES: Mapping[str, tuple[str, ...]] = {
    "real": (
        "combustor",
        "supply-chain",
        "beamline",
        "fast-charge",
        "co2-compression",
        "pv-plant",
        "ageing",
        "tablet",
        "manufacturing",
        "ackmat",
        "epidemic",
    ),
}

# The module that a problem needs, and the extra that installs it.
_NEEDS = {
    "combustor": ("cantera", "simulators"),
    "supply-chain": ("stockpyl", "simulators"),
    "beamline": ("cheetah", "simulators-torch"),
    "fast-charge": ("pybamm", "simulators"),
    "co2-compression": ("tespy", "simulators"),
    "pv-plant": ("pvlib", "problems"),
}


def suite(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The problems of a suite that can be run here, and why each of the others is skipped."""
    if name not in SUITES:
        raise ArgumentError(f"there is no suite {name!r}; the suites are {', '.join(SUITES)}.")
    runnable, skipped = [], []
    for problem in SUITES[name]:
        module, extra = _NEEDS.get(problem, ("cascada", ""))
        if find_spec(module) is None:
            skipped.append(f"{problem} is skipped: {module} is not installed (pip install 'cascada[{extra}]').")
        else:
            runnable.append(problem)
    return tuple(runnable), tuple(skipped)
