"""The history of an optimisation: every run, the best value so far, and the bound that no setting can beat."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cascada.errors import CascadaError
from cascada.network import Network
from cascada.outwards import rounded_down, rounded_up
from cascada.report.bound_after import BoundAfter
from cascada.report.scatter_history import bounds_from_reports
from cascada.report.theme import BLUE, GREEN, GREY, ORANGE, escaped, figure, number, plotly_objects
from cascada.store.trial import Trial
from cascada.study.reader import Reader
from cascada.study.silent_study import SilentStudy
from cascada.study.step_trial import named_inputs
from cascada.study.study import Study

# Number of points of the bound's curve. An estimated bound needs all kernels fitted again at every point; with scatter,
# every reading is learned by itself.
_POINTS, _FEWER_POINTS = 24, 8
_CELLS = 2_000
_DIGITS = 6  # of a bound in a hover text
_FEW = 10  # runs, up to which every trial has a tick
FEASIBLE, INFEASIBLE = "circle", "x"  # symbols of runs, in a process with limits


class BoundHistory:
    """The bound of a network's objective after some of its runs, recomputed as the log does not store it."""

    def __init__(self, network: Network) -> None:
        self.found: list[BoundAfter] = []
        self._replay: Study | None = SilentStudy(network, algorithm="random_search")
        self._waiting: list[Trial] = []  # added since the last bound

    def add(self, trial: Trial, compute: bool) -> None:
        """Add a run that ended and, if `compute`, the bound after it.

        Proven bounds stay valid, so a later proven bound is never worse than an earlier one.
        """
        if self._replay is None:
            return
        self._waiting.append(trial)
        if not compute:
            return
        try:
            runs = [run for run in self._waiting if run.closed]
            self._replay.add_trials([(run.controls, run.outputs, f"trial {run.number}") for run in runs])
            for step in (trial for trial in self._waiting if not trial.closed):  # data of its stages, and no run
                for stage in (name for name in step.steps if name in step.outputs):
                    inputs = named_inputs(self._replay.network, step, stage)
                    self._replay.measure(stage, inputs, step.outputs[stage])
            certificate = self._replay.certificate(cells=_CELLS)
        except CascadaError:  # the runs contradict each other: there is no bound from here on
            self._replay = None
            return
        self._waiting = []
        if certificate.bound is None:
            return
        bound, sign = certificate.bound, self._replay.network.sign
        if self.found and certificate.kind == "proven":
            bound = sign * min(sign * bound, sign * self.found[-1].bound)
        last = max(trial.number, self.found[-1].trial if self.found else 0)  # runs may end in another order
        self.found.append(BoundAfter(last, bound, certificate.kind))


def bound_history(study: Reader, most: int | None = None) -> list[BoundAfter]:
    """Recompute the bound after up to `most` of the runs; empty if `bounds_hold` is false."""
    trials = [trial for trial in study.trials if trial.outputs]
    if not bounds_hold(study):
        return []
    if study.network.scattered:
        return bounds_from_reports(study, checkpoints(study.network, study.state.complete, most), _CELLS)
    history, at = BoundHistory(study.network), checkpoints(study.network, len(trials), most)
    for i, trial in enumerate(trials):
        history.add(trial, i in at)
    return history.found


def checkpoints(network: Network, runs: int, most: int | None = None) -> set[int]:
    """Return the indices of the runs after which to compute the bound: the last, and others at growing distances.

    The distances grow because a bound takes longer to compute after more runs.
    """
    if most is None:
        most = _FEWER_POINTS if network.estimated or network.scattered else _POINTS
    if runs <= most:
        return set(range(runs))
    return {round(float(after)) - 1 for after in np.geomspace(1, runs, most)}


def bounds_hold(study: Reader) -> bool:
    """Return whether earlier bounds may be shown: not if the data refute an assumption or norm bounds were raised."""
    network = study.network
    return study.certificate().kind == (
        "estimated" if network.estimated else "confident" if network.scattered else "proven"
    )


def best_so_far(trials: Sequence[Trial], sign: int) -> list[tuple[int, float]]:
    """Return the best objective after every complete trial."""
    found: list[tuple[int, float]] = []
    for trial in trials:
        if trial.value is not None:
            best = trial.value if not found else sign * max(sign * trial.value, sign * found[-1][1])
            found.append((trial.number, best))
    return found


