# %% [markdown]
# # Runs on a Dask cluster
#
# A simulator takes an hour, and there are many machines. Dask runs the process on them; cascada chooses the points. A
# worker that is free gets a new point at once, and one that dies costs the try that it was at, nothing else.
#
# Here the cluster is two processes on this machine, and the simulator only sleeps. In real life there is a scheduler
# somewhere (`dask scheduler`, and `dask worker tcp://…` on every machine, with cascada installed), and its address
# takes the place of `cluster.scheduler_address` below: no other line changes.
#
# Run it with `python dask_cluster.py`, or open it as a notebook (each `# %%` is a cell). It takes about ten seconds
# and needs Dask: `pip install 'cascada[dask]'`.

# %%
import logging
import math
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cascada as cd
from cascada.integrations.dask import dask_executor

BUDGET = int(os.environ.get("CASCADA_EXAMPLE_BUDGET", "20"))  # runs; the tests take few

# %% [markdown]
# ## The process
#
# Some settings take longer than others. `fragile` is a stage that takes its worker along, once: a machine that is
# switched off, say. Files remember that it happened, and how often the stage was tried.


# %%
def mix(dose: float) -> float:
    """The first stage: 0.1 to 0.5 seconds."""
    time.sleep(0.3 + 0.1 * dose)
    return 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2)


def cure(mix: float, heat: float) -> float:
    """The second stage."""
    return 1.8 * math.exp(-0.5 * ((mix - 0.9) ** 2 + (heat + 0.3) ** 2))


def fragile(folder: Path, mix: float, heat: float) -> float:
    """The second stage, whose first try ends its process."""
    with (folder / "tries").open("a") as file:
        file.write(f"in process {os.getpid()}\n")
    try:
        (folder / "dead").touch(exist_ok=False)
    except FileExistsError:
        return cure(mix, heat)
    os._exit(1)


kernel = cd.SquaredExponential(1.0)
process = cd.chain(
    cd.Stage("mix", controls={"dose": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0),
    cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0),
)

# %% [markdown]
# ## Nobody waits
#
# `dask_executor` gives an executor and how many runs the cluster has at once; `maximise` takes both. A callback is
# called after every run, in the order in which they end. The next point is chosen as if the runs under way had given
# what is expected of them. The gap never rests on such a guess.


# %%
def asynchronous(address: str) -> None:
    """Runs end in another order than they began, and nobody waits for anybody."""
    ended: list[int] = []

    def note(study: Any) -> None:
        complete = [trial.number for trial in study.trials if trial.state == "complete"]
        ended.extend(number for number in complete if number not in ended)

    with dask_executor(address) as (executor, threads):
        began = time.monotonic()
        result = cd.maximise(
            process, [mix, cure], budget=BUDGET, tolerance=0.01, executor=executor, jobs=threads, callbacks=[note]
        )
        took = time.monotonic() - began
    shown = result.certificate.shown  # as texts, rounded so that what they say is true
    assert shown is not None
    print(f"{len(ended)} runs complete, {threads} at once, in {took:.1f} s; they ended in the order {ended}")
    print(f"best {shown.best}, gap {shown.gap} ({result.gap_kind}), status {result.status}")


# %% [markdown]
# ## A worker dies
#
# The run that it was at is given to another worker, from its first stage on. (A run that kills worker after worker
# has failed in the end, alone.)


# %%
def with_a_death(address: str) -> None:
    """All runs are complete, though a worker died in one of them."""
    folder = Path(tempfile.mkdtemp(prefix="cascada-dask-"))
    with dask_executor(address) as (executor, threads):
        functions: list[Callable[..., float]] = [mix, partial(fragile, folder)]
        result = cd.maximise(process, functions, budget=BUDGET, executor=executor, jobs=threads)
    states = [trial.state for trial in result.trials]
    tries = (folder / "tries").read_text().splitlines()
    print(f"{states.count('complete')} of {len(states)} runs complete, after {len(tries)} tries")


# %% [markdown]
# ## A cluster of one's own
#
# `LocalCluster` starts processes, and each of them reads this file again: that is why nothing may happen outside of
# `if __name__ == "__main__":`. A notebook does not need that line, but it does no harm there; nor do you need it when
# the cluster is somebody else's.

# %%
if __name__ == "__main__":
    from dask.distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=logging.CRITICAL
    ) as cluster:
        asynchronous(cluster.scheduler_address)
        with_a_death(cluster.scheduler_address)

# %% [markdown]
# From a shell: `cascada run process.toml --dask tcp://10.0.0.1:8786 --budget 200`. Several cores without Dask:
# `maximise(..., jobs=4)`. Many machines and a database instead of a scheduler: `cascada worker`. More: [from one core
# to a cluster](../docs/parallel.md).
