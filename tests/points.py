"""Suggested points of algorithms on built-in problems, recorded to the last bit.

    python -m tests.points record [--cases TEXT] [--jobs 2] [--seconds 8] [--fresh]
    python -m tests.points check  [--cases TEXT] [--jobs 2] [--kinds memory,sqlite,postgresql] [--url URL]

`record` writes tests/data/points.json. It keeps finished cases in build/points.jsonl, so that an interrupted recording
goes on where it stopped. The file in the repository has the cases of tests/test_points.py. Before a change that must
keep all points, all cases are recorded (more than an hour on two cores); they are checked after it. `check` runs the
same cases with the present code, prints every difference and exits with 1 if there is one. A case is
"problem/algorithm/seed"; `--cases` selects those that contain one of the given texts, separated by commas: `--cases
certified,drop-wave/gpn_ei`.

A case runs the process by ask and tell until `MOST` suggestions follow the initial design (which only networks without
norm bounds have), and then asks for the certificate. A slow case has fewer suggestions, but at least `LEAST`; the file
says how many. Every case has two sequences: "memory" of `Study(network)`, which keeps search trees between two
suggestions, and "stored" of `Study.open(url, name, network)`, whose points follow from the log alone.

Bits depend on the processor and on the libraries. The file says where it was recorded, and `check` warns elsewhere.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from cascada import Calibration, CascadaError, Network, Study
from cascada.algorithms import NAMES
from cascada.problems import PROBLEMS, SIMULATORS, by_name
from cascada.process import Process
from tests.environment import environment

FILE = Path(__file__).parent / "data" / "points.json"
UNFINISHED = Path("build") / "points.jsonl"
KINDS = ("memory", "sqlite", "postgresql")
SEEDS = (0, 1, 2)
MOST, LEAST = 8, 3  # suggestions after the design
WORDS = 8  # of an error that are compared: numbers in the rest may be rounded otherwise

Open = Callable[[Network, str, int], Any]  # network, algorithm, seed → a new study
Record = dict[str, Any]


def cases() -> list[str]:
    """The names of all cases; those with most controls first, so that no process is left alone with them at the end."""
    here = [problem for problem in PROBLEMS if problem not in SIMULATORS]  # no run needs what may not be installed
    controls = {problem: len(by_name(problem).network.controls) for problem in here}
    problems = sorted(here, key=lambda problem: -controls[problem])
    return [f"{problem}/{algorithm}/{seed}" for problem in problems for algorithm in NAMES for seed in SEEDS]


def design(network: Network) -> int:
    """The number of points that come before the first one that follows from data."""
    return Calibration().first(network) if network.estimated else 0


# ---- one case


def sequence(case: str, opened: Open, after: int, seconds: float = float("inf")) -> Record:
    """The points of a case with at most `after` suggestions after the design, and the bound at the end.

    Once `seconds` of processor time are over, `LEAST` suggestions are enough.
    """
    problem, algorithm, seed = case.split("/")
    network = by_name(problem).network
    made: Record = {"points": []}
    with threadpool_limits(1, user_api="blas"), ExitStack() as stack:
        try:
            study = opened(network, algorithm, int(seed))
            if hasattr(study, "close"):
                stack.callback(study.close)
            ended = extend(made["points"], study, network, after, seconds)
            certificate = study.certificate()
        except CascadaError as error:  # the library refuses the pair, or what was told
            return made | {"ended": " ".join(f"{type(error).__name__}: {error}".split()[:WORDS])}
    bound = None if certificate.bound is None else float(certificate.bound).hex()
    return made | {"bound": bound, "kind": certificate.kind} | ({"ended": "no point is worth a run"} if ended else {})


def extend(points: list[list[str]], study: Any, network: Network, after: int, seconds: float) -> bool:
    """Ask and tell, and append the points; whether the study ended before."""
    process, first, started = Process(network), design(network), time.process_time()
    while len(points) < first + after:
        if len(points) >= first + LEAST and time.process_time() - started > seconds:
            break
        trial = study.ask()
        if trial is None:
            return True
        points.append([float(value).hex() for value in network.domain.row(trial.controls)])
        study.tell(trial, process(trial.controls))
    return False


def options(network: Network, algorithm: str, seed: int) -> dict[str, Any]:
    """What the study of a case is made with."""
    planned = algorithm == "non_adaptive"  # the only one that has to know the number of runs
    return {"algorithm": algorithm, "seed": seed} | ({"horizon": design(network) + MOST} if planned else {})


def in_memory(network: Network, algorithm: str, seed: int) -> Study:
    return Study(network, **options(network, algorithm, seed))


def in_store(url: str, name: str, network: Network, algorithm: str, seed: int) -> Any:
    return Study.open(url, name, network, **options(network, algorithm, seed))


@contextmanager
def opener(kind: str, url: str | None) -> Iterator[Open]:
    """A function that opens a new study of this kind."""
    if kind == "memory":
        yield in_memory
    elif kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield partial(in_store, f"sqlite:///{folder}/points.db", "points")
    else:
        assert url is not None, "a server is started before"
        yield partial(in_store, url, f"points {uuid4().hex}")


def run(kind: str, url: str | None, case: str, after: int, seconds: float = float("inf")) -> Record:
    with opener(kind, url) as opened:
        return sequence(case, opened, after, seconds)


# ---- recording


def recorded_case(case: str, seconds: float) -> tuple[str, Record]:
    """Both sequences of a case, once if they are equal, and the processor time that they took."""
    started = time.process_time()
    first = design(by_name(case.partition("/")[0]).network)
    memory = run("memory", None, case, MOST, seconds)
    after = max(len(memory["points"]) - first, 0) if "ended" not in memory else MOST
    stored = run("sqlite", None, case, after)
    both = {"both": memory} if memory == stored else {"memory": memory, "stored": stored}
    return case, {"after": after, **both, "seconds": round(time.process_time() - started, 1)}


def record(chosen: list[str], jobs: int, seconds: float, fresh: bool) -> None:
    UNFINISHED.parent.mkdir(exist_ok=True)
    if fresh:
        UNFINISHED.unlink(missing_ok=True)
    done = dict(json.loads(line) for line in UNFINISHED.read_text().splitlines()) if UNFINISHED.exists() else {}
    left = [case for case in chosen if case not in done]
    with UNFINISHED.open("a") as file:
        for case, made in each(partial(recorded_case, seconds=seconds), left, jobs):
            done[case] = made
            file.write(json.dumps([case, made]) + "\n")
            file.flush()
            print(f"{case}: {made['after']} after the design, {made['seconds']} s", flush=True)
    write({case: done[case] for case in sorted(done)})


def write(done: dict[str, Record]) -> None:
    """All cases, one in a line; what several have in common is written once."""
    designs: dict[str, list[list[str]]] = {}
    lines: dict[str, str] = {}
    seen: dict[tuple[str, str], str] = {}
    for case, made in done.items():
        problem = case.partition("/")[0]
        text = packed(made, designs.setdefault(problem, design_points(problem, done)))
        same = seen.setdefault((problem, text), case)
        lines[case] = text if same == case else dumped({"as": same})
    with FILE.open("w", encoding="utf-8") as file:
        file.write('{"environment": ' + dumped(environment()) + ',\n"designs": {\n')
        file.write(",\n".join(f"{dumped(name)}: {dumped(points)}" for name, points in designs.items() if points))
        file.write('\n},\n"cases": {\n')
        file.write(",\n".join(f"{dumped(case)}: {text}" for case, text in lines.items()))
        file.write("\n}}\n")


def design_points(problem: str, done: dict[str, Record]) -> list[list[str]]:
    """The design that most cases of a problem begin with."""
    network = by_name(problem).network
    made = next((made for case, made in done.items() if case.startswith(f"{problem}/gpn_ei/")), None)
    return [] if made is None else points_of(made)[: design(network)]


def points_of(made: Record) -> list[list[str]]:
    found: list[list[str]] = (made.get("both") or made["memory"])["points"]
    return found


def packed(made: Record, first: list[list[str]]) -> str:
    def without(part: Record) -> Record:
        begins = first and part["points"][: len(first)] == first
        return {"design": True, **part, "points": part["points"][len(first) :]} if begins else part

    kept = {"after": made["after"]}
    return dumped(kept | {name: without(made[name]) for name in ("both", "memory", "stored") if name in made})


def dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


# ---- checking


def recorded() -> dict[str, Any]:
    """The file: the environment it was recorded in, and the cases."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    designs, packed_cases = found["designs"], found["cases"]

    def whole(case: str, part: Record) -> Record:
        if "design" not in part:
            return part
        points = designs[case.partition("/")[0]] + part["points"]
        return {key: value for key, value in part.items() if key != "design"} | {"points": points}

    unpacked: dict[str, Record] = {}
    for case in packed_cases:
        made = packed_cases[packed_cases[case].get("as", case)]
        memory = made.get("both") or made["memory"]
        stored = made.get("both") or made["stored"]
        unpacked[case] = {"after": made["after"], "memory": whole(case, memory), "stored": whole(case, stored)}
    return {"environment": found["environment"], "cases": unpacked}


