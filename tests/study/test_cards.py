"""What notebooks show: short reprs, and cards as HTML without scripts or unescaped text."""

import math
from html.parser import HTMLParser

import pytest

import cascada as cd
from cascada.card import card, in_short

BAD = "<script>alert(1)</script>"
KERNEL = cd.SquaredExponential(1.0)


def network(*, name="mix", second=True, bound=2.0):
    first = cd.Stage(name, controls={"dose": cd.Real(-2, 2)}, outputs=["melt"], kernel=KERNEL, norm_bound=bound)
    last = cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0)
    return cd.chain(first, last) if second else cd.chain(first)


def mix(dose):
    return 1.5 * math.exp(-0.5 * (dose - 0.4) ** 2)


def cure(melt, heat):
    return 1.8 * math.exp(-0.5 * ((melt - 0.9) ** 2 + (heat + 0.3) ** 2))


class _Checked(HTMLParser):
    """Parser that checks that tags are closed in order, and that collects tags and text."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.open.append(tag)
        self.tags.append(tag)

    def handle_startendtag(self, tag, attrs):  # noqa: ARG002
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(shown):
    """Return the tags and the text of a card, which must be well-formed and load nothing."""
    parser = _Checked()
    parser.feed(shown._repr_html_())
    assert parser.open == []
    assert not {"script", "img", "link", "iframe", "style"} & set(parser.tags)
    return parser.tags, " ".join(parser.text)


@pytest.fixture(scope="module")
def result():
    return cd.maximise(network(), [mix, cure], budget=40, tolerance=0.01, progress=False)


def test_reprs_are_a_few_lines(result):
    study = cd.Study(network())
    for shown in (result, result.certificate, result.best, study, study.network):
        assert len(repr(shown)) < 500
    assert repr(result).startswith("Result(tolerance: best Trial(")
    assert f"gap {result.certificate.shown.gap}" in repr(result)
    assert repr(result.best) == (
        f"Trial({result.best.number}, complete: {in_short(result.best.controls)}; value {result.best.value:.6g})"
    )
    assert repr(study.certificate()) == "Certificate(proven: no gap; 0 complete runs)"


def test_a_result_and_its_certificate_show_best_gap_and_assumptions(result):
    for shown in (result, result.certificate):
        _, text = parsed(shown)
        assert f"{result.certificate.shown.gap} (proven)" in text
        assert result.certificate.shown.bound in text
        assert "cure: norm ≤ 2" in text
    assert f"dose = {result.best.controls['dose']:.6g}" in parsed(result)[1]


def test_a_study_shows_its_network_and_its_runs():
    study = cd.Study(network())
    tags, text = parsed(study)
    assert "svg" in tags
    assert "none yet" in text
    trial = study.begin_trial({"dose": 0.5, "heat": 0.5})
    study.tell_stage(trial, "mix", 0.5)
    assert "1 (1 running)" in parsed(study)[1]
    assert "0.5" in parsed(study.trials[0])[1]
    study.fail(trial, "the oven tripped")
    assert "the oven tripped" in parsed(study.trials[0])[1]


def test_a_refuted_study_shows_why():
    found = cd.maximise(network(bound=0.1), [mix, cure], budget=5, progress=False)
    assert found.gap_kind == "refuted"
    assert "Stage 'mix'" in parsed(found)[1]


def test_the_picture_of_a_network_names_stages_controls_and_outputs():
    tags, text = parsed(network())
    assert tags.count("rect") == 2
    assert all(name in text for name in ("mix", "cure", "▸ dose", "▸ heat", "melt ▸"))


def test_the_picture_of_a_wide_network_stays_inside_its_frame():
    first = [cd.Stage(f"s{i}", controls={f"x{i}{j}": cd.Real(0, 1) for j in range(9)}) for i in range(5)]
    last = cd.Stage("end", parents=[*(stage.name for stage in first), "middle"])
    middle = cd.Stage("middle", parents=["s0"], outputs=["a long name of an output", "b"])
    sink = cd.Stage("sink", parents=["end", "s1"])
    wide = cd.Network([*first, last, middle, sink])
    html = wide._repr_html_()
    parsed(wide)
    assert "… 4 more" in html
    box = next(part for part in html.split('"') if part.startswith("0 0 "))
    width, height = map(float, box.split()[2:])
    for tag in html.split("<rect ")[1:]:
        values = dict(part.split('="', 1) for part in tag.split('"/>')[0].split('" '))
        assert 0 <= float(values["x"]) <= float(values["x"]) + float(values["width"]) <= width
        assert 0 <= float(values["y"]) <= float(values["y"]) + float(values["height"]) <= height


def test_names_are_escaped():
    named = network(name=BAD)
    study = cd.Study(named)
    study.fail(study.begin_trial({"dose": 0.5, "heat": 0.5}), BAD)
    for shown in (named, study, study.trials[0], study.certificate()):
        assert "<script" not in shown._repr_html_()
    assert "<b>" not in card("<b>", [("<b>", "<b>")], note="<b>")
