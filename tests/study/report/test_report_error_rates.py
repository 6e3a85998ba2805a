"""False verdicts stay within their error rate: seeded simulations through the public functions."""

import dataclasses
import math
import random

import pytest
from simulated_study_kit import level, make_claim, make_plan, make_study, simulate, succeed

from fairtrial.study import (
    DesignKind,
    DesignSpec,
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Moderator,
    OutcomeSpec,
    RunBudget,
    build_design,
    judge_hypotheses,
    plan_runs,
)

ONE_PROBLEM = {"problem_ids": ("p1",)}
OUTCOMES = tuple(f"o{index}" for index in range(8))


def share(study, value, count, is_wrong):
    """Return the share of simulated studies with wrong tests; a value of None is a lost run."""
    conditions = build_design(study)
    by_id = {condition.condition_id: condition for condition in conditions}
    specs = list(plan_runs(study, conditions))
    wrong = 0
    for seed in range(count):
        rng = random.Random(seed)
        values = [(spec, value(spec, by_id[spec.condition_id], rng)) for spec in specs]
        results = [
            succeed(spec, drawn if isinstance(drawn, dict) else {"score": drawn})
            for spec, drawn in values
            if drawn is not None
        ]
        wrong += is_wrong(judge_hypotheses(study, conditions, results))
    return wrong / count


def any_supported(tests):
    return any(test.verdict.startswith("supported") for test in tests if test.decides)


def small_and_noisy(is_small):
    """Return a value without effects: the small group has 6 runs and four times the spread."""

    def value(spec, condition, rng):
        small = is_small(condition)
        if small and spec.replicate > 6:
            return None
        return rng.gauss(0, 4 if small else 1)

    return value


def moderation():
    study = make_study(
        factors=(Factor("arm", levels=("plain", "fancy")), Factor("kind", levels=("x", "y"))),
        hypotheses=(make_claim(kind=HypothesisKind.MODERATION, moderators=(Moderator("kind"),)),),
        run_budget=RunBudget(replicates=24),
        **ONE_PROBLEM,
    )
    return study, small_and_noisy(lambda c: level(c) == "fancy" and level(c, "kind") == "y")


def one_way():
    study = make_study(
        analysis_plans=(make_plan("anova"),), run_budget=RunBudget(replicates=30), **ONE_PROBLEM
    )
    return study, small_and_noisy(lambda c: level(c) == "fancy")


def slope():
    study = make_study(
        factors=(Factor("arm", levels=(0.0, 1.0), dtype="float"),),
        design_spec=DesignSpec(kind=DesignKind.LATIN_HYPERCUBE, n_samples=24),
        run_budget=RunBudget(replicates=1),
        **ONE_PROBLEM,
    )
    return study, lambda spec, c, rng: rng.gauss(0, 0.1 + 3 * level(c) ** 2)


def repeated_measures():
    study = make_study(
        factors=(Factor("arm", levels=("a", "b", "c", "d")),),
        analysis_plans=(make_plan("paired_t"),),
        problem_ids=tuple(f"p{index}" for index in range(12)),
        run_budget=RunBudget(replicates=1),
    )
    return study, lambda spec, c, rng: rng.gauss(0, 3.0 if level(c) == "d" else 0.5)


def claims(plans, **parts):
    hypotheses = tuple(
        make_claim(hypothesis_id=f"h{name}", dependent_vars=(name,), **parts) for name in OUTCOMES
    )
    ids = [hypothesis.hypothesis_id for hypothesis in hypotheses]
    families = [(name,) for name in ids] if plans > 1 else [tuple(ids)]
    return make_study(
        outcomes=tuple(OutcomeSpec(name, primary=True, sd=1.0) for name in OUTCOMES),
        hypotheses=hypotheses,
        analysis_plans=tuple(
            make_plan("welch_t", analysis_plan_id=f"p{index}", hypothesis_ids=family)
            for index, family in enumerate(families)
        ),
        run_budget=RunBudget(replicates=20),
        **ONE_PROBLEM,
    )


def eight_claims():
    return claims(1), lambda spec, c, rng: {name: rng.gauss(0, 1) for name in OUTCOMES}


def eight_plans():
    return claims(8), lambda spec, c, rng: {name: rng.gauss(0, 1) for name in OUTCOMES}


