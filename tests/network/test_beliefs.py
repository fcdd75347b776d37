"""Beliefs from complete and partial runs, composite means, predictions, and bounds in both forms."""

from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.errors import ArgumentError, ContradictionError, RefutedError
from cascada.gp import BlockPosterior, Posterior
from cascada.kernels import BlockKernel, Separable, Stationary, random_expansion
from cascada.network import (
    Network,
    Node,
    chain,
    composite_mean,
    hallucinated,
    predict,
    prior_beliefs,
    run_values,
)
from cascada.space import Real
from tests.network.cases import NETWORKS, SE, SEED, X, coordinates, observed, points, run, stage, truth

# ---- posteriors and means, against posteriors fitted by hand


def data_of(network: Network, node: Node, controls: Array, outputs: list[Any]) -> tuple[Array, Array]:
    """The observations of one stage in some runs: its inputs and modelled outputs minus the offset, by name."""
    owner = {output: parent for parent in node.parents for output in network.node(parent).stage.outputs}
    inputs, seen = [], []
    for row, run_outputs in zip(controls, outputs, strict=True):
        values_by_name = dict(network.domain.named(row)) if node.stage.controls else {}
        for name in node.input_names:
            if name in owner:
                parent = network.node(owner[name]).stage
                values_by_name[name] = run_outputs[parent.name][parent.outputs.index(name)]
        own = dict(zip(node.stage.outputs, run_outputs[node.stage.name], strict=True))
        inputs.append(coordinates(node, values_by_name)[0])
        seen.append([own[output] for output in node.stage.modelled] - node.stage.offset)
    return np.array(inputs), np.array(seen)


def fitted(node: Node, inputs: Array, outputs: Array) -> Posterior | BlockPosterior:
    kernel = node.stage.kernel
    if isinstance(kernel, BlockKernel):
        return BlockPosterior.fit(kernel, inputs, outputs)
    scalar = kernel.kernel if isinstance(kernel, Separable) else kernel  # with jitter λA, means do not depend on A
    assert isinstance(scalar, Stationary)
    return Posterior.fit(scalar, inputs, outputs)


@pytest.mark.parametrize("name", NETWORKS)
def test_appending_each_run_equals_single_appends_bit_for_bit(name: str) -> None:
    network = NETWORKS[name]
    controls = points(network, 30, np.random.default_rng(SEED))
    rows = run_values(network, controls, run(network, truth(network, SEED), controls))
    rows[3::5, network.domain.dimension + 1 :] = np.nan  # partial runs
    rows = np.concatenate([rows, rows[:2]])  # and repeats
    single = prior_beliefs(network)
    for row in rows:
        single = single.append(row[None])
    together = prior_beliefs(network).append(rows[:7], each=True).append(rows[7:], each=True)
    for ours, theirs in zip(together.stages, single.stages, strict=True):
        if theirs.belief is None:
            continue
        assert ours.belief is not None
        np.testing.assert_array_equal(ours.belief.output_error, theirs.belief.output_error)
        np.testing.assert_array_equal(ours.belief.posterior.rows, theirs.belief.posterior.rows)
        np.testing.assert_array_equal(ours.belief.posterior.spent, theirs.belief.posterior.spent)
    at = network.domain.named(controls[0])
    for stage_name, prediction in together.predict(at).items():
        np.testing.assert_array_equal(prediction.upper, single.predict(at)[stage_name].upper)


@pytest.mark.parametrize("name", NETWORKS)
def test_beliefs_hold_the_observations_of_each_stage(name: str) -> None:
    network = NETWORKS[name]
    functions, controls, beliefs = observed(name)
    outputs = run(network, functions, controls)
    for believed in beliefs.stages:
        if believed.belief is None:
            assert believed.node.stage.known
            continue
        inputs, seen = data_of(network, believed.node, controls, outputs)
        np.testing.assert_allclose(believed.belief.posterior.inputs, inputs, rtol=1e-15)
        np.testing.assert_allclose(believed.belief.posterior.outputs, seen, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NETWORKS)
