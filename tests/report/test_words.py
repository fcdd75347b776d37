"""What a study found, in sentences: the advice fits what is known."""

import pytest

from cascada.network import Network
from cascada.report.words import summary
from tests.report.cases import estimated, proven, ran


@pytest.mark.parametrize(
    ("network", "part", "word"),
    [
        (proven(), 0.9, "a smaller norm bound"),
        (proven(), 0.001, None),  # the stages are known well enough: the gap is the search's
        (estimated(), 0.9, "a kernel and a norm bound"),
    ],
)
def test_a_stage_is_named_only_where_it_matters(network: Network, part: float, word: str | None) -> None:
    study = ran(network, 16 if network.estimated else 9)
    certificate = study.certificate()
    assert certificate.gap is not None
    said = summary(study, certificate, {"mix": 0.0, "cure": part * certificate.gap})[-1]
    assert ("'cure'" in said) == (word is not None)
    assert word is None or word in said


def test_an_estimated_gap_that_was_not_tested_is_not_told() -> None:
    study = ran(estimated(), 9)  # a design of eight, and one run
    found = summary(study, study.certificate(), {})
    assert found[1] == (
        "How far that is from the best possible cannot be said yet: too few runs to trust an estimated bound; "
        f"{study.certificate().missing}."
    )
    assert "of 4 runs needed after the design agree with it" in found[1]
