"""Tests of controls with separate values, fixed controls, and the ends of logarithmic ranges."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cascada as cd
from cascada.controls import Control, Integer, Real
from cascada.designs import design
from cascada.errors import ArgumentError
from cascada.search.leaves import Leaves
from cascada.search.tree import Tree
from cascada.space import Domain, Grid

K = cd.SquaredExponential(1.0)


def cut_down(control: Control) -> Leaves:
    """All cells of one control, cut until none can be cut."""
    domain = Domain({"c": control})
    tree = Tree(Leaves.root(domain), -np.inf)
    for _ in range(200):
        rows = tree.top(10_000)
        leaves = tree.take(rows)
        can = domain.divisible(leaves.lower, leaves.upper)[:, 0]
        if not can.any():
            return leaves
        tree.cut(rows[can], np.zeros(int(can.sum()), dtype=np.int64), domain)
    raise AssertionError("the cells can be cut for ever")


@given(st.integers(1, 2**35), st.integers(0, 40))
def test_cells_of_logarithmic_integers_contain_one_number_each_with_its_exact_logarithm(low: int, more: int) -> None:
    leaves = cut_down(Integer(low, low + more, log=True))
    assert len(leaves) == more + 1
    order = np.argsort(leaves.lower[:, 0])
    with localcontext() as digits:
        digits.prec = 40
        for n, row in zip(range(low, low + more + 1), order, strict=True):
            exact = Decimal(n).ln()
            assert Decimal(float(leaves.lower[row, 0])) <= exact <= Decimal(float(leaves.upper[row, 0]))
            assert Domain({"c": Integer(low, low + more, log=True)}).decode(leaves.centre[[row]])[0, 0] == n


@given(
    st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), st.sampled_from([0.5, 0.1, 0.025, 1 / 3, 7.0]), st.integers(0, 60)
)
def test_cells_of_steps_contain_one_value_each(low: float, step: float, steps: int) -> None:
    control = Real(low, low + steps * step, step=step)
    domain, leaves = Domain({"c": control}), cut_down(control)
    assert control.count == len(leaves) == steps + 1
    np.testing.assert_array_equal(leaves.lower, leaves.upper)
    values = np.sort(leaves.lower[:, 0])
    np.testing.assert_allclose(values, low + step * np.arange(steps + 1), rtol=1e-12, atol=1e-12)
    domain.check(values[:, None])
    np.testing.assert_array_equal(domain.decode(values[:, None] + 0.4 * step)[:, 0], values)


def test_values_in_steps_are_those_that_a_user_would_write() -> None:
    domain = Domain({"c": Real(0.1, 0.9, step=0.1)})
    assert Grid({"c": 9}).points(domain)[:, 0].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert Grid({"c": 3}).points(domain)[:, 0].tolist() == [0.1, 0.5, 0.9]
    assert domain.row({"c": 0.3}).tolist() == [0.3]


@given(st.floats(1e-6, 1e6), st.floats(1.0001, 1e6))
def test_the_logarithm_of_an_end_is_decoded_to_the_end(low: float, factor: float) -> None:
    domain = Domain({"t": Real(low, low * factor, log=True)})
    ends = np.array([[low], [low * factor]])
    np.testing.assert_array_equal(domain.decode(domain.encode(ends)), ends)
    np.testing.assert_array_equal(domain.decode(np.array([domain.lower, domain.upper])), ends)


def test_a_fixed_control_keeps_its_value_everywhere() -> None:
    controls: dict[str, Control] = {
        "x": cd.Real(0, 1),
        "t": cd.Real(60, 60, log=True),
        "n": cd.Integer(3, 3),
        "y": cd.Real(5, 5),
    }
    network = cd.chain(cd.Stage("f", controls=controls, kernel=K, norm_bound=1.0))
    for algorithm in ("gpn_mixed", "gpn_ei", "cei", "gp_ucb", "ei", "cucb", "oi", "random_search"):
        study = cd.Study(network, algorithm=algorithm)
        for _ in range(3):
            trial = study.ask()
            assert trial is not None
            assert {k: v for k, v in trial.controls.items() if k != "x"} == {"t": 60, "n": 3, "y": 5}, algorithm
            study.tell(trial, {"f": 0.3 * np.sin(trial.controls["x"])})
    assert len(np.unique(design(network.domain, 7), axis=0)) == 7
    unknown = cd.Study(cd.chain(cd.Stage("f", controls=controls)))
    for _ in range(14):
        trial = unknown.ask()
        assert trial is not None
        unknown.tell(trial, {"f": np.sin(5 * trial.controls["x"])})
    assert unknown.best_trial is not None
    assert unknown.best_trial.value is not None
    assert unknown.best_trial.value > 0.99


def test_a_process_of_discrete_controls_is_proven_and_stored(tmp_path: object) -> None:
    network = cd.chain(
        cd.Stage(
            "f", controls={"n": cd.Integer(1, 200, log=True), "x": cd.Real(0, 3, step=0.25)}, kernel=K, norm_bound=2.0
        )
    )
    result = cd.maximise(
        network,
        [lambda n, x: float(np.exp(-((np.log(n) - 2) ** 2 + (x - 1.25) ** 2) / 2))],
        budget=60,
        tolerance=1e-3,
        progress=False,
    )
    every = [np.exp(-((np.log(n) - 2) ** 2 + (x - 1.25) ** 2) / 2) for n in range(1, 201) for x in np.arange(13) / 4]
    assert result.gap_kind == "proven"
    assert result.best is not None
    assert result.best.value is not None
    assert result.gap is not None
    assert max(every) - result.best.value <= result.gap <= 1e-3
    assert type(result.best.controls["n"]) is int
    url = f"sqlite:///{tmp_path}/study.db"
    study = cd.Study.open(url, "steps", network)
    first = study.ask()
    assert first is not None
    study.close()
    assert cd.Study.open(url, "steps").network.domain == network.domain


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(0, 1, step=0.3), r"high must be a whole number of steps above low; got Real\(low=0, high=1.*0.9"),
        (lambda: Real(0, 1, step=2.0), "whole number of steps"),
        (lambda: Real(0, 1, step=0.0), "step must be a finite number above 0"),
        (lambda: Real(0, 1, step=True), "step must be a finite number above 0"),
        (lambda: Real(1, 2, log=True, step=0.5), r"step= does not work with log=True; got .* Use Integer"),
        (lambda: Real(0, 1e12, step=1e-3), "at most 2\\^36 steps"),
        (lambda: Integer(0, 5, log=True), "needs a range above 0"),
        (lambda: Integer(1, 2**40, log=True), "must lie below 2\\^36"),
        (
            lambda: Domain({"c": Real(0, 1, step=0.5)}).row({"c": 0.3}),
            r"control 'c' must be a whole number of steps of 0.5 above 0; got 0.2999.*, next to 0.5",
        ),
    ],
)
def test_invalid_steps_raise_an_argument_error(make: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]