def test_composite_mean_is_a_loop_over_means_at_means(name: str) -> None:
    """eq:mean_chain, eq:mean_mul, eq:mean_net: point by point and stage by stage."""
    network = NETWORKS[name]
    functions, controls, beliefs = observed(name)
    outputs = run(network, functions, controls)
    posteriors = {
        node.stage.name: fitted(node, *data_of(network, node, controls, outputs))
        for node in network.nodes
        if node.stage.modelled
    }
    Z = points(network, 5, np.random.default_rng(1))
    found = composite_mean(beliefs, network.domain.encode(Z))
    for i, row in enumerate(Z):
        mean: dict[tuple[str, str], float] = {}
        for node in network.nodes:
            owner = {output: parent for parent in node.parents for output in network.node(parent).stage.outputs}
            named = network.domain.named(row)
            inputs = {n: mean[owner[n], n] if n in owner else float(named[n]) for n in node.input_names}
            if node.stage.known:
                assert node.stage.function is not None
                mean[node.stage.name, node.stage.outputs[0]] = node.stage.function(**inputs)
                continue
            prediction = posteriors[node.stage.name].predict(coordinates(node, inputs))
            modelled = iter(prediction.mean[0] + node.stage.offset)
            for output in node.stage.outputs:
                passed = output in node.stage.passes
                mean[node.stage.name, output] = inputs[output] if passed else float(next(modelled))
        expected = [mean[node.stage.name, output] for node in network.nodes for output in node.stage.outputs]
        np.testing.assert_allclose(found[i, len(network.controls) :], expected, rtol=1e-7, atol=1e-8)


def test_partial_runs_update_only_the_stages_that_were_observed() -> None:
    network = NETWORKS["chain"]
    functions = truth(network, SEED)
    controls = points(network, 6, np.random.default_rng(0))
    outputs: list[Any] = run(network, functions, controls)
    for i, missing in enumerate([(), ("h",), ("g", "h"), ("f",), ("g",), ("f", "g", "h")]):
        outputs[i] = {name: value for name, value in outputs[i].items() if name not in missing}
    rows = run_values(network, controls, outputs)
    beliefs = prior_beliefs(network).append(rows)
    posteriors = [believed.belief.posterior for believed in beliefs.stages if believed.belief is not None]
    # f needs its own output; g and h need their parent's as well.
    for posterior, seen in zip(posteriors, [[0, 1, 2, 4], [0, 1], [0, 3]], strict=True):
        assert posterior.count == len(seen)
    np.testing.assert_array_equal(posteriors[0].inputs, controls[[0, 1, 2, 4]])
    np.testing.assert_array_equal(posteriors[1].inputs, rows[[0, 1]][:, [2]])
    np.testing.assert_array_equal(posteriors[2].inputs, rows[[0, 3]][:, [3]])
    one_by_one = prior_beliefs(network)
    for row in rows:
        one_by_one = one_by_one.append(row[None])
    Z = points(network, 5, np.random.default_rng(1))
    np.testing.assert_allclose(composite_mean(one_by_one, Z), composite_mean(beliefs, Z), atol=1e-12)


def test_appending_changes_no_other_belief() -> None:
    _, controls, beliefs = observed("chain")
    before = composite_mean(beliefs, controls)
    beliefs.append(np.array([[0.1, 0.2, 0.3, np.nan, np.nan]]))
    np.testing.assert_array_equal(composite_mean(beliefs, controls), before)


# ---- predictions


@pytest.mark.parametrize("name", NETWORKS)
def test_predictions_contain_the_truth_and_reproduce_the_data(name: str) -> None:
    network = NETWORKS[name]
    functions, controls, beliefs = observed(name)
    fresh = points(network, 20, np.random.default_rng(2))
    for seen, rows in ((True, controls), (False, fresh)):
        for row, outputs in zip(rows, run(network, functions, rows), strict=True):
            for stage_name, prediction in predict(beliefs, network.domain.named(row)).items():
                actual = np.array(outputs[stage_name])
                assert np.all(prediction.lower <= actual)
                assert np.all(actual <= prediction.upper)
                assert np.all(prediction.sd >= 0)
                if seen:
                    np.testing.assert_allclose(prediction.mean, actual, atol=1e-5)
                    assert np.all(prediction.sd < 1e-3)


