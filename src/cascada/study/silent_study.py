"""A study without warnings, for replaying the runs of another one."""

from collections.abc import Mapping, Sequence
from typing import Any

from cascada.study.study import Study


class SilentStudy(Study):
    """A study whose warnings were issued before, or are issued by its owner."""

    def _warn(self, text: str) -> None:
        pass

    def learn(self, number: int, outputs: Mapping[str, Any], nominal: Mapping[str, Sequence[float]]) -> None:
        """Tell outputs of a trial with the nominal inputs that another study chose for these readings."""
        self._changed(lambda change: change.observe(number, outputs, nominal))
