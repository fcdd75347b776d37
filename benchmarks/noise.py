"""Regret of the recommended setting if every output is read with noise and no norm is given, against other libraries.

    python -m benchmarks.noise [--seeds 20] [--runs 50] [--levels 1e-3,1e-2,1e-1] [--problems drop-wave,ackley]
        [--contestants cascada,optuna-gp,botorch-qlognei] [--records noise.jsonl] [--out FILE.md]

Every output of a process is read with independent Gaussian noise of a part, `level`, of its spread (the standard
deviation at 4,000 uniform random points); the true values are passed on between the stages. All contestants begin with
the same 2(d + 1) readings at uniform random points. cascada is told the readings of every stage (`error="estimate"`),
the others those of the objective, which is all that they use.

The regret is that of the true values, as a part of the objective's range (optimum − the smallest of the 4,000). The
recommended setting is cascada's, for Optuna `best_params` (the best reading), and for BoTorch the run with the best
posterior mean of its model. Because the best reading is a poor choice, the table also shows Optuna's runs with the
choice of a Gaussian process that is fitted to its readings, with noise, by cascada.

Records are appended to a file, and those that it contains are not computed again. The packages optuna, torch and
botorch are optional; contestants that lack theirs are left out.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, table, write_section
from cascada.arrays import Array
from cascada.calibration import Calibration
from cascada.calibration.fit import fit_output
from cascada.errors import CascadaError
from cascada.experiments.bench_run import initial_points
from cascada.experiments.peers import BoTorchPeer, OptunaPeer, from_unit, to_unit
from cascada.gp import Posterior
from cascada.network import Network
from cascada.network.noise import with_noise
from cascada.problems import PRACTICE, Problem, by_name
from cascada.space import Domain
from cascada.study import Study

NAME = "benchmarks.noise"
LEVELS = (1e-3, 1e-2, 1e-1)
SAMPLE = 4_000
CHOSEN_BY_MEAN = "optuna-gp, choice by mean"


@dataclass(frozen=True)
class Record:
    """The end of one run: true regrets as parts of the range, and CPU seconds."""

    problem: str
    level: float
    contestant: str
    seed: int
    runs: int
    regret: float | None  # None after an error
    by_mean: float | None  # of the run with the best mean by a Gaussian process of cascada
    repeats: int  # runs at a point that was run before
    seconds: float
    message: str = ""


class Contestant(Protocol):
    """Suggests points (d,) in user units, is told readings (V,), and recommends a point."""

    def ask(self) -> Array: ...

    def tell(self, point: Array, reading: Array) -> None: ...

    def recommended(self) -> Array: ...


class Cascada:
    """A study in which the noise of all stages is estimated."""

    def __init__(self, network: Network, seed: int) -> None:
        self._study = Study(with_noise(network, everywhere=True), seed=seed)
        self._asked: Any = None

    def ask(self) -> Array:
        self._asked = self._study.ask()
        return self._study.network.domain.row(self._asked.controls)

    def tell(self, point: Array, reading: Array) -> None:
        nodes = [node for node in self._study.network.nodes if not node.stage.known]
        outputs = {node.stage.name: reading[list(node.columns)].tolist() for node in nodes}
        asked, self._asked = self._asked, None
        if asked is None:
            asked = self._study.begin_trial(self._study.network.domain.named(point))
        self._study.tell(asked, outputs)
        if self._study.refuted:
            raise CascadaError(" ".join(self._study.certificate().evidence))

    def recommended(self) -> Array:
        found = self._study.recommended()
        assert found is not None, "there are complete runs"
        return self._study.network.domain.row(found)


class Optuna:
    """The sampler GPSampler with noise."""

    def __init__(self, network: Network, seed: int, initial: int) -> None:
        samplers = import_module("optuna").samplers
        sampler = samplers.GPSampler(seed=seed, n_startup_trials=initial, deterministic_objective=False)
        self._network, self._peer = network, OptunaPeer(network.domain, sampler)
        self._best: tuple[float, Array] | None = None

    def ask(self) -> Array:
        return self._peer.ask()

    def tell(self, point: Array, reading: Array) -> None:
        value = self._network.sign * float(reading[self._network.objective_column])
        self._peer.tell(point, value)
        if self._best is None or value > self._best[0]:
            self._best = value, point

    def recommended(self) -> Array:
        assert self._best is not None, "there are runs"
        return self._best[1]


class NoisyBoTorch(BoTorchPeer):
    """The loop of BoTorch with qLogNEI."""

    def recommended(self) -> Array:
        """The run with the best posterior mean."""
        torch, model = self._torch, self._model()
        with torch.no_grad():
            mean = model.posterior(torch.tensor(self._points, dtype=torch.float64)).mean
        return from_unit(self._domain, np.array(self._points[int(mean.argmax())]))

    def _score(self, model: Any, sampler: Any) -> Any:
        baseline = self._torch.tensor(self._points, dtype=self._torch.float64)
        module = import_module("botorch.acquisition.logei")
        return module.qLogNoisyExpectedImprovement(model, baseline, sampler=sampler, prune_baseline=True)


class BoTorch:
    """`NoisyBoTorch` on the readings of the objective."""

    def __init__(self, network: Network, seed: int) -> None:
        self._network, self._peer = network, NoisyBoTorch(network.domain, seed)

    def ask(self) -> Array:
        return self._peer.ask()

    def tell(self, point: Array, reading: Array) -> None:
        self._peer.tell(point, self._network.sign * float(reading[self._network.objective_column]))

    def recommended(self) -> Array:
        return self._peer.recommended()


CONTESTANTS: Mapping[str, tuple[Callable[[Network, int, int], Contestant], tuple[str, ...]]] = {
    "cascada": (lambda network, seed, _initial: Cascada(network, seed), ()),
    "optuna-gp": (Optuna, ("optuna", "torch")),
    "botorch-qlognei": (lambda network, seed, _initial: BoTorch(network, seed), ("torch", "botorch")),
}


@lru_cache
def spreads(name: str) -> tuple[Problem, Array, float]:
    """A problem, the standard deviation of every column, and the range of its objective."""
    problem = by_name(name)
    domain, network = problem.network.domain, problem.network
    points = np.random.default_rng(0).uniform(domain.lower, domain.upper, (SAMPLE, domain.dimension))
    values = problem.values(domain.decode(points))
    objective = network.sign * values[:, network.objective_column]
    spread = values.std(axis=0)
    spread[: domain.dimension] = 0.0
    return problem, spread, network.sign * problem.optimum[1] - float(objective.min())


def run(name: str, level: float, contestant: str, seed: int, runs: int) -> Record:
    """One run of a contestant; an exception ends it without a regret."""
    problem, spread, whole = spreads(name)
    network = problem.network
    first = initial_points(problem, 2 * (network.domain.dimension + 1), seed)
    rng = np.random.default_rng([seed, LEVELS.index(level) if level in LEVELS else 99, *name.encode()])
    started, points, readings = time.process_time(), [], []

    def regret(point: Array) -> float:
        value = network.sign * float(problem.objective(point[None])[0])
        return (network.sign * problem.optimum[1] - value) / whole

    def evaluate(point: Array) -> None:
        reading = problem.values(point[None])[0] + level * spread * rng.standard_normal(len(spread))
        points.append(point)
        readings.append(network.sign * float(reading[network.objective_column]))
        made.tell(point, reading)

    try:
        made = CONTESTANTS[contestant][0](network, seed, len(first))
        for point in first:
            evaluate(point)
        while len(points) < runs:
            evaluate(made.ask())
        chosen = made.recommended()
    except Exception as error:  # another library may raise anything
        seconds = time.process_time() - started
        return Record(name, level, contestant, seed, runs, None, None, 0, seconds, f"{type(error).__name__}: {error}")
    seconds = time.process_time() - started
    other = (
        regret(_by_mean(network.domain, np.array(points), np.array(readings))) if contestant == "optuna-gp" else None
    )
    repeats = runs - len({point.tobytes() for point in points})
    return Record(name, level, contestant, seed, runs, regret(chosen), other, repeats, seconds)


def _by_mean(domain: Domain, points: Array, values: Array) -> Array:
    """The run with the best mean of a Gaussian process with noise, fitted to points (n, d) and values (n,)."""
    inputs = np.array([to_unit(domain, point) for point in points])
    model = fit_output(inputs, values, np.ones(domain.dimension), Calibration(), None, noisy=True).general
    noise = np.full(len(inputs), max(1e-10, model.noise**2 / model.kernel.variance))
    posterior = Posterior.weighted(model.kernel, inputs, values - model.offset, noise)
    return points[int(posterior.mean(inputs)[:, 0].argmax())]


def report(command: str, records: Sequence[Record]) -> str:
    """The table of median regrets, how often cascada is ahead, and all errors."""
    names = [name for name in CONTESTANTS if any(record.contestant == name for record in records)]
    shown = [*names, CHOSEN_BY_MEAN] if "optuna-gp" in names else names
    rows, ahead = [], dict.fromkeys(shown, 0)
    cases = list(dict.fromkeys((record.problem, record.level) for record in records))
    for problem, level in cases:
        same = [record for record in records if (record.problem, record.level) == (problem, level)]
        regrets = {name: [r.regret for r in same if r.contestant == name and r.regret is not None] for name in names}
        regrets[CHOSEN_BY_MEAN] = [r.by_mean for r in same if r.by_mean is not None]
        medians = {name: median(values) for name, values in regrets.items() if values}
        cells = [_cell(name, medians) for name in shown]
        rows.append([problem, f"{level:g}", str(len(regrets.get("cascada", ()))), *cells])
        for name in shown:
            ahead[name] += "cascada" in medians and name in medians and medians["cascada"] < medians[name]
    errors = [f"- {r.problem}, {r.level:g}, {r.contestant}, seed {r.seed}: {r.message}" for r in records if r.message]
    seconds = {name: median(r.seconds for r in records if r.contestant == name) for name in names}
    runs = max(record.runs for record in records)
    counts = [f"{ahead[name]} of {len(cases)} ({name})" for name in shown if name != "cascada"]
    repeats = [r.repeats for r in records if r.contestant == "cascada" and r.regret is not None]
    return "\n".join(
        [
            "## Regret with noise",
            "",
            f"Median true regret of the recommended setting after {runs} runs, as a part of the objective's range, if "
            f"every output is read with noise of this part of its spread. The best of a row is bold. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(["problem", "noise", "seeds", *shown], rows),
            "",
            f"cascada has the smaller median in {', '.join(counts) or 'no comparison'}. CPU seconds of a run, median: "
            + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items())
            + (f". Repeated points of cascada, median: {median(repeats):g} of {runs}." if repeats else "."),
            "",
            *(["Errors:", "", *errors] if errors else ["No run ended with an error or a refutation."]),
        ]
    )


def _cell(name: str, medians: Mapping[str, float]) -> str:
    if name not in medians:
        return NONE
    text = f"{medians[name]:.2g}"
    return f"**{text}**" if medians[name] == min(medians.values()) else text


def main() -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m {NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--levels", default=",".join(f"{level:g}" for level in LEVELS))
    parser.add_argument("--problems", default=",".join(PRACTICE))
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--records", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    require_one_thread()
    known: dict[tuple[Any, ...], Record] = {}
    if given.records is not None and given.records.exists():
        for line in given.records.read_text(encoding="utf-8").splitlines():
            record = Record(**json.loads(line))
            known[record.problem, record.level, record.contestant, record.seed, record.runs] = record
    chosen = [name for name in given.contestants.split(",") if _installed(CONTESTANTS[name][1])]
    levels = [float(level) for level in given.levels.split(",")]
    records = []
    for seed, name, level, contestant in product(range(given.seeds), given.problems.split(","), levels, chosen):
        key = name, level, contestant, seed, given.runs
        if key not in known:
            known[key] = run(*key[:4], given.runs)
            if given.records is not None:
                with given.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(known[key])) + "\n")
        records.append(known[key])
    command = f"python -m {NAME} --seeds {given.seeds} --runs {given.runs} --problems {given.problems}"
    if given.contestants != ",".join(CONTESTANTS):
        command += f" --contestants {given.contestants}"
    text = report(command, records)
    print(text)
    if given.out:
        write_section(given.out, NAME, text)


def _installed(modules: Sequence[str]) -> bool:
    try:
        for module in modules:
            import_module(module)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main()
