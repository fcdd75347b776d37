"""Soundness of proofs from stages that are run one at a time.

Every process is one of `problems.certified`, or one whose later stage shares a control with an earlier one. Steps are
chosen by the rule, and at random: whatever chose them, bounds must hold. After every step of the rule the bound is
compared with the values of many settings, the gap with the true regret, and the setting that is proven to be best with
what it gives. With errors, an output that is kept is read once and used again and again, with the one true value that
it has; inputs that are set freely are exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.step_lab import StepLab, Terms, on_terms, outputs
from cascada.algorithms.steps import Step
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, Bounded, Network, Stage, enclose_network, prior_beliefs
from cascada.network.limits import satisfied
from cascada.network.read_beliefs import ReadBeliefs
from cascada.problems import Problem, certified
from cascada.problems.certified_problem import StagePlan, Wiring
from tests.soundness.harness import Ledger
from tests.soundness.truths import BOX, NORM

#: A stage that shares a control with the stage before it: what is set there looks like what that stage gave.
SHARED = Wiring("x → f, (f, x) → g", (StagePlan(("x",)), StagePlan(("x",), (0,))))
BRANCHES = Wiring("2-2-1", (StagePlan(("x", "y")), StagePlan(("x", "y")), StagePlan((), (0, 1))))
STRUCTURES: dict[str, str | Wiring] = {
    "controls": "controls",
    "join": "join",
    "branches": BRANCHES,
    "shared": SHARED,
    "known": "known",
    "multi-output": "multi-output",
}
MODES = {"reused": ("stock", np.inf), "used up": ("stock", 1.0), "decoupled": ("any", 1.0)}
_COSTS = ((1.0, 1.0, 1.0), (1.0, 10.0, 100.0), (100.0, 10.0, 1.0))
_POINTS = 600  # settings whose values are compared with bounds
_CELLS = 40
_ERROR = 0.05


def run(
    steps: int, seed: int, structures: Sequence[str] = tuple(STRUCTURES), modes: Sequence[str] = tuple(MODES)
) -> Ledger:
    """Check `steps` steps of the rule, of random steps and of random steps with errors, for every structure."""
    ledger = Ledger()
    for s, name in enumerate(structures):
        rng = np.random.default_rng([seed, s, 23])
        for m, mode in enumerate(modes):
            problem = process(name, mode, seed, _COSTS[(seed + s + m) % 3])
            problem = minimised(problem) if (seed + s + m) % 4 == 3 else problem
            problem = limited(problem, rng) if (seed + s + m) % 4 == 2 else problem
            check_rule(ledger, f"{name}, {mode}, seed {seed}", problem, steps, rng)
        check_any_steps(ledger, f"{name}, seed {seed}", process(name, "decoupled", seed, _COSTS[0]), steps, rng)
        noisy = process(name, "decoupled", seed, _COSTS[0])
        check_errors(ledger, f"{name}, errors, seed {seed}", noisy, steps, rng)
    return ledger


def process(name: str, mode: str, seed: int, costs: tuple[float, ...]) -> Problem:
    """A process with costs."""
    return on_terms(certified(STRUCTURES[name], seed), Terms(costs, *MODES[mode]))


def minimised(problem: Problem) -> Problem:
    """The same process with its objective minimised."""
    return replace(problem, network=problem.network.mirrored())


def limited(problem: Problem, rng: np.random.Generator) -> Problem:
    """The same process with a limit on the first stage, which half of the settings satisfy."""
    network = problem.network
    values = problem.values(_settings(network, 500, rng))
    node = network.nodes[0]
    limits = {node.stage.outputs[0]: (-np.inf, float(np.median(values[:, node.columns[0]])))}
    return _with(problem, lambda stage: {"limits": limits} if stage.name == node.stage.name else {})


def _with(problem: Problem, changes: Callable[[Stage], dict[str, object]]) -> Problem:
    """The same process with other declarations of its stages."""
    network = problem.network
    new = {}
    for node in network.nodes:
        stage = new[node.stage.name] = replace_fields(node.stage, changes(node.stage))
        assert stage.function is node.stage.function
    made = Network([new[stage.name] for stage in network.stages], ".".join(network.objective))
    return replace(problem, network=made.mirrored() if network.sign < 0 else made)


def replace_fields(stage: Stage, changes: dict[str, object]) -> Stage:
    """A copy of a stage with other values of some fields."""
    changed = Stage.__new__(Stage)
    changed.__dict__.update(stage.__dict__ | changes)
    return changed


def _settings(network: Network, count: int, rng: np.random.Generator) -> Array:
    return rng.uniform(-BOX, BOX, (count, network.domain.dimension))


# ---- steps of the rule


def check_rule(ledger: Ledger, name: str, problem: Problem, steps: int, rng: np.random.Generator) -> None:
    """Check the bound, the gap and the incumbent after every step that the rule chooses."""
    lab, network = StepLab(problem, guaranteed=steps % 2 == 0), problem.network
    points = _settings(network, _POINTS, rng)
    values = _reached(problem, points)
    for number in range(steps):
        note = f"{name}, step {number}"
        step = ledger["step"].attempt(lab.think, note)
        ledger["no step is repeated"].verdict(lab.repeated == 0, note)
        if lab.best is not None:
            own = float(_reached(problem, lab.best.point[None])[0])
            ledger["incumbent is feasible"].verdict(np.isfinite(own), note)
            ledger["value of the incumbent"].add(np.array([own - lab.best.value]) / NORM, np.zeros(1), note)
            near = np.clip(lab.best.point + 0.03 * rng.standard_normal(points.shape), -BOX, BOX)
            most = max(float(values.max()), float(_reached(problem, near).max()))
            margin = np.array([lab.bound - most, lab.gap - (most - own)])
            ledger["bound and gap"].add(margin / NORM, np.array([lab.gap]) / NORM, note)
        if step is None:
            return
        if ledger["running it"].attempt(lambda one=step: ran(lab, one), note) is None:  # type: ignore[misc]
            return
        if len(lab.data):
            same = np.abs(problem.values(lab.data[-1:, : points.shape[1]]) - lab.data[-1]).max() <= 1e-9
            ledger["a run is what the process gives there"].verdict(bool(same), note)
        check_beliefs(ledger, "after steps of the rule", problem, lab.beliefs, rng, note)


def ran(lab: StepLab, step: Step) -> int:
    """Run a step; the number of steps so far."""
    lab.run(step)
    return lab.steps


def _reached(problem: Problem, points: Array) -> Array:
    """What is maximised at settings (n, d), −∞ where a limit is broken, (n,)."""
    network, values = problem.network, problem.values(points)
    return np.where(satisfied(network.limits, values), network.sign * values[:, network.objective_column], -np.inf)


def check_beliefs(
    ledger: Ledger, kind: str, problem: Problem, beliefs: Beliefs, rng: np.random.Generator, note: str
) -> None:
    """Compare the bounds of all values at points, and over cells, with the values."""
    points = _settings(problem.network, _CELLS, rng)
    half = rng.uniform(0, 0.5, (_CELLS, 1))
    low, high = np.maximum(points - half, -BOX), np.minimum(points + half, BOX)
    inside = low[:, None] + (high - low)[:, None] * rng.uniform(size=(_CELLS, 8, points.shape[1]))
    values = problem.values(inside.reshape(-1, points.shape[1])).reshape(_CELLS, 8, -1)
    ledger[f"values, {kind}"].try_boxes(
        lambda: enclose_network(beliefs, Boxes(points, points)).boxes, problem.values(points), NORM, note
    )
    ledger[f"cells, {kind}"].try_boxes(lambda: enclose_network(beliefs, Boxes(low, high)).boxes, values, NORM, note)


# ---- steps at random


def check_any_steps(ledger: Ledger, name: str, problem: Problem, steps: int, rng: np.random.Generator) -> None:
    """Check bounds after observations of random stages at random inputs, and after some whole runs between them."""
    network, beliefs = problem.network, prior_beliefs(problem.network)
    for number in range(steps):
        note = f"{name}, random step {number}"
        if number % 4 == 3:
            rows = problem.values(_settings(network, 1, rng))
            learned = ledger["learning"].attempt(lambda b=beliefs, r=rows: b.append(r), note)  # type: ignore[misc]
        else:
            node, row = _observed(network, rng)
            learned = ledger["learning"].attempt(lambda b=beliefs, n=node, r=row: b.append_to(n, r[None]), note)  # type: ignore[misc]
        if learned is None:
            return
        beliefs = learned
        ledger["not refuted"].judge(lambda b=beliefs: not b.evidence, note)  # type: ignore[misc]
        check_beliefs(ledger, "after random steps", problem, beliefs, rng, note)


def _observed(network: Network, rng: np.random.Generator) -> tuple[int, Array]:
    """An observation of a random stage at inputs that were set: its position and a row (V,)."""
    position = int(rng.choice([i for i, node in enumerate(network.nodes) if not node.stage.known]))
    node, row = network.nodes[position], np.full(network.width, np.nan)
    row[list(node.inputs)] = rng.uniform(-BOX, BOX, len(node.inputs))
    row[list(node.columns)] = outputs(node, row)
    return position, row


# ---- steps that are read with errors


def check_errors(ledger: Ledger, name: str, problem: Problem, steps: int, rng: np.random.Generator) -> None:
    """Check bounds from runs that go on with outputs that were read once, and from inputs that were set."""
    noisy = _with(problem, lambda stage: {} if stage.known else {"error": Bounded(_ERROR)})
    network = noisy.network
    beliefs = prior_beliefs(network)
    kept: list[tuple[Array, Array]] = []  # true values and readings of runs
    for number in range(steps):
        note = f"{name}, step {number}"
        if number % 3 == 2:
            node, row = _observed(network, rng)
            row[network.nodes[node].modelled_columns] += _ERROR * rng.choice([-1.0, 1.0])
            learned = ledger["learning"].attempt(lambda b=beliefs, n=node, r=row: b.append_to(n, r[None]), note)  # type: ignore[misc]
        else:
            truth, read = _run_on(network, kept[int(rng.integers(len(kept)))] if number % 3 else None, rng)
            kept.append((truth, read))
            learned = ledger["learning"].attempt(lambda b=beliefs, r=read: b.append(r[None]), note)  # type: ignore[misc]
        if learned is None:
            return
        beliefs = learned
        assert isinstance(beliefs, ReadBeliefs), "readings have errors"
        ledger["not refuted"].judge(lambda b=beliefs: not b.evidence, note)  # type: ignore[misc]
        if kept:
            values = beliefs.latent.values
            true = np.array([one for one, _ in kept])
            ledger["one row for every run"].verdict(len(values.lower) == len(true), note)
            if len(values.lower) != len(true):
                return
            ledger["true values of runs"].try_boxes(lambda v=values: v, true, NORM, note)  # type: ignore[misc]
        check_beliefs(ledger, "after steps with errors", noisy, beliefs, rng, note)


def _run_on(network: Network, item: tuple[Array, Array] | None, rng: np.random.Generator) -> tuple[Array, Array]:
    """True values and readings (V,) of a run; what an item's first stage gave is used again, and read only once.

    Controls of the stage keep their values, those of later stages that do not share them are new.
    """
    truth = np.full(network.width, np.nan)
    truth[: network.domain.dimension] = rng.uniform(-BOX, BOX, network.domain.dimension)
    first, read = network.nodes[0], truth.copy()
    if item is not None:
        columns = [*first.inputs, *first.columns]
        truth[columns], read[columns] = item[0][columns], item[1][columns]
    for node in network.nodes[0 if item is None else 1 :]:
        truth[list(node.columns)] = outputs(node, truth)
        if node.stage.known:
            read[list(node.columns)] = outputs(node, read)
        else:
            read[list(node.columns)] = truth[list(node.columns)] + _ERROR * rng.choice([-1.0, 1.0], len(node.columns))
    return truth, read
