"""Tests of the claims: each can be held and not held, and its numbers agree with plain loops."""

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from cascada.experiments.claims import Claim, claims, table
from cascada.experiments.statistics import BASELINES, NON_ADAPTIVE, OI, OURS, SWEEP
from tests.experiments.synthetic import LEVELS, Regret, spread, synthetic

IDS = ["1a", "1b", "2", "3", "4", "5a", "5b", "6", "7", "8", "9a", "9b", "9c", "9d", "10"]


def judged(results: dict[str, Any]) -> dict[str, Claim]:
    return {claim.id: claim for claim in claims(results)}


def verdicts(claim: Claim) -> tuple[str, str, str]:
    return claim.g1.verdict, claim.g2.verdict, claim.family.verdict


def stays(label: str, levels: list[float]) -> Regret:
    """Runs at `LEVELS`, but those of one label take other shares, the last one until the end."""

    def regret(seed: int, other: str, _trial: int) -> list[float]:
        shares = levels if other == label else [LEVELS.get(other, LEVELS[OI])]
        return [spread(seed) * shares[min(t, len(shares) - 1)] for t in range(60)]

    return regret


def noisy(seed: int, label: str, trial: int) -> list[float]:
    """Decreasing regrets with different noise for every run."""
    rng = np.random.default_rng([seed, trial, *label.encode()])
    return [spread(seed) * math.exp(-t / 20) * rng.uniform(0.2, 1.0) for t in range(60)]


#: For each claim: levels on every chain for which it holds, and levels for which it does not.
EITHER_WAY: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "1a": ({OURS: 0.049}, {OURS: 0.051}),
    "1b": ({NON_ADAPTIVE: 0.049}, {NON_ADAPTIVE: 0.051}),
    "2": ({"cEI": 0.021}, {"cEI": 0.019}),
    "3": ({"EI": 0.026}, {"EI": 0.024}),
    "4": ({"cEI": 0.039}, {"cEI": 0.041}),
    "5a": ({"cEI": 0.015}, {"cEI": 0.022}),
    "5b": ({"cUCB": 0.026, "cEI": 0.0}, {"cUCB": 0.024, "cEI": 0.0}),
    "7": ({"cUCB": 0.14}, {"cUCB": 0.16}),
    "8": ({"cUCB": 0.104}, {"cUCB": 0.106}),
    "9a": ({"GP-UCB": 0.09}, {"GP-UCB": 0.09, "cUCB": 0.08}),
    "9b": ({"EI": 0.09}, {"EI": 0.09, OI: 0.09}),
    "9c": ({"cEI": 0.10}, {"EI": 0.09}),
    "9d": ({"cEI": 0.10}, {"cEI": 0.11}),
}


@pytest.mark.parametrize("id_", EITHER_WAY)
def test_a_claim_can_hold_and_can_fail(id_: str) -> None:
    for levels, verdict in zip(EITHER_WAY[id_], ("held", "not held"), strict=True):
        on_family = "not applicable" if id_ == "8" else verdict
        assert verdicts(judged(synthetic(levels))[id_]) == (verdict, verdict, on_family)


def test_slightly_has_an_upper_end() -> None:
    assert judged(synthetic({"cEI": 0.0, OURS: 0.049, NON_ADAPTIVE: 0.049}))["5a"].g1.verdict == "held"
    claim = judged(synthetic({"cEI": 0.0, OURS: 0.049, NON_ADAPTIVE: 0.051}))["5a"]
    assert verdicts(claim) == ("not held",) * 3
    assert claim.g1.text == "5.10% (NonAda)"


def test_the_cost_is_a_count() -> None:
    held, failed = judged(synthetic(samples=1000))["6"], judged(synthetic(samples=2))["6"]
    assert verdicts(held) == ("held",) * 3
    assert held.family.number == 2500 * 2001 / 2700
    assert verdicts(failed) == ("not held",) * 3
    assert "S = 2." in failed.criterion


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ([0.01], "0 of 3"),  # ahead until the end
        ([0.06, *[0.055] * 30, 0.03], "none ahead at t = 10"),
    ],
)
def test_no_early_lead_or_a_lasting_one_is_not_held(levels: list[float], text: str) -> None:
    finding = judged(synthetic(regret=stays("cEI", levels)))["10"].g1
    assert (finding.verdict, finding.text) == ("not held", text)