def test_predicted_sd_is_that_of_the_stage_at_the_mean_of_its_inputs() -> None:
    network = NETWORKS["feed-forward"]
    _, _, beliefs = observed("feed-forward")
    prediction = predict(beliefs, {"x": 0.3, "y": -0.4})
    first, second = (believed.belief for believed in beliefs.stages)
    assert first is not None
    assert second is not None
    at_f = first.posterior.predict([[0.3, -0.4]])
    np.testing.assert_allclose(prediction["f"].sd, np.repeat(at_f.sd, 2))
    np.testing.assert_allclose(prediction["f"].mean, at_f.mean[0] + network.node("f").stage.offset)
    at_g = second.posterior.predict(prediction["f"].mean[None])
    np.testing.assert_allclose(prediction["g"].sd, at_g.sd)


def test_bad_controls_are_refused() -> None:
    with pytest.raises(ArgumentError, match="missing: y"):
        predict(observed("chain")[2], {"x": 0.0})


def test_prior_bounds_follow_from_the_norm_bounds() -> None:
    network = chain(stage("f", controls=X, norm_bound=3.0, offset=10.0), stage("g", norm_bound=0.5))
    prediction = predict(prior_beliefs(network), {"x": 1.0})
    np.testing.assert_allclose([prediction["f"].lower, prediction["f"].upper], [[7.0], [13.0]])
    np.testing.assert_allclose([prediction["g"].lower, prediction["g"].upper], [[-0.5], [0.5]])
    np.testing.assert_allclose([prediction["f"].mean, prediction["f"].sd], [[10.0], [1.0]])


def test_an_offset_shifts_every_prediction() -> None:
    """The predictions of a process shifted by 5 with offset 5 are those of the plain one plus 5."""
    plain, lifted = chain(stage("f", controls=X)), chain(stage("f", controls=X, offset=5.0))
    rows = np.array([[-1.0, 0.25], [0.5, 1.0], [1.5, -0.5]])
    low, high = prior_beliefs(plain).append(rows), prior_beliefs(lifted).append(rows + np.array([[0.0, 5.0]]))
    for x in (-1.7, 0.1, 0.5):
        a, b = predict(low, {"x": x})["f"], predict(high, {"x": x})["f"]
        for one, other in ((a.mean, b.mean), (a.lower, b.lower), (a.upper, b.upper)):
            np.testing.assert_allclose(one + 5.0, other, atol=1e-9)
        np.testing.assert_allclose(a.sd, b.sd)


def test_kernels_act_on_the_logarithm_of_a_logarithmic_control() -> None:
    scaled, plain = (chain(stage("f", controls=c)) for c in ({"t": Real(0.5, 8, log=True)}, {"t": Real(-1, 3)}))
    outputs = [{"f": (0.3,)}, {"f": (-0.2,)}]
    controls = np.array([[1.0], [4.0]])
    logs = prior_beliefs(scaled).append(run_values(scaled, controls, outputs))
    same = prior_beliefs(plain).append(run_values(plain, np.log(controls), outputs))
    for t in (0.5, 2.0, 8.0):
        a, b = predict(logs, {"t": t})["f"], predict(same, {"t": np.log(t)})["f"]
        np.testing.assert_allclose([a.mean, a.sd, a.lower, a.upper], [b.mean, b.sd, b.lower, b.upper], rtol=1e-9)


def test_a_lipschitz_constant_is_per_user_unit() -> None:
    """f(t) = 0.5·t has L = 0.5 per user unit although it rises faster per unit of ln t: no evidence against it."""
    network = chain(stage("f", controls={"t": Real(0.5, 4, log=True)}, lipschitz=0.5, norm_bound=20.0))
    controls = np.array([[1.0], [2.0], [4.0]])
    rows = run_values(network, controls, [{"f": (0.5 * t,)} for t in controls[:, 0]])
    beliefs = prior_beliefs(network).append(rows)
    assert not beliefs.evidence
    for t in (0.5, 3.0):
        assert predict(beliefs, {"t": t})["f"].lower <= 0.5 * t <= predict(beliefs, {"t": t})["f"].upper


