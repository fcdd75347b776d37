# %% [markdown]
# # An algorithm of your own, in thirty lines
#
# You have an idea how to choose the next run. Write it as a class with two methods; everything else is there: beliefs
# of every stage, bounds through the network, studies, stores, pools of processes, certificates.
#
# Run it with `python own_algorithm.py`, or open it as a notebook (each `# %%` is a cell). It takes about twenty
# seconds.

# %%
import os
from dataclasses import dataclass

import numpy as np

import cascada as cd
from cascada.algorithms import Algorithm, Situation, Suggestion
from cascada.network import enclose_network, hallucinated
from cascada.outwards import rounded_up
from cascada.problems import certified

BUDGET = int(os.environ.get("CASCADA_EXAMPLE_BUDGET", "25"))  # runs of each algorithm; the tests take few
PROCESSES = 5 if BUDGET >= 10 else 2

# %% [markdown]
# ## The idea
#
# For every setting it is known what comes out at least and at most. An optimist goes by the most, a pessimist by the
# least; Hurwicz mixed the two. We take many random settings and run the one whose mixture is best.
#
# - `situation` is all that is known. Points are coordinates: user units, or their logarithm for logarithmic controls.
# - `suggest` forgets: the same situation and generator give the same point. So a study can be replayed.
# - Runs under way are imagined to give what is expected (`hallucinated`), so that a batch does not crowd in one
#   place.
# - `sign` is −1 when the process is minimised.


# %%
@dataclass(frozen=True)
class Hurwicz:
    """Run the best of many random points by a mixture of the least and the most that each can give."""

    optimism: float = 0.7
    samples: int = 1000

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        """The next point (d,), or none if all were run."""
        domain, network = situation.domain, situation.beliefs.network
        if situation.candidates is None:
            drawn = rng.uniform(domain.lower, domain.upper, (self.samples, domain.dimension))
            points = domain.encode(domain.decode(drawn))  # integers become whole
        else:
            points = rng.permutation(situation.candidates)  # so that ties are broken by chance
        points = points[[not situation.is_taken(point) for point in points]]
        if not len(points):
            return Suggestion(None)
        try:
            boxes = enclose_network(hallucinated(situation.beliefs, situation.pending), cd.Boxes(points, points)).boxes
        except cd.RefutedError:  # what is only imagined may contradict a bound
            boxes = enclose_network(situation.beliefs, cd.Boxes(points, points)).boxes
        ends = network.sign * np.stack([boxes.lower, boxes.upper])[:, :, network.objective_column]
        score = (1 - self.optimism) * ends.min(axis=0) + self.optimism * ends.max(axis=0)
        return Suggestion(points[int(score.argmax())])

    def recommend(self, situation: Situation) -> np.ndarray | None:  # noqa: ARG002
        """None: the best run is the answer."""
        return None


# %% [markdown]
# ## Beside the others
#
# Random chains of three stages, whose norms are what they claim. Each algorithm stops when it is proven that nothing
# is better than its best run by more than 0.02. The gap is the library's own for everybody: whoever chose the points,
# it is proven. Regret is how far the best run is from the truth, which no algorithm sees: never more than the gap.

# %%
contestants: dict[str, str | Algorithm] = {
    "auto": "auto",
    "Hurwicz": Hurwicz(),
    "Hurwicz, pessimist": Hurwicz(optimism=0.0),
    "random": "random_search",
}
problems = [certified("chain", seed=seed) for seed in range(PROCESSES)]
for name, algorithm in contestants.items():
    runs, regrets, gaps = [], [], []
    for problem in problems:
        result = cd.maximise(problem.network, budget=BUDGET, tolerance=0.02, algorithm=algorithm, progress=False)
        assert result.best is not None
        assert result.best.value is not None
        assert result.gap is not None
        runs.append(len(result.trials))
        regrets.append(problem.best.value - result.best.value)
        gaps.append(result.gap)
    print(f"{name:>18}: runs {runs}, largest proven gap {rounded_up(max(gaps), 3)}, largest regret {max(regrets):.4f}")

# %% [markdown]
# The pessimist stays where it knows what it gets, and may never find out what it misses.
#
# ## What else it can do now
#
# The same seed gives the same runs. Candidates, minimising and several runs at once work as they do for everybody.

# %%
network = problems[0].network
first, second = (cd.maximise(network, budget=min(6, BUDGET), algorithm=Hurwicz(), seed=3).trials for _ in range(2))
print("the same seed, the same runs:", first == second)

least = cd.minimise(network, budget=min(6, BUDGET), algorithm=Hurwicz(), candidates=cd.Grid({"x": 9, "y": 9}))
shown = least.certificate.shown  # as texts, rounded so that what they say is true
assert shown is not None
print(f"the smallest of a grid so far: {shown.best}, gap {shown.gap} ({least.gap_kind})")

study = cd.Study(network, algorithm=Hurwicz())
print("three at once:", [[round(x, 2) for x in trial.controls.values()] for trial in study.ask(3)])

# %% [markdown]
# On the command line, with the class in a file `mine.py`: `cascada run certified-chain --algorithm mine:Hurwicz`.
#
# Is it right? In a clone of cascada, `tests/algorithms/test_conformance.py` is one suite for all algorithms: add an
# instance to its list `ALGORITHMS`. It asks for points in the domain that were not run yet, for the same answer to
# the same question, for integers, candidates, batches and partly observed runs. More: [writing an
# algorithm](../docs/writing-an-algorithm.md).
