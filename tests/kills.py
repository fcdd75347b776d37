"""Kills from outside: runners and workers are killed at random moments, and servers restarted; nothing may be lost.

    python -m tests.kills [--kills 500] [--seed 0] [--stores sqlite,postgresql] [--steps]

Rounds of `cascada run` and `cascada worker` on one study, several at once, each killed (SIGKILL) and started again
until all trials are complete. The processes are forked from one that has imported the library, so that the kills hit
the work and not the imports. Every tell that has returned leaves a line in a file of its own, outside the store, before
anything else happens. After every kill and at the end of a round, the log must continue the log that was read before,
hold everything that such a line says was told, each output once and with the value that the process gives, and have
begun the trials in the order of their numbers. At the end all trials must be complete. With --steps stages are run one
at a time, until a budget in money is spent: then every step must be charged once, and no portion be used twice.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from cascada.kernels import SquaredExponential
from cascada.network import Stage, chain
from cascada.space import Grid, Real
from cascada.store.database import Store
from cascada.store.event import Event, same_events
from cascada.study import Study
from cascada.study.state import State
from cascada.study.step_trial import inputs_of
from tests.store.servers import Server, new_database, postgres_server
from tests.waiting import LONG

AT_ONCE, BUDGET = 3, 20
LIFE = 0.6  # seconds after which a process that has read the description of its work is killed at the latest
RESTARTS = 12  # kills per restart of the server
PROCESS = """
import os, time
import cascada as cd
from cascada.study.study import Study

