"""The summary of a study for pull requests: short, and harmless whatever its texts are."""

import re

import pytest
from markdown_it import MarkdownIt
from page_kit import make_hostile_study
from run_kit import PACKET, make_study, run as run_one

from fairtrial import AnalysisPlan, Contrast, Factor, Hypothesis
from fairtrial.study import report

CODE = re.compile(r"<code.*?</code>", re.S)
NASTY = (
    "@octocat #12 GH-7 https://evil.example www.evil.example me@evil.example `@hidden` "
    "\\`@escaped\\` [a](http://x) ![i](http://x) <img src=http://x> <!-- --> </details> "
    "$x$ 0123abcdef0123abcdef | a | b \n# heading\n- item"
)


def show(text):
    """The HTML of Markdown as GitHub makes it, before it looks for mentions."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def nasty_study(folder, claims=1, text=NASTY):
    return make_study(
        folder,
        factors=(Factor("x", levels=("a", "b")),),
        replicates=6,
        hypotheses=tuple(
            Hypothesis(
                f"h{i}",
                label=f"{text} {i}",
                statement=text,
                independent_vars=("x",),
                dependent_vars=("score",),
                contrast=Contrast(left="b", right="a"),
            )
            for i in range(claims)
        ),
        analysis_plans=(
            AnalysisPlan(
                "p",
                hypothesis_ids=tuple(f"h{i}" for i in range(claims)),
                tests=("difference_in_means",),
            ),
        ),
    )


def guess(task):
    if task.rng.random() < 0.3:
        raise ValueError(NASTY)
    return task.rng.random()


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nasty")
    with run_one(nasty_study(folder / "out"), guess, PACKET) as results:
        text = report.render_pull_request_summary(results)
    return show(text)


def test_nothing_mentions_or_links(html):
    text = CODE.sub("", html)
    for found in ("@\\w", "#\\d", "GH-\\d", "://", "www\\.", "\\$\\w", "0123abcdef", "<a ", "<img"):
        assert re.search(found, text) is None, found


def test_the_sections_stay_what_they_are(html):
    assert html.count("<details>") == html.count("</details>") >= 3
    assert html.count("<h1") == 0
    assert "<!--" not in html
    assert html.count("<table>") >= 2


def test_a_hostile_study_adds_no_element(tmp_path):
    with make_hostile_study(tmp_path / "out") as results:
        html = show(report.render_pull_request_summary(results))
    assert "<script" not in html
    assert "<img" not in html
    assert "\u202e" not in html


@pytest.mark.parametrize("text", ["<" * 400, "|" * 400, "claim", "ab12cd " * 60])
def test_it_fits_into_a_comment(tmp_path, text):
    with run_one(nasty_study(tmp_path / "out", claims=80, text=text), guess, PACKET) as results:
        summary = report.render_pull_request_summary(results)
    assert len(summary) < 65_536
    assert "left out" in summary


def test_it_has_verdicts_and_a_chart(tmp_path, run):
    make_hostile_study(tmp_path / "out").close()
    code, _, text = run("report", tmp_path / "out", "--markdown", tmp_path / "summary.md")
    assert code == 0, text
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "48 of 48 planned runs done" in summary
    assert "**supported" in summary
    assert "─●─" in summary
    assert not (tmp_path / "out" / "report.md").exists()


def test_of_an_unfinished_study_it_is_an_interim_look(tmp_path, run):
    make_hostile_study(tmp_path / "out", limit=30).close()
    run("report", tmp_path / "out", "--markdown", tmp_path / "summary.md")
    assert "interim look" in (tmp_path / "summary.md").read_text("utf-8")
    assert (tmp_path / "out" / "looks.jsonl").exists()
