"""How an optimisation went: every run, the best so far, and what no setting can beat, closing in on each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.errors import CascadaError
from cascada.network import Network
from cascada.outwards import rounded_down, rounded_up
from cascada.report.theme import BLUE, GREY, ORANGE, escaped, figure, number, plotly_objects
from cascada.store.trial import Trial
from cascada.study.reader import Reader
from cascada.study.study import Study

# Looks at the bound along the way; an estimated one needs all kernels fitted anew each time.
_LOOKS, _ESTIMATED_LOOKS = 24, 8
_CELLS = 2_000
_DIGITS = 6  # of a bound that is pointed at


@dataclass(frozen=True)
class Look:
    """What was known after some of the runs: how many were complete, and what no setting can beat."""

    trial: int  # the highest number among those that were told
    bound: float
    kind: str


class Looks:
    """The bound after some of the runs of a network, as they are added: nobody wrote it down at the time."""

    def __init__(self, network: Network) -> None:
        self.found: list[Look] = []
        self._again: Study | None = Study(network, algorithm="random_search")

    def add(self, trial: Trial, look: bool) -> None:
        """A run that ended; a proven bound holds for ever, so the best so far is given."""
        if self._again is None:
            return
        try:
            self._again.add_trial(trial.controls, trial.outputs)
            certificate = self._again.certificate(cells=_CELLS) if look else None
        except CascadaError:  # the runs contradict each other: there is no bound from here on
            self._again = None
            return
        if certificate is None or certificate.bound is None:
            return
        bound, sign = certificate.bound, self._again.network.sign
        if self.found and certificate.kind == "proven":
            bound = sign * min(sign * bound, sign * self.found[-1].bound)
        last = max(trial.number, self.found[-1].trial if self.found else 0)  # runs may end in another order
        self.found.append(Look(last, bound, certificate.kind))


def looks_along(study: Reader, most: int | None = None) -> list[Look]:
    """The bound after some of the runs, computed anew; none at all where `bounds_hold` says so."""
    trials = [trial for trial in study.trials if trial.outputs]
    if not bounds_hold(study):
        return []
    looks, at = Looks(study.network), looked_at(study.network, len(trials), most)
    for i, trial in enumerate(trials):
        looks.add(trial, i in at)
    return looks.found


def looked_at(network: Network, runs: int, most: int | None = None) -> set[int]:
    """After which of so many runs to look: the last, and others at distances that grow, as looks take longer then."""
    if most is None:
        most = _ESTIMATED_LOOKS if network.estimated else _LOOKS
    if runs <= most:
        return set(range(runs))
    return {round(float(after)) - 1 for after in np.geomspace(1, runs, most)}


def bounds_hold(study: Reader) -> bool:
    """Whether bounds along the way may be shown: not where something speaks against what they would be computed from,
    nor where bounds of norms were raised because of it.
    """
    return study.certificate().kind == ("estimated" if study.network.estimated else "proven")


def best_so_far(trials: Sequence[Trial], sign: int) -> list[tuple[int, float]]:
    """The best objective after every complete trial."""
    found: list[tuple[int, float]] = []
    for trial in trials:
        if trial.value is not None:
            best = trial.value if not found else sign * max(sign * trial.value, sign * found[-1][1])
            found.append((trial.number, best))
    return found


def plot_optimization_history(study: Reader, looks: Sequence[Look] | None = None) -> Any:
    """Values, best value and bound over the runs: the gap is the distance between the two lines."""
    looks = looks_along(study) if looks is None else looks
    shown = history_of(study.network, study.trials, looks)
    if not looks and all(trial.value is None for trial in study.trials):
        # Axes without anything on them would show numbers that mean nothing.
        shown.update_layout(xaxis={"visible": False}, yaxis={"visible": False})
        where = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        shown.add_annotation(**where, text="no complete run yet", showarrow=False, font={"size": 14})
    return shown


def history_of(network: Network, trials: Sequence[Trial], looks: Sequence[Look]) -> Any:
    """The same from its parts. The live page puts runs that came later into its first two traces."""
    go, sign = plotly_objects(), network.sign
    complete = [trial for trial in trials if trial.value is not None]
    shown = figure("Best value and what no setting can beat", "trial", network.objective[1])
    shown.add_trace(
        go.Scatter(
            x=[trial.number for trial in complete],
            y=[trial.value for trial in complete],
            mode="markers",
            name="runs",
            marker={"color": GREY, "size": 6},
            text=[_settings(trial) for trial in complete],
            hovertemplate="trial %{x}: %{y:.6g}<br>%{text}<extra></extra>",
        )
    )
    best = best_so_far(trials, sign)
    shown.add_trace(
        go.Scatter(
            x=[number for number, _ in best],
            y=[value for _, value in best],
            mode="lines",
            name="best so far",
            line={"color": BLUE, "width": 2.5, "shape": "hv"},
        )
    )
    if looks:
        kind = looks[-1].kind
        shown.add_trace(
            go.Scatter(
                x=[look.trial for look in looks],
                y=[look.bound for look in looks],
                mode="lines+markers",
                name=f"no setting gives {'more' if sign > 0 else 'less'} ({kind})",
                text=[(rounded_up if sign > 0 else rounded_down)(look.bound, _DIGITS) for look in looks],
                hovertemplate="trial %{x}: %{text}",
                line={"color": ORANGE, "width": 2.5, "dash": "solid" if kind == "proven" else "dot", "shape": "hv"},
                marker={"size": 4},
            )
        )
        shown.update_yaxes(range=_range(complete, looks))
    return shown


def _range(complete: Sequence[Trial], looks: Sequence[Look]) -> list[float] | None:
    """A range in which the end can be read: bounds of the first runs may be a hundred times as large."""
    if not complete or not looks:
        return None
    values = [trial.value for trial in complete if trial.value is not None]
    low, high = min(values), max(values)
    room = 1.5 * max(high - low, abs(looks[-1].bound - high), abs(looks[-1].bound - low), 1e-12)
    bounds = [look.bound for look in looks if low - room <= look.bound <= high + room]
    low, high = min([low, *bounds]), max([high, *bounds])
    edge = 0.05 * max(high - low, 1e-12)
    return [low - edge, high + edge]


def _settings(trial: Trial) -> str:
    return ", ".join(f"{escaped(name)} = {number(value)}" for name, value in trial.controls.items())
