"""Errors and warnings of the sampler: search spaces, directions and results that do not fit the network."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.missing import need_module

need_module("optuna", "optuna")  # before anything that imports it
# ruff: noqa: E402

import optuna

from cascada.errors import ArgumentError, CascadaError, ContradictionError, RefutedError
from cascada.integrations.optuna import CascadaSampler
from cascada.integrations.optuna_replay import Replay
from cascada.kernels import SquaredExponential
from cascada.network import Stage, chain
from cascada.process import Process
from cascada.space import Real
from tests.integrations.optuna_cases import FUNCTIONS, network

PROCESS = Process(network(), FUNCTIONS)
POINT = {"dose": 0.5, "heat": 1.0, "turns": 2}


def created(**options: Any) -> optuna.Study:
    return optuna.create_study(sampler=CascadaSampler(network(), **options), direction="maximize")


def asked(study: optuna.Study) -> optuna.Trial:
    return study.ask(CascadaSampler(network()).distributions)


def add(study: optuna.Study, params: dict[str, Any], value: float | None = None, **attributes: Any) -> None:
    """Add a past trial, with wide distributions for parameters that may be out of the network's ranges."""
    distributions = {
        name: CascadaSampler(network()).distributions.get(name, optuna.distributions.FloatDistribution(-9, 9))
        if name not in ("dose",)
        else optuna.distributions.FloatDistribution(-9, 9)
        for name in params
    }
    attributes = {f"cascada:{stage}": outputs for stage, outputs in attributes.items()}
    state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
    study.add_trial(
        optuna.trial.create_trial(
            state=state, params=params, distributions=distributions, value=value, user_attrs=attributes
        )
    )


# ---- search spaces


@pytest.mark.parametrize(
    ("suggest", "text"),
    [
        (lambda t: t.suggest_float("speed", 0, 1), "suggests 'speed', which is not a control .* dose, heat, turns"),
        (lambda t: t.suggest_categorical("kind", ["a", "b"]), "suggests 'kind', which is not a control"),
        (lambda t: t.suggest_float("dos", -2, 2), r"suggests 'dos', .* \(did you mean dose\?\)"),
        (lambda t: t.suggest_categorical("dose", [-2.0, 2.0]), "'dose' as CategoricalDistribution.*range, type, log"),
        (lambda t: t.suggest_float("dose", -2, 1.9), "'dose' as FloatDistribution.high=1.9.*high=2.0"),
        (lambda t: t.suggest_float("dose", -2, 2, step=0.5), "'dose' as FloatDistribution.*step=0.5"),
        (lambda t: t.suggest_int("dose", -2, 2), "'dose' as IntDistribution"),
        (lambda t: t.suggest_float("heat", 0.1, 3), "'heat' as FloatDistribution.*log=False.*log=True"),
        (lambda t: t.suggest_int("turns", 1, 4, log=True), "'turns' as IntDistribution.*log=True.*log=False"),
        (lambda t: t.suggest_int("turns", 1, 5), "'turns' as IntDistribution.*high=5.*high=4"),
    ],
)
def test_a_parameter_that_does_not_fit_the_network_raises(suggest: Callable[[optuna.Trial], Any], text):
    with pytest.raises(ArgumentError, match=f"trial 0 suggests.*{text}|trial 0 {text}"):
        created().optimize(suggest, n_trials=1)


def test_a_parameter_with_a_single_value_raises_at_the_end_of_the_trial():
    study = created()
    trial = study.ask()
    trial.suggest_float("dose", 1, 1)  # Optuna does not ask the sampler for it
    with pytest.raises(ArgumentError, match=r"'dose' as FloatDistribution\(high=1\.0"):
        study.tell(trial, 1.0)


