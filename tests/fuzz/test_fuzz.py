"""A small part of the generated inputs; `python -m tests.fuzz` tries ten thousand. The checks themselves are tested."""

import pytest

from tests.fuzz import checks
from tests.fuzz.checks import violations
from tests.fuzz.inputs import KINDS, SECRET, Case, case
from tests.fuzz.lab import RED, Lab
from tests.thorough import THOROUGH

COUNT = 10_000 if THOROUGH else 100


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


def test_generated_inputs_are_accepted_or_refused_by_a_clear_message(lab: Lab) -> None:
    kinds = set()
    for number in range(COUNT):
        one = case(7, number, lab)
        kinds.add(one.kind)
        assert violations(lab, one) == [], one
    assert len(kinds) == len(KINDS)


def test_the_same_seed_gives_the_same_input(lab: Lab) -> None:
    assert [case(1, n, lab) for n in range(30)] == [case(1, n, lab) for n in range(30)]


def test_the_checks_find_what_is_wrong(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, code: int) -> list[str]:
        """The violations of a command that adds a trial, prints a text and ends with a code."""

        def outcome(_: object, *__: object) -> str:
            raise SystemExit(code) if code else ValueError

        monkeypatch.setattr("cascada.cli.enqueue.settings", lambda _: text)
        if code:
            monkeypatch.setattr("cascada.cli.enqueue.say", lambda said: (print(said), outcome(said)))
        return violations(lab, Case("arguments", ("enqueue", "--study", "alloy", '{"dose": 0.5, "heat": 0.5}')))

    assert broken("fine", 0) == []
    assert any("secret" in text for text in broken(SECRET, 0))
    found = broken(RED, 1)
    assert any("changed the store" in text for text in found)
    assert any("control characters" in text for text in found)
    assert any("not one line" in text for text in found)
    assert any("exit code is 3" in text for text in broken("", 3))
    assert lab.dump() == lab.base


def test_a_call_that_takes_too_long_is_found(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def loop(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(checks, "_SECONDS", 1)
    monkeypatch.setattr("cascada.cli.status.summarised", loop)
    assert violations(lab, Case("arguments", ("status",))) == ["it takes more than 1 s"]


def test_code_leaves_a_mark_each_time_that_it_runs(lab: Lab) -> None:
    call = ("ask", "--study", "foreign", "--algorithm", "evil:Boom")
    for _ in range(2):
        lab.call(*call)
        assert lab.code_ran
        lab.restore()
    assert violations(lab, Case("arguments", call)) == [], "the caller named it"
