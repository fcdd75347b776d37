"""Studies, the only stateful part: ask and tell, certificates, and the loop that runs a process."""

from cascada.store.trial import Step, Trial
from cascada.study.cost import Cost
from cascada.study.measurement import Measurement
from cascada.study.optimise import maximise, minimise
from cascada.study.recommendation import Recommendation
from cascada.study.result import Result
from cascada.study.revision import Revision
from cascada.study.study import Callback, Study

__all__ = [
    "Callback",
    "Cost",
    "Measurement",
    "Recommendation",
    "Result",
    "Revision",
    "Step",
    "Study",
    "Trial",
    "maximise",
    "minimise",
]
