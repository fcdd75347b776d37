"""`python -m tests.fuzz [--count N] [--seed S] [--jobs J]`: generate inputs and print what goes wrong."""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.checks import violations, violations_of_process
from tests.fuzz.inputs import case
from tests.fuzz.lab import Lab

_SHOWN = 600  # characters of an input
_PROCESSES = 100  # one of so many inputs is tried in a process of its own, too: starting one takes half a second


def part(seed: int, first: int, count: int, step: int) -> tuple[Counter[str], list[str]]:
    """Try every `step`-th input; return how many of each kind there were, and the violations."""
    kinds: Counter[str] = Counter()
    found = []
    with TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        for number in range(first, count, step):
            one = case(seed, number, lab)
            kinds[one.kind] += 1
            real = violations_of_process(lab, one) if number % _PROCESSES == 0 else []
            for text in [*violations(lab, one), *real]:
                found.append(f"input {number} ({one.kind}): {text}\n  {one!r:.{_SHOWN}}")
                print(found[-1], flush=True)
    return kinds, found


def main() -> None:
    """Read the options, try all inputs, and exit with 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    jobs = range(options.jobs)
    with ProcessPoolExecutor(options.jobs) as pool:
        done = list(pool.map(part, *zip(*((options.seed, j, options.count, options.jobs) for j in jobs), strict=True)))
    kinds = sum((counted for counted, _ in done), Counter[str]())
    found = [text for _, texts in done for text in texts]
    made = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{kinds.total()} inputs with seed {options.seed} ({made}): {len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
