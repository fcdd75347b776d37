"""CPU time and runs to a proven gap, against another version of the library in the same run.

    git worktree add ../before <commit>
    python -m benchmarks.cells --before ../before/src [--seeds 10] [--first 20] [--write docs/performance.md]

Both versions prove the same gaps on the same processes, each in a process of its own. Runs are paired by seed.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import table, times, write_section
from benchmarks.proof import CASES, Case, Proof, prove, reach_cases

NAME = "benchmarks.cells"
SMALL = ("chain", "chain-3d", "controls", "feed-forward", "feed-forward-3", "multi-output")
LARGE = ("controls-4d", "chain, d = 4, m = 3", "one control at each of 5 stages")
SEEDS_OF_LARGE = 4
MOST_SECONDS = 300.0  # of computation for one optimisation

HEADER = (
    "structure",
    "seeds",
    "proven: before, now",
    "runs (median): before, now",
    "fewer, equal, more runs",
    "CPU of all: before, now (s)",
    "CPU ratio of all",
    "median ratio of a seed",
)


def case_named(name: str) -> Case:
    """A case of `benchmarks.proof`, with the time limit of this benchmark."""
    case = next(case for case in (*CASES, *reach_cases()) if case.name == name)
    return Case(case.structure, case.tolerance, None, most_seconds=MOST_SECONDS)


def proof_by(source: Path, name: str, seed: int) -> Proof:
    """The proof that the library in the folder `source` finds, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source.resolve()), str(Path.cwd())])}
    command = [sys.executable, "-m", NAME, "--prove", name, str(seed)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Proof(**json.loads(done.stdout))


def row(before: Path, now: Path, name: str, seeds: range, pool: ThreadPoolExecutor) -> list[str]:
    # Both versions of a seed run side by side, so that other load on the machine slows both.
    jobs = [(source, seed) for seed in seeds for source in (before, now)]
    proofs = list(pool.map(lambda job: proof_by(job[0], name, job[1]), jobs))
    old, new = proofs[::2], proofs[1::2]
    more = np.sign([b.runs - a.runs for a, b in zip(old, new, strict=True)])
    spent = [sum(proof.seconds for proof in side) for side in (old, new)]
    return [
        name,
        f"{seeds.start}–{seeds.stop - 1}",
        ", ".join(str(sum(proof.proven for proof in side)) for side in (old, new)),
        ", ".join(f"{np.median([proof.runs for proof in side]):g}" for side in (old, new)),
        ", ".join(str(int((more == sign).sum())) for sign in (-1, 0, 1)),
        ", ".join(f"{seconds:.1f}" for seconds in spent),
        times(spent[0] / spent[1]),
        times(float(np.median([a.seconds / b.seconds for a, b in zip(old, new, strict=True)]))),
    ]


def report(command: str, before: Path, first: int, seeds: int) -> str:
    """The section for docs/performance.md."""
    now = Path(__file__).parent.parent / "src"
    with ThreadPoolExecutor(2) as pool:
        one = partial(row, before, now, pool=pool)
        rows = [one(name, seeds=range(first, first + seeds)) for name in SMALL]
        rows += [one(name, seeds=range(first, first + min(seeds, SEEDS_OF_LARGE))) for name in LARGE]
    return "\n".join(
        [
            "## Cells: CPU to the same proofs",
            "",
            "The cases of the section above with this version and with the one before cells were bounded in growing",
            "batches; a ratio above 1 means that this version takes less. A proof that is not reached counts with its",
            f"100 runs, or with what was done in {MOST_SECONDS:g} s. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of the version to compare with")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--prove", nargs=2, metavar=("CASE", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    require_one_thread()
    if given.prove:
        print(json.dumps(asdict(prove(case_named(given.prove[0]), int(given.prove[1])))))
        return
    if given.before is None:
        parser.error("--before is needed: the src folder of the version to compare with")
    text = report(
        f"python -m {NAME} --before ../before/src --seeds {given.seeds}", given.before, given.first, given.seeds
    )
    print(text)
    if given.write:
        write_section(given.write, NAME, text)


if __name__ == "__main__":
    main()
