"""Processes with choices whose kernels and norms are not known, all to be maximised.

`func2c` and `func3c` are test functions of mixed-variable optimisation from Ru, Alvi, Nguyen, Osborne and Roberts,
"Bayesian optimisation over multiple continuous and categorical inputs" (ICML 2020): one stage each. `paint_line` and
`fermenter` are networks of several stages with choices; they are our own, and illustrative.

`kernel` and `norm_bound` apply to every stage; with None they are estimated from data.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cascada.network import Network, Stage
from cascada.problems.function_networks import Kernel
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Choice, Real

# Found by local searches in every combination of values.
PAINT_LINE = Optimum(
    np.array([[1.0, 1.0, 0.4565923667682795, 2.0, 1.5178851818904624, 173.4162800743609]]),
    66.42557075109083,
    "numerical",
)
FERMENTER = Optimum(
    np.array([[4.0, 1.0, 33.009315991035336, 0.6800971165259674, 3.0, 7.0]]), 176.43425315697954, "numerical"
)
# The minimum −1.0316… of the six-hump camel function and one of its two minimisers; the other one is its negative.
CAMEL, CAMEL_POINT = -1.0316284534898774, (0.0898420136830133, -0.7126564032704135)


def func2c(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """−(f_h1(2x) + f_h2(2x)) on [−1, 1]², where h1 and h2 choose Rosenbrock's, the camel or Beale's function.

    Three of the five values of h2 mean the same. The best value is 2·0.10316…, where both are the camel function.
    """
    stage = Stage(
        "y",
        {"h1": Choice(["rosenbrock", "camel", "beale"]), "h2": Choice(_FIVE), "x1": _UNIT, "x2": _UNIT},
        kernel=kernel,
        norm_bound=norm_bound,
        function=_func2c,
    )
    network = Network([stage])
    return Problem("func2c", "h1, h2, x1, x2 → y", network, ValueTable(network), _camels(2, (1, 1)))


def func3c(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """`func2c` minus a third term: 5 camel, 2 Rosenbrock, 2 Beale or 3 Beale. The best value is 7·0.10316…."""
    stage = Stage(
        "y",
        {
            "h1": Choice(["rosenbrock", "camel", "beale"]),
            "h2": Choice(_FIVE),
            "h3": Choice(list(_THIRD)),
            "x1": _UNIT,
            "x2": _UNIT,
        },
        kernel=kernel,
        norm_bound=norm_bound,
        function=_func3c,
    )
    network = Network([stage])
    return Problem("func3c", "h1, h2, h3, x1, x2 → y", network, ValueTable(network), _camels(7, (1, 1, 0)))


_UNIT = Real(-1.0, 1.0)
_FIVE = ["rosenbrock", "camel", "beale", "beale 2", "beale 3"]
_THIRD = {
    "5 camel": ("camel", 5.0),
    "2 rosenbrock": ("rosenbrock", 2.0),
    "2 beale": ("beale", 2.0),
    "3 beale": ("beale", 3.0),
}


def _camels(count: int, codes: tuple[int, ...]) -> Optimum:
    point = np.array(CAMEL_POINT) / 2
    points = np.array([[*codes, *point], [*codes, *-point]])
    return Optimum(points, -count * CAMEL / 10, "analytic")


def _func2c(h1: Column, h2: Column, x1: Column, x2: Column) -> Column:
    parts = _parts(2 * x1, 2 * x2)
    return -(by_value(h1, parts) + by_value(h2, parts))


def _func3c(h1: Column, h2: Column, h3: Column, x1: Column, x2: Column) -> Column:
    parts = _parts(2 * x1, 2 * x2)
    third = {value: times * parts[name] for value, (name, times) in _THIRD.items()}
    return -(by_value(h1, parts) + by_value(h2, parts) + by_value(h3, third))


def _parts(a: Column, b: Column) -> dict[str, Column]:
    """The three functions, scaled as published, by the values of a choice."""
    beale = ((1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2) / 50
    return {
        "rosenbrock": (100 * (b - a**2) ** 2 + (a - 1) ** 2) / 300,
        "camel": ((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (-4 + 4 * b**2) * b**2) / 10,
        **dict.fromkeys(["beale", "beale 2", "beale 3"], beale),
    }


def by_value(value: Column, table: Mapping[str, Any]) -> Column:
    """The entry of a table for a value of a choice, or for a column (n,) of values, each in its row."""
    if isinstance(value, str):
        return table[value]
    found = np.empty(len(value))
    for name in np.unique(value):
        rows = value == name
        entry = np.broadcast_to(table[name], len(value))
        found[rows] = entry[rows]
    return found


def paint_line(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Mixing (resin, solvent, solids) → viscosity, drying → spraying (nozzle, pressure) → thickness, roughness → curing
    (resin, heat) → quality. The resin matters in the first and in the last stage; 36 combinations.
    """
    network = Network(
        [
            Stage(
                "mix",
                {"resin": Choice(list(_RESINS)), "solvent": Choice(list(_SOLVENTS)), "solids": Real(0.2, 0.6)},
                outputs=["viscosity", "drying"],
                kernel=kernel,
                norm_bound=norm_bound,
                function=_mix,
            ),
            Stage(
                "spray",
                {"nozzle": Choice(list(_NOZZLES)), "pressure": Real(1.0, 5.0)},
                outputs=["thickness", "roughness"],
                parents=["mix"],
                kernel=kernel,
                norm_bound=norm_bound,
                function=_spray,
            ),
            Stage(
                "cure",
                {"resin": Choice(list(_RESINS)), "heat": Real(100.0, 200.0)},
                outputs=["quality"],
                parents=["spray"],
                kernel=kernel,
                norm_bound=norm_bound,
                function=_cure,
            ),
        ]
    )
    summary = "resin, solvent, solids → mix → nozzle, pressure → spray → resin, heat → cure"
    return Problem("paint-line", summary, network, ValueTable(network), PAINT_LINE)


