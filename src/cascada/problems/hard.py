"""Problems that are hard for every algorithm: needles in [0, 1]^d followed by amplifiers.

All stated properties of a member are true: each stage has norm exactly B and its own Lipschitz constant, and the best
value is 2ε at the centre of the needle. All members of a family state the same properties and differ only in their
values. The Lipschitz constant of a stage is valid for all inputs, because bounds use inputs beyond its range.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.kernels import Separable
from cascada.network import Network, Stage, chain, feed_forward, multi_output_chain
from cascada.problems.problem import Optimum, Problem
from cascada.space import Real
from cascada.theory.hard import HardFamily

_WIRED = {"chain": chain, "multi-output": multi_output_chain, "feed-forward": feed_forward}


def hard_problem(family: HardFamily, member: int) -> Problem:
    """One member of a hard family, counted from 0; controls x1, …, xd in [0, 1].

    >>> from cascada.kernels import Matern
    >>> from cascada.theory.hard import family_of_cells
    >>> problem = hard_problem(family_of_cells(Matern(1.5), 5.0, 4, dims=(1, 1), u=0.5, u_tilde=0.3), 2)
    >>> problem.network.controls, problem.optimum[0].tolist()
    (('x1',), [0.625])
    """
    network = _network(family, member)
    layers = [family.layer(i, member) for i in range(1, family.depth + 1)]

    def values_at(points: Array) -> Array:
        columns = [points]
        for layer in layers:
            columns.append(layer(columns[-1]))
        return np.hstack(columns)

    summary = f"needle {member} of {family.members} in [0, 1]^{family.dimension} → {family.depth - 1} amplifiers"
    optimum = Optimum(family.centre(member)[None], family.heights[-1], "analytic")
    return Problem(f"hard-{family.structure}", summary, network, values_at, optimum)


def hard_problems(family: HardFamily) -> list[Problem]:
    """All members of a hard family."""
    return [hard_problem(family, member) for member in range(family.members)]


def _network(family: HardFamily, member: int) -> Network:
    stages = []
    controls = tuple(f"x{j + 1}" for j in range(family.dimension))
    inputs = controls
    for i in range(1, family.depth + 1):
        width = family.dims[i] if i < family.depth else 1
        outputs = tuple(f"f{i}" if width == 1 else f"f{i}_{j + 1}" for j in range(width))
        joint = family.structure == "multi-output"
        stage = Stage(
            f"f{i}",
            controls={name: Real(0.0, 1.0) for name in controls} if i == 1 else {},
            outputs=outputs,
            kernel=Separable(family.kernel) if joint else family.kernel,
            norm_bound=family.norm_bound,
            lipschitz=family.needle.lipschitz if i == 1 else family.amplifier.lipschitz_everywhere,
            function=_OnePoint(family, i, member, inputs),
        )
        stages.append(stage)
        inputs = outputs
    return _WIRED[family.structure](*stages)


@dataclass(frozen=True, eq=False)
class _OnePoint:
    """A layer as a function of named numbers."""

    family: HardFamily
    i: int
    member: int
    names: tuple[str, ...]

    def __call__(self, **values: float) -> list[float]:
        layer = self.family.layer(self.i, self.member)
        return layer(np.array([[values[name] for name in self.names]]))[0].tolist()
