"""Text is wrapped between words on a terminal, and not in a file or a pipe."""

import os
import sys

import pytest
from cli_kit import AGENTS, STUDY

HYPOTHESES = [
    {
        "hypothesis_id": "h1",
        "label": "More is more, and what is more, more of it is more than less of it",
        "statement": "More x, more score.",
        "independent_vars": ["x"],
        "dependent_vars": ["score"],
    }
]
CLAIMS = {
    "outcomes": [{"name": "score", "source_table": "evaluations"}],
    "hypotheses": HYPOTHESES,
}


@pytest.fixture
def study(write):
    write(AGENTS, "my_agents.py")
    return write({**STUDY, **CLAIMS})


@pytest.fixture
def terminal(monkeypatch):
    def terminal(columns):
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(columns))
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True)

    return terminal


def test_a_report_is_folded_on_a_terminal_but_for_its_tables(run, study, terminal):
    run("run", study)
    _, piped, _ = run("report", "out")
    terminal(60)
    _, shown, _ = run("report", "out")
    prose = [line for line in shown.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 60 < max(map(len, piped.splitlines()))
    assert shown.split() == piped.split()
    assert [line for line in piped.splitlines() if line.startswith("|")] == [
        line for line in shown.splitlines() if line.startswith("|")
    ]


def test_an_error_is_folded_on_a_terminal_and_one_line_in_a_log(run, study, terminal):
    run("run", study)
    _, _, logged = run("run", study)
    assert len(logged.splitlines()) == 1
    terminal(60)
    _, _, shown = run("run", study)
    assert len(shown.splitlines()) > 1
    assert shown.split() == logged.split()


def test_a_bundle_warns_of_a_report_that_is_older_than_the_tables(run, study):
    run("run", study, "--limit", 2)
    run("report", "out")
    run("export", "out", "--complete-cases")
    run("report", "out")
    code, out, err = run("bundle", "out")
    assert (code, out, err) == (0, "wrote out.tar.gz\n", "")
    os.utime("out/report.md", (1, 1))
    run("export", "out")  # the same tables again
    assert run("bundle", "out")[2] == ""
    run("resume", "out", "--limit", 1)
    os.utime("out/complete-cases/manifest.json", (1, 1))
    code, _, err = run("bundle", "out")
    assert code == 0
    assert err.splitlines() == [
        "warning: report.md is older than the tables; `fairtrial report out` makes it again",
        "warning: complete-cases is older than the tables; "
        "`fairtrial export out --complete-cases` makes it again",
    ]
