"""Recorded optima of the random problems with their default seed, so that listing problems is fast.

Found by `Problem._searched` and by a second search with 2¹⁵ other Sobol points and 40 starts, which agree to 2e-12. A
test repeats the first search.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cascada.problems.problem import Optimum

_RECORDED: Mapping[str, tuple[Sequence[float], float]] = {
    "certified-chain": ((1.8625374003431054, -1.2742812582954939), -0.08774538140742322),
    "certified-chain-3d": ((-1.5325462331902615, 1.0804129730975678, 1.3772791672790685), 1.3818665464838729),
    "certified-controls": ((1.0461302365751324, 0.15256478706188364, 0.0796394709349087), 1.238387527052368),
    "certified-controls-4d": (
        (-1.0317046645974959, -0.2509807735915071, -0.20117183704829933, -1.5646522424719975),
        1.0108627302766977,
    ),
    "certified-feed-forward": ((-1.9671209369941864, 1.2596035819845814), 0.30688842980418624),
    "certified-feed-forward-3": ((-1.183625670028808, 0.9690032812317301), 0.14308349767517334),
    "certified-multi-output": ((-1.9776999917634075, 1.166856241395993), 0.2378953542357357),
    "certified-join": ((-0.11638749472128891, 0.5750142973566841, -2.0), 0.8366085641120228),
    "certified-known": ((1.3338027493398081, -0.9957816998615073), -0.016904514411941296),
    "sampled-chain": ((-4.103463556210392, 2.4990883501240004), 1.1079363163857285),
}


def recorded_optimum(name: str) -> Optimum | None:
    """The recorded optimum of a built-in problem with its default arguments; None if there is none."""
    if name not in _RECORDED:
        return None
    point, value = _RECORDED[name]
    return Optimum(np.array([point]), value, "numerical")