def equivalence():
    # The medians are equal, and the means differ by the margin.
    claim = make_claim(direction=HypothesisDirection.EQUIVALENT, minimum_effect_of_interest=1.0)
    study = make_study(
        outcomes=(OutcomeSpec("score", primary=True, sd=1.0),),
        hypotheses=(claim,),
        analysis_plans=(make_plan("mann_whitney"),),
        run_budget=RunBudget(replicates=40),
        **ONE_PROBLEM,
    )
    wide = math.sqrt(2 * math.log(math.exp(0.5) + 1))
    sd = {"plain": 1.0, "fancy": wide}
    return study, lambda spec, c, rng: math.exp(rng.gauss(0, sd[level(c)]))


def eight_directions():
    # One level is far above the baseline, the other one is not: no claim about both is true.
    study = claims(1, direction=HypothesisDirection.GREATER)
    study = dataclasses.replace(study, factors=(Factor("arm", levels=("plain", "high", "same")),))
    return study, lambda spec, c, rng: {
        name: rng.gauss(3 if level(c) == "high" else 0, 1) for name in OUTCOMES
    }


SITUATIONS = [
    moderation,
    one_way,
    slope,
    repeated_measures,
    eight_claims,
    eight_plans,
    eight_directions,
    equivalence,
]


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_claims_that_are_false_are_rarely_supported(situation):
    study, value = situation()
    # 5% of 400 studies, and two standard errors.
    assert share(study, value, 400, any_supported) <= 0.072


@pytest.mark.parametrize("situation", [moderation, one_way], ids=["moderation", "anova"])
def test_unequal_variances_in_unequal_groups_support_nothing_too_often(situation):
    study, value = situation()
    # A test that assumes equal variances supports a third of these.
    assert share(study, value, 25, any_supported) <= 0.16


def test_claims_about_every_level_are_adjusted_for_the_number_of_claims():
    study, value = eight_directions()
    # Adjusting only the test that levels differ supports a third of these.
    assert share(study, value, 25, any_supported) <= 0.16


def test_the_p_value_of_a_claim_about_every_level_is_that_of_its_least_clear_level():
    study, value = eight_directions()
    for test in judge_hypotheses(study, *simulate(study, value)):
        assert test.p_value == max(detail.p for detail in test.details)
        assert test.p_adjusted >= test.p_value
        assert test.verdict == "inconclusive"
        alone = "shown only without the adjustment for several claims"
        expected = alone if test.p_value < 0.05 else "shown for high − plain, not for all levels"
        assert expected in test.why
        assert any(note.startswith("that some levels differ: ") for note in test.notes)


@pytest.mark.slow
def test_no_size_is_claimed_falsely_over_several_outcomes():
    study = claims(1, minimum_effect_of_interest=0.5)

    def value(spec, condition, rng):
        shift = 0.499 * (level(condition) == "fancy")
        return {name: shift + rng.gauss(0, 1) for name in OUTCOMES}

    wrong = share(study, value, 200, lambda tests: any("at least" in test.why for test in tests))
    assert wrong <= 0.08


def test_claims_of_several_plans_are_one_family():
    study = claims(8)
    tests = judge_hypotheses(
        study, *simulate(study, lambda s, c, rng: {name: rng.gauss(0, 1) for name in OUTCOMES})
    )
    assert {(test.policy, test.family) for test in tests} == {("holm", 8)}
    assert all(test.confidence == pytest.approx(1 - 0.05 / 8) for test in tests)


@pytest.mark.parametrize("shift", [0.3, 0.6, 0.9, -0.9])
def test_intervals_never_contradict_the_verdict(shift):
    directed = {"direction": HypothesisDirection.GREATER}
    for claim in ({}, directed):
        study = claims(1, **claim)
        data = simulate(
            study,
            lambda s, c, rng: {
                name: shift * (level(c) == "fancy") + rng.gauss(0, 1) for name in OUTCOMES
            },
        )
        for test in judge_hypotheses(study, *data):
            low, high = test.interval
            if claim and test.verdict.startswith("supported"):
                assert test.bound >= 0
            elif test.verdict in ("supported", "contradicted"):
                assert low >= 0 or high <= 0
                assert test.why.endswith("fancy is higher than plain") == (test.estimate > 0)
            else:
                assert low <= 0 <= high


def test_a_one_sided_claim_is_reported_with_a_one_sided_bound():
    claim = make_claim(direction=HypothesisDirection.GREATER)
    study = make_study(hypotheses=(claim,), analysis_plans=(make_plan("welch_t"),), **ONE_PROBLEM)
    value = lambda s, c, rng: (level(c) == "fancy") + s.replicate / 4  # noqa: E731
    (test,) = judge_hypotheses(study, *simulate(study, value))
    low, high = test.interval
    assert low < test.bound < test.estimate < high
