"""Studies, the only stateful part: ask and tell, certificates, and the loop that runs a process."""

from cascada.store.trial import Trial
from cascada.study.optimise import maximise, minimise
from cascada.study.recommendation import Recommendation
from cascada.study.result import Result
from cascada.study.revision import Revision
from cascada.study.study import Callback, Study

__all__ = ["Callback", "Recommendation", "Result", "Revision", "Study", "Trial", "maximise", "minimise"]
