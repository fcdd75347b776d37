"""Networks recreated from their description in a store: they are the same except for functions."""

from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.kernels import Additive, BlockKernel, Matern, Separable, SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Control, Integer, Real
from cascada.store.description import describe, network_from


def with_kernel(kernel: Any, outputs: int = 1) -> Network:
    """Return a network of two stages, the first of which has this kernel over three controls."""
    controls: dict[str, Control] = {"x": Real(0.5, 2, log=True), "y": Real(0, 1), "n": Integer(1, 5)}
    names = [f"u{j}" for j in range(outputs)]
    first = Stage("f", controls=controls, outputs=names, kernel=kernel, norm_bound=2.0, lipschitz=3.0)
    return chain(first, Stage("g", kernel=Matern(2.5), norm_bound=1.0, offset=0.5))


@pytest.mark.parametrize(
    "network",
    [
        with_kernel(SquaredExponential(2.0)),
        with_kernel(Matern(1.5, (1, 2, 3), 0.5)),
        with_kernel(Additive(Matern(2.5, (1, 2, 3), 0.5))),
        with_kernel(Additive(SquaredExponential(0.3))),
        with_kernel(Separable(Matern(2.5, 0.4), [[2, 1], [1, 2]]), 2),
        with_kernel(Separable(Additive(Matern(2.5, 0.4))), 2),
        chain(Stage("f", controls={"x": Real(0, 1)}), Stage("g")).mirrored(),
    ],
    ids=["SE", "Matern", "additive", "additive SE", "separable", "separable of additive", "no kernels"],
)
def test_a_network_is_recreated_from_its_description(network: Network) -> None:
    description = describe(network, {})
    again = network_from(description)
    assert describe(again, {}) == description
    assert [stage.kernel for stage in again.stages] == [stage.kernel for stage in network.stages]


def ones(X: Array, Z: Array) -> Array:
    return np.ones((len(X), len(Z), 2, 2))


def test_a_kernel_that_is_a_function_cannot_be_recreated() -> None:
    description = describe(with_kernel(BlockKernel("ones", ones), 2), {})
    with pytest.raises(ArgumentError, match=r"stage 'f' has the kernel BlockKernel, a function: give the study its"):
        network_from(description)


def test_an_invalid_kernel_raises_with_the_name_of_its_stage() -> None:
    description = describe(with_kernel(Additive(Matern(2.5))), {})
    kernel = description["stages"][0]["kernel"]
    description["stages"][0]["kernel"] = {"type": "Additive", "kernel": kernel}
    with pytest.raises(ArgumentError, match=r"stage 'f' has a kernel that cannot be: .*Additive"):
        network_from(description)
