"""The only stateful part: studies, and the loops made of their ask and tell."""

from cascada.study.optimise import Callback, maximise, minimise
from cascada.study.result import Result
from cascada.study.study import Study
from cascada.study.trial import Trial

__all__ = ["Callback", "Result", "Study", "Trial", "maximise", "minimise"]