def test_a_complete_trial_without_all_controls_raises():
    study = created()
    study.enqueue_trial({"dose": 1.0})
    trial = study.ask()
    trial.suggest_float("dose", -2, 2)
    with pytest.raises(ArgumentError, match="trial 0 is complete, but not all of dose, heat, turns were suggested"):
        study.tell(trial, 1.0)
    other = study.ask()
    with pytest.warns(UserWarning, match="trial 0 is complete, but not all"):
        other.suggest_float("dose", -2, 2)  # the sampler chooses all controls, but the others are not suggested
    with pytest.raises(ArgumentError, match="trial 1 is complete, but not all of dose, heat, turns were suggested"):
        study.tell(other, 1.0)


# ---- directions


def test_a_study_with_several_objectives_raises():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=CascadaSampler(network()))
    for call in (
        lambda: study.ask().suggest_float("dose", -2, 2),
        lambda: study.sampler.infer_relative_search_space(study, study.trials[0]),
        lambda: study.sampler.sample_relative(study, study.trials[0], {}),
    ):
        with pytest.raises(ArgumentError, match="one objective, but the study has 2 directions"):
            call()


def test_a_mirrored_network_in_a_study_that_maximises_raises():
    sampler = CascadaSampler(network().mirrored())
    with pytest.raises(ArgumentError, match="the study maximises, but the network was mirrored"):
        optuna.create_study(direction="maximize", sampler=sampler).ask(sampler.distributions)
    minimised = optuna.create_study(sampler=sampler)
    plain = optuna.create_study(sampler=CascadaSampler(network()))
    for study in (minimised, plain):
        study.optimize(sampler.objective(FUNCTIONS), n_trials=3)
    assert [trial.params for trial in minimised.trials] == [trial.params for trial in plain.trials]


# ---- options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seed": -1}, "seed must be a whole number"),
        ({"algorithm": "best"}, "algorithm must be one of"),
        ({"on_violation": "ignore"}, "on_violation must be"),
        ({"tolerance": -1.0}, "tolerance must be"),
        ({"horizon": 0}, "horizon must be"),
    ],
)
def test_invalid_options_raise_when_the_sampler_is_created(options, text):
    with pytest.raises(ArgumentError, match=text):
        CascadaSampler(network(), **options)


def test_a_mistyped_option_names_the_near_one():
    with pytest.raises(ArgumentError, match=r"no argument 'sede' \(did you mean seed\?\)"):
        CascadaSampler(network(), sede=1)  # type: ignore[call-arg]


def test_a_list_of_stages_instead_of_a_network_raises():
    with pytest.raises(ArgumentError, match="network must be a Network"):
        CascadaSampler([Stage("f", controls={"x": Real(0, 1)})])  # type: ignore[arg-type]


# ---- results


@pytest.mark.parametrize(
    ("attributes", "kind", "text"),
    [
        (
            {"mixx": 1.0},
            ArgumentError,
            r"the attribute 'cascada:mixx' \(did you mean cascada:mix\?\); there are only .*'cascada:mix'",
        ),
        ({"mix": [1.0, 2.0]}, ArgumentError, "'cascada:mix' cannot be used, because the stage must return 1 output"),
        ({"mix": "much"}, ArgumentError, "'cascada:mix' cannot be used.*'much'"),
        ({"mix": 0.5, "cure": 0.25}, ContradictionError, "the value 0.5, but 'cure' in its attribute .* is 0.25"),
    ],
)
def test_invalid_attributes_raise_when_told_and_warn_when_found(
    attributes: dict[str, Any], kind: type[CascadaError], text: str
):
    """`tell` raises; a sampler that finds them in the storage warns once."""
    study = created()
    trial = asked(study)
    for stage, outputs in attributes.items():
        trial.set_user_attr(f"cascada:{stage}", outputs)
    with pytest.raises(kind, match=f"trial 0.*{text}"):
        study.tell(trial, 0.5)
    assert study.trials[0].state.name == "COMPLETE"
    with pytest.warns(UserWarning, match=text):
        study.tell(asked(study), state=optuna.trial.TrialState.FAIL)
    asked(study)  # no second warning
    with pytest.warns(UserWarning, match=text):
        snapshot = Replay({}).snapshot(network(), study.get_trials())
    assert "cure" not in snapshot.study.trials[0].outputs or attributes.get("cure") is None


