"""Repeated measures: reports say whether subjects had their treatments in the planned order."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from run_kit import run
from simulated_study_kit import make_plan, make_study, simulate

from fairtrial import DesignSpec, Factor, RunBudget, open_results
from fairtrial.study import Block, execution_order, full_report, judge_hypotheses, plan_runs
from fairtrial.study.report import report_facts

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
REPEATED = DesignSpec(kind="repeated_measures")
BROKEN_ORDER = "the planned order within subjects was broken"


def make_repeated(**parts):
    return make_study(
        design_spec=REPEATED,
        problem_ids=("p",),
        run_budget=RunBudget(replicates=8),
        analysis_plans=(make_plan("paired_t"),),
        **parts,
    )


def schedule(study, order=None, seconds=1.0, duration_s=0.5):
    """Return conditions and results whose runs began one after the other in an order."""
    conditions, results = simulate(study, lambda s, c, rng: rng.gauss(0, 1))
    specs = list(plan_runs(study, conditions))
    order = list(execution_order(study, conditions)) if order is None else order
    turns = {specs[plan_index].run_id: turn for turn, plan_index in enumerate(order)}
    timed = []
    for result in results:
        start = BEGIN + timedelta(seconds=seconds * turns[result.run_id])
        end = start + timedelta(seconds=duration_s)
        timed.append(replace(result, started_at=start.isoformat(), ended_at=end.isoformat()))
    return conditions, timed


def test_an_order_that_was_kept_is_not_mentioned():
    study = make_repeated()
    conditions, results = schedule(study)
    assert report_facts(study, conditions, results)["order"] == {
        "sequences": 8,
        "out_of_order": 0,
        "overlapping": 0,
        "incomplete": 0,
    }
    assert BROKEN_ORDER not in full_report(study, conditions, results)


def test_treatments_out_of_order_are_named_in_verdict_notes_and_deviations():
    study = make_repeated()
    conditions, _ = schedule(study)
    order = list(execution_order(study, conditions))
    order[0], order[1] = order[1], order[0]
    conditions, results = schedule(study, order)
    (test,) = judge_hypotheses(study, conditions, results)
    text = f"{BROKEN_ORDER}: of 8 sequences 1 out of order"
    assert text in test.why
    assert any(note.startswith(f"{text}: carry-over") for note in test.notes)
    deviations = report_facts(study, conditions, results)["deviations"]
    assert any(text in line for line in deviations)


def test_treatments_at_the_same_time_are_named():
    study = make_repeated()
    conditions, results = schedule(study, duration_s=1.5)
    assert report_facts(study, conditions, results)["order"]["overlapping"] == 8


def test_sequences_without_one_of_their_treatments_are_incomplete():
    study = make_repeated(blocks=(Block("subject", ("s1", "s2", "s3", "s4")),))
    conditions, results = schedule(study)
    (test,) = judge_hypotheses(study, conditions, results[1:])
    assert "of 32 sequences 1 incomplete" in test.why


def test_designs_without_sequences_have_no_order_to_break():
    study = make_study()
    conditions, results = simulate(study, lambda s, c, rng: rng.gauss(0, 1))
    assert report_facts(study, conditions, results)["order"] is None


@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_ledger_shows_whether_treatments_ran_side_by_side(tmp_path, parallelism):
    study = make_repeated(output_dir=tmp_path)
    study = replace(
        study,
        factors=(Factor("arm", levels=("plain", "fancy")),),
        agent_specs=("a",),
        run_budget=RunBudget(replicates=2, parallelism=parallelism),
    )

    def agent(task):
        time.sleep(0.03)
        return {"x": 1}

    run(study, agent, executor="threads" if parallelism > 1 else "serial")
    with open_results(tmp_path) as results:
        order = report_facts(results.study, results.conditions, results)["order"]
    assert order["sequences"] == 2
    broken = order["out_of_order"] + order["overlapping"]
    assert bool(broken) is (parallelism > 1)
