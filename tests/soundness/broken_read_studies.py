"""Deliberately broken versions of studies whose stages are read with errors; see `broken`."""

from functools import partial

import numpy as np

from cascada.search.incumbent import Incumbent
from cascada.study import incumbent, judge
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State
from tests.soundness import read_studies
from tests.soundness.broken import Broken


def _best_reading(model: Model, state: State, _settings: Settings) -> Incumbent | None:
    """The run with the best reading, as if it were its value."""
    network = state.network
    complete = np.isfinite(model.data[:, network.objective_column])
    if not complete.any() or network.limits:
        return None
    values = network.sign * model.data[complete, network.objective_column]
    i = int(values.argmax())
    return Incumbent(model.data[complete][i, : network.domain.dimension], float(values[i]))


BROKEN_READ_STUDIES: tuple[Broken, ...] = (
    Broken(
        "the best reading is taken as a value that is reached",
        "read_studies",
        ((judge, "best_proven_setting", _best_reading), (incumbent, "incumbent", _best_reading)),
        partial(read_studies.run, 1, ("chain",), 1, points=50),
    ),
)
