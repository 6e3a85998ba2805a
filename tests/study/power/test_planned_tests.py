"""Planned tests of hypotheses, and the power of the test that decides."""

import json
import re
from dataclasses import replace

import pytest
from scipy import stats
from simulated_study_kit import simulate

from fairtrial.study import (
    AnalysisPlan,
    Contrast,
    Factor,
    Hypothesis,
    Level,
    OutcomeSpec,
    RunBudget,
    Study,
    build_design,
    hypothesis_power,
    judge_hypotheses,
)
from fairtrial.study.hypotheses.planned_tests import planned_tests, untested_claims
from fairtrial.study.power.proportions import assumed_rates, fisher_power
from fairtrial.study.stats.named_tests import known_tests

ARM = Factor("arm", levels=("plain", "fancy"))
THREE = Factor("arm", levels=("a", "b", "c"))
SCORE = OutcomeSpec("score", primary=True)
SOLVED = OutcomeSpec("solved", expected_type="bool", sd=0.5)


def _claim(*variables, outcome="score", **fields):
    names = variables or ("arm",)
    return Hypothesis(
        "h1", "label", "statement", independent_vars=names, dependent_vars=(outcome,), **fields
    )


def _study(*claims, tests=("difference_in_means",), factors=(ARM,), replicates=6, **fields):
    plan = AnalysisPlan("main", ("h1",), tests)
    return Study(
        "s",
        "s",
        factors=factors,
        hypotheses=claims or (_claim(direction="greater"),),
        **{
            "outcomes": (SCORE, SOLVED),
            "analysis_plans": (plan,),
            "agent_specs": ("ann", "bob"),
            "problem_ids": ("p",),
            "run_budget": RunBudget(replicates=replicates),
            **fields,
        },
    )


def _stated(*claims, **fields):
    study = _study(*claims, **fields)
    (test,) = planned_tests(study, build_design(study))
    return test


# -- what is tested --


@pytest.mark.parametrize(
    ("fields", "claim"),
    [
        ({"direction": "greater"}, "fancy − plain > 0"),
        ({"direction": "less"}, "fancy − plain < 0"),
        ({}, "fancy − plain ≠ 0"),
        ({"direction": "greater", "contrast": Contrast("", "plain", "fancy")}, "plain − fancy > 0"),
        (
            {"direction": "equivalent", "minimum_effect_of_interest": 0.2},
            "fancy − plain is within ±0.2 standard deviations",
        ),
    ],
)
def test_a_plan_says_which_level_minus_which_and_which_way(fields, claim):
    assert _stated(_claim(**fields)).claim == claim


def test_a_level_that_is_marked_is_what_others_are_compared_with():
    levels = (Level("plain", 1), Level("fancy", 2, metadata={"is_baseline": True}))
    stated = _stated(factors=(Factor("arm", levels=levels),))
    assert stated.claim == "plain − fancy > 0"
    assert stated.warning == ""


def test_the_first_of_two_agents_is_the_baseline_and_nobody_said_so():
    stated = _stated(_claim("agent_id", direction="greater"), analysis_plans=())
    assert stated.claim == "bob − ann > 0"
    assert stated.is_exploratory
    assert stated.analysis_plan_id is None
    assert stated.warning == (
        "h1: nothing says which way 'greater' goes; it is read as bob − ann, as ann comes first. "
        "`contrast: {left: bob, right: ann}` says so"
    )
    named = _claim("agent_id", direction="greater", contrast=Contrast("", "ann", "bob"))
    assert _stated(named).claim == "ann − bob > 0"
    assert _stated(named).warning == ""


@pytest.mark.parametrize(
    "claim",
    [_claim(), _claim(direction="equivalent", minimum_effect_of_interest=0.2)],
    ids=["different", "equivalent"],
)
def test_a_claim_without_a_side_needs_no_baseline(claim):
    assert _stated(claim).warning == ""


def test_more_than_two_levels_are_reported_in_a_line():
    assert _stated(_claim(), factors=(THREE,)).claim == "a, b, c differ"
    several = _stated(factors=(THREE,))
    assert several.claim == "each of b, c − a > 0"
    assert several.test.startswith("Welch's ANOVA, then every level against the baseline")
    many = Factor("arm", levels=tuple(f"l{number}" for number in range(9)))
    assert _stated(_claim(), factors=(many,)).claim == "9 levels differ"


