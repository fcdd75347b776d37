"""A process for tests whose functions can be pickled, because they are at the top level of a module.

Every worker process imports this module, so it imports little.
"""

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Real

KERNEL = SquaredExponential(1.0)


def heat(x: float, y: float) -> float:
    return 1.2 * math.exp(-0.5 * ((x - 0.4) ** 2 + (y + 0.3) ** 2))


def quench(heat: float) -> float:
    return 1.5 * math.exp(-0.5 * (heat - 0.9) ** 2)


def too_hot(heat: float) -> float:
    """Second stage that fails near the optimum."""
    if heat > 0.9:
        raise RuntimeError("too hot")
    return quench(heat)


def broken(**_: float) -> float:
    raise RuntimeError("broken")


def deadly(x: float, y: float) -> float:
    """First stage that ends its worker process for x > 0, after a delay in which earlier results arrive."""
    if x > 0:
        time.sleep(0.3)
        os._exit(1)
    return heat(x, y)


def network() -> Network:
    return chain(
        Stage("heat", controls={"x": Real(-2, 2), "y": Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0),
        Stage("quench", kernel=KERNEL, norm_bound=2.0),
    )


# ---- stages that leave traces in a folder


def counted(folder: Path, function: Callable[..., float], **inputs: float) -> float:
    """Call a function, and append the id of this process to a file of its name."""
    with open(folder / function.__name__, "a") as file:
        file.write(f"{os.getpid()}\n")
    return function(**inputs)


def calls(folder: Path, name: str) -> list[int]:
    file = folder / name
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def once(folder: Path, what: Callable[[], Any], heat: float) -> float:
    """Second stage that also calls `what` in the first of all calls."""
    counted(folder, quench, heat=heat)
    try:
        (folder / "done").touch(exist_ok=False)
    except FileExistsError:
        return quench(heat)
    what()
    return quench(heat)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
