"""The sensitivity of verdicts: other tests and choices beside the planned one."""

from __future__ import annotations

import json
import random

import pytest
from simulated_study_kit import (
    level,
    make_claim,
    make_plan,
    make_study,
    noisy,
    simulate,
)

from fairtrial.study import Factor, Moderator, OutcomeSpec, RunBudget, full_report
from fairtrial.study.report import report_facts


def sensitivity(study, value, **how):
    facts = report_facts(study, *simulate(study, value, **how))
    assert json.loads(json.dumps(facts["sensitivity"])) == facts["sensitivity"]
    return facts["sensitivity"]


def choices(table):
    return {row["choice"]: row for row in table["rows"]}


def test_a_clear_effect_is_supported_by_every_reasonable_analysis():
    problems = tuple(f"p{number}" for number in range(8))
    (table,) = sensitivity(make_study(problem_ids=problems), noisy(fancy=3.0))
    rows = choices(table)
    assert {"as planned", "by mixed_effects", "by mann_whitney"} <= rows.keys()
    assert {row["verdict"] for row in table["rows"]} == {"supported"}
    assert table["is_robust"] is True
    assert table["conclusion"].startswith(f"All {len(reasonable(table))} reasonable analyses give")
    assert all(row["p_value"] < 0.05 for row in table["rows"])


def reasonable(table):
    return [row for row in table["rows"] if row["is_reasonable"]]


def test_the_planned_analysis_comes_first_and_is_the_deciding_test():
    study = make_study()
    facts = report_facts(study, *simulate(study, noisy(fancy=1.0)))
    (test,), (table,) = facts["tests"], facts["sensitivity"]
    first = table["rows"][0]
    assert first["choice"] == "as planned"
    for name in ("estimate", "interval", "p_value", "p_adjusted", "verdict"):
        assert first[name] == test[name]


def test_a_verdict_that_depends_on_the_test_is_reported_as_such():
    # One wild run of the second arm hides a difference of means that ranks see.
    def value(spec, condition, rng):
        is_fancy = level(condition) == "fancy"
        wild = -60.0 if is_fancy and (spec.problem_id, spec.replicate) == ("p1", 1) else 0.0
        return 1.5 * is_fancy + rng.gauss(0, 1) + wild

    study = make_study(problem_ids=("p1",), run_budget=RunBudget(replicates=30))
    (table,) = sensitivity(study, value)
    rows = choices(table)
    assert rows["as planned"]["verdict"] == "inconclusive"
    assert rows["by mann_whitney"]["verdict"] == "supported"
    assert table["is_robust"] is False
    assert "The verdict depends on a choice: inconclusive as planned" in table["conclusion"]
    assert "supported by mann_whitney" in table["conclusion"]
    conditions, results = simulate(study, value)
    text = full_report(study, conditions, results)
    assert "## Sensitivity" in text
    assert "The verdict depends on a choice" in text


def test_runs_as_independent_are_shown_but_do_not_count():
    effects = {f"p{number}": effect for number, effect in enumerate((3, -1.5, 2.5, -1, 1.8, 0.2))}

    def value(spec, condition, rng):
        return effects[spec.problem_id] * (level(condition) == "fancy") + rng.gauss(0, 1)

    study = make_study(
        problem_ids=tuple(effects),
        run_budget=RunBudget(replicates=30),
        analysis_plans=(make_plan("mixed_effects"),),
    )
    (table,) = sensitivity(study, value)
    rows = choices(table)
    assert rows["as planned"]["verdict"] == "inconclusive"
    assert rows["runs as independent"]["verdict"] == "supported"
    assert rows["runs as independent"]["is_reasonable"] is False
    said = "Taking runs as independent would make it supported, but that is too narrow if the"
    assert said in table["conclusion"]


def fails(spec, condition, rng):
    return level(condition) == "fancy" and spec.replicate <= 2


def test_missing_values_are_treated_both_ways_where_there_are_any():
    def share(spec, condition, rng):
        return rng.uniform(0.2, 0.5) + 0.2 * (level(condition) == "fancy")

    study = make_study()
    (table,) = sensitivity(study, share, fails=fails)
    row = choices(table)["runs without a value count as 0"]
    assert row["estimate"] < choices(table)["as planned"]["estimate"] - 0.05
    (table,) = sensitivity(study, noisy(fancy=1.0))
    assert not any("without a value" in choice for choice in choices(table))


def test_failed_runs_do_not_count_as_zero_seconds():
    (table,) = sensitivity(make_study(), noisy(plain=3.0, fancy=4.0), fails=fails)
    assert not any("without a value" in choice for choice in choices(table))


def test_a_study_that_counts_failures_as_zero_is_compared_with_leaving_them_out():
    study = make_study(outcomes=(OutcomeSpec("score", primary=True, missing_data_policy="zero"),))
    (table,) = sensitivity(study, noisy(fancy=3.0), fails=lambda *_: _[0].replicate == 1)
    assert "runs without a value left out" in choices(table)
    assert "runs without a value count as 0" not in choices(table)


def test_adjustment_for_several_tests_applies_to_every_row():
    claims = tuple(make_claim(hypothesis_id=f"h{number}") for number in (1, 2, 3))
    plan = make_plan(hypothesis_ids=("h1", "h2", "h3"), multiple_comparison_policy="bonferroni")
    study = make_study(hypotheses=claims, analysis_plans=(plan,))
    tables = sensitivity(study, noisy(fancy=0.4))
    assert [table["hypothesis_id"] for table in tables] == ["h1", "h2", "h3"]
    for table in tables:
        for row in table["rows"]:
            assert row["p_adjusted"] == pytest.approx(min(1.0, 3 * row["p_value"]))


def test_only_confirmatory_claims_have_a_table():
    study = make_study(analysis_plans=())
    assert sensitivity(study, noisy(fancy=3.0)) == []
    question = make_study(hypotheses=(make_claim(kind="exploratory"),))
    assert sensitivity(question, noisy(fancy=3.0)) == []
    conditions, results = simulate(study, noisy(fancy=3.0))
    assert "Sensitivity" not in full_report(study, conditions, results)


def test_ranks_of_few_problems_are_no_reasonable_analysis():
    (table,) = sensitivity(make_study(), noisy(fancy=3.0))
    assert not {"by mann_whitney", "by wilcoxon"} & choices(table).keys()


def test_interactions_and_yes_no_outcomes_have_their_own_analyses():
    factors = (
        Factor("arm", levels=("plain", "fancy")),
        Factor("mode", levels=("easy", "hard")),
    )
    claim = make_claim(kind="moderation", moderators=(Moderator("mode"),))
    study = make_study(factors=factors, hypotheses=(claim,))
    (table,) = sensitivity(study, noisy(fancy=1.0))
    assert "by regression" in choices(table) or "by mixed_effects" in choices(table)
    study = make_study(outcomes=(OutcomeSpec("score", primary=True, expected_type="bool"),))

    def yes(spec, condition, rng):
        return float(rng.random() < (0.9 if level(condition) == "fancy" else 0.2))

    (table,) = sensitivity(study, yes)
    assert "by mixed_effects" in choices(table)
    assert not any("wilcoxon" in choice for choice in choices(table))


def test_large_samples_have_no_mixed_model():
    rng = random.Random(1)
    study = make_study(run_budget=RunBudget(replicates=260))
    (table,) = sensitivity(study, lambda spec, condition, _: rng.gauss(0, 1))
    assert "by mixed_effects" not in choices(table)
