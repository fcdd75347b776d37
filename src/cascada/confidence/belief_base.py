"""Interface of a stage's belief, for independent outputs (`Belief`) and for one joint norm (`BallBelief`)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from numpy.typing import ArrayLike

from cascada.arrays import Array
from cascada.confidence.evidence import Evidence
from cascada.confidence.regions import Balls
from cascada.errors import RefutedError
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.posterior import Posterior, Prediction

if TYPE_CHECKING:
    from cascada.confidence.belief import Belief

P = TypeVar("P", Prediction, OperatorPrediction)


class BeliefBase(ABC, Generic[P]):
    """A posterior, the assumptions B (norm) and L (slope), and the bounds that follow from them.

    P is the type of what the posterior predicts.
    """

    posterior: Posterior | OperatorPosterior
    norm_bound: Array | float  # B
    lipschitz: Array | float | None  # L
    tight: bool
    output_error: Array  # how far each observed output may be off, (p,)

    # ---- kind

    @property
    @abstractmethod
    def joint(self) -> bool:
        """Whether all outputs share one norm, and so one error."""

    @property
    @abstractmethod
    def has_output_beliefs(self) -> bool:
        """Whether `per_output` exists: for every kernel but a general operator-valued one."""

    @property
    @abstractmethod
    def per_output(self) -> "Belief | None":
        """The belief in every output by itself; None without one (see `has_output_beliefs`)."""

    # ---- data

    @abstractmethod
    def append(self, X: ArrayLike, Y: ArrayLike, *, each: bool = False) -> Self:
        """The belief after more observations. `each`: see `Posterior.append`."""

    @abstractmethod
    def with_output_error(self, error: Array) -> Self:
        """The same belief if observed outputs may be off by `error`, (p,)."""

    @property
    @abstractmethod
    def jitter(self) -> float:
        """λ of the posterior, relative to the prior variance."""

    # ---- assumptions

    @property
    @abstractmethod
    def evidence(self) -> tuple[Evidence, ...]:
        """What the data say against B and L; empty if they are consistent with both."""

    def check(self) -> None:
        """Raise `RefutedError` if the data refute B or L; then no bound holds."""
        if self.evidence:
            raise RefutedError(" ".join(str(e) for e in self.evidence))

    @abstractmethod
    def with_lipschitz(self, constants: Mapping[int | None, float]) -> Self:
        """The same belief with other Lipschitz constants for some outputs; the key is None for a joint norm."""

    @abstractmethod
    def with_width(self, width: float) -> Self:
        """The same belief with the bounds μ ± width·σ, whatever its norm bound."""

    @property
    @abstractmethod
    def raw_lipschitz(self) -> Array | float | None:
        """A Lipschitz constant in raw ℓ2 distance, (p,) or one number for a joint norm; None if none follows."""

    @abstractmethod
    def modulus(self, differences: Array) -> Array:
        """The most that every output can change over the differences along the last axis, (…, p), rounded up."""

    # ---- sizes

    @property
    @abstractmethod
    def largest_sd(self) -> float:
        """The largest prior sd of the outputs; infinite for a kernel given as a function."""

    @property
    @abstractmethod
    def largest_values(self) -> Array:
        """B·s, the largest |f| of every output (p,); 0 for a kernel given as a function, which need not have one."""

    # ---- predictions

    def radius_at(self, inputs: Array) -> Array:
        """The radius of every output at rows of inputs (n, d), (n, p); for beliefs about outputs by themselves."""
        raise NotImplementedError

    @abstractmethod
    def predict_quickly(self, inputs: Array) -> P:
        """The posterior's prediction, interpolated where many inputs lie on a line: not for proofs."""

    @abstractmethod
    def output_sds(self, prediction: P) -> Array:
        """The posterior sd of every output, (n, p)."""

    @abstractmethod
    def half_widths(self, prediction: P, rounding: Array) -> Array:
        """How far f can be from a mean that is off by `rounding` (n, p), rounded up: (n, p), or (n, 1) if joint."""

    @abstractmethod
    def sample(self, prediction: P, shape: tuple[int, ...], xi: Array) -> Array:
        """Samples (n, S, p) from a prediction at inputs of shape (n, 1) or (n, S), flattened, and draws ξ (S, p)."""

    # ---- balls, for a joint norm or a single output

    @abstractmethod
    def region(self, inputs: Balls) -> Balls:
        """Balls that contain f over whole balls of inputs."""

    @abstractmethod
    def image(self, inputs: Balls, offset: Array) -> Balls:
        """Balls that contain f + offset over whole balls of inputs."""