# ---- runs that are pending


def test_hallucinated_runs_take_their_means() -> None:
    _, _, beliefs = observed("chain")
    pending = np.array([[0.1, 0.2], [-1.0, 1.5]])
    expected = composite_mean(beliefs, pending)
    after = hallucinated(beliefs, pending)
    np.testing.assert_allclose(composite_mean(after, pending), expected, atol=1e-6)
    assert after.stages[0].belief is not None
    assert np.all(after.stages[0].belief.posterior.predict(pending).sd < 1e-4)


@pytest.mark.parametrize("name", ["chain with controls", "multi-output chain", "block kernel", "graph"])
def test_a_pending_run_may_have_inputs_that_were_observed_before(name: str) -> None:
    """At the controls of an earlier run every first stage has an observed input: the data are kept, not the mean."""
    _, controls, beliefs = observed(name)
    domain = beliefs.network.domain
    again = domain.encode(controls[:1])
    after = hallucinated(beliefs, again)
    assert after.stages[0].belief is not None
    assert beliefs.stages[0].belief is not None
    assert after.stages[0].belief.posterior.count == beliefs.stages[0].belief.posterior.count
    np.testing.assert_allclose(composite_mean(after, again), composite_mean(beliefs, again), atol=1e-6)


@pytest.mark.parametrize("kernel", [SE, Separable(SE)], ids=["scalar", "joint"])
def test_imagined_outputs_never_refute_an_assumption(kernel: Any) -> None:
    """Between data the mean may be steeper than L; imagined outputs must not count as evidence against it."""
    x = np.linspace(-2, 2, 401)
    steeper = 0
    for seed in range(8):
        function = random_expansion(SE, [-2], [2], norm=2.0, rng=np.random.default_rng(seed))
        lipschitz = 1.001 * np.abs(np.diff(function(x[:, None])[:, 0])).max() / (x[1] - x[0])
        network = chain(stage("f", controls=X, kernel=kernel, lipschitz=lipschitz))
        seen = x[20::90, None]
        beliefs = prior_beliefs(network).append(np.hstack([seen, function(seen)]))
        beliefs.check()
        mean = composite_mean(beliefs, x[:, None])[:, 1]
        steeper += np.abs(np.diff(mean)).max() / (x[1] - x[0]) > lipschitz
        after = hallucinated(beliefs, x[5::10, None])
        after.check()
        np.testing.assert_allclose(composite_mean(after, x[:, None])[:, 1], mean, atol=1e-6)
    assert steeper  # otherwise this test proves nothing


# ---- broken assumptions


@pytest.mark.parametrize(
    ("options", "rows", "assumption"),
    [
        ({"norm_bound": 1.0}, [[0.0, 1.5]], "norm_bound"),
        ({"lipschitz": 0.1}, [[0.0, 0.0], [1.0, 0.5]], "lipschitz"),
        ({"kernel": Separable(SE), "norm_bound": 1.0}, [[0.0, 1.5]], "norm_bound"),
        ({"offset": 5.0}, [[0.0, 0.5]], "norm_bound"),
    ],
)
def test_refuted_assumptions_name_the_stage(options: Any, rows: Any, assumption: str) -> None:
    network = chain(stage("first", controls=X, **options), stage("second"))
    padded = np.column_stack([np.array(rows), np.full(len(rows), np.nan)])
    beliefs = prior_beliefs(network).append(padded)
    assert list(beliefs.evidence) == ["first"]
    assert [found.assumption for found in beliefs.evidence["first"]] == [assumption]
    with pytest.raises(RefutedError, match=f"stage 'first': The {assumption}.* is given as"):
        beliefs.check()
    prior_beliefs(network).check()


def test_contradicting_runs_are_refused() -> None:
    beliefs = prior_beliefs(chain(stage("f", controls=X))).append(np.array([[0.5, 1.0]]))
    with pytest.raises(ContradictionError, match=r"output \[1.25\] instead of \[1.\]"):
        beliefs.append(np.array([[0.5, 1.25]]))
    assert beliefs.append(np.array([[0.5, 1.0]])).stages[0].belief is not None
