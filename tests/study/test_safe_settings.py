"""Safe mode proves the settings that are run, also where the search suggests what cannot be set."""

from typing import Any

import numpy as np

import cascada as cd
from cascada.network import Network
from cascada.search.safe import nearest_safe, proven_safe
from cascada.study import Study
from cascada.study.batch import Batch

# With a norm of 2 and the value −1 at 3, the output is at most −0.07 at 3.5, and up to 0.77 at 4.
LIMITED: Any = {
    "kernel": cd.SquaredExponential(1.0),
    "norm_bound": 2.0,
    "limits": {"m": (None, 0.2)},
    "controls": {"k": cd.Integer(0, 9)},
}
BETWEEN = 3.5  # the centre of a cell; it is rounded to 4


def test_the_proof_is_of_the_whole_number_that_is_run() -> None:
    network = Network([cd.Stage("a", outputs=["m"], **LIMITED)], objective="a")
    study = Study(network, safe=True)
    study.add_trial({"k": 3}, {"a": -1.0})
    beliefs, domain = study.beliefs, network.domain
    target = np.array([BETWEEN])
    assert proven_safe(beliefs, target[None])[0]
    assert not proven_safe(beliefs, np.array([[4.0]]))[0]
    found = nearest_safe(
        beliefs, beliefs, target, np.array([[3.0]]), lambda _point: False, np.random.default_rng(0), tolerance=0.0
    )
    assert found is None or proven_safe(beliefs, domain.encode(domain.decode(found[None])))[0]


def test_a_revision_proves_the_whole_number_that_is_run() -> None:
    first = cd.Stage("f", {"x": cd.Real(0, 1)}, outputs=["u"], kernel=cd.SquaredExponential(1.0), norm_bound=1.0)
    kernel = cd.SquaredExponential((1e3, 1.0))  # the first output hardly matters
    second = cd.Stage("a", outputs=["m"], parents=["f"], **{**LIMITED, "kernel": kernel})
    study = Study(Network([first, second], objective="a"), safe=True)
    study.add_trial({"x": 0.5, "k": 3}, {"f": 0.0, "a": -1.0})
    study.enqueue_trial({"x": 0.4, "k": 3}, known_safe=True)
    trial = study.ask()
    assert trial is not None
    trial = study.tell_stage(trial, "f", 0.01)
    batch = study._judged(lambda model, state: Batch(trial, model, state, study._settings))
    between = np.array([0.4, BETWEEN])
    assert proven_safe(batch.given(batch.model.judging), between[None])[0]
    assert batch.controls(between)["k"] == 4
    safe = batch._safe(batch.given(batch.model.judging), between)
    assert safe is None or batch.controls(safe)["k"] == 3
