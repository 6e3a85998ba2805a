"""Where outcomes are found, and how runs without a value are treated."""

import math

import numpy as np
import pytest
from simulated_study_kit import fail, level, make_claim, make_plan, make_study, simulate, succeed

from fairtrial.study import (
    Block,
    Factor,
    OutcomeSpec,
    RunResult,
    RunStatus,
    build_design,
    judge_hypotheses,
    plan_runs,
)
from fairtrial.study.report.outcome_reader import OutcomeReader, find_unmeasured_outcomes
from fairtrial.study.report.run_table import collect_run_table
from fairtrial.study.report.verdicts import TestVerdict


def evaluations(**values):
    return tuple({"metric_name": name, "metric_value": value} for name, value in values.items())


def read(spec, result, study=None):
    study = study or make_study(outcomes=(spec,))
    condition = build_design(study)[0]
    return OutcomeReader(study, spec).read(result, condition)


def run(**parts):
    return RunResult("r", RunStatus.SUCCESS, **parts)


def event(kind, **meta):
    return {"event_type": kind, "meta": meta}


def test_an_outcome_of_runs_is_a_metric():
    assert read(OutcomeSpec("score"), run(metrics={"score": 0.5})) == 0.5
    assert read(OutcomeSpec("score", column="s"), run(metrics={"s": True})) == 1.0
    assert read(OutcomeSpec("latency_s"), run(latency=2.5)) == 2.5
    assert read(OutcomeSpec("cost_usd"), run(cost=0.5)) == 0.5
    assert math.isnan(read(OutcomeSpec("score"), run()))


def test_an_outcome_of_runs_that_is_no_metric_is_found_in_evaluations():
    assert read(OutcomeSpec("score"), run(evaluator_outputs=evaluations(score=0.7))) == 0.7


def test_the_primary_outcome_is_the_same_as_in_the_tables():
    study = make_study(outcomes=(OutcomeSpec("quality", primary=True),))
    spec = OutcomeSpec("primary_outcome")
    own = run(metrics={"primary_outcome": 1, "quality": 2}, evaluator_outputs=evaluations(x=3))
    assert read(spec, own, study) == 1
    assert read(spec, run(metrics={"quality": 2}), study) == 2
    assert read(spec, run(evaluator_outputs=evaluations(x=3, quality=4)), study) == 4
    assert read(spec, run(evaluator_outputs=evaluations(x=3)), study) == 3


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("mean", 2.0),
        ("median", 1.0),
        ("sum", 6.0),
        ("min", 1.0),
        ("max", 4.0),
        ("first", 1.0),
        ("last", 4.0),
        ("count", 3.0),
    ],
)
def test_several_evaluations_of_a_run_become_one_value(how, wanted):
    rows = tuple({"metric_name": "score", "metric_value": value} for value in (1, 1.0, 4))
    spec = OutcomeSpec("score", source_table="evaluations", aggregation=how)
    assert read(spec, run(evaluator_outputs=rows)) == wanted


def test_an_outcome_of_events_counts_them_or_reads_their_meta():
    events = (event("tool", seconds=2.0), event("tool", seconds=4.0), event("note"))
    result = run(observations=events)
    assert read(OutcomeSpec("tools", source_table="events", column="tool"), result) == 2
    assert read(OutcomeSpec("none", source_table="events", column="other"), result) == 0
    seconds = OutcomeSpec("s", source_table="events", column="tool.seconds", aggregation="mean")
    assert read(seconds, result) == 3.0
    dotted = OutcomeSpec("d", source_table="events", column="tool.call", aggregation="count")
    assert read(dotted, run(observations=(event("tool.call"),))) == 1
    silent = OutcomeSpec("out", source_table="events", column="assistant_output")
    assert read(silent, run()) == 1  # as in events.csv


def test_an_outcome_of_conditions_is_a_factors_value():
    factors = (Factor("size", levels=(3, 5)),)
    spec = OutcomeSpec("size", source_table="conditions")
    study = make_study(factors=factors, outcomes=(spec,), hypotheses=(), analysis_plans=())
    assert read(spec, run(), study) == 3


