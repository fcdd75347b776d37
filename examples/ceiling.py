# %% [markdown]
# # A ceiling that everybody knows
#
# A reactor converts a raw material, a second step turns part of what was converted into the product. Conversion and
# selectivity are percentages, and the profit is 1.4 times the yield. So no setting can earn more than 140. A norm bound
# does not say so: after the first run, the proven bound is 381, and a band of possible conversions reaches 165 %.
#
# `ranges` says what is physically possible. It is an assumption like a norm bound: the certificate lists it, and a run
# outside of it refutes it. More: [limits and ranges](../docs/limits.md).
#
# Run it with `python ceiling.py`, or cell by cell in VS Code or Spyder, or open `notebooks/ceiling.ipynb` in
# Jupyter. It takes a few seconds. On the command line: `cascada run ceiling.py:network --tolerance 1`.

# %%
import math
import os

import cascada as cd

BUDGET = int(os.environ.get("CASCADA_EXAMPLE_BUDGET", "40"))  # runs at most; the tests take few
PRICE = 1.4  # of one percent of yield


# %% [markdown]
# ## The process
#
# In real life a run takes a day. Here the stages are formulas, sums of hills as wide as the kernels. Their norms are at
# most the sums of their heights, 46 + 30 and 45 + 25. The norm bound of 115 is what a careful chemist said.


# %%
def run_reactor(temperature: float, hours: float) -> float:
    """The conversion, in percent."""
    good = ((temperature - 372) / 60) ** 2 + (math.log(hours / 3) / 1.2) ** 2
    bad = ((temperature - 300) / 60) ** 2 + (math.log(hours / 0.5) / 1.2) ** 2
    return 50 + 46 * math.exp(-good / 2) - 30 * math.exp(-bad / 2)


def run_separator(conversion: float, reflux: float) -> float:
    """The selectivity, in percent."""
    good = ((conversion - 80) / 40) ** 2 + ((reflux - 3.2) / 2) ** 2
    bad = ((conversion - 20) / 40) ** 2 + ((reflux - 5) / 2) ** 2
    return 50 + 45 * math.exp(-good / 2) - 25 * math.exp(-bad / 2)


def profit(conversion: float, selectivity: float) -> float:
    """The profit of a run."""
    return PRICE * conversion * selectivity / 100


def profits(conversion: tuple[float, float], selectivity: tuple[float, float]) -> tuple[float, float]:
    """Between what the profit lies for intervals of both: a product is largest and smallest at corners."""
    corners = [profit(c, s) for c in conversion for s in selectivity]
    return min(corners), max(corners)


# %%
def process(percent: tuple[float, float] | None) -> cd.Network:
    """The process, with `percent` as the range of conversion and selectivity; None for no range."""
    reactor = cd.Stage(
        "reactor",
        controls={"temperature": cd.Real(300, 420), "hours": cd.Real(0.5, 8, log=True)},
        outputs=["conversion"],  # percent
        kernel=cd.SquaredExponential((60, 1.2)),  # °C, ln hours
        offset=50,
        norm_bound=115,
        ranges=None if percent is None else {"conversion": percent},
        function=run_reactor,
    )
    separator = cd.Stage(
        "separator",
        controls={"reflux": cd.Real(1, 5)},
        outputs=["selectivity"],  # percent
        parents=["reactor"],
        kernel=cd.SquaredExponential((40, 2)),  # percent, reflux
        offset=50,
        norm_bound=115,
        ranges=None if percent is None else {"selectivity": percent},
        function=run_separator,
    )
    earned = cd.Stage("profit", parents=["reactor", "separator"], known=True, function=profit, interval=profits)
    return cd.Network([reactor, separator, earned])


without, network = process(None), process((0, 100))

# %% [markdown]
# ## After the first run
#
# The same run, and two bounds. Both are true; the second one knows what a percentage is.

# %%
if __name__ == "__main__":
    for name, described in (("without ranges", without), ("with ranges", network)):
        shown = cd.maximise(described, budget=1, progress=False).certificate.shown
        assert shown is not None
        print(f"{name}: one run, {shown.best}; no setting gives more than {shown.bound}")

# %% [markdown]
# ## Until the proof

# %%
if __name__ == "__main__":
    result = cd.maximise(network, budget=BUDGET, tolerance=1.0, progress=False)
    print(result)

# %% [markdown]
# ## A run outside of its range
#
# A conversion of 103 % is a wrong measurement, or the range is wrong. Either way nothing is proven until one of them is
# corrected. `study.correct` corrects a run. A range is amended by opening the study of a store with another one and
# `amend=True`.

# %%
if __name__ == "__main__":
    study = cd.Study(network)
    trial = study.begin_trial({"temperature": 370, "hours": 3, "reflux": 3})
    study.tell(trial, {"reactor": 103.0, "separator": 90.0})
    print(study.certificate().kind, *study.certificate().evidence)
    study.correct(trial, "reactor", 93.0, reason="the sample was weighed twice")
    print(study.certificate().kind, study.certificate().evidence)
