"""The stocks of a serial supply chain with base-stock levels, day by day, as a recursion: a reference for stockpyl."""

import numpy as np

from cascada.arrays import Array
from cascada.problems.supply_chain import DELAYS, HOLDING, WAITING


def stocks(levels: Array, demand: Array) -> list[Array]:
    """The stock (days,) of every echelon, below 0 where parts are owed.

    What a stock is below its level is the demand within its delay, and what the echelon upstream owed a delay ago.
    """
    total = np.cumsum(demand)
    found: list[Array] = []
    owed = np.zeros(len(demand))
    for level, delay in zip(levels, DELAYS, strict=True):
        within = total - np.concatenate([np.zeros(delay), total])[: len(total)]
        found.append(level - within - np.concatenate([np.zeros(delay), owed])[: len(total)])
        owed = np.maximum(-found[-1], 0.0)
    return found


def cost_of(found: list[Array]) -> float:
    """The mean cost of a day: parts in stock, and customers who wait at the last echelon."""
    held = sum(price * float(np.maximum(stock, 0.0).mean()) for price, stock in zip(HOLDING, found, strict=True))
    return held + WAITING * float(np.maximum(-found[-1], 0.0).mean())