@pytest.mark.parametrize("value", ["high", float("nan"), float("inf"), [1], 10**400])
def test_values_that_are_not_finite_numbers_are_missing_and_reported(value):
    reader = OutcomeReader(make_study(), OutcomeSpec("score"))
    condition = build_design(make_study())[0]
    assert math.isnan(reader.read(run(metrics={"score": value}), condition))
    assert reader.unreadable.total() == 1


def test_a_binary_outcome_accepts_only_0_and_1():
    spec = OutcomeSpec("ok", expected_type="bool")
    assert read(spec, run(metrics={"ok": np.True_})) == 1.0
    assert math.isnan(read(spec, run(metrics={"ok": 0.5})))


UNREADABLE = {
    "derived": (OutcomeSpec("score", derivation="a / b"), "is derived (a / b)"),
    "table": (OutcomeSpec("score", source_table="run"), "did you mean 'runs'?"),
    "aggregation": (OutcomeSpec("score", aggregation="avg"), "no such aggregation: 'avg'"),
    "text": (OutcomeSpec("score", expected_type="str"), "is str, not a number"),
    "column": (
        OutcomeSpec("score", source_table="conditions", column="arn"),
        "did you mean 'arm'?",
    ),
    "absent": (OutcomeSpec("score", column="scor"), "no run has a value for 'score' (runs.scor)"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_outcome_that_cannot_be_read_is_not_tested_and_says_why(case):
    spec, reason = UNREADABLE[case]
    study = make_study(outcomes=(spec,))
    conditions, results = simulate(study, lambda s, c, rng: rng.random())
    (test,) = judge_hypotheses(study, conditions, results)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert reason in test.why


def without_some(study, every=4):
    """Results in which every fourth run of the plain arm has no score, and one failed."""
    conditions = build_design(study)
    by_id = {condition.condition_id: condition for condition in conditions}
    results = []
    for number, spec in enumerate(plan_runs(study, conditions)):
        plain = level(by_id[spec.condition_id]) == "plain"
        metrics = {} if plain and number % every == 0 else {"score": 1.0 + number % 3}
        results.append(fail(spec) if number == 1 else succeed(spec, metrics))
    return conditions, results


def test_runs_without_a_value_are_dropped_counted_and_reported():
    study = make_study()
    (test,) = judge_hypotheses(study, *without_some(study))
    by_name = {group.name: group for group in test.groups}
    assert (by_name["plain"].n, by_name["plain"].failed, by_name["plain"].missing) == (14, 1, 5)
    assert by_name["fancy"].n == by_name["fancy"].runs == 20
    assert "runs left out: 1 that failed and 5 without a value" in test.notes


def test_the_policy_zero_counts_them_as_zero():
    study = make_study(outcomes=(OutcomeSpec("score", missing_data_policy="zero"),))
    (test,) = judge_hypotheses(study, *without_some(study))
    plain = next(group for group in test.groups if group.name == "plain")
    assert plain.n == 20
    assert plain.median == 1.0
    assert "runs that count as 0: 1 that failed and 5 without a value" in test.notes


@pytest.mark.parametrize(("word", "reason"), [("fail", "policy is to stop"), ("guess", "unknown")])
def test_other_policies_stop_the_test_only_if_something_is_missing(word, reason):
    study = make_study(outcomes=(OutcomeSpec("score", missing_data_policy=word),))
    (test,) = judge_hypotheses(study, *without_some(study))
    assert test.verdict is TestVerdict.NOT_TESTED
    assert reason in test.why
    (whole,) = judge_hypotheses(study, *simulate(study, lambda s, c, rng: rng.random()))
    assert whole.verdict is not TestVerdict.NOT_TESTED


def test_failures_that_differ_between_groups_are_reported():
    study = make_study()
    often = lambda spec, condition, rng: level(condition) == "fancy" and rng.random() < 0.5  # noqa: E731
    (test,) = judge_hypotheses(study, *simulate(study, lambda s, c, r: r.random(), fails=often))
    assert any("losses differ" in note and "for fancy" in note for note in test.notes)
    seldom = lambda spec, condition, rng: rng.random() < 0.1  # noqa: E731
    (test,) = judge_hypotheses(study, *simulate(study, lambda s, c, r: r.random(), fails=seldom))
    assert not any("losses differ" in note for note in test.notes)


# -- filters --


def filtered(**filters):
    blocks = (Block("lang", levels=("en", "de")),)
    study = make_study(blocks=blocks, analysis_plans=(make_plan(filters=filters),))
    (test,) = judge_hypotheses(study, *simulate(study, lambda s, c, rng: rng.random()))
    return test


@pytest.mark.parametrize(
    ("filters", "runs"),
    [
        ({}, 80),
        ({"lang": "en"}, 40),
        ({"block_lang": ["en", "de"]}, 80),
        ({"problem_id": ["p1", "p2"]}, 40),
        ({"problem_id": "p1", "lang": "de"}, 10),
        ({"replicate": [1, 2]}, 32),
        ({"agent_id": "a", "status": "success"}, 80),
    ],
)
def test_a_plans_filters_choose_the_runs_that_count(filters, runs):
    assert sum(group.n for group in filtered(**filters).groups) == runs


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"langs": "en"}, "'langs', which is no column here; did you mean 'lang'?"),
        ({"lang": "fr"}, "'fr' is no level of lang"),
        ({"lang": {"not": "en"}}, "neither a value nor a list of values"),
        ({"status": "failed"}, "no run belongs to the groups"),
    ],
)
def test_invalid_filters_are_reported(filters, reason):
    test = filtered(**filters)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert reason in test.why


