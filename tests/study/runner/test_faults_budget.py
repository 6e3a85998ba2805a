"""Budgets end a study, and raised ones let it go on."""

import sys

import pytest

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

BUDGETS = {
    "max_cost_usd": ({"cost_usd": 0.5}, 2.0, 4),
    "max_tokens": ({"tokens": 100}, 300, 3),
}
EXECUTORS = {
    "serial": (1, ("--executor", "serial")),
    "processes": (2, ("--parallel", 2)),
    "threads": (3, ("--executor", "threads", "--parallel", 3)),
}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_budget_ends_a_study_and_a_raised_one_lets_it_continue(stage, executor, budget):
    options, most, enough = BUDGETS[budget]
    slots, words = EXECUTORS[executor]
    stage.write(options={**options, "wait_s": 0.01}, run_budget={"replicates": 6, budget: most})
    ended = stage.run(*words)
    assert ended.code == 6, ended.err
    assert "budget is used up" in ended.err
    assert "fairtrial resume out" in ended.err
    done = len(stage.done())
    assert enough <= done < enough + slots  # what was under way is paid for, and finished
    assert len(stage.table()) == len(stage.calls()) == done
    assert stage.query("SELECT count(*) FROM attempts") == [(0,)]

    again = stage.run("--resume", *words)  # the same budget buys nothing more
    assert again.code == 6
    assert len(stage.calls()) == done

    ended = stage.run("--resume", *words, "--set", f"run_budget.{budget}=1000000")
    assert ended.code == 0, ended.err
    assert len(stage.table()) == 18
    assert set(stage.calls().values()) == {1}


def test_a_budget_that_is_just_enough_ends_nothing(stage):
    stage.write(options={"cost_usd": 0.5}, run_budget={"replicates": 2, "max_cost_usd": 3.0})
    assert stage.run("--parallel", 2).code == 0
    assert stage.status()["cost_usd"] == pytest.approx(3.0)


def test_what_broken_attempts_cost_counts(stage):
    """Paid for and come to nothing: the judge broke."""
    stage.write(
        options={"cost_usd": 1.0},
        problems={"task": {"family": "f", "evaluator": "fault_agents:judged_late"}},
        run_budget={"replicates": 2, "max_cost_usd": 3.0},
    )
    ended = stage.run("--executor", "serial")
    assert ended.code == 6, ended.err
    shown = stage.status()
    assert shown["cost_usd"] == pytest.approx(3.0)
    assert shown["done"] == 2
    assert stage.query("SELECT status, cost_usd FROM attempts") == [("broken", 1.0)]
    assert sum(stage.calls().values()) == 3
    assert stage.run("--resume", "--set", "run_budget.max_cost_usd=100").code == 0
    shown = stage.status()
    assert (shown["done"], shown["cost_usd"]) == (6, pytest.approx(7.0))