def test_an_early_lead_that_does_not_help_is_held() -> None:
    """GPN-UCB is at 30 % until it is near-optimal at t = 20; trial 0 of cEI leads at 20 %, and arrives at t = 40."""

    def regret(seed: int, label: str, trial: int) -> list[float]:
        arrival, start = {OURS: (20, 0.3), "cEI": (40 if trial == 0 else 15, 0.2)}.get(label, (60, 0.5))
        return [spread(seed) * (start if t < arrival else 0.0) for t in range(1, 61)]

    claim = judged(synthetic(regret=regret, trials=4))["10"]
    assert verdicts(claim) == ("held",) * 3
    assert (claim.g1.number, claim.g1.text) == (0.25, "1 of 4")
    assert claim.family.text == "4 of 4"  # trial 0 of every chain


def test_late_is_later_than_the_median_trial() -> None:
    """GPN-UCB arrives at t = 11, 20 and 50. All trials of cEI arrive at t = 30; one of cUCB leads and never arrives."""

    def regret(seed: int, label: str, trial: int) -> list[float]:
        arrivals = {OURS: ((11, 20, 50)[trial], 0.3), "cEI": (30, 0.2), "cUCB": (math.inf, (0.2, 0.4, 0.4)[trial])}
        arrival, start = arrivals.get(label, (60, 0.5))
        return [spread(seed) * (start if t < arrival else 0.0) for t in range(1, 61)]

    assert judged(synthetic(regret=regret))["10"].g1.text == "4 of 4"


def test_only_small_factors_must_be_similar() -> None:
    assert judged(synthetic({"OI b=10": 0.5, "OI b=10000": 0.5}))["7"].g1.verdict == "held"
    claim = judged(synthetic({"OI b=0.01": 0.5}))["7"]
    assert verdicts(claim) == ("not held", "not held", "held")  # the family has b = 1 only
    assert claim.g1.text == "40.00% (b=0.01)"


def test_no_trial_is_late_if_none_arrives() -> None:
    """If GPN-UCB never arrives, no trial is late."""
    claim = judged(synthetic(dict.fromkeys(LEVELS, 0.5) | {"cEI": 0.4}))["10"]
    assert (claim.g1.verdict, claim.g1.text) == ("not held", "0 of 3")


def test_a_single_chain_decides_the_claims_about_black_boxes() -> None:
    """Chain 3 alone supports "sometimes", refutes "never", and does not affect g1 and g2."""
    found = judged(synthetic({"cEI": 0.05}, exceptions={3: {"EI": 0.03}}))
    for id_, verdict in {"9a": "held", "9b": "held", "9c": "not held", "9d": "not held"}.items():
        assert found[id_].family.verdict == verdict
        assert found[id_].family.text == "1 of 4 chains"
        assert found[id_].family.number == 0.25
    assert found["9a"].g1.verdict == "not held"
    assert found["9c"].g1.verdict == "held"


def simple_area(regrets: list[list[float]]) -> float:
    """The mean over T = 4, 9, …, 49 and trials of the best regret so far, by loops."""
    total = 0.0
    for T in (4, 9, 16, 25, 36, 49):
        total += sum(min(regret[:T]) for regret in regrets) / len(regrets)
    return total / 6