def test_slopes_and_interactions_are_reported():
    grid = Factor("x", levels=tuple(range(12)))
    stated = _stated(_claim("x", direction="greater"), factors=(grid,))
    assert (stated.claim, stated.test) == ("the slope over x > 0", "a regression slope")
    other = Factor("tone", levels=("x", "y"))
    claim = _claim("arm", "tone", kind="moderation", direction="greater")
    stated = _stated(claim, factors=(ARM, other))
    assert stated.claim == "(fancy − plain at y) − (the same at x) > 0"
    assert stated.test == "factorial ANOVA"
    stated = _stated(claim, factors=(THREE, other))
    assert stated.claim == "the effect of arm depends on tone"


def test_filters_of_the_plan_leave_levels_out():
    plan = AnalysisPlan("main", ("h1",), ("welch_t",), filters={"arm": ["a", "c"]})
    stated = _stated(factors=(THREE,), analysis_plans=(plan,))
    assert (stated.claim, stated.test) == ("c − a > 0", "Welch's t test")


def test_what_will_not_be_tested_is_said_beforehand():
    assert "astrology" in _stated(tests=("astrology",)).reason
    assert "not `direction: equivalent`" in _stated(tests=("equivalence",)).reason
    grid = Factor("x", levels=tuple(range(12)))
    stated = _stated(_claim("x"), factors=(grid,), tests=("welch_t",))
    assert "use regression" in stated.reason
    assert "no factor" in _stated(_claim("nothing")).reason
    plan = AnalysisPlan("main", ("h1",), ("welch_t",), outcomes=("solved",))
    assert _stated(analysis_plans=(plan,)).reason == "plan 'main' doesn't look at it"


def test_every_plan_states_its_own_test():
    plans = (
        AnalysisPlan("main", ("h1",), ("welch_t", "mann_whitney")),
        AnalysisPlan("other", ("h1",), ("mann_whitney",)),
    )
    study = _study(analysis_plans=plans)
    first, second = planned_tests(study, build_design(study))
    assert (first.analysis_plan_id, first.test) == ("main", "Welch's t test")
    assert first.beside == ("mann_whitney",)
    assert (second.analysis_plan_id, second.test) == ("other", "the Mann-Whitney test")
    assert json.loads(json.dumps(first.to_dict()))["claim"] == "fancy − plain > 0"


@pytest.mark.parametrize("word", [word for word in known_tests() if word != "equivalence"])
@pytest.mark.parametrize("factor", [ARM, THREE], ids=["two", "three"])
def test_the_report_tests_what_the_plan_said(word, factor):
    """The same difference, and the test by (nearly) the same name."""
    study = _study(_claim(), tests=(word,), factors=(factor,))
    (stated,) = planned_tests(study, build_design(study))
    binary = word in ("fisher_exact", "barnard_exact", "chi_square", "mcnemar")

    def value(spec, condition, rng):
        return float(rng.random() < 0.5) if binary else rng.random()

    (test,) = judge_hypotheses(study, *simulate(study, value))
    if test.p_value is None or word in ("correlation", "spearman"):
        return
    if len(factor.levels) == 2:
        assert test.difference == stated.claim.removesuffix(" ≠ 0")
    plain = test.method.lower().replace("analysis of variance", "anova").replace("-", " ")
    words = stated.test.lower().replace("-", " ").removeprefix("the ").removeprefix("a ").split()
    assert words[0].removesuffix("'s") in plain


# -- the power of the test that decides --


def _power(outcome="solved", effect=0.4, **fields):
    claim = _claim(outcome=outcome, direction="greater", minimum_effect_of_interest=effect)
    study = _study(claim, **{"agent_specs": ("ann",), **fields})
    (result,) = hypothesis_power(study, build_design(study))
    return result


def _by_brute_force(high, low, n1, n2, alternative):
    total = 0.0
    for one in range(n1 + 1):
        for two in range(n2 + 1):
            table = [[one, n1 - one], [two, n2 - two]]
            if stats.fisher_exact(table, alternative=alternative).pvalue < 0.05:
                total += stats.binom.pmf(one, n1, high) * stats.binom.pmf(two, n2, low)
    return total


@pytest.mark.parametrize(("n1", "n2"), [(6, 6), (5, 9), (12, 4)])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_the_power_of_fishers_test_is_the_sum_over_all_tables(n1, n2, alternative):
    result = fisher_power((0.2, 0.7), n1, n2, one_sided=alternative == "greater")
    both = [_by_brute_force(0.7, 0.2, *sizes, alternative) for sizes in ((n1, n2), (n2, n1))]
    assert result == pytest.approx(min(both))


