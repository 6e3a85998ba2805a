"""`fairtrial attack`: what is listed, printed and returned; the trial itself is simulated."""

import json
from pathlib import Path

import pytest

from fairtrial.testing import cheats
from fairtrial.testing.cheats import ATTACKS, AttackOutcome, AttackReport, AttackResult

PROBLEM = Path(__file__).parents[2] / "examples" / "attack" / "list.yaml"
CLOCKS = next(item for item in ATTACKS if item.name == "its own clocks")
LIST = next(item for item in ATTACKS if item.name == "the same list again")


@pytest.fixture
def outcomes(monkeypatch):
    """Let the trial end with these outcomes; gives the arguments that it is called with."""
    calls = []

    def set_outcomes(*results):
        async def attack_problem(problem, **options):
            calls.append(options)
            return AttackReport(problem.problem_id, "namespaces", results, 12.0)

        monkeypatch.setattr(cheats, "attack_problem", attack_problem)
        return calls

    return set_outcomes


def result(item, outcome):
    return AttackResult(item, "lab:work", outcome, "adopted: 3x", "weak checks", "add cases")


def test_attacks_are_listed_with_class_and_source(run):
    code, out, _ = run("attack", "--list", "--class", "clocks and settings")
    assert code == 0
    assert "its own clocks" in out
    assert "the same list again" not in out
    code, out, _ = run("attack", "--list", "--json")
    listed = json.loads(out)
    assert len(listed) == len(ATTACKS)
    assert all(item["source"] for item in listed)


def test_an_unknown_class_and_a_missing_problem_are_refused(run):
    code, _, err = run("attack", "--list", "--class", "clock and settings")
    assert (code, "did you mean 'clocks and settings'" in err) == (2, True)
    code, _, err = run("attack")
    assert (code, "give a PROBLEM, or --list" in err) == (2, True)


def test_without_a_win_the_exit_code_is_0(run, outcomes):
    outcomes(result(CLOCKS, AttackOutcome.NO_GAIN), result(LIST, AttackOutcome.ACCEPTED_WRONG))
    code, out, _ = run("attack", PROBLEM)
    assert code == 0
    assert "No attack won." in out
    assert "Accepted although wrong" in out
    assert "to do: add cases" in out


def test_without_timing_accepted_attacks_are_not_said_to_be_harmless(run, outcomes):
    outcomes(result(LIST, AttackOutcome.ACCEPTED_WRONG))
    out = run("attack", PROBLEM, "--check-only")[1]
    assert "Accepted although wrong; not timed" in out
    assert "without --check-only, what was accepted might win" in " ".join(out.split())
    assert "might win" not in run("attack", PROBLEM)[1]


def test_wrong_candidates_that_were_accepted_count_if_that_is_wanted(run, outcomes):
    outcomes(result(LIST, AttackOutcome.ACCEPTED_WRONG))
    assert run("attack", PROBLEM, "--strict")[0] == 5


def test_a_win_is_explained_and_gives_exit_code_5(run, outcomes):
    calls = outcomes(result(CLOCKS, AttackOutcome.WON))
    code, out, _ = run("attack", PROBLEM, "--max-seconds", "60", "--class", "clocks and settings")
    assert code == 5
    assert "exploited: weak checks" in out
    assert "1 attack won." in out
    assert calls[0]["max_seconds"] == 60
    assert calls[0]["classes"] == ("clocks and settings",)


def test_results_are_printed_as_one_document(run, outcomes):
    outcomes(result(CLOCKS, AttackOutcome.WON))
    code, out, _ = run("attack", PROBLEM, "--json")
    printed = json.loads(out)
    assert (code, printed["wins"], printed["sandbox"]) == (5, 1, "namespaces")
    assert printed["attacks"][0]["advice"] == "add cases"
