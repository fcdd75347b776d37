"""Optimise multi-stage processes whose every stage can be observed, with a proven gap to the best."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cascada import algorithms
from cascada.calibration import Calibration
from cascada.confidence import Belief, Boxes
from cascada.errors import ArgumentError, CascadaError, ContradictionError, NumericalError, RefutedError, StoreError
from cascada.gp import Posterior
from cascada.kernels import Additive, BlockKernel, Matern, Separable, SquaredExponential
from cascada.near_names import did_you_mean
from cascada.network import (
    Bounded,
    Network,
    Stage,
    StageError,
    SubGaussian,
    chain,
    feed_forward,
    multi_output_chain,
)
from cascada.space import Choice, Grid, Integer, Real
from cascada.store.trial import Step, Trial
from cascada.study import Cost, Measurement, Recommendation, Result, Revision, Study, maximise, minimise
from cascada.study.certificate import Certificate
from cascada.study.probable_gap import ProbableGap

if TYPE_CHECKING:
    from cascada.process import Command
    from cascada.specs import load
    from cascada.study.catalogue import delete_study, rename_study, studies

__version__ = "0.2.0"

#: Names that are imported when they are first used: they need subprocesses, databases or all built-in problems.
_LATER = {
    "Command": "cascada.process",
    "delete_study": "cascada.study.catalogue",
    "load": "cascada.specs",
    "rename_study": "cascada.study.catalogue",
    "studies": "cascada.study.catalogue",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    hint = "" if name.startswith("_") else did_you_mean(name, __all__)
    raise AttributeError(f"module 'cascada' has no attribute {name!r}{hint}")


__all__ = [
    "Additive",
    "ArgumentError",
    "Belief",
    "BlockKernel",
    "Bounded",
    "Boxes",
    "Calibration",
    "CascadaError",
    "Certificate",
    "Choice",
    "Command",
    "ContradictionError",
    "Cost",
    "Grid",
    "Integer",
    "Matern",
    "Measurement",
    "Network",
    "NumericalError",
    "Posterior",
    "ProbableGap",
    "Real",
    "Recommendation",
    "RefutedError",
    "Result",
    "Revision",
    "Separable",
    "SquaredExponential",
    "Stage",
    "StageError",
    "Step",
    "StoreError",
    "Study",
    "SubGaussian",
    "Trial",
    "__version__",
    "algorithms",
    "chain",
    "delete_study",
    "feed_forward",
    "load",
    "maximise",
    "minimise",
    "multi_output_chain",
    "rename_study",
    "studies",
]
