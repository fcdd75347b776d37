# %% [markdown]
# # The paper in ten minutes
#
# Zihan Li and Jonathan Scarlett, *Regret Bounds for Noise-Free Cascaded Kernelized Bandits*, TMLR, May 2024
# (<https://openreview.net/forum?id=oCfamUtecN>). A function is a cascade of unknown functions, and what leaves each
# of them is seen. How quickly can its maximum be found, and how quickly not? Each part below names the section and
# the label of what it shows; [the map](../docs/paper-map.md) has them all, [notation](../docs/notation.md) the
# letters.
#
# Run it with `python paper_in_ten_minutes.py`, or open it as a notebook (each `# %%` is a cell): then the figures are
# shown, which need plotly (`pip install 'cascada[report]'`). Reading takes ten minutes, computing half a minute.

# %%
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import cascada as cd
from cascada import report
from cascada.kernels import random_expansion
from cascada.problems import certified, hard_problems
from cascada.theory import layers_of, measure, per_step_bound, promise
from cascada.theory.hard import family_of_cells
from cascada.theory.lower import average_simple_regret, longest_horizon, lower_simple_regret_order

BUDGET = int(os.environ.get("CASCADA_EXAMPLE_BUDGET", "30"))  # T, runs of each algorithm; the tests take few
CHAINS = 8 if BUDGET >= 10 else 2


def show(draw: Callable[..., Any], *arguments: Any) -> None:
    """A figure, in a notebook; a script has nowhere to show it."""
    try:
        figure = draw(*arguments)
    except cd.CascadaError as error:  # there is no plotly, and this says how to get it
        print(error)
        return
    if "get_ipython" in globals():
        figure.show()


# %% [markdown]
# ## 1. The setting (section 2)
#
# A chain of m = 3 layers: g = f³ ∘ f² ∘ f¹, with x in a box. Each layer is unknown, but it lies in the space of a
# kernel k and has a norm of at most B there. Whoever runs x sees every layer's output, exactly: no noise. (The paper
# has two more structures, multi-output chains and feed-forward networks; `certified("multi-output")` and
# `certified("feed-forward")` are such.)
#
# `certified` draws a random chain whose norms are exactly B = 2, so that everything assumed is true. Its layers are
# called s1, s2 and s3.

# %%
problem = certified("chain", seed=2)
network = problem.network
print(network)
print(*cd.Study(network).certificate().assumptions, sep="\n")

# %% [markdown]
# ## 2. A bound that is certain (`lem:conf`)
#
# With noise one can only say what is likely. Without it, a function of norm at most B is *never* farther than B·σ(x)
# from the posterior mean μ(x) (`eq:mean`, `eq:var`). Here is one function of one input, of norm 2, seen in four
# places. The tight radius ρ ≤ B, which uses what the data already took of the norm, is not in the paper.

# %%
kernel = cd.SquaredExponential(1.0)
function = random_expansion(kernel, [-2.0], [2.0], norm=2.0, rng=np.random.default_rng(1))
seen = np.array([[-1.8], [-0.6], [0.3], [1.5]])
line = np.linspace(-2, 2, 401)[:, None]
for name, tight in (("μ ± Bσ", False), ("μ ± ρσ", True)):
    belief = cd.Belief(cd.Posterior.fit(kernel, seen, function(seen)), norm_bound=2.0, tight=tight)
    bounds = belief.bounds(line)
    outside = np.sum((function(line) < bounds.lower) | (function(line) > bounds.upper))
    print(f"{name}: widest {np.max(bounds.upper - bounds.lower):.4f}, {outside} of {len(line)} points outside")

# %% [markdown]
# ## 3. GPN-UCB (section 3, `algo:ucb`)
#
# Where f¹(x) is only known to lie in an interval, f² is bounded over that whole interval (`eq:ucb_chain`), and so on:
# the upper confidence bound of the composite. GPN-UCB runs a point where it is largest. A Lipschitz constant L keeps
# the intervals from growing wild (`eq:ucb_i`); here it follows from the kernel and B.
#
# Six runs, and then what is known at a point that was not run:

# %%
study = cd.Study(network)
study.optimise(budget=min(6, BUDGET), progress=False)
elsewhere = {"x": 0.9, "y": -0.7}
truth = problem.values(np.array([list(elsewhere.values())]))[0, 2:]
for (name, known), value in zip(study.predict(elsewhere).items(), truth, strict=True):
    print(f"{name}: between {known.lower[0]:.3f} and {known.upper[0]:.3f}; in truth {value:.3f}")
show(report.plot_network, study)
show(report.plot_stage, study, "s2")

# %% [markdown]
# The largest of the bounds is a bound of everything: the gap between it and the best run is proven. The figure has
# both.

