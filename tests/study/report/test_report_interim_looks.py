"""Verdicts that somebody was shown before all runs were done: later reports say how often."""

import json

import pytest
from cli_kit import AGENTS, STUDY

from fairtrial.study.ledger.interim_looks import LOOKS_NAME, read_looks

CLAIMS = {
    "outcomes": [{"name": "score", "source_table": "evaluations", "primary": True}],
    "hypotheses": [
        {
            "hypothesis_id": "h",
            "label": "More is more",
            "statement": "More is more.",
            "independent_vars": ["x"],
            "dependent_vars": ["score"],
        }
    ],
}


@pytest.fixture
def study(write):
    write(AGENTS, "my_agents.py")

    def study(**fields):
        return write({**STUDY, **CLAIMS, **fields})

    return study


@pytest.fixture
def go_on(run, study):
    """Run up to so many runs."""

    def go_on(runs=None, **fields):
        limit = [] if runs is None else ["--limit", runs]
        assert run("run", study(**fields), "--resume", *limit)[0] == 0

    return go_on


@pytest.fixture
def looked(run):
    """What a report says of earlier looks."""

    def looked(*options):
        code, out, _ = run("report", "out", "--json", *options)
        assert code == 0
        return [line for line in json.loads(out)["deviations"] if "looked at" in line]

    return looked


def seen(folder):
    return [(look.results, look.planned) for look in read_looks(folder / "out")]


def test_a_plan_that_was_cut_after_a_look_says_so(go_on, looked, run, study):
    """To look, and then to be content with what is there: the worst kind."""
    go_on(3)
    assert looked() == []
    words = ("--resume", "--accept-changes", "--set", "run_budget.replicates=1")
    code, _, err = run("run", study(), *words)
    assert code == 0, err
    (line,) = looked()
    assert "looked at once before all runs were done, after 3 of 6: " in line


def test_a_final_report_says_how_often_somebody_looked_before(go_on, looked, run, tmp_path):
    go_on(2)
    assert looked() == []
    assert run("report", "out")[0] == 0  # the same once more: no other look
    go_on(2)
    assert run("report", "out")[0] == 0
    assert seen(tmp_path) == [(2, 6), (4, 6)]
    go_on()
    (line,) = looked()
    assert "looked at 2 times before all runs were done, after 2 of 6, 4 of 6: " in line
    assert f"- {line}" in run("report", "out")[1]
    assert seen(tmp_path) == [(2, 6), (4, 6)]


def test_one_look_is_told_as_one_and_a_report_as_of_then_stays_the_same(go_on, looked, run):
    go_on(2)
    assert (looked(), looked()) == ([], [])
    go_on(1)
    assert "looked at once before all runs were done, after 2 of 6: " in looked()[0]


@pytest.mark.parametrize("fields", [{}, {"hypotheses": []}], ids=["done", "without claims"])
def test_no_look_is_noted_of_what_is_done_or_claims_nothing(go_on, looked, tmp_path, fields):
    go_on(None if not fields else 2, **fields)
    assert looked() == []
    assert not (tmp_path / "out" / LOOKS_NAME).exists()


def test_where_nothing_can_be_written_a_report_is_made_all_the_same(go_on, looked, run, tmp_path):
    go_on(2)
    (tmp_path / "out" / LOOKS_NAME).mkdir()  # also root can't write there
    assert looked() == []
    code, out, _ = run("report", "out", "--out", "elsewhere.md")
    assert code == 0
    assert "An interim look" in out


def test_a_report_that_is_refused_is_no_look(go_on, run, tmp_path):
    go_on(2)
    assert run("report", "out", "--out", "study.yaml/report.md")[0] == 2
    assert seen(tmp_path) == []


def test_lines_that_are_no_look_are_passed_over(go_on, looked, tmp_path):
    go_on()
    lines = ['{"at": "t", "results": 3, "planned": 6}', '{"at"', "7", '{"at": "t"}', ""]
    (tmp_path / "out" / LOOKS_NAME).write_text("\n".join(lines))
    assert "after 3 of 6: " in looked()[0]
