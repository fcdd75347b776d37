# %% [markdown]
# # A lab with ask and tell
#
# Panels are painted, then baked, and somebody measures them: it takes days, an oven trips, the power fails. The study
# is a file. You ask it for settings, do the work, and tell what you measured, stage by stage. No kernels and no
# bounds are given here, so they are estimated from the runs, and so is the gap.
#
# Run it with `python lab.py`, or open it as a notebook (each `# %%` is a cell). It takes about ten seconds. The report
# in the end needs plotly: `pip install 'cascada[report]'`.

# %%
import math
import os
import tempfile
from pathlib import Path

import cascada as cd
from cascada.report import write_report

BUDGET = int(os.environ.get("CASCADA_EXAMPLE_BUDGET", "18"))  # runs in all; the tests take few
FOLDER = Path(tempfile.mkdtemp(prefix="cascada-lab-"))  # in real life a folder with a backup
STORE = f"sqlite:///{FOLDER / 'paint.db'}"

# %% [markdown]
# ## Monday: describe the process
#
# Stages without functions: people run them. Outputs are what you can measure after each stage, in this order.

# %%
process = cd.chain(
    cd.Stage(
        "coat",
        controls={"solvent": cd.Real(10, 40), "speed": cd.Real(0.2, 2, log=True)},  # percent, metres a second
        outputs=["thickness", "waves"],  # micrometres, micrometres
    ),
    cd.Stage("bake", controls={"temperature": cd.Real(120, 200)}, outputs=["gloss"]),  # °C, percent
)
study = cd.Study.open(STORE, "paint", network=process)  # created if it is not there
print(study)

# %% [markdown]
# Two runs from the old lab book. They teach as much as new ones, and what was not measured is left out: nobody baked
# the second panel.

# %%
study.add_trial({"solvent": 20, "speed": 0.5, "temperature": 150}, {"coat": [58.525, 2.1173], "bake": 38.708})
study.add_trial({"solvent": 35, "speed": 1.5, "temperature": 150}, {"coat": [20.352, 0.5560]})
print("from the lab book:", *(f"trial {trial.number} with {' and '.join(trial.outputs)}" for trial in study.trials))


# %% [markdown]
# In this example two formulas stand in for the people in the lab.


# %%
def coat(solvent: float, speed: float) -> tuple[float, float]:
    """Spray a panel, and measure its coat."""
    thickness = 60 * math.exp(-0.5 * math.log(speed / 0.4) ** 2) * (1.25 - solvent / 80)
    waves = 0.5 + 4 * math.exp(-solvent / 12) * (thickness / 40) ** 2
    return thickness, waves


def bake(thickness: float, waves: float, temperature: float) -> float:
    """Bake a panel, and measure how much light it throws back."""
    cured = math.exp(-0.5 * ((temperature - 140 - thickness / 2) / 18) ** 2)
    return 95 * cured * math.exp(-0.15 * waves) * (1 - math.exp(-thickness / 12))


# %% [markdown]
# ## Monday afternoon: ask, and tell the first stage
#
# The trial is on the disk before `ask` returns. Set the controls as they are printed, with all digits.

# %%
trial = study.ask()
assert trial is not None
print(f"trial {trial.number}: set {dict(trial.controls)}")
thickness, waves = coat(trial.controls["solvent"], trial.controls["speed"])
study.tell_stage(trial, "coat", [thickness, waves])
print(f"trial {trial.number}: the coat is {thickness:.1f} µm thick, with waves of {waves:.2f} µm")

# %% [markdown]
# ## Monday night: the power fails
#
# Nothing is saved at the end of the day, so nothing is lost without one. Here the variable goes; in real life the
# computer.

# %%
del study, trial

# %% [markdown]
# ## Tuesday: go on
#
# The name is enough. The store knows the process, the runs, and which of them are open.

# %%
study = cd.Study.open(STORE, "paint")
(open_trial,) = [trial for trial in study.trials if trial.state == "running"]
print(f"open: trial {open_trial.number}, measured so far: {', '.join(open_trial.outputs)}")
thickness, waves = open_trial.outputs["coat"]
done = study.tell_stage(open_trial, "bake", bake(thickness, waves, open_trial.controls["temperature"]))
print(f"trial {done.number}: gloss {done.value:.1f}, {done.state}")

# %% [markdown]
# ## Wednesday: a batch, and an oven that trips
#
# Three panels side by side: each is chosen with the open ones in mind. The second never gets baked. Its run has
# failed, but its coat was measured, and that counts.

# %%
batch = study.ask(3)
coats = [coat(trial.controls["solvent"], trial.controls["speed"]) for trial in batch]
for trial, measured in zip(batch, coats, strict=True):
    study.tell_stage(trial, "coat", measured)
study.fail(batch[1], "the oven tripped")
for i in (0, 2):
    study.tell_stage(batch[i], "bake", bake(*coats[i], batch[i].controls["temperature"]))
for trial in study.trials[-3:]:
    print(f"trial {trial.number}: {trial.state}", f"({trial.reason})" if trial.reason else f"gloss {trial.value:.1f}")

# %% [markdown]
# ## Thursday: an idea of one's own
#
# It is the next to be asked for. Telling all stages at once is `tell`.

# %%
study.enqueue_trial({"solvent": 38, "speed": 0.4, "temperature": 165})


def work(trial: cd.Trial) -> None:
    """A day in the lab."""
    measured = coat(trial.controls["solvent"], trial.controls["speed"])
    study.tell(trial, {"coat": measured, "bake": bake(*measured, trial.controls["temperature"])})


trial = study.ask()
assert trial is not None
work(trial)
print(f"trial {trial.number}: {dict(trial.controls)} gave {study.trials[-1].value:.1f}")

# %% [markdown]
# ## The weeks after
#
# The first runs are spread over the ranges; then every one is chosen by what all stages gave so far.

# %%
while len(study.trials) < BUDGET and (trial := study.ask()) is not None:
    work(trial)
    assert study.best_trial is not None
    print(f"trial {trial.number:2}: gloss {study.trials[-1].value:5.1f}, best {study.best_trial.value:.1f}")

# %% [markdown]
# ## The report
#
# How good is the best panel? Without bounds of your own the gap is *estimated*: a hint, no proof. It is shown once
# enough runs have tested the estimate; until then the certificate says what is missing. The page has the figures and
# all runs; it loads nothing from outside, so it can be mailed and printed.

# %%
states = [trial.state for trial in study.trials]
print(f"{len(states)} runs:", ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))))
print(study.certificate())
try:
    write_report(study, "paint", FOLDER / "report.html")
    print(f"report {FOLDER / 'report.html'}")
except cd.CascadaError as error:
    print(error)
study.close()

# %% [markdown]
# The same from a shell, also for the same file: `cascada ask`, `tell-stage`, `tell`, `fail`, `status`, `report`.
# More: [studies that last](../docs/studies.md), [figures and reports](../docs/reports.md).
