"""The only stateful part: studies, and the loops made of their ask and tell."""

from cascada.study.optimise import maximise, minimise
from cascada.study.recommendation import Recommendation
from cascada.study.result import Result
from cascada.study.runner import Callback
from cascada.study.study import Study
from cascada.study.trial import Trial

__all__ = ["Callback", "Recommendation", "Result", "Study", "Trial", "maximise", "minimise"]