# Of every resin: its thickening, its best heat, how narrow that is, and its gloss.
_RESINS = {
    "acrylic": (0.0, 135.0, 22.0, 0.86),
    "epoxy": (0.9, 172.0, 15.0, 1.0),
    "polyester": (0.5, 158.0, 30.0, 0.9),
    "urethane": (0.3, 120.0, 14.0, 0.97),
}
# Of every solvent: its thinning, its drying, and how much the latter depends on the solids.
_SOLVENTS = {"ketone": (1.1, 1.5, 1.0), "ester": (0.7, 0.9, 0.5), "water": (0.2, 0.3, 1.6)}
# Of every nozzle: its flow, the viscosity that suits it, and its roughness.
_NOZZLES = {"flat": (0.55, 0.8, 0.06), "cone": (0.85, 1.6, 0.16), "twin": (1.1, 2.6, 0.1)}


def _column(value: Column, table: Mapping[str, tuple[float, ...]], entry: int) -> Column:
    return by_value(value, {name: row[entry] for name, row in table.items()})


def _mix(resin: Column, solvent: Column, solids: Column) -> tuple[Column, Column]:
    thick, thin = _column(resin, _RESINS, 0), _column(solvent, _SOLVENTS, 0)
    drying = _column(solvent, _SOLVENTS, 1) - _column(solvent, _SOLVENTS, 2) * (solids - 0.35)
    return np.exp(thick - thin + 5.0 * (solids - 0.3)), drying


def _spray(viscosity: Column, drying: Column, nozzle: Column, pressure: Column) -> tuple[Column, Column]:
    flow, suits = _column(nozzle, _NOZZLES, 0), _column(nozzle, _NOZZLES, 1)
    thickness = flow * np.sqrt(pressure) * viscosity / (viscosity + 0.5)
    away = np.log(viscosity / suits)
    runs = 0.1 * (drying * np.sqrt(pressure) - 0.9) ** 2  # too wet it runs, too dry it arrives as dust
    return thickness, _column(nozzle, _NOZZLES, 2) + 0.15 * away**2 + runs


