"""What a stage costs, at which inputs it can be run, and how many later runs one of its outputs feeds."""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

from cascada.errors import ArgumentError

#: Where a stage can be run: only directly after its parents, on their outputs that were kept, or at any inputs.
Reachable = Literal["run", "stock", "any"]


def check_stock(
    fail: Callable[[str], ArgumentError], known: bool, cost: Any, reachable: Any, portions: Any
) -> tuple[float, Reachable, float]:
    """Cost, reachable and portions of a stage; raises what `fail` makes of a text if one is invalid.

    A formula has none of them: it costs 0 and is computed wherever its inputs are known.
    """
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < math.inf:
        raise fail(
            f"cost must be a finite number above 0; got {cost!r:.100}. For a stage that costs next to nothing, give a "
            f"small one."
        )
    if not isinstance(reachable, str) or reachable not in get_args(Reachable):
        raise fail(f"reachable must be 'run', 'stock' or 'any'; got {reachable!r:.100}.")
    whole = isinstance(portions, int) and not isinstance(portions, bool) and 1 <= portions < 2**31
    if not whole and not (isinstance(portions, float) and portions == math.inf):
        raise fail(
            f"portions must be a whole number, 1 or more, or math.inf for an output that is not used up; got "
            f"{portions!r:.100}."
        )
    if known and (cost, reachable, portions) != (1, "run", 1):
        raise fail(
            "a known stage is a formula, which costs nothing and is computed wherever its inputs are known; leave out "
            "cost, reachable and portions."
        )
    return 0.0 if known else float(cost), reachable, portions  # type: ignore[return-value]
