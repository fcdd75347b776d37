"""The step that the rule suggests for a state, and the bound of the search behind it."""

import time
from collections.abc import Sequence
from dataclasses import replace

from cascada.algorithms import GPNEI, GPNUCB, GPNMixed
from cascada.algorithms.steps import NextStep, suggest_step
from cascada.algorithms.stock import Stock
from cascada.errors import ArgumentError
from cascada.store.trial import Trial
from cascada.study.advisor import generator, situation
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State
from cascada.study.stock import stock_of


def check_steps(state: State, settings: Settings) -> None:
    """Raise `ArgumentError` if no stage can be run by itself, or if the algorithm chooses no steps."""
    if not state.network.stepwise:
        raise ArgumentError(
            "no stage of this process can be run by itself; ask for whole runs (study.ask), or declare "
            "reachable='stock' or reachable='any' at the stages that can be run on outputs that were kept, or at any "
            "inputs."
        )
    if not isinstance(settings.algorithm, GPNUCB | GPNMixed | GPNEI):
        raise ArgumentError(
            f"steps are not chosen by the algorithm {type(settings.algorithm).__name__}, which suggests whole runs; "
            f"leave algorithm= out, or ask for whole runs."
        )


def suggested_step(model: Model, state: State, settings: Settings) -> NextStep:
    """The next step, with all that is under way pending."""
    stock = stock_of(state.network, state.trials, state.prices)
    if not (stock.pending or stock.begun or state.running):
        return free_step(model, state, settings)
    return _suggested(model, state, settings, stock, state.running)


def free_step(model: Model, state: State, settings: Settings) -> NextStep:
    """The next step if nothing were under way: the search behind it bounds what no setting can exceed."""
    if model.step is None:
        stock = stock_of(state.network, state.trials, state.prices)
        model.step = found = _suggested(model, state, settings, replace(stock, pending=(), begun=()), ())
        model.tree = None if settings.shared else found.suggestion.cache
        if not settings.shared and found.suggestion.proven is not None:
            model.incumbent = found.suggestion.proven  # the tree was pruned by its value
    return model.step


def _suggested(model: Model, state: State, settings: Settings, stock: Stock, pending: Sequence[Trial]) -> NextStep:
    started = time.monotonic()
    found = suggest_step(situation(model, state, settings, pending), stock, generator(state, settings))
    model.cells += found.suggestion.cells
    model.seconds += time.monotonic() - started
    return found