folder = os.path.dirname(__file__)
open(os.path.join(folder, f"begun-{os.getpid()}"), "w").close()
out = os.open(os.path.join(folder, "told"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
tell = Study.tell

def witnessed(study, trial, outputs, **more):
    found = tell(study, trial, outputs, **more)
    lines = [f"{study.name} {found.number} {stage} {found.outputs[stage][0]!r}\\n" for stage in outputs]
    os.write(out, "".join(lines).encode())
    return found

Study.tell = witnessed

def heat(x):
    time.sleep(0.02)
    return 0.3 * x

def quench(heat):
    time.sleep(0.02)
    return 0.5 - heat

kernel = cd.SquaredExponential(1.0)
network = cd.chain(
    cd.Stage("heat", controls={"x": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0, function=heat),
    cd.Stage("quench", kernel=kernel, norm_bound=4.0, function=quench),
)
"""

KERNEL = SquaredExponential(1.0)
NETWORK = chain(  # the same
    Stage("heat", controls={"x": Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0),
    Stage("quench", kernel=KERNEL, norm_bound=4.0),
)
# The same as stages that are run one at a time, with a budget in money; an output of the first feeds two runs.
COSTS, MONEY = {"heat": 3.0, "quench": 1.0}, 36.0
STEPS = PROCESS.replace("function=heat", "function=heat, cost=3, portions=2").replace(
    "function=quench", 'function=quench, reachable="stock"'
)
STEPWISE = chain(
    Stage("heat", controls={"x": Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0, cost=3, portions=2),
    Stage("quench", kernel=KERNEL, norm_bound=4.0, reachable="stock"),
)


@dataclass
class Tally:
    """What was done, and what was found wrong."""

    kills: int = 0
    rounds: int = 0
    restarts: int = 0
    told: int = 0  #: outputs whose tell returned
    unopened: int = 0  #: processes that could not open the store, during a restart
    taken_up: int = 0  #: trials that another process took up
    wrong: list[str] = field(default_factory=list)


def command(arguments: Sequence[str], out: str) -> None:
    """Call the command line in this process, with its output in a file."""
    file = os.open(out, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    from cascada.cli.main import app

    app(list(arguments))


class Attack:
    """Kills on one store, in a folder for the process and what its runs leave."""

    def __init__(
        self, url: str, folder: Path, seed: int, server: Server | None, restarts: int, *, steps: bool = False
    ) -> None:
        self._url, self._folder, self._server, self._restarts, self._steps = url, folder, server, restarts, steps
        self._rng = random.Random(seed)
        self._context = multiprocessing.get_context("forkserver")
        imported = ["cascada.cli.run", "cascada.cli.worker", "cascada.specs.spec", "cascada.study.loop"]
        self._context.set_forkserver_preload(["__main__", __name__, *imported, "cascada.study.catalogue"])
        self.tally = Tally()
        self._log: list[Event] = []
        self._starts = 0
        (folder / "process.py").write_text(STEPS if steps else PROCESS)

    def round(self, most: int) -> None:
        """Run one study to its end, with at most this many kills."""
        name = f"study-{self.tally.rounds}"
        self._log = []
        if self._steps:
            Study.open(self._url, name, STEPWISE).close()
        else:
            # With candidates the certificate, which each process computes in the end, takes no search.
            Study.open(self._url, name, NETWORK, algorithm="random_search", candidates=Grid({"x": 401})).close()
        before, slots = self.tally.kills, [self._started(name, i) for i in range(AT_ONCE)]
        try:
            while self.tally.kills < before + most and not self._is_complete():
                i = self._rng.randrange(AT_ONCE)
                self._killed(slots[i])
                self._look(name)
                slots[i] = self._started(name, i)
                if self._server is not None and self.tally.kills // self._restarts > self.tally.restarts:
                    self._server.restart()
                    self.tally.restarts += 1
            for process in slots:
                self._ended(process)
        finally:
            for process in slots:
                process.kill()
        self._ended(self._started(name, AT_ONCE))  # without a restart of the server
        self._look(name)
        if not self._is_complete():
            left = "money is left" if self._steps else "not every trial is complete"
            self.tally.wrong.append(f"{name}: {left}")
        self.tally.rounds += 1
        self.tally.told += len(self._witnessed(name))
        self.tally.taken_up += sum(event.kind == "expired" for event in self._log)

    def _started(self, study: str, number: int) -> BaseProcess:
        """Start a runner or a worker, each second one of each kind, now and then with processes for its runs."""
        kind = ("run", "worker")[number % 2]
        arguments = [kind, f"{self._folder / 'process.py'}:network", "--storage", self._url, "--study", study]
        budget = ["--budget-cost", str(MONEY)] if self._steps else ["--budget", str(BUDGET)]
        arguments += [*budget, "--worker", f"{kind} {number}", "--json"]
        if kind == "run":  # else it ends as soon as the gap is small
            arguments += ["--tolerance", "0"]
        if self._rng.random() < 0.1:
            arguments += ["--jobs", "2"]
        self._starts += 1
        out = self._folder / f"out-{self._starts}"
        process = self._context.Process(target=command, args=(arguments, str(out)), name=str(out))
        process.start()
        return process

    def _killed(self, process: BaseProcess) -> None:
        """Kill a process some time after it has begun; one that ends before must have done all its work."""
        begun, end = self._folder / f"begun-{process.pid}", time.monotonic() + LONG
        while not begun.exists() and process.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(self._rng.uniform(0.0, LIFE))
        process.kill()
        process.join(LONG)
        if process.exitcode == -signal.SIGKILL:
            self.tally.kills += 1
        elif process.exitcode != 0:
            self._failed(process)

    def _ended(self, process: BaseProcess) -> None:
        process.join(LONG)
        if process.exitcode != 0:
            self._failed(process)

    def _failed(self, process: BaseProcess) -> None:
        said = Path(process.name).read_text()[-1000:]
        if self._server is not None and "cascada: cannot open the store: " in said:
            self.tally.unopened += 1  # it was started while the server was away: an error, and nothing is lost
        else:
            self.tally.wrong.append(f"a process ended with {process.exitcode}: {said}")

    def _is_complete(self) -> bool:
        if self._steps:
            told = [stage for event in self._log for stage in event.data.get("outputs", {})]
            return sum(COSTS[stage] for stage in told) > MONEY - max(COSTS.values())
        return sum(event.kind == "told" for event in self._log) >= BUDGET

    def _witnessed(self, study: str) -> set[tuple[int, str, float]]:
        """What was told for sure: lines that were written whole, after the tell had returned."""
        file = self._folder / "told"
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        found = [line.split() for line in lines]
        return {(int(trial), stage, float(value)) for name, trial, stage, value in found if name == study}

    def _look(self, study: str) -> None:
        """Compare the log with what was read and told before."""
        witnessed = self._witnessed(study)  # before the log is read
        store = Store(self._url)
        try:
            log = store.get(study)[1]
        finally:
            store.close()
        found = [*wrong_with(self._log, log, witnessed), *(wrong_steps(log) if self._steps else ())]
        self.tally.wrong += [f"{study}: {text}" for text in found]
        self._log = log


def wrong_with(before: Sequence[Event], log: Sequence[Event], witnessed: set[tuple[int, str, float]]) -> Iterator[str]:
    """What is wrong with a log, given what was read before and what was told for sure."""
    if not same_events(log[: len(before)], before):
        yield "events that were in the log are not there any more"
    if [event.number for event in log] != list(range(len(log))):
        yield "the numbers of the events are not 0, 1, 2, …"
    asked = dict.fromkeys(event.trial for event in log if event.kind == "asked")
    if list(asked) != list(range(len(asked))):
        yield "trials were not begun in the order of their numbers"
    controls = {event.trial: event.data["controls"]["x"] for event in log if event.kind == "asked"}
    outputs = [
        (event.trial, stage, values[0])
        for event in log
        if event.kind in ("observed", "told")
        for stage, values in event.data["outputs"].items()
    ]
    twice = [key for key, count in Counter((trial, stage) for trial, stage, _ in outputs).items() if count > 1]
    if twice:
        yield f"outputs that are in the log twice: {twice}"
    lost = witnessed - {(trial, stage, value) for trial, stage, value in outputs if trial is not None}
    if lost:
        yield f"outputs that were told are not in the log: {lost}"
    if any("steps" in event.data for event in log):
        return  # see `wrong_steps`
    for trial, stage, value in outputs:
        heat = 0.3 * controls[trial]
        if value != (heat if stage == "heat" else 0.5 - heat):
            yield f"trial {trial}: {stage} is {value}"


def wrong_steps(log: Sequence[Event]) -> Iterator[str]:
    """What is wrong with a log of steps: values, what was charged, portions."""
    state = State.empty(STEPWISE).replayed(log)
    for trial in state.trials:
        for stage in trial.steps:
            inputs = inputs_of(STEPWISE, trial, stage)
            right = 0.3 * inputs["x"] if stage == "heat" else 0.5 - inputs["heat"]
            if trial.outputs.get(stage, (right,)) != (right,):
                yield f"trial {trial.number}: {stage} is {trial.outputs[stage]}"
        own = [name for name in trial.steps if name in trial.outputs]
        if dict(trial.costs) != {name: COSTS[name] for name in own}:
            yield f"trial {trial.number} gave {own} and was charged {dict(trial.costs)}"
    if state.spent > MONEY:
        yield f"{state.spent} was spent of {MONEY}"
    taken = Counter(trial.taken["heat"] for trial in state.trials if "heat" in trial.taken)
    if any(count > 2 for count in taken.values()):
        yield f"more portions were taken than there were: {taken}"


def attacked(
    url: str, kills: int, seed: int, server: Server | None = None, *, restarts: int = RESTARTS, steps: bool = False
) -> Tally:
    """Kill processes on a store until there were so many kills; `restarts`: kills per restart of the server.

    `steps`: processes that run stages one at a time.
    """
    with tempfile.TemporaryDirectory(prefix="cascada-kills-") as folder:
        attack = Attack(url, Path(folder), seed, server, restarts, steps=steps)
        while attack.tally.kills < kills and not attack.tally.wrong:
            attack.round(kills - attack.tally.kills)
        return attack.tally


@contextmanager
def _place(kind: str) -> Iterator[tuple[str, Server | None]]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="cascada-kills-") as folder:
            yield f"sqlite:///{folder}/studies.db", None
    else:
        with postgres_server() as server:
            yield new_database(server.url), server


def main() -> int:
    """Attack both kinds of stores, print what was done, and return 1 if anything was found wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500, help="in all, the same number on each kind of store")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--steps", action="store_true", help="stages are run one at a time, with a budget in money")
    options = parser.parse_args()
    kinds, wrong = options.stores.split(","), False
    for kind in kinds:
        began = time.monotonic()
        with _place(kind) as (url, server):
            tally = attacked(url, options.kills // len(kinds), options.seed, server, steps=options.steps)
        print(
            f"{kind}: {tally.kills} kills and {tally.restarts} restarts in {tally.rounds} studies of "
            f"{f'{MONEY:g} of money' if options.steps else f'{BUDGET} trials'}; "
            f"{tally.told} outputs witnessed, {tally.taken_up} trials taken up by others, "
            f"{tally.unopened} processes could not open the store during a restart; {len(tally.wrong)} wrong "
            f"({time.monotonic() - began:.0f} s)",
            *tally.wrong,
            sep="\n",
            flush=True,
        )
        wrong |= bool(tally.wrong)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
