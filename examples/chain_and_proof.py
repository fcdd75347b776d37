# %% [markdown]
# # A chain of stages, and a proof
#
# Steel is heated, quenched and tested. We look for the settings that make it toughest, and want to know when to stop:
# when it is *proven* that no setting is better by more than 1 joule.
#
# Run it with `python chain_and_proof.py`, or cell by cell in VS Code or Spyder, or open
# `notebooks/chain_and_proof.ipynb` in Jupyter. It takes a few seconds.

# %%
import itertools
import math
import os

import cascada as cd

BUDGET = int(os.environ.get("CASCADA_EXAMPLE_BUDGET", "60"))  # runs at most; the tests take few

# %% [markdown]
# ## The stages
#
# A stage has controls, which we set, and outputs, which are measured. `chain` feeds each into the next. Three numbers
# say what is known of a stage before the first run:
#
# - `kernel`: how far one must go until the output changes its course, in units of the inputs. Parents' outputs come
#   first, then controls; a logarithmic control counts in natural logarithms.
# - `offset`: a typical output.
# - `norm_bound`: how large and how wild the rest may be, in units of the output. It implies that the output stays
#   within so much of the offset. Twice the range is a start.

# %%
heat = cd.Stage(
    "heat",
    controls={"temperature": cd.Real(820, 940), "hours": cd.Real(0.5, 8, log=True)},
    outputs=["grain"],  # micrometres
    kernel=cd.SquaredExponential((60, 1.5)),  # °C, ln hours
    offset=40,
    norm_bound=40,
)
quench = cd.Stage(
    "quench",
    controls={"flow": cd.Real(1, 5)},  # litres a second
    outputs=["hardness"],  # Rockwell
    kernel=cd.SquaredExponential((15, 2)),  # micrometres, litres a second
    offset=50,
    norm_bound=25,
)
test = cd.Stage("test", outputs=["toughness"], kernel=cd.SquaredExponential(10), offset=40, norm_bound=50)  # joules
process = cd.chain(heat, quench, test)
print(process)

# %% [markdown]
# ## The process
#
# In real life these are furnaces, or simulators that take an hour. Here they are formulas, sums of hills, of which
# the optimiser knows nothing. Hills as wide as the kernel have a norm that can be read off: at most the sum of their
# heights. So the bounds above are true: 30 + 8 ≤ 40, 16 + 8 ≤ 25, 42 + 6 ≤ 50.


# %%
def hill(height: float, *places: tuple[float, float, float]) -> float:
    """A hill: each place is a value, the middle of the hill, and its width."""
    return height * math.exp(-0.5 * sum(((value - middle) / width) ** 2 for value, middle, width in places))


def run_heat(temperature: float, hours: float) -> float:
    """Grains grow with temperature and time."""
    coarse = hill(30, (temperature, 950, 60), (math.log(hours), 2.0, 1.5))
    fine = hill(8, (temperature, 830, 60), (math.log(hours), 0.0, 1.5))
    return 40 + coarse - fine


def run_quench(grain: float, flow: float) -> float:
    """Grains of middle size and a strong flow make steel hard."""
    return 50 + hill(16, (grain, 52, 15), (flow, 4.2, 2)) - hill(8, (grain, 35, 15), (flow, 1, 2))


def run_test(hardness: float) -> float:
    """Hard steel is tough, up to a point."""
    return 40 + hill(42, (hardness, 66, 10)) - hill(6, (hardness, 50, 10))


# %% [markdown]
# ## The proof
#
# `maximise` chooses a run, learns from what every stage gave, and bounds what any setting can give. It stops when the
# gap between that bound and the best run is within the tolerance, or when the budget is used up.

# %%
result = cd.maximise(process, [run_heat, run_quench, run_test], budget=BUDGET, tolerance=1)
assert result.best is not None
print(f"status     {result.status}, after {len(result.trials)} runs")
shown = result.certificate.shown  # as texts, rounded so that what they say is true
assert shown is not None
print(f"best       {shown.best} J at", {name: round(x, 3) for name, x in result.best.controls.items()})
print("measured  ", {stage: [round(y, 2) for y in outputs] for stage, outputs in result.best.outputs.items()})
print(f"gap        {shown.gap} J, {result.gap_kind}")

# %% [markdown]
# The certificate says the same in a sentence, and what it rests on. Whoever doubts the result has to doubt one of
# these lines.

# %%
print(result.certificate)

# %% [markdown]
# Is it true? Nobody can look in real life, but the formulas are here: the best of a fine grid.

# %%
axes = [[low + (high - low) * i / 40 for i in range(41)] for low, high in ((820, 940), (0.5, 8), (1, 5))]
truth = max(run_test(run_quench(run_heat(degrees, hours), flow)) for degrees, hours, flow in itertools.product(*axes))
print(f"best of {41**3:,} settings {truth:.3f}, bound {shown.bound}")

# %% [markdown]
# ## A bound that is too small
#
# Suppose that we had thought the quench far tamer than it is. Data refute that sooner or later. The search then stops
# instead of proving nonsense, and the certificate names the stage and the smallest bound that is still possible.

# %%
tame = cd.Stage(
    "quench",
    controls={"flow": cd.Real(1, 5)},
    outputs=["hardness"],
    kernel=cd.SquaredExponential((15, 2)),
    offset=50,
    norm_bound=10,  # instead of 25
)
wrong = cd.chain(heat, tame, test)
refuted = cd.maximise(wrong, [run_heat, run_quench, run_test], budget=BUDGET, tolerance=1)
print(f"status     {refuted.status}, after {len(refuted.trials)} runs; gap {refuted.gap}")
print(refuted.certificate)

# %% [markdown]
# The runs are not lost: state a larger bound and go on. Or let the bound be raised whenever data refute it. The gap
# is then called *estimated*: it rests on a number without a guarantee.

# %%
raised = cd.maximise(
    wrong,
    [run_heat, run_quench, run_test],
    budget=BUDGET,
    tolerance=1,
    on_violation="enlarge",
    stop_on_estimated=True,
)
assert raised.best is not None
shown = raised.certificate.shown
assert shown is not None
print(f"best       {shown.best} J, after {len(raised.trials)} runs")
print(f"gap        {shown.gap} J, {raised.gap_kind}")
print(raised.certificate.assumptions[-1])

# %% [markdown]
# More: [describing your process](../docs/describing-your-process.md), [how a gap is proven](../docs/certificate.md).
