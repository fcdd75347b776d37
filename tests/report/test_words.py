"""The summary of a study in sentences: its advice fits the study."""

import pytest

import cascada as cd
from cascada.network import Network
from cascada.report.payload import judgement
from cascada.report.words import summary
from tests.report.cases import estimated, proven, ran


@pytest.mark.parametrize(
    ("network", "part", "word"),
    [
        (proven(), 0.9, "a smaller norm bound"),
        (proven(), 0.001, None),  # the stages are known well enough: the gap comes from the search
        (estimated(), 0.9, "a kernel and a norm bound"),
    ],
)
def test_a_stage_is_named_only_if_it_dominates_the_gap(network: Network, part: float, word: str | None) -> None:
    study = ran(network, 16 if network.estimated else 9)
    certificate = study.certificate()
    assert certificate.gap is not None
    advice = summary(study, certificate, {"mix": 0.0, "cure": part * certificate.gap})[-1]
    assert ("'cure'" in advice) == (word is not None)
    assert word is None or word in advice


def test_the_summary_omits_an_estimated_gap_that_is_not_tested_yet() -> None:
    study = ran(estimated(), 9)  # a design of eight, and one run
    found = summary(study, study.certificate(), {})
    assert found[1] == (
        "How far that is from the best possible cannot be said yet: too few runs to trust an estimated bound; "
        f"{study.certificate().missing}."
    )
    assert "4 runs after the design must agree with it" in found[1]


def test_the_summary_of_a_process_with_a_context_says_that_the_gap_depends_on_it() -> None:
    controls = {"x": cd.Real(0, 1), "humidity": cd.Real(0, 1, context=True)}
    network = cd.chain(cd.Stage("f", controls=controls, kernel=cd.SquaredExponential(1.0), norm_bound=2.0))
    study = cd.Study(network)
    study.add_trial({"x": 0.5, "humidity": 0.5}, {"f": 0.25})
    found = summary(study, study.certificate(), {})
    assert found[1].startswith("The best setting depends on humidity, so how far a setting is from the best")
    assert dict(judgement(study, {})["facts"])["this is"] == "for a given humidity only"
