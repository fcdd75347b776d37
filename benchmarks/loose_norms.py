"""Value and proof where norm bounds are larger than necessary: GPN-UCB alone, mixed with runs at the mean, and GPN-EI.

    python -m benchmarks.loose_norms [--seeds 20] [--write docs/performance.md]

Three comparisons, paired by seed. The process of the tutorial and variants of it with other optima, 14 runs, norm
bounds times 1 to 8. Two networks with four controls and random stages, norm bounds times 1 and 4. And the runs to a
proven gap with true norms, on the processes of `benchmarks.proof`.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import table
from benchmarks.proof import CASES, Case
from cascada.algorithms import GPNEI, GPNUCB, Algorithm, GPNMixed
from cascada.arrays import Array
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.problems import certified
from cascada.problems.certified_problem import StagePlan, Wiring
from cascada.space import Real
from cascada.study import maximise

NAME = "benchmarks.loose_norms"
ALGORITHMS: dict[str, Callable[[], Algorithm]] = {"GPN-UCB": GPNUCB, "mixed": GPNMixed, "GPN-EI": GPNEI}
TUTORIAL_RUNS, NETWORK_RUNS = 14, 30
PROVEN = ("chain", "chain-3d", "controls", "feed-forward", "feed-forward-3", "multi-output")
NETWORKS = (
    Wiring("two branches that meet", (StagePlan(("w", "x")), StagePlan(("y", "z")), StagePlan((), (0, 1)))),
    Wiring(
        "a diamond with a control at each stage",
        (StagePlan(("w",)), StagePlan(("x",), (0,)), StagePlan(("y",), (0,)), StagePlan(("z",), (1, 2))),
    ),
)


@dataclass(frozen=True)
class End:
    """The end of an optimisation: the best value, the proven gap, and the number of runs."""

    value: float
    gap: float
    runs: int


def tile(seed: int, factor: float) -> Network:
    """The tutorial's process (seed 0), or a variant of it with another optimum, with norm bounds times `factor`.

    The maximum is 40 in all of them.
    """
    rng = np.random.default_rng(seed)
    hot, moist, strong = (60.0, 4.5, 44.0) if seed == 0 else rng.uniform((60, 3, 20), (120, 7, 50))

    def dry(temperature: float) -> float:
        return 2 + 6 * math.exp(-0.5 * ((temperature - hot) / 20) ** 2)

    def press(moisture: float, force: float) -> float:
        return 40 * math.exp(-0.5 * (((moisture - moist) / 2) ** 2 + ((force - strong) / 15) ** 2))

    return chain(
        Stage(
            "dryer",
            controls={"temperature": Real(60, 140)},
            outputs=["moisture"],
            kernel=SquaredExponential(20),
            offset=2.0,
            norm_bound=8.0 * factor,
            function=dry,
        ),
        Stage(
            "press",
            controls={"force": Real(10, 60)},
            outputs=["strength"],
            kernel=SquaredExponential((2, 15)),
            norm_bound=50.0 * factor,
            function=press,
        ),
    )


def loosened(network: Network, factor: float) -> Network:
    """The same network with norm bounds times `factor`."""
    stages = [node.stage for node in network.nodes]
    wide = [replace(stage, norm_bound=factor * np.asarray(stage.norm_bound)) for stage in stages]
    last = stages[-1]
    return Network(wide, objective=f"{last.name}.{last.outputs[-1]}")


def end(network: Network, algorithm: str, runs: int, tolerance: float | None = None) -> End:
    result = maximise(network, algorithm=ALGORITHMS[algorithm](), budget=runs, tolerance=tolerance, progress=False)
    assert result.best is not None, "every run of these processes succeeds"
    assert result.best.value is not None, "the best run is complete"
    assert result.gap is not None, "norms are given"
    return End(result.best.value, result.gap, len(result.trials))


def tile_end(algorithm: str, factor: float, seed: int) -> End:
    return end(tile(seed, factor), algorithm, TUTORIAL_RUNS)


def network_end(wiring: Wiring, algorithm: str, factor: float, seed: int) -> End:
    return end(loosened(certified(wiring, seed).network, factor), algorithm, NETWORK_RUNS)


def proof_end(case: Case, algorithm: str, seed: int) -> End:
    return end(certified(case.structure, seed).network, algorithm, 100, case.tolerance)


def interval(values: Array) -> str:
    """The mean with a 95 % interval from its standard error."""
    error = 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return f"{values.mean():+.2f} ± {error:.2f}"


def tile_rows(seeds: int, pool: ProcessPoolExecutor) -> list[list[str]]:
    rows = []
    for factor in (1, 2, 4, 8):
        ends = {name: list(pool.map(partial(tile_end, name, factor), range(seeds))) for name in ALGORITHMS}
        alone, mixed = (np.array([e.gap for e in ends[name]]) for name in ("GPN-UCB", "mixed"))
        rows.append(
            [
                f"{factor}",
                *(f"{e[0].value:.3f}" for e in ends.values()),
                f"{mixed[0]:.3g} / {alone[0]:.3g}",
                *(_least_and_median([e.value for e in side]) for side in ends.values()),
                # A gap of less than a thousandth of the maximum is as good as none.
                f"{np.median(np.maximum(mixed, 0.04) / np.maximum(alone, 0.04)):.2f}",
            ]
        )
    return rows


def _least_and_median(values: Sequence[float]) -> str:
    return f"{min(values):.2f}, {np.median(values):.2f}"


def network_rows(seeds: int, pool: ProcessPoolExecutor) -> list[list[str]]:
    rows = []
    for wiring in NETWORKS:
        for factor in (1, 4):
            ends = {
                name: list(pool.map(partial(network_end, wiring, name, factor), range(seeds))) for name in ALGORITHMS
            }
            values = {name: np.array([e.value for e in side]) for name, side in ends.items()}
            rows.append(
                [
                    wiring.summary,
                    f"{factor}",
                    *(f"{np.median(values[name]):.4f}" for name in ALGORITHMS),
                    interval(100 * (values["mixed"] - values["GPN-EI"]) / np.abs(values["GPN-EI"])) + " %",
                    *(f"{np.median([e.gap for e in side]):.3g}" for side in ends.values()),
                ]
            )
    return rows


def proof_rows(seeds: int, pool: ProcessPoolExecutor) -> list[list[str]]:
    rows = []
    for case in CASES:
        if case.name not in PROVEN:
            continue
        alone, mixed = (
            np.array([e.runs for e in pool.map(partial(proof_end, case, name), range(seeds))])
            for name in ("GPN-UCB", "mixed")
        )
        more = mixed - alone
        rows.append(
            [
                case.name,
                f"{case.tolerance:g}",
                f"{np.median(alone):g}",
                f"{np.median(mixed):g}",
                interval(more.astype(float)),
                ", ".join(str(int(n)) for n in ((more < 0).sum(), (more == 0).sum(), (more > 0).sum())),
            ]
        )
    return rows


def report(command: str, seeds: int) -> str:
    """The section for docs/performance.md."""
    with ProcessPoolExecutor(2) as pool:
        tiles, networks, proofs = (rows(seeds, pool) for rows in (tile_rows, network_rows, proof_rows))
    return "\n".join(
        [
            "## Value and proof with loose norm bounds",
            "",
            "`auto` with given norms (`mixed`: GPN-UCB mixed with runs at the maximum of the composite mean), GPN-UCB",
            "alone, and GPN-EI. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            f"The process of the tutorial (maximum 40) after {TUTORIAL_RUNS} runs, with norm bounds times a factor;",
            f"then the least and the median best value of {seeds} processes: the tutorial's and variants of it with",
            "other optima. The last column is the median ratio of their proven gaps.",
            "",
            table(
                (
                    "factor",
                    *(f"best, {name}" for name in ALGORITHMS),
                    "gap, mixed / GPN-UCB",
                    *(f"variants, {name}" for name in ALGORITHMS),
                    "gap ratio of variants",
                ),
                tiles,
            ),
            "",
            f"Two networks with four controls and stages of norm 2, {seeds} each, after {NETWORK_RUNS} runs: medians",
            "of the best value and of the proven gap, and the mean difference in value to GPN-EI with a 95 % interval.",
            "",
            table(
                (
                    "network",
                    "factor",
                    *(f"best, {name}" for name in ALGORITHMS),
                    "mixed − GPN-EI",
                    *(f"gap, {name}" for name in ALGORITHMS),
                ),
                networks,
            ),
            "",
            f"Runs to a proven gap with true norms, {seeds} processes each (`benchmarks.proof`): medians, and the mean",
            "of the paired differences with a 95 % interval.",
            "",
            table(
                ("structure", "gap", "GPN-UCB", "mixed", "mixed − GPN-UCB", "fewer, equal, more runs"),
                proofs,
            ),
        ]
    )


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 20)