# -- reading --


def test_results_are_read_once_and_not_kept():
    study = make_study()
    conditions, results = simulate(study, lambda s, c, rng: rng.random())
    once = iter(results)
    table = collect_run_table(study, conditions, once)
    assert next(once, None) is None
    assert len(table) == len(results) == table.totals.planned
    assert table.totals.spent.cost_usd == pytest.approx(0.4)


def test_results_of_other_conditions_and_without_a_spec_are_counted_and_left_out():
    study = make_study()
    conditions, results = simulate(study, lambda s, c, rng: rng.random())
    table = collect_run_table(study, conditions[:1], [*results, run(metrics={"score": 1.0})])
    assert table.totals.without_condition == 21
    assert len(table) == 20


def test_a_study_without_outcomes_is_judged_by_its_primary_outcome():
    study = make_study(outcomes=(), hypotheses=(make_claim(dependent_vars=()),))
    scores = lambda s, c, rng: {"primary_outcome": rng.random()}  # noqa: E731
    (test,) = judge_hypotheses(study, *simulate(study, scores))
    assert test.outcome == "primary_outcome"
    assert test.p_value is not None


@pytest.mark.parametrize(
    ("spec", "result", "hint"),
    [
        (OutcomeSpec("x", "evaluations"), {"evaluator_outputs": evaluations(b=1)}, "known: b"),
        (
            OutcomeSpec("x"),
            {"metrics": {"a": 1}, "evaluator_outputs": evaluations(b=1)},
            "known: a, b, latency_s, cost_usd",
        ),
        (OutcomeSpec("e.x", "events"), {"observations": (event("e", b=1),)}, "did you mean 'e.b'?"),
    ],
)
def test_unmeasured_outcomes_are_reported_with_the_names_in_their_table(spec, result, hint):
    study = make_study(outcomes=(spec,))
    (message,) = find_unmeasured_outcomes(study, [run(**result)])
    assert (
        message == f"no run has a value for '{spec.name}' ({spec.source_table}.{spec.name}); {hint}"
    )
    assert find_unmeasured_outcomes(study, []) == []


def test_an_outcome_that_one_run_has_is_measured():
    study = make_study(outcomes=(OutcomeSpec("a"), OutcomeSpec("b")))
    messages = find_unmeasured_outcomes(study, [run(metrics={"a": 1}), run(metrics={"b": 1})])
    assert messages == []