def test_large_groups_are_approximated_without_a_jump():
    exact, beyond = (fisher_power((0.45, 0.5), n, n, one_sided=True) for n in (1000, 1001))
    assert exact == pytest.approx(beyond, abs=0.01)
    assert fisher_power((0.0, 1.0), 10**6, 10**6) == 1.0
    assert fisher_power((0.3, 0.7), 1, 5) is None


@pytest.mark.parametrize(
    ("difference", "sd", "expected"),
    [(0.4, 0.5, (0.3, 0.7)), (0.2, 0.3, (0.0, 0.2)), (0.1, 0.4, (0.15, 0.25)), (1.2, 0.5, None)],
)
def test_rates_lie_about_the_one_that_has_the_sd(difference, sd, expected):
    result = assumed_rates(difference, sd)
    assert result == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("word", ["fisher_exact", "proportions", "difference_in_means"])
def test_a_yes_or_no_outcome_gets_the_power_of_the_test_that_decides(word):
    result = _power(tests=(word,))
    assert result.test == "Fisher's exact test"
    assert result.power == fisher_power((0.3, 0.7), 6, 6, one_sided=True)
    assert round(result.power, 2) == 0.25
    assert "30% against 70% yes, as its sd is 0.5" in result.assumption
    needed = result.needed_replicates
    assert fisher_power((0.3, 0.7), needed, needed, one_sided=True) >= 0.8
    assert fisher_power((0.3, 0.7), needed - 1, needed - 1, one_sided=True) < 0.8
    assert "whose power is another" not in result.assumption


def test_without_an_sd_the_effect_is_about_one_half():
    outcomes = (replace(SOLVED, sd=None),)
    result = _power(effect=0.8, outcomes=outcomes)
    assert result.power == fisher_power((0.3, 0.7), 6, 6, one_sided=True)
    too_much = _power(effect=2.5, outcomes=outcomes)
    assert too_much.power is None
    assert too_much.reason == "a difference of 1.25 between rates of yes is more than there can be"


@pytest.mark.parametrize(
    ("outcome", "word", "is_another"),
    [
        ("solved", "barnard_exact", True),
        ("solved", "chi_square", True),
        ("score", "mann_whitney", True),
        ("score", "mixed_effects", True),
        ("score", "welch_t", False),
        ("score", "difference_in_means", False),
        ("score", "anova", False),
    ],
)
def test_the_power_of_another_test_than_the_planned_one_says_so(outcome, word, is_another):
    result = _power(outcome, tests=(word,))
    assert result.test == "Welch/two-sample t"
    said = result.assumption.endswith(f" The plan's test is {word}, whose power is another.")
    assert said == is_another


# -- what `fairtrial plan` prints --

TWO_AGENTS = {
    "study_id": "s",
    "title": "Two agents",
    "agent_specs": ["rules", "model"],
    "problem_ids": ["p"],
    "outcomes": [{"name": "speedup", "primary": True}],
    "hypotheses": [
        {
            "hypothesis_id": "h1",
            "label": "Rules",
            "statement": "Rules find more.",
            "independent_vars": ["agent_id"],
            "dependent_vars": ["speedup"],
            "direction": "greater",
        }
    ],
    "run_budget": {"replicates": 2},
}


def test_plan_prints_each_hypothesis_as_it_will_be_tested(run, write):
    code, out, err = run("plan", write(TWO_AGENTS))
    shown = " ".join(out.split())
    assert code == 0
    assert (
        "tests h1 (agent_id on speedup): model − rules > 0, by Welch's t test; exploratory, as no "
        "plan names it" in shown
    )
    assert "warning: h1: nothing says which way 'greater' goes" in err
    claim = {**TWO_AGENTS["hypotheses"][0], "contrast": {"left": "rules", "right": "model"}}
    plan = {"analysis_plan_id": "main", "hypothesis_ids": ["h1"], "tests": ["t", "mann_whitney"]}
    said = write({**TWO_AGENTS, "hypotheses": [claim], "analysis_plans": [plan]})
    _, out, err = run("plan", said)
    assert (
        "tests h1 (agent_id on speedup): rules − model > 0, by Welch's t test; beside it "
        "mann_whitney; plan main" in " ".join(out.split())
    )
    assert "warning" not in err


