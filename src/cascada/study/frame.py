"""Trials as a table: a column for every control and every output."""

from collections.abc import Iterable
from typing import Any

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.study.trial import Trial


def trials_dataframe(network: Network, trials: Iterable[Trial]) -> Any:
    """A pandas DataFrame, where pandas is installed."""
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ArgumentError("trials_dataframe needs pandas: pip install pandas.") from None
    return pandas.DataFrame([_record(network, trial) for trial in trials])


def _record(network: Network, trial: Trial) -> dict[str, Any]:
    outputs = {
        f"{stage}.{output}": value
        for stage, values in trial.outputs.items()
        for output, value in zip(network.node(stage).stage.outputs, values, strict=True)
    }
    return {"number": trial.number, "state": trial.state, "value": trial.value, **trial.controls, **outputs}
