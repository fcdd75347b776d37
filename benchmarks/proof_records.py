"""The command line of benchmarks of proofs, which keep every proof in a file and go on from there when run again."""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from benchmarks.environment import require_one_thread
from benchmarks.markdown import write_section
from benchmarks.read_search import Proof

Case = TypeVar("Case")


class Records:
    """Proofs by what was proven, in memory and in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self._known: dict[str, Proof] = {}
        for line in lines:
            found = json.loads(line)
            key = found.pop("key")
            self._known[key] = Proof(**(found | {"gaps": tuple(found["gaps"])}))

    def proof(self, key: str, prove: Callable[[], Proof]) -> Proof:
        """The recorded proof, or a new one, which is recorded."""
        if key not in self._known:
            self._known[key] = prove()
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key} | asdict(self._known[key])) + "\n")
        return self._known[key]

    def proofs(self, cases: Sequence[Case], seeds: int, prove: Callable[[Case, int], Proof]) -> list[list[Proof]]:
        """The proofs of all seeds for every case; all cases of one seed are proven before the next seed."""
        for seed in range(seeds):
            for case in cases:
                self._of(case, seed, prove)
        return [[self._of(case, seed, prove) for seed in range(seeds)] for case in cases]

    def _of(self, case: Case, seed: int, prove: Callable[[Case, int], Proof]) -> Proof:
        return self.proof(f"{case}, seed {seed}", lambda: prove(case, seed))


def print_or_write_proofs(
    name: str,
    description: str | None,
    report: Callable[[str, int, Records, Sequence[str]], str],
    seeds: int,
    tables: Sequence[str] = (),
) -> None:
    """Print a report about as many seeds as --seeds says and write it to the file given by --write.

    `tables`: the names of its tables, of which some may be chosen with --tables.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--records", type=Path, help="a file of finished proofs, which are not computed again")
    parser.add_argument("--write", type=Path)
    if tables:
        parser.add_argument("--tables", default=",".join(tables), help="only these, with commas between them")
    given = parser.parse_args()
    chosen = [table for table in tables if table in given.tables.split(",")] if tables else []
    require_one_thread()
    command = f"python -m {name} --seeds {given.seeds}"
    command += f" --tables {','.join(chosen)}" if len(chosen) < len(tables) else ""
    text = report(command, given.seeds, Records(given.records), chosen)
    print(text)
    if given.write:
        write_section(given.write, name, text)