def test_plan_as_json_has_the_tests_and_the_warning(run, write):
    _, out, err = run("plan", write(TWO_AGENTS), "--json")
    shown = json.loads(out)
    assert shown["tests"][0]["claim"] == "model − rules > 0"
    assert shown["tests"][0]["is_exploratory"] is True
    assert shown["warnings"] == [shown["tests"][0]["warning"]]
    assert err == ""


def test_check_and_plan_warn_of_the_same(run, write):
    path = write(TWO_AGENTS)
    assert run("check", path)[2] == run("plan", path)[2] != ""
    warnings = [
        json.loads(run(command, path, "--json")[1])["warnings"] for command in ("check", "plan")
    ]
    assert warnings[0] == warnings[1] != []
    claim = {**TWO_AGENTS["hypotheses"][0], "contrast": {"left": "rules", "right": "model"}}
    code, out, err = run("check", write({**TWO_AGENTS, "hypotheses": [claim]}))
    assert (code, err) == (0, "")
    assert "no mistakes" in out


def test_plan_says_what_it_will_not_test(run, write):
    plan = {"analysis_plan_id": "main", "hypothesis_ids": ["h1"], "tests": ["astrology"]}
    _, out, _ = run("plan", write({**TWO_AGENTS, "analysis_plans": [plan]}))
    assert "not tested: 'astrology' is not a test that fairtrial knows" in " ".join(out.split())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tests": ["t_tset"]}, "'t_tset' is not a test that fairtrial knows"),
        ({"source_table": "evaluation"}, "there is no table 'evaluation'; did you mean 'evalu"),
        ({"aggregation": "avg"}, "no such aggregation: 'avg'"),
        ({"operation": "ratio"}, "the contrast's operation 'ratio' is not tested"),
    ],
)
def test_check_says_in_its_last_line_that_a_claim_will_not_be_tested(run, write, changes, why):
    contrast = {"left": "rules", "right": "model"}
    claim = {**TWO_AGENTS["hypotheses"][0], "contrast": contrast, "dependent_vars": ["speedup"]}
    plan = {"analysis_plan_id": "main", "hypothesis_ids": ["h1"], "tests": ["t_test"]}
    outcome = {"name": "speedup"}
    fields = {**TWO_AGENTS, "hypotheses": [claim], "outcomes": [outcome], "analysis_plans": [plan]}
    code, out, err = run("check", write(fields))
    assert (code, err) == (0, "")
    assert ": no mistakes; " in out
    {"tests": plan, "operation": contrast}.get(next(iter(changes)), outcome).update(changes)
    code, out, err = run("check", write(fields))
    assert code == 0
    assert re.search(r"study.yaml: no mistakes, [12] warnings?: h1 will not be tested; ", out)
    assert f"warning: h1 will not be tested: {why}" in err.replace("outcome 'speedup': ", "")
    shown = json.loads(run("check", write(fields), "--json")[1])
    assert shown["untested"] == ["h1"]
    assert "not tested: " in run("plan", write(fields))[1]


def test_a_claim_that_another_plan_tests_is_tested():
    plans = (
        AnalysisPlan("first", ("h1",), ("t_test",), outcomes=("score",)),
        AnalysisPlan("second", ("h1",), ("t_test",), outcomes=("solved",)),
    )
    claim = replace(_claim(), dependent_vars=("score", "solved"))
    study = _study(claim, analysis_plans=plans)
    tests = planned_tests(study, build_design(study))
    assert [bool(test.reason) for test in tests] == [False, True, True, False]
    assert untested_claims(tests) == {}
    study = _study(claim, analysis_plans=plans[:1])
    shown = untested_claims(planned_tests(study, build_design(study)))
    assert shown == {"h1 on solved": ["plan 'first' doesn't look at it"]}


def test_plan_and_report_say_which_sd_a_standardized_effect_of_yes_and_no_is_taken_by():
    solved = OutcomeSpec("solved", expected_type="bool")
    claim = _claim(outcome="solved", minimum_effect_of_interest=0.2)
    study = _study(claim, outcomes=(solved,), replicates=40)
    conditions = build_design(study)
    (power,) = hypothesis_power(study, conditions)
    shown = "0.1 in solved (45% against 55% yes, d = 0.2 about one half, where the sd is 0.5; "
    assert shown in power.assumption
    _, results = simulate(study, lambda s, c, rng: {"solved": rng.random() < 0.2})
    (test,) = judge_hypotheses(study, conditions, results)
    assert test.minimum_size != pytest.approx(0.1)
    assert test.minimum_effect.endswith("; before there were any, 0.5 was assumed)")
