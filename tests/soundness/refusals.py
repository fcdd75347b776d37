"""Soundness of refusals: impossible values are refused and true values are accepted, in all units.

A study gets every case twice: with the true values, and with one number that contradicts an assumption by a factor of
two or more. A value that is impossible in one unit is impossible in every other one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cascada.errors import ContradictionError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Real
from cascada.study import Study
from tests.soundness.harness import Ledger

LARGEST = 90  # powers of ten
FARTHEST = 10  # the largest offset, as a power of ten over the norm bound

Outputs = dict[str, float]


@dataclass(frozen=True, eq=False)
class Case:
    """A network with runs (controls, outputs): true ones, and the same ones with an impossible value."""

    network: Network
    true: list[tuple[float, Outputs]]
    wrong: list[tuple[float, Outputs]]
    note: str
    wrong_network: Network | None = None  # for the wrong runs, if it differs


def run(rounds: int, seed: int) -> Ledger:
    """Check random cases of every kind."""
    ledger = Ledger()
    for i, (name, draw) in enumerate(CASES.items()):
        rng = np.random.default_rng([seed, i, 5])
        for _ in range(rounds):
            case = draw(rng)
            accepted, wrong = ledger[f"{name}: true values accepted"], ledger[f"{name}: impossible values refused"]
            accepted.judge(partial(_accepted, case.network, case.true), case.note)
            wrong.judge(partial(refused, case.wrong_network or case.network, case.wrong), case.note)
    return ledger


def refused(network: Network, runs: list[tuple[float, Outputs]]) -> bool:
    """Whether a study refuses these runs as impossible: by an error, or by its certificate."""
    study = Study(network)
    try:
        for x, outputs in runs:
            study.add_trial({"x": x}, outputs)
    except ContradictionError:
        return True
    return study.certificate().kind == "refuted"


def _accepted(network: Network, runs: list[tuple[float, Outputs]]) -> bool:
    return not refused(network, runs)


def _scale(rng: np.random.Generator) -> float:
    return float(10 ** rng.uniform(-LARGEST, LARGEST))


def _first(scale: float, offset: float = 0.0) -> Stage:
    """x ∈ [0, 1] → f with |f − offset| ≤ scale."""
    return Stage("f", {"x": Real(0, 1)}, kernel=SquaredExponential(1.0), norm_bound=scale, offset=offset)


def _sectioned(x: float, scale: float) -> float:
    """scale·k(x, 1/2), a function of norm `scale`."""
    return scale * float(np.exp(-0.5 * (x - 0.5) ** 2))


def objective_alone(rng: np.random.Generator) -> Case:
    """The last stage is observed, its input is not: 2.5 times its largest possible value."""
    scale, middle = _scale(rng), _scale(rng)
    network = chain(_first(middle), Stage("g", kernel=SquaredExponential(middle), norm_bound=scale))
    x = float(rng.uniform())
    true = {"g": _sectioned(_sectioned(x, 1.0), scale)}
    return Case(network, [(x, true)], [(x, {"g": 2.5 * scale})], f"norm bound {scale!r}")


def offset_alone(rng: np.random.Generator) -> Case:
    """The same with a large offset: f is 9 norm bounds away from it, where one is possible."""
    scale, middle = _scale(rng), _scale(rng)
    offset = float(scale * 10 ** rng.uniform(0, FARTHEST) * rng.choice([-1.0, 1.0]))
    second = Stage("g", kernel=SquaredExponential(middle), norm_bound=scale, offset=offset)
    x = float(rng.uniform())
    true = {"g": offset + _sectioned(_sectioned(x, 1.0), scale)}
    wrong = {"g": offset + 9 * scale * float(rng.choice([-1.0, 1.0]))}
    return Case(chain(_first(middle), second), [(x, true)], [(x, wrong)], f"norm bound {scale!r}, offset {offset!r}")


def whole_run(rng: np.random.Generator) -> Case:
    """All stages are observed; the second is twice its largest possible value."""
    scale, middle = _scale(rng), _scale(rng)
    network = chain(_first(middle), Stage("g", kernel=SquaredExponential(middle), norm_bound=scale))
    runs = []
    for x in rng.uniform(size=3).tolist():
        between = _sectioned(x, middle)
        runs.append((x, {"f": between, "g": _sectioned(between / middle, scale)}))
    wrong = [*runs[:2], (runs[2][0], {**runs[2][1], "g": 2 * scale})]
    return Case(network, runs, wrong, f"norm bounds {middle!r} and {scale!r}")


def whole_run_with_offset(rng: np.random.Generator) -> Case:
    """One stage, a large offset, and a value that is 9 norm bounds away from it."""
    scale = _scale(rng)
    offset = float(scale * 10 ** rng.uniform(0, FARTHEST) * rng.choice([-1.0, 1.0]))
    x = float(rng.uniform())
    true, wrong = offset + _sectioned(x, scale), offset + 9 * scale * float(rng.choice([-1.0, 1.0]))
    note = f"norm bound {scale!r}, offset {offset!r}"
    return Case(chain(_first(scale, offset)), [(x, {"f": true})], [(x, {"f": wrong})], note)


def formula(rng: np.random.Generator) -> Case:
    """A known stage is reported with 500 times the value of its formula."""
    scale, middle = _scale(rng), _scale(rng)
    factor = scale / middle
    known = Stage("g", known=True, function=lambda f: factor * f, lipschitz=factor)
    x = float(rng.uniform())
    between = _sectioned(x, middle)
    right, wrong = {"f": between, "g": factor * between}, {"f": between, "g": 500 * factor * between}
    return Case(chain(_first(middle), known), [(x, right)], [(x, wrong)], f"values of {scale!r}")


def formula_alone(rng: np.random.Generator) -> Case:
    """A known stage is reported without its input, with twice its largest possible value."""
    scale, middle = _scale(rng), _scale(rng)
    factor = scale / middle
    known = Stage("g", known=True, function=lambda f: factor * f, lipschitz=factor)
    x = float(rng.uniform())
    right, wrong = {"g": factor * _sectioned(x, middle)}, {"g": 2 * scale}
    return Case(chain(_first(middle), known), [(x, right)], [(x, wrong)], f"values of {scale!r}")


def slope(rng: np.random.Generator) -> Case:
    """Two runs between which a stage rises at twice its Lipschitz constant."""
    scale, width = _scale(rng), _scale(rng)
    steepest = 0.7 * scale / width  # of scale·exp(−x²/2) it is 0.607·scale
    stage = Stage(
        "f", {"x": Real(0, width)}, kernel=SquaredExponential(width), norm_bound=10 * scale, lipschitz=steepest
    )
    a, b = 0.1 * width, float(rng.uniform(0.2, 1)) * width
    low, high = (_sectioned(x / width, scale) for x in (a, b))
    wrong = [(a, {"f": low}), (b, {"f": low + 2 * steepest * (b - a)})]
    return Case(chain(stage), [(a, {"f": low}), (b, {"f": high})], wrong, f"slope {steepest!r}")


def formula_slope(rng: np.random.Generator) -> Case:
    """A formula that is twice as steep as its Lipschitz constant."""
    scale, middle = _scale(rng), _scale(rng)
    factor = scale / middle

    def claiming(lipschitz: float) -> Network:
        return chain(_first(middle), Stage("g", known=True, function=lambda f: factor * f, lipschitz=lipschitz))

    runs = [(x, {"f": _sectioned(x, middle)}) for x in (0.1, 0.3, 0.5)]
    return Case(claiming(factor), runs, runs, f"slope {factor!r}", claiming(0.5 * factor))


def same_input(rng: np.random.Generator) -> Case:
    """The same controls with an output that differs in the sixth digit."""
    scale, x = _scale(rng), float(rng.uniform())
    value = _sectioned(x, scale)
    wrong = [(x, {"f": value}), (x, {"f": value * (1 + 1e-6)})]
    return Case(chain(_first(2 * scale)), [(x, {"f": value})] * 2, wrong, f"norm bound {2 * scale!r}")


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "objective alone": objective_alone,
    "objective alone, offset": offset_alone,
    "whole run": whole_run,
    "whole run, offset": whole_run_with_offset,
    "formula": formula,
    "formula alone": formula_alone,
    "slope": slope,
    "formula's slope": formula_slope,
    "same input": same_input,
}
