"""The options of a gate: exit codes, the comment, and what JSON says of it."""

import json
from dataclasses import replace

import pytest
from gate_kit import REJECTED, judge_statistics, sessions
from repository_kit import make_repository

from fairtrial.arena import Comparison, Evaluation, Reason, Rejection, Verdict
from fairtrial.cli import compare, evaluate

SLOWER = judge_statistics(sessions(0.05))
EQUAL = judge_statistics(sessions(0.0))
UNUSABLE = replace(REJECTED, rejection=Rejection(Reason.UNUSABLE, "no diff"))
UNTIMED = replace(REJECTED, rejection=Rejection(Reason.EVALUATOR, "the disk is full"))
PROBLEM = """\
problem_id: twice
editable: ["src/*.py"]
check:
  - command: ["true"]
bench:
  - name: b
    command: ["true"]
"""


@pytest.fixture
def top(run, tmp_path, monkeypatch):
    top = make_repository(tmp_path / "p", {"src/a.py": "A = 1\n", "problem.yaml": PROBLEM})
    monkeypatch.chdir(top)
    return top


@pytest.fixture
def gate(top, run, monkeypatch):
    """Return a function that evaluates a candidate whose judgement is given."""

    def gate(judgement, *options):
        async def judge(problem, candidates, *, settings, **others):
            gate.settings = settings
            return Evaluation("twice", "0" * 40, "plain", (judgement,))

        monkeypatch.setattr(evaluate, "evaluate_candidates", judge)
        return run("evaluate", "problem.yaml", ".", *options)

    return gate


@pytest.mark.parametrize(
    ("judgement", "options", "code"),
    [
        (SLOWER, [], 0),
        (SLOWER, ["--fail-on", "slower"], 7),
        (SLOWER, ["--fail-on", "rejected,inconclusive"], 0),
        (SLOWER, ["--max-regression", "2%"], 7),
        (SLOWER, ["--max-regression", "0.2"], 0),
        (EQUAL, ["--fail-on", "slower,rejected,inconclusive"], 0),
        (REJECTED, ["--fail-on", "rejected"], 7),
        (REJECTED, ["--fail-on", "slower"], 0),
        (UNUSABLE, ["--fail-on", "rejected"], 2),
        (UNTIMED, ["--fail-on", "rejected"], 4),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_exit_code_says_whether_the_code_or_something_else_failed(
    gate, judgement, options, code, as_json
):
    found, out, _ = gate(judgement, *options, *(["--json"] if as_json else []))
    assert found == code
    if as_json:
        document = json.loads(out)
        assert ("gate" in document) == bool(options)
        assert code != 7 or document["gate"]["has_failed"]


def test_the_gate_says_what_it_could_have_seen(gate):
    code, out, _ = gate(EQUAL, "--fail-on", "slower")
    assert code == 0
    assert "gate: change: passed (a regression above" in " ".join(out.split())


def test_candidates_at_a_gate_are_timed_each_until_the_limit_is_decided(gate):
    gate(EQUAL, "--max-regression", "3%")
    assert (gate.settings.timing, gate.settings.max_regression) == ("each", 0.03)
    gate(EQUAL)
    assert (gate.settings.timing, gate.settings.max_regression) == ("race", 0.0)


def test_a_comment_is_written_whatever_the_result(gate, top):
    for judgement, code in ((EQUAL, 0), (SLOWER, 0), (UNUSABLE, 2), (UNTIMED, 4)):
        assert gate(judgement, "--markdown", "c.md")[0] == code
        assert (top / "c.md").read_text().startswith("### fairtrial: passed")
    gate(SLOWER, "--markdown", "c.md", "--fail-on", "slower")
    assert (top / "c.md").read_text().startswith("### fairtrial: failed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fail-on", "slowr"], "did you mean"),
        (["--max-regression", "two"], "write 2% or 0.02"),
        (["--max-regression", "250%"], "below 1"),
        (["--markdown", "none/c.md"], "there is no folder none"),
    ],
)
def test_wrong_options_are_reported_before_anything_runs(gate, options, message):
    code, out, err = gate(EQUAL, *options)
    assert code == 2
    assert message in " ".join((out + err).split())


def test_a_comment_of_an_earlier_run_does_not_outlive_a_mistake(top, run):
    (top / "c.md").write_text("earlier")
    assert run("evaluate", "none.yaml", ".", "--markdown", "c.md")[0] == 2
    assert not (top / "c.md").exists()


@pytest.mark.parametrize(("first", "code"), [(EQUAL, 7), (REJECTED, 7)])
def test_compare_is_a_gate_for_the_second_version(top, run, monkeypatch, first, code):
    async def judge(problem, *versions, settings):
        measured = None if first.rejection else SLOWER.measurement
        second = replace(SLOWER, measurement=None, verdict=Verdict.PASSED)
        return Comparison("twice", first, second, measured)

    monkeypatch.setattr(compare, "compare_candidates", judge)
    options = ["--fail-on", "slower,rejected", "--json"]
    found, out, _ = run("compare", "HEAD", ".", "problem.yaml", *options)
    assert (found, json.loads(out)["gate"]["has_failed"]) == (code, True)