def differences(expected: Record, made: Record) -> list[str]:
    """Where a sequence differs from the recorded one, in words."""
    found = []
    for i in range(max(len(expected["points"]), len(made["points"]))):
        was, now = (part["points"][i] if i < len(part["points"]) else "none" for part in (expected, made))
        if was != now:
            found.append(f"point {i}: recorded {shown(was)}, now {shown(now)}")
    ends = [key for key in ("bound", "kind", "ended") if expected.get(key) != made.get(key)]
    return found + [f"{key}: recorded {shown(expected.get(key))}, now {shown(made.get(key))}" for key in ends]


def shown(value: Any) -> str:
    """A value with its numbers in both notations."""
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{value} ({float.fromhex(value)!r})" if isinstance(value, str) and "0x" in value else str(value)


def checked_case(case_kind: tuple[str, str], expected: dict[str, Record], url: str | None) -> tuple[str, list[str]]:
    case, kind = case_kind
    wanted = expected[case]
    made = run(kind, url, case, wanted["after"])
    return f"{case} ({kind})", differences(wanted["memory" if kind == "memory" else "stored"], made)


def check(chosen: list[str], kinds: list[str], jobs: int, url: str | None) -> int:
    """Print every difference; the number of sequences that differ."""
    file = recorded()
    if file["environment"] != environment():
        print(f"warning: recorded in {file['environment']}; this is {environment()}. Bits may differ.", flush=True)
    expected = {case: file["cases"][case] for case in chosen if case in file["cases"]}
    if len(expected) < len(chosen):
        print(f"warning: {len(chosen) - len(expected)} of the chosen cases are not recorded.", flush=True)
    wrong = 0
    with ExitStack() as stack:
        if "postgresql" in kinds and url is None:
            from tests.store.servers import postgres

            url = stack.enter_context(postgres())
        wanted = [(case, kind) for case in expected for kind in kinds]
        for name, found in each(partial(checked_case, expected=expected, url=url), wanted, jobs):
            wrong += bool(found)
            for text in found:
                print(f"{name}: {text}", flush=True)
    print(f"{len(wanted)} sequences of {len(expected)} cases, {wrong} differ.")
    return wrong


# ---- the command line


def each(work: Callable[[Any], Any], items: Iterable[Any], jobs: int) -> Iterator[Any]:
    """What `work` gives for every item, in any order."""
    if jobs == 1:
        yield from map(work, items)
        return
    from concurrent.futures import as_completed

    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("record", "check"))
    parser.add_argument("--cases", default="", metavar="TEXT,...")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="memory,sqlite", metavar=",".join(KINDS))
    parser.add_argument("--url", help="an empty PostgreSQL database; by default a server is started")
    parser.add_argument("--seconds", type=float, default=8.0, help="processor time after which LEAST points do")
    parser.add_argument("--fresh", action="store_true", help="record all cases anew")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    if not set(kinds) <= set(KINDS):
        parser.error(f"--kinds takes {', '.join(KINDS)}; got {given.kinds!r}")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = [case for case in cases() if any(text in case for text in given.cases.split(","))]
    if not chosen:
        parser.error(f"no case contains {given.cases!r}; one is {cases()[0]!r}")
    if given.do == "record":
        record(chosen, given.jobs, given.seconds, given.fresh)
        return 0
    return 1 if check(chosen, kinds, given.jobs, given.url) else 0


if __name__ == "__main__":
    sys.exit(main())
