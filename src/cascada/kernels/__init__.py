"""Kernels: stationary kernels with derivatives, operator-valued kernels, and functions of known norm."""

from cascada.kernels.additive import Additive
from cascada.kernels.coded import Coded
from cascada.kernels.expansion import (
    Expansion,
    OperatorExpansion,
    random_expansion,
    random_operator_expansion,
)
from cascada.kernels.matern import Matern
from cascada.kernels.operator import BlockKernel, OperatorKernel, Separable
from cascada.kernels.radial import Radial
from cascada.kernels.squared_exponential import SquaredExponential
from cascada.kernels.stationary import Stationary

__all__ = [
    "Additive",
    "BlockKernel",
    "Coded",
    "Expansion",
    "Matern",
    "OperatorExpansion",
    "OperatorKernel",
    "Radial",
    "Separable",
    "SquaredExponential",
    "Stationary",
    "random_expansion",
    "random_operator_expansion",
]