def test_numbers_agree_with_loops() -> None:
    found = judged(synthetic(regret=noisy))
    for finding, seed in ((lambda c: c.g1, 0), (lambda c: c.g2, 1)):
        runs = {label: [noisy(seed, label, trial) for trial in range(3)] for label in (OURS, *BASELINES, *SWEEP)}
        area = {label: simple_area(all_) / spread(seed) for label, all_ in runs.items()} | {NON_ADAPTIVE: 0.025}
        at_50 = sum(min(regret[:50]) for regret in runs[OURS]) / 3 / spread(seed)
        ratios = [sum(map(sum, runs[label])) / sum(map(sum, runs[OURS])) for label in BASELINES]
        curves = {
            label: [sum(min(r[:T]) for r in runs[label]) / 3 / spread(seed) for T in range(1, 61)]
            for label in ("cUCB", SWEEP[0])
        }
        per_step = {label: sum(map(sum, runs[label])) / 3 / 60 / spread(seed) for label in runs}
        lead = {
            "9a": min(area[OI], area["cUCB"]) - min(area["GP-UCB"], area["EI"]),
            "9b": min(per_step[OI], per_step["cUCB"]) - min(per_step["GP-UCB"], per_step["EI"]),
            "9c": max(area[OURS], area["cEI"]) - min(area["GP-UCB"], area["EI"]),
            "9d": max(per_step[OURS], per_step["cEI"]) - min(per_step["GP-UCB"], per_step["EI"]),
        }
        wanted = {
            "1a": at_50,
            "1b": 0.025,
            "2": min(ratios),
            "3": min(area[label] - 0.025 for label in BASELINES),
            "4": area[OURS] - area["cEI"],
            "5b": min(area[b] - area[ours] for b in ("cUCB", OI, "GP-UCB", "EI") for ours in (OURS, NON_ADAPTIVE)),
            "8": max(abs(a - b) for a, b in zip(*curves.values(), strict=True)),
            **lead,
        }
        for id_, number in wanted.items():
            assert finding(found[id_]).number == pytest.approx(number, abs=1e-11), id_
        furthest = max((area[label] - area["cUCB"] for label in SWEEP[:5]), key=abs)
        assert finding(found["7"]).number == pytest.approx(furthest, abs=1e-11)


def test_the_family_is_judged_by_paired_intervals_of_trial_0() -> None:
    family = 6
    found = judged(synthetic(regret=noisy, family=family))
    totals = {label: [sum(noisy(seed, label, 0)) for seed in range(family)] for label in (OURS, *BASELINES)}
    shown = found["2"].family
    label = shown.text.split("(")[1].rstrip(")")
    interval = ttest_rel(np.log(totals[label]), np.log(totals[OURS])).confidence_interval(0.95)
    assert shown.low == pytest.approx(math.exp(interval.low))
    assert shown.high == pytest.approx(math.exp(interval.high))
    areas = {
        label: [simple_area([noisy(seed, label, 0)]) / spread(seed) for seed in range(family)]
        for label in (OURS, "cEI")
    }
    interval = ttest_rel(areas[OURS], areas["cEI"]).confidence_interval(0.95)
    assert found["4"].family.low == pytest.approx(interval.low, abs=1e-11)
    assert found["4"].family.high == pytest.approx(interval.high, abs=1e-11)
    interval = ttest_1samp([a - 0.025 for a in areas["cEI"]], 0.0).confidence_interval(0.95)
    details = next(line for line in found["3"].family.details if line.startswith("cEI"))
    assert details.endswith(f"[{100 * interval.low:.2f}, {100 * interval.high:.2f}]")


def test_one_undecided_baseline_makes_the_family_undecided() -> None:
    """cEI is ahead on half of the chains and equally far behind on the others; the other baselines are clear."""
    exceptions = {seed: {"cEI": 0.01 if seed % 2 else 0.04} for seed in range(4)}
    claim = judged(synthetic(exceptions=exceptions))["2"]
    assert verdicts(claim) == ("held", "not held", "undecided")
    assert claim.family.number == pytest.approx(1.0)
    assert claim.family.low is not None
    assert claim.family.high is not None
    assert claim.family.low < 1 < claim.family.high
    assert claim.family.text.endswith("(cEI)")
    assert len(claim.family.details) == 5


