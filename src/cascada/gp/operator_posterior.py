"""The base class of posteriors under an operator-valued kernel: several outputs with one joint norm.

Letters: Γ_t(z, z) (p, p) posterior covariance, ‖·‖₂ the spectral norm; `sd` = ‖Γ_t(z, z)‖₂^{1/2}.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array, IntArray


@dataclass(frozen=True)
class OperatorPrediction:
    """Posterior mean (n, p), covariance Γ_t(z, z) (n, p, p), and prior sds ‖Γ(z, z)‖₂^{1/2} (n,)."""

    mean: Array
    covariance: Array
    prior_sd: Array

    @property
    def sd(self) -> Array:
        """‖Γ_t(z, z)‖₂^{1/2}, shape (n,)."""
        if self.covariance.size == 0:
            return np.zeros(len(self.mean))
        return np.sqrt(np.maximum(np.linalg.eigvalsh(self.covariance)[:, -1], 0.0))

    @property
    def output_sds(self) -> Array:
        """The sd of each output, shape (n, p)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0))

    @property
    def root(self) -> Array:
        """The symmetric root of Γ_t(z, z), (n, p, p): f(z) lies in mean + ρ_t·root·(unit ball)."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.einsum("nij,nj,nkj->nik", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)


class OperatorPosterior(ABC):
    """μ_t and Γ_t of a vector-valued function (`eq:multi_mean`, `eq:multi_var`)."""

    @abstractmethod
    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> "OperatorPosterior":
        """The posterior with more rows; exact repeats are dropped. `each`: see `Posterior.append`."""

    @abstractmethod
    def predict(self, Z: ArrayLike) -> OperatorPrediction:
        """μ_t and Γ_t at the rows of Z."""

    @property
    @abstractmethod
    def inputs(self) -> Array:
        """X (t, d) without repeats."""

    @property
    @abstractmethod
    def outputs(self) -> Array:
        """Y (t, p)."""

    @property
    @abstractmethod
    def rows(self) -> IntArray:
        """The position of each kept observation among all received ones, shape (t,)."""

    @property
    @abstractmethod
    def spent_by_row(self) -> Array:
        """The part of B² used up by each kept observation, shape (t,); the sum is Y_tᵀ(G_t + λ)⁻¹Y_t."""

    @abstractmethod
    def error_budget(self, error: Array) -> float:
        """The largest part of B² used up by errors of the observed outputs, each at most `error` (p,).

        It is Σ_i e_iᵀΛ_i⁻¹e_i over the observations with jitter Λ_i. With inexact data, the data use up at most ‖f‖²
        plus this (the ellipsoid of `gp.rounding`).
        """

    @property
    def covariance_rounding(self) -> float:
        """The largest excess of Γ_t over its computed value due to rounding in Γ, in squared prior sds."""
        return 0.0

    @property
    @abstractmethod
    def inflation(self) -> float:
        """ε of `gp.rounding`, in units of the largest prior sd."""

    @property
    def count(self) -> int:
        """t: the number of observations without repeats."""
        return self.inputs.shape[0]

    @property
    def dimension(self) -> int:
        """d: the number of inputs."""
        return self.inputs.shape[1]

    @property
    def output_count(self) -> int:
        """p: the number of outputs."""
        return self.outputs.shape[1]

    @property
    def spent(self) -> float:
        """Y_tᵀ(G_t + λ)⁻¹Y_t: the part of B² that the data use up."""
        return float(self.spent_by_row.sum())