# %%
study.optimise(budget=BUDGET, progress=False)
certificate = study.certificate()
shown = certificate.shown  # as texts, rounded so that what they say is true
assert shown is not None
print(f"after {len(study.trials)} runs: best {shown.best}, gap {shown.gap} ({certificate.kind})")
print(f"the truth: {problem.best.value:.4f}")
show(report.plot_optimization_history, study)

# %% [markdown]
# ## 4. Does it help to look inside? (`sec:exp`)
#
# GP-UCB sees the same runs, but only their objective; random search does not look at all. Each has T runs on each of
# several random chains, over a grid of 25 × 25 points. Simple regret: how far the best run so far is from the best
# point of the grid. (`cascada reproduce` has the paper's own experiments with all its algorithms.)

# %%
side = np.linspace(-2, 2, 25)
grid = np.array([[x, y] for x in side for y in side])
names = {"gpn_ucb": "GPN-UCB", "gp_ucb": "GP-UCB", "random_search": "random"}
curves: dict[str, list[list[float]]] = {name: [] for name in names.values()}
for seed in range(CHAINS):
    drawn = certified("chain", seed=seed)
    best = drawn.objective(grid).max()
    for algorithm, name in names.items():
        ran = cd.maximise(drawn.network, budget=BUDGET, algorithm=algorithm, candidates=grid, progress=False)
        values = [trial.value for trial in ran.trials if trial.value is not None]
        curves[name].append([best - max(values[: t + 1]) for t in range(len(values))])

times = sorted({1, min(5, BUDGET), min(10, BUDGET), BUDGET})
print(f"mean simple regret over {CHAINS} chains after T =", *(f"{t:8d}" for t in times))
for name, regrets in curves.items():
    print(f"{name:>42}  ", *(f"{np.mean([curve[t - 1] for curve in regrets]):8.4f}" for t in times))
show(report.plot_regret, curves)

# %% [markdown]
# ## 5. What is promised beforehand (`thm:ucb_chain`)
#
# Cumulative regret R_T adds up what every run was short of the best. For a chain, R_T ≤ 2^{m+1} B L^{m−1} Σ_T, where
# Σ_T is the largest sum of T posterior deviations that any sequence of points can have. The proof goes through
# sharper steps, and each of them is a number here. `measure` runs GPN-UCB as printed: it may run a point again.

# %%
layers = layers_of(network)
measured = measure(network, problem.values(grid), BUDGET)
said = promise(network, BUDGET)
print(f"m = {layers.count}, B = {layers.norm_bound:g}, L = {layers.slope:g}, T = {BUDGET}")
print(f"R_T of this run = {measured.cumulative:.4g}")
for bound in (per_step_bound(layers, measured.sds), *said.bounds):
    print("   ≤", bound)
print("and without any theorem: R_T ≤", said.trivial)

# %% [markdown]
# Everything holds, and everything is loose: (2L)^{m−1} assumes that every layer is as steep as it can be, at every
# step. At small T even the last line, T times the width of what the last layer can give, is smaller. What is worth
# reading is how the bounds grow: with L, with every layer, and with T. To know how good a run is, look at its gap.
#
# ## 6. What nobody can do (section 5, `thm:lower_sim`)
#
# Now the other side: chains that are hard for *every* algorithm. The first layer is a narrow needle in [0, 1], of
# norm B (`eq:htil`); the next ones make it higher (`eq:gtilk`). Needles fit into [0, 1] side by side, M of them, and
# where there is none, every output is 0. So each run rules out one of them at most: after T runs the average simple
# regret is at least 2ε(1 − (T + 1)/M), where 2ε is the height.

# %%
family = family_of_cells(cd.Matern(1.5), 5.0, 12 if BUDGET >= 10 else 6, dims=(1, 1), u=0.5, u_tilde=0.3)
runs = longest_horizon(family)
least = average_simple_regret(family, runs)
print(f"M = {family.members} chains, heights {family.heights[0]:.4f} → {family.heights[1]:.4f}; T = {runs}")
print(f"every algorithm, on average: {least}")
for algorithm, name in names.items():
    short = []
    for hard in hard_problems(family):
        points = np.linspace(0, 1, 61)[:, None]
        ran = cd.maximise(hard.network, budget=runs, algorithm=algorithm, candidates=points, progress=False)
        assert ran.best is not None
        assert ran.best.value is not None
        short.append(hard.best.value - ran.best.value)
    print(f"{name:>8}, on average: {np.mean(short):.4f}")
print("for many runs:", lower_simple_regret_order(family))

# %% [markdown]
# The lower bound has the same (cL)^{m−1} as the upper one has L^{m−1}: deep, steep cascades are hard, and that is no
# fault of the algorithm. Section 4, which is left out here, is an algorithm that needs no feedback at all:
# `maximise(..., algorithm="non_adaptive")`.
#
# More: [regret bounds](../docs/theory.md), [lower bounds](../docs/lower-bounds.md), [the experiments,
# reproduced](../docs/reproduction.md).
