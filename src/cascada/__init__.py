"""Optimise multi-stage processes whose every stage can be observed, with a proven gap to the best."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cascada.near_names import did_you_mean

if TYPE_CHECKING:
    from cascada import algorithms
    from cascada.calibration import Calibration
    from cascada.confidence import Belief, Boxes
    from cascada.errors import ArgumentError, CascadaError, ContradictionError, NumericalError, RefutedError, StoreError
    from cascada.gp import Posterior
    from cascada.kernels import Additive, BlockKernel, Matern, Separable, SquaredExponential
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
    from cascada.process import Command
    from cascada.space import Choice, Grid, Integer, Real
    from cascada.specs import load
    from cascada.store.trial import Step, Trial
    from cascada.study import Cost, Measurement, Recommendation, Result, Revision, Study, maximise, minimise
    from cascada.study.catalogue import delete_study, rename_study, studies
    from cascada.study.certificate import Certificate
    from cascada.study.probable_gap import ProbableGap

__version__ = "0.2.0"

#: Module → its names here. They are imported when they are first used, so that commands and worker processes, which
#: import single modules, wait for no others.
_NAMES = {
    "calibration": ("Calibration",),
    "confidence": ("Belief", "Boxes"),
    "errors": ("ArgumentError", "CascadaError", "ContradictionError", "NumericalError", "RefutedError", "StoreError"),
    "gp": ("Posterior",),
    "kernels": ("Additive", "BlockKernel", "Matern", "Separable", "SquaredExponential"),
    "network": (
        "Bounded",
        "Network",
        "Stage",
        "StageError",
        "SubGaussian",
        "chain",
        "feed_forward",
        "multi_output_chain",
    ),
    "process": ("Command",),
    "space": ("Choice", "Grid", "Integer", "Real"),
    "specs": ("load",),
    "store.trial": ("Step", "Trial"),
    "study": ("Cost", "Measurement", "Recommendation", "Result", "Revision", "Study", "maximise", "minimise"),
    "study.catalogue": ("delete_study", "rename_study", "studies"),
    "study.certificate": ("Certificate",),
    "study.probable_gap": ("ProbableGap",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
#: Parts of the package that are attributes without an import of their own, like `cascada.kernels`.
_PARTS = frozenset(
    {
        "algorithms",
        "calibration",
        "confidence",
        "errors",
        "gp",
        "kernels",
        "network",
        "search",
        "space",
        "store",
        "study",
    }
)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        found = getattr(import_module(f"cascada.{_MODULE_OF[name]}"), name)
        globals()[name] = found  # so that this function is called once for it
        return found
    if name in _PARTS:
        return import_module(f"cascada.{name}")  # which makes it an attribute
    hint = "" if name.startswith("_") else did_you_mean(name, __all__)
    raise AttributeError(f"module 'cascada' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


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
