"""A supply chain of three echelons, simulated with stockpyl (the extra `simulators`).

Customers buy at a shop, which is supplied by a warehouse, which is supplied by a plant. Each keeps a stock and orders
what was taken out. The controls are the three base-stock levels. Stocks cost money, most of all in the shop, and so do
customers who wait. Costs, delays and demand are those of example 6.1 of L. Snyder and Z.-J. Shen, *Fundamentals of
supply chain theory*. All runs see the same sample of demand of 200 days (common random numbers), so they are exact:

    level of the plant → stock, parts owed → level of the warehouse → the same → level of the shop → the same → −cost

The parts that an echelon owes on average fall strictly with its level. So they tell the level and, with it, every day
of the deliveries to the next echelon: each stage is a function of its inputs, and simulates the chain down to itself.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.network import Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import ValueTable
from cascada.space import Real

DAYS = 200
MEAN, DEVIATION = 5.0, 1.0  # parts a day, a normal distribution
# Of the plant, the warehouse and the shop:
DELAYS = (2, 1, 1)  # days
HOLDING = (2.0, 4.0, 7.0)  # for a part and a day; parts under way cost the same at all levels and are left out
WAITING = 37.12  # for a customer and a day
PLENTY = 1000.0  # parts: a stock that never runs out

# Differential evolution with five seeds on a recursion that equals the simulation (tests/problems/echelons.py).
BEST_KNOWN = Optimum(
    np.array([[10.984104601939475, 5.13701423865723, 6.629660733162867]]), -17.361408437305, "numerical"
)


def supply_chain(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Base-stock levels of plant, warehouse and shop, in parts → stocks and parts owed → cost a day, negated.

    The problem can be built and listed without stockpyl; evaluating it needs stockpyl.
    """
    network = chain(
        Stage(
            "plant",
            {"level1": Real(6.0, 16.0)},
            outputs=["held1", "owed1"],
            function=plant,
            kernel=kernel,
            norm_bound=norm_bound,
        ),
        Stage(
            "warehouse",
            {"level2": Real(2.0, 10.0)},
            outputs=["held1", "owed1", "held2", "owed2"],
            passes=["held1", "owed1"],
            function=warehouse,
            kernel=kernel,
            norm_bound=norm_bound,
        ),
        Stage(
            "shop",
            {"level3": Real(3.0, 11.0)},
            outputs=["held1", "held2", "held3", "waiting"],
            passes=["held1", "held2"],
            function=shop,
            kernel=kernel,
            norm_bound=norm_bound,
        ),
        Stage("value", known=True, function=value, interval=value_between),
    )
    summary = "levels of plant, warehouse and shop → stocks and parts owed → −cost"
    summary += unless_installed("stockpyl", "simulators")
    return Problem("supply-chain", summary, network, ValueTable(network, one_by_one=True), BEST_KNOWN)


def plant(level1: float) -> tuple[float, float]:
    """The stock of the plant and the parts it owes the warehouse, mean over all days."""
    return _means(_inventory((level1,)))


def warehouse(held1: float, owed1: float, level2: float) -> tuple[float, float, float, float]:
    """What the plant gave, and the stock of the warehouse and the parts it owes the shop."""
    return held1, owed1, *_means(_inventory((_level((), owed1), level2)))


def shop(held1: float, owed1: float, held2: float, owed2: float, level3: float) -> tuple[float, float, float, float]:
    """The stocks of plant and warehouse, that of the shop, and the customers who wait."""
    level1 = _level((), owed1)
    return held1, held2, *_means(_inventory((level1, _level((level1,), owed2), level3)))


def value(held1: Any, held2: Any, held3: Any, waiting: Any) -> Any:
    """The cost of a day, negated, a known formula."""
    return -(HOLDING[0] * held1 + HOLDING[1] * held2 + HOLDING[2] * held3 + WAITING * waiting)


def value_between(
    held1: tuple[float, float], held2: tuple[float, float], held3: tuple[float, float], waiting: tuple[float, float]
) -> tuple[float, float]:
    """The interval of values for intervals of stocks and waiting customers, rounded outwards."""
    pairs = (held1, held2, held3, waiting)
    slack = -1e-14 * value(*(max(map(abs, pair)) for pair in pairs))
    return value(*(high for _, high in pairs)) - slack, value(*(low for low, _ in pairs)) + slack


def _means(inventory: Array) -> tuple[float, float]:
    """The mean stock and the mean of the parts owed; owed parts are a stock below 0."""
    return float(np.maximum(inventory, 0.0).mean()), float(np.maximum(-inventory, 0.0).mean())


def _level(upstream: tuple[float, ...], owed: float) -> float:
    """The level at which the echelon below `upstream` owes so many parts: (missing − level)₊ is `owed` on average.

    `missing`, what the stock is below its level on each day, does not depend on the level.
    """
    missing = np.sort(PLENTY - _inventory((*upstream, PLENTY)))[::-1]
    if owed <= 0.0:
        return float(missing[0])  # any higher level has the same deliveries
    # With the k largest above the level, their sum − k·level = DAYS·owed: a piecewise linear, decreasing function.
    sums, counts = np.cumsum(missing), np.arange(1, len(missing) + 1)
    levels = (sums - DAYS * owed) / counts
    return float(levels.max())


def _inventory(levels: tuple[float, ...]) -> Array:
    """The stock (days,) of the last of the first echelons with these levels, at the end of every day."""
    return _simulated(tuple(map(float, levels)))


@lru_cache(maxsize=1024)
def _simulated(levels: tuple[float, ...]) -> Array:
    network = optional_module("stockpyl.supply_chain_network", "supply-chain", "simulators")
    simulation = optional_module("stockpyl.sim", "supply-chain", "simulators")
    count = len(levels)
    chain_ = network.serial_system(
        num_nodes=count,
        node_order_in_system=list(range(1, count + 1)),
        node_order_in_lists=list(range(1, count + 1)),
        local_holding_cost=list(HOLDING[:count]),
        shipment_lead_time=list(DELAYS[:count]),
        stockout_cost=[0.0] * (count - 1) + [WAITING],
        demand_type="D",
        demand_list=demand(),
        policy_type="BS",
        base_stock_level=list(levels),
    )
    simulation.simulation(chain_, DAYS, progress_bar=False)
    states = chain_.nodes_by_index[count].state_vars[:DAYS]
    return np.array([state.on_hand - state.backorders for state in states], dtype=np.float64)


def demand() -> list[float]:
    """The demand of every day, the same in all runs."""
    return np.maximum(np.random.default_rng(0).normal(MEAN, DEVIATION, DAYS), 0.0).tolist()