def test_a_value_that_lost_digits_does_not_contradict_its_attribute():
    study = created()
    trial = asked(study)
    outputs = PROCESS(trial.params)
    for stage, values in outputs.items():
        trial.set_user_attr(f"cascada:{stage}", values[0])
    study.tell(trial, outputs["cure"][0] * (1 + 1e-12))
    snapshot = Replay({}).snapshot(network(), study.get_trials())
    assert snapshot.study.trials[0].value == outputs["cure"][0]


def test_a_complete_trial_without_outputs_warns():
    study = created()
    with pytest.warns(UserWarning, match="trial 0 is complete, but has no outputs of 'mix'.*set_user_attr"):
        study.tell(asked(study), 0.5)
    snapshot = Replay({}).snapshot
    with pytest.warns(UserWarning, match="has no outputs of 'mix'"):
        (trial,) = snapshot(network(), study.get_trials()).study.trials
    assert (trial.state, trial.outputs) == ("complete", {"cure": (0.5,)})  # its only output is the value


def test_the_value_does_not_replace_several_outputs_of_a_stage():
    process = chain(
        Stage("test", controls={"x": Real(0, 1)}, outputs=["strength", "strain"]), objective="test.strength"
    )
    study = optuna.create_study(sampler=CascadaSampler(process), direction="maximize")
    trial = study.ask(CascadaSampler(process).distributions)
    with pytest.warns(UserWarning, match="has no outputs of 'test'"):
        study.tell(trial, 0.5)


def test_an_infinite_value_raises():
    study = created()
    trial = asked(study)
    with pytest.raises(ArgumentError, match="trial 0 has the value inf, which is not a finite number"):
        study.tell(trial, float("inf"))


def test_invalid_past_trials_are_left_out_with_a_warning():
    study = created()
    add(study, POINT | {"dose": 5.0}, 0.5)
    add(study, POINT | {"speed": 5.0}, 0.5)
    add(study, {"dose": 1.0})
    add(study, {"dose": 1.0}, 0.5)
    with pytest.warns(UserWarning, match="trial") as found:
        first = asked(study)
    assert [str(one.message).partition(".")[0] for one in found] == [
        "trial 0 is left out: control 'dose' must lie in [-2, 2]; got 5",
        "trial 1 has the parameter 'speed', which is not a control of the network",
        "trial 3 is complete, but not all of dose, heat, turns were suggested",
    ]
    assert first.params == asked(created()).params  # as in an empty study


# ---- data against the assumptions


def test_data_that_refute_a_norm_bound_stop_the_sampler():
    kernel = SquaredExponential(1.0)
    small = chain(Stage("f", controls={"x": Real(-1, 1)}, kernel=kernel, norm_bound=0.1))
    sampler = CascadaSampler(small)
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.add_trial(
        optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL)
    )  # so that Optuna's trial numbers differ from cascada's
    with pytest.raises(RefutedError, match=r"(?s)Stage 'f'.*suggests no more points.*on_violation='enlarge'"):
        study.optimize(sampler.objective([lambda x: 1 + x]), n_trials=5)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE", "FAIL"]
    certificate = sampler.certificate(study)
    assert (certificate.kind, certificate.gap) == ("refuted", None)
    study.sampler = CascadaSampler(small, on_violation="enlarge")
    study.optimize(sampler.objective([lambda x: 1 + x]), n_trials=2)
    assert study.trials[-1].state.name == "COMPLETE"


def test_a_process_that_is_not_deterministic_stops_the_sampler():
    study = created()
    sampler = study.sampler
    assert isinstance(sampler, CascadaSampler)
    add(study, {"dose": 1.0})  # so that Optuna's trial numbers differ from cascada's
    add(study, POINT, 0.5, mix=0.1)
    add(study, POINT, 0.5, mix=0.2)
    with pytest.raises(RefutedError, match=r"Trial 2: .*the same input.*begin a study without it"):
        asked(study)
    (evidence,) = sampler.certificate(study).evidence
    assert evidence.startswith("Trial 2: ")
