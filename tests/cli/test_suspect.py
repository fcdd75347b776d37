"""Which value `cascada tell-stage` suggests to correct: the one that the evidence is about."""

import pytest

from cascada.cli.suspect import suspect

STAGES = ["mix", "cure", "trial 9"]
MIX = "Stage 'mix': The norm_bound is given as 2, but {} possible only with more than 3. Check those trials."


@pytest.mark.parametrize(
    ("evidence", "told", "expected"),
    [
        ([MIX.format("trial 4 is")], (4, "mix"), (4, "mix")),
        ([MIX.format("trial 4 is")], (4, "cure"), (4, "mix")),  # an earlier stage of the same trial
        ([MIX.format("trial 4 is")], (7, "cure"), (4, "mix")),  # another trial
        ([MIX.format("trial 4 is")], (4, None), (4, "mix")),  # all stages were told at once
        ([MIX.format("trials 3 and 7 are")], (3, "mix"), (3, "mix")),
        ([MIX.format("trials 3 and 7 are")], (5, "mix"), (7, "mix")),  # trial 5 is neither of them
        ([MIX.format("trials 0 to 5 are")], (2, "mix"), (2, "mix")),
        ([MIX.format("trials 0 to 5 are")], (8, "cure"), (5, "mix")),
        ([MIX.format("3 of the trials 0 to 5 are")], (2, "mix"), (5, "mix")),  # whether 2 is one of them is not said
        (["Trial 6: stage 'cure' gave cure = 5, but it lies in [0, 1] there."], (6, "mix"), (6, "cure")),
        (["Stage 'trial 9': trial 2 gave y = 5, but its range is y ≤ 1."], (9, "mix"), (2, "trial 9")),
        ([MIX.format("trial 4 is"), MIX.replace("mix", "cure").format("trial 6 is")], (6, "cure"), (6, "cure")),
        (["a run gave 3, but by the assumptions no setting gives more than 2."], (6, "cure"), (6, "cure")),
        (["a run gave 3, but by the assumptions no setting gives more than 2."], (6, None), (6, None)),
        ([], (6, "cure"), (6, "cure")),
    ],
)  # fmt: skip
def test_the_value_that_the_evidence_is_about_is_suggested(
    evidence: list[str], told: tuple[int, str | None], expected: tuple[int, str | None]
) -> None:
    assert suspect(evidence, STAGES, *told) == expected