def test_a_lost_baseline_outweighs_an_undecided_one() -> None:
    exceptions = {seed: {"cEI": 0.002 if seed % 2 else 0.1} for seed in range(4)}
    claim = judged(synthetic({"EI": 0.0199}, exceptions=exceptions))["2"]
    assert claim.family.verdict == "not held"
    assert claim.family.text.endswith("(EI)")  # the decisive one, although the mean of cEI is smaller


def test_all_regrets_zero() -> None:
    """With ties everywhere no algorithm outperforms another; all are similar and near-optimal."""
    found = judged(synthetic(dict.fromkeys(LEVELS, 0.0)))
    assert found["2"].g1.number == 1.0
    for id_ in ("1a", "1b", "4", "7", "9c", "9d"):
        assert verdicts(found[id_]) == ("held",) * 3, id_
    for id_ in ("2", "3", "5a", "5b", "9a", "9b", "10"):
        assert verdicts(found[id_]) == ("not held",) * 3, id_


def test_a_zero_regret_of_ours_gives_a_finite_ratio() -> None:
    found = judged(synthetic({OURS: 0.0}))["2"]
    assert found.g1.number == pytest.approx(0.10 * 60 / 1e-3)
    assert math.isfinite(found.family.low or math.inf)


def test_a_family_of_one_is_undecided() -> None:
    found = judged(synthetic(family=1, trials=1))
    for id_ in ("1a", "2", "3", "4", "5a", "5b", "7"):
        assert found[id_].family.verdict == "undecided", id_
        assert (found[id_].family.low, found[id_].family.high) == (None, None)
        assert found[id_].g1.verdict != "undecided"
    assert "[" not in found["2"].family.text


def test_claims_about_later_runs_do_not_apply_to_short_runs() -> None:
    found = judged(synthetic(horizon=48))
    assert found["1a"].g1.verdict == found["1b"].family.verdict == "not applicable"
    assert found["1a"].g1.text == "the runs stop at T = 48"
    assert found["2"].g1.verdict == "held"
    assert judged(synthetic(horizon=49))["1b"].g1.verdict == "held"
    assert judged(synthetic(horizon=9))["10"].g1.verdict == "not applicable"


def test_scale_and_order_do_not_matter() -> None:
    """Metamorphic: another unit of the objective and another order of records do not change the claims."""
    results = synthetic(regret=noisy)
    other = synthetic(regret=lambda *run: [8.0 * r for r in noisy(*run)])
    other["runs"].reverse()
    for chain in other["chains"]:
        chain["maximum"], chain["minimum"] = 8.0 * chain["maximum"] + 1, 8.0 * chain["minimum"] + 1
    for record in other["non_adaptive"]:
        record["regret"] *= 8.0
    assert table(claims(other)) == table(claims(results))


def test_claims_are_json_ready() -> None:
    found = claims(synthetic(regret=noisy))
    assert [claim.id for claim in found] == IDS
    text = json.dumps([asdict(claim) for claim in found], allow_nan=False)
    first = json.loads(text)[0]
    assert set(first) == {"id", "sentence", "criterion", "about", "g1", "g2", "family"}
    assert set(first["family"]) == {"number", "text", "verdict", "low", "high", "details"}


def test_the_table_is_markdown_and_plain_text() -> None:
    found = claims(synthetic(regret=noisy))
    text = table(found)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(found)
    assert len({len(row) for row in rows}) == 1, "columns line up"
    assert {row.count("|") for row in rows} == {7}
    flat = " ".join(text.split())
    for claim in found:
        assert f"| {claim.sentence}" in text
        assert claim.criterion in flat
        assert f"{claim.family.verdict}: {claim.family.text}" in text


def test_verdicts_on_other_chains_are_in_brackets() -> None:
    (claim,) = (claim for claim in claims(synthetic()) if claim.id == "3")
    row = table([claim]).splitlines()[2]
    assert "| (held): 7.50% (cUCB) " in row
    assert "| held: 7.50% (cUCB) " in row
