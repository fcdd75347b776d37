"""All values of a process at many points, computed by the functions of its stages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.network import Network
from cascada.network.outputs import as_outputs_of

Column = Any  # an argument of a stage's function: a number or an array (n,)


@dataclass(frozen=True, eq=False)
class ValueTable:
    """A function from points (n, d) in user units to all columns of a run (n, V), as needed by `Problem.values`.

    The function of each stage is called once with columns of numbers, so that the table cannot differ from the stage.
    Choices are columns of their values.
    `one_by_one` is for functions that accept only single numbers.
    """

    network: Network
    one_by_one: bool = False

    def __call__(self, points: Array) -> Array:
        domain = self.network.domain
        columns = list(np.asarray(points, dtype=np.float64).reshape(-1, domain.dimension).T)
        for node in self.network.nodes:
            function = node.stage.function
            assert function is not None, "a built-in problem has all its functions"
            inputs = {name: columns[j] for name, j in zip(node.input_names, node.inputs, strict=True)}
            for j, choice in node.choices.items():
                name = node.input_names[j]
                inputs[name] = np.array(choice.values)[inputs[name].astype(np.int64)]
            if self.one_by_one:
                rows = zip(*(column.tolist() for column in inputs.values()), strict=True)
                calls = [dict(zip(inputs, row, strict=True)) for row in rows]
                results = np.array([as_outputs_of(node, function(**call)) for call in calls])
                columns += list(results.reshape(-1, len(node.columns)).T)
            else:
                results = function(**inputs)
                columns += [results] if len(node.columns) == 1 else list(results)
        values = np.column_stack([*columns])
        values[:, : domain.dimension] = domain.encode(values[:, : domain.dimension])
        return values