def _cure(thickness: Column, roughness: Column, resin: Column, heat: Column) -> Column:
    best, narrow, gloss = (_column(resin, _RESINS, entry) for entry in (1, 2, 3))
    cured = np.exp(-(((heat - best - 10.0 * (thickness - 1.0)) / narrow) ** 2))
    cover = np.exp(-(((thickness - 1.15) / 0.4) ** 2))
    return 100.0 * gloss * cured * cover * np.exp(-4.0 * roughness)


def fermenter(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Fermentation (strain, medium, temperature, feed) → cells, product → purification (column, acidity) → yield,
    purity → a known value. 60 combinations.
    """
    network = Network(
        [
            Stage(
                "ferment",
                {
                    "strain": Choice(list(_STRAINS)),
                    "medium": Choice(list(_MEDIA)),
                    "temperature": Real(24.0, 40.0),
                    "feed": Real(0.1, 2.0),
                },
                outputs=["cells", "product"],
                kernel=kernel,
                norm_bound=norm_bound,
                function=_ferment,
            ),
            Stage(
                "purify",
                {"column": Choice(list(_COLUMNS)), "acidity": Real(4.0, 9.0)},
                outputs=["yield", "purity"],
                parents=["ferment"],
                kernel=kernel,
                norm_bound=norm_bound,
                function=_purify,
            ),
            Stage("value", parents=["purify"], known=True, function=_value, interval=_value_between),
        ]
    )
    summary = "strain, medium, temperature, feed → ferment → column, acidity → purify → value"
    return Problem("fermenter", summary, network, ValueTable(network), FERMENTER)


# Of every strain: growth, best temperature, its product for each cell, and how much feed it takes.
_STRAINS = {
    "A": (1.0, 30.0, 1.0, 1.0),
    "B": (1.5, 37.0, 0.55, 1.6),
    "C": (0.7, 27.0, 1.5, 0.6),
    "D": (1.15, 33.0, 0.95, 1.2),
    "E": (0.9, 35.0, 1.2, 0.9),
}
# Of every medium: how rich it is, and what it adds to the feed.
_MEDIA = {"minimal": (0.8, 0.0), "complex": (1.15, 0.3), "defined": (1.0, 0.1)}
# Of every column: its capacity, its best acidity, how narrow that is, and its selectivity.
_COLUMNS = {
    "ion": (2.2, 7.4, 0.7, 3.0),
    "affinity": (1.1, 6.6, 0.9, 8.0),
    "phase": (1.7, 5.2, 1.3, 2.2),
    "size": (3.0, 7.0, 3.0, 0.9),
}


def _ferment(strain: Column, medium: Column, temperature: Column, feed: Column) -> tuple[Column, Column]:
    growth, best, makes, takes = (_column(strain, _STRAINS, entry) for entry in range(4))
    rich, extra = _column(medium, _MEDIA, 0), _column(medium, _MEDIA, 1)
    cells = 4.0 * growth * rich * np.exp(-(((temperature - best) / 6.0) ** 2)) * (1.0 - np.exp(-1.5 * (feed + extra)))
    stress = np.exp(-(((feed + extra - takes) / 0.7) ** 2) - ((temperature - best + 3.0) / 5.0) ** 2)
    return cells, cells * makes * (0.2 + 0.8 * stress)


def _purify(cells: Column, product: Column, column: Column, acidity: Column) -> tuple[Column, Column]:
    capacity, best, narrow, selective = (_column(column, _COLUMNS, entry) for entry in range(4))
    binds = np.exp(-(((acidity - best) / narrow) ** 2))
    kept = capacity * binds * np.tanh(product / np.maximum(capacity, 1e-9))
    dirt = 0.25 * cells / (1.0 + selective * binds)
    return kept, kept / (kept + dirt + 0.02)


def _value(purity: Column, **other: Column) -> Column:
    return 100.0 * other["yield"] * purity**2


def _value_between(purity: tuple[float, float], **other: tuple[float, float]) -> tuple[float, float]:
    squares = [end**2 for end in purity]
    low = 0.0 if purity[0] <= 0.0 <= purity[1] else min(squares)
    products = [100.0 * end * square for end in other["yield"] for square in (low, max(squares))]
    return min(products), max(products)