def plot_optimization_history(study: Reader, bounds: Sequence[BoundAfter] | None = None) -> Any:
    """Plot values, best value and bound over the runs: the gap is the distance between the two lines."""
    bounds = bound_history(study) if bounds is None else bounds
    shown = history_of(study.network, study.trials, bounds)
    _add_recommended(shown, study)
    if not bounds and all(trial.value is None for trial in study.trials):
        # Axes without data would show meaningless numbers.
        shown.update_layout(xaxis={"visible": False}, yaxis={"visible": False})
        where = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        shown.add_annotation(**where, text="no complete run yet", showarrow=False, font={"size": 14})
    return shown


def _add_recommended(shown: Any, study: Reader) -> None:
    """Add a line at what the recommended setting is proven to give, if there is one."""
    certificate = study.certificate()
    if certificate.recommended is None:
        return
    word = "at least" if certificate.maximised else "at most"
    shown.add_trace(
        plotly_objects().Scatter(
            x=[0, max(len(study.trials) - 1, 1)],
            y=[certificate.recommended.at_least] * 2,
            mode="lines",
            name=f"recommended setting ({word})",
            line={"color": GREEN, "width": 2, "dash": "dash"},
        )
    )


def history_of(network: Network, trials: Sequence[Trial], bounds: Sequence[BoundAfter]) -> Any:
    """Return the history figure of these trials and bounds. The live page adds later runs to its first two traces."""
    go, sign = plotly_objects(), network.sign
    complete = [trial for trial in trials if trial.value is not None]
    feasible = "feasible " if network.limits else ""
    title = f"Best value and what no {feasible}setting can beat" if bounds else "Runs and best value"
    shown = figure(title, "trial", network.objective[1])
    if len(trials) <= _FEW:
        shown.update_xaxes(dtick=1)  # there is no trial 0.5
    shown.add_trace(
        go.Scatter(
            x=[trial.number for trial in complete],
            y=[trial.value for trial in complete],
            mode="markers",
            name="runs",
            marker={"color": GREY, "size": 6} | _symbols(network, complete),
            text=[_settings(trial) for trial in complete],
            hovertemplate="trial %{x}: %{y:.6g}<br>%{text}<extra></extra>",
            showlegend=not network.limits,
        )
    )
    best = best_so_far([trial for trial in trials if trial.feasible or not network.limits], sign)
    shown.add_trace(
        go.Scatter(
            x=[number for number, _ in best],
            y=[value for _, value in best],
            mode="lines",
            name="best so far",
            line={"color": BLUE, "width": 2.5, "shape": "hv"},
        )
    )
    if bounds:
        kind = bounds[-1].kind
        shown.add_trace(
            go.Scatter(
                x=[point.trial for point in bounds],
                y=[point.bound for point in bounds],
                mode="lines+markers",
                name=f"no {feasible}setting gives {'more' if sign > 0 else 'less'} ({kind})",
                text=[(rounded_up if sign > 0 else rounded_down)(point.bound, _DIGITS) for point in bounds],
                hovertemplate="trial %{x}: %{text}",
                line={"color": ORANGE, "width": 2.5, "dash": "solid" if kind == "proven" else "dot", "shape": "hv"},
                marker={"size": 4},
            )
        )
        shown.update_yaxes(range=_range(complete, bounds))
    if network.limits:
        _add_symbols_to_legend(shown)
    return shown


def _add_symbols_to_legend(shown: Any) -> None:
    """Add an entry for each symbol of runs: that of the runs themselves would have the symbol of the first run."""
    for name, symbol in (("runs", FEASIBLE), ("runs that broke a limit", INFEASIBLE)):
        marker = {"color": GREY, "size": 6, "symbol": symbol}
        entry = plotly_objects().Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker, legendrank=1)
        shown.add_trace(entry)


def _symbols(network: Network, complete: Sequence[Trial]) -> dict[str, Any]:
    """Return the symbols of runs: a cross for one that breaks a limit."""
    if not network.limits:
        return {}
    return {"symbol": [INFEASIBLE if trial.feasible is False else FEASIBLE for trial in complete]}


def _range(complete: Sequence[Trial], bounds: Sequence[BoundAfter]) -> list[float] | None:
    """Return a range that fits the latest bounds; those after the first runs may be a hundred times as large."""
    if not complete or not bounds:
        return None
    values = [trial.value for trial in complete if trial.value is not None]
    low, high = min(values), max(values)
    room = 1.5 * max(high - low, abs(bounds[-1].bound - high), abs(bounds[-1].bound - low), 1e-12)
    near = [point.bound for point in bounds if low - room <= point.bound <= high + room]
    low, high = min([low, *near]), max([high, *near])
    edge = 0.05 * max(high - low, 1e-12)
    return [low - edge, high + edge]


def _settings(trial: Trial) -> str:
    return ", ".join(f"{escaped(name)} = {number(value)}" for name, value in trial.controls.items())
