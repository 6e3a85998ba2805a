"""Power of the test that will be made: compared with simulations of that test."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from fairtrial.core import StudyError
from fairtrial.study import (
    AgentOutput,
    AnalysisPlan,
    Factor,
    Hypothesis,
    Moderator,
    OutcomeSpec,
    ProblemPacket,
    RunBudget,
    Study,
    build_design,
    hypothesis_power,
    run_study,
)
from fairtrial.study.files import write_study
from fairtrial.study.report import format_plan, summarize_plan
from fairtrial.study.report.pilot_variances import apply_pilot, estimate_variances
from fairtrial.study.stats.by_problem import problem_t_test
from fairtrial.study.stats.every_level_power import every_level_power
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.problem_power import problem_power, sign_flip_power
from fairtrial.study.stats.welch_power import welch_contrast_power, welch_power

ARM = Factor("arm", levels=("plain", "fancy"))
MODE = Factor("mode", levels=("easy", "hard"))


def _study(problems=6, replicates=60, effect=0.5, outcome=None, tests=("mixed_effects",), **parts):
    claim = Hypothesis(
        "h1",
        "label",
        "statement",
        independent_vars=("arm",),
        dependent_vars=("score",),
        minimum_effect_of_interest=effect,
        **parts.pop("claim", {}),
    )
    fields = {
        "factors": (ARM,),
        "hypotheses": (claim,),
        "outcomes": (OutcomeSpec("score", **(outcome or {})),),
        "analysis_plans": (AnalysisPlan("main", ("h1",), tests, **parts.pop("plan", {})),),
        "problem_ids": tuple(f"p{number}" for number in range(problems)),
        "agent_specs": ("agent",),
        "run_budget": RunBudget(replicates=replicates),
        **parts,
    }
    return Study("s", "A study", **fields)


def _power(study):
    (power,) = hypothesis_power(study, build_design(study))
    return power


def _plan_lines(study):
    details = format_plan(summarize_plan(study)).details
    return "\n".join(line.text for line in details)


def _simulate_problems(rng, sets, problems, weights, effect, slope_sd, replicates, within=1.0):
    """Contrasts of cell means of simulated problems: a row for each study."""
    effects = effect + slope_sd * rng.standard_normal((sets, problems))
    noise = rng.standard_normal((sets, problems, len(weights))) * np.sqrt(within / replicates)
    return effects + noise @ np.asarray(weights)


def _error(share, sets):
    """Three Monte-Carlo errors, and a little for the approximation."""
    return 3 * np.sqrt(share * (1 - share) / sets) + 0.01


@pytest.mark.parametrize(
    ("problems", "effect"), [(3, 2.0), (4, 2.0), (5, 1.6), (12, 0.8), (30, 0.5)]
)
def test_the_power_by_problem_allows_for_the_correction_for_skewness(problems, effect):
    rng = np.random.default_rng(problems)
    rows = rng.standard_normal((1_500, problems)) + effect
    found = np.mean([problem_t_test(row).p < 0.05 for row in rows])
    assert problem_power(effect, 1.0, problems) == pytest.approx(found, abs=_error(found, 1_500))
    equivalent = np.mean([problem_t_test(row - effect, margin=effect).p < 0.05 for row in rows])
    assert problem_power(effect, 1.0, problems, test="equivalence") == pytest.approx(
        equivalent, abs=_error(equivalent, 1_500)
    )


def test_the_power_of_few_problems_with_many_replicates_is_that_of_the_problems():
    power = _power(_study(outcome={"slope_sd": 0.5}))
    assert power.test == "t test by problem"
    assert (power.problems, power.slope_sd_d) == (6, 0.5)
    contrasts = _simulate_problems(np.random.default_rng(1), 4_000, 6, (1, -1), 0.5, 0.5, 60)
    found = (stats.ttest_1samp(contrasts, 0, axis=1).pvalue < 0.05).mean()
    assert power.power == pytest.approx(found, abs=_error(found, 4_000))
    assert power.power == pytest.approx(0.49, abs=0.05)
    assert power.constant_power > 0.99


def test_a_stated_icc_leaves_less_noise_within_problems():
    loose, tight = (
        _power(_study(replicates=4, outcome={"slope_sd": 0.2, "icc": icc})) for icc in (0.0, 0.6)
    )
    contrasts = _simulate_problems(np.random.default_rng(2), 4_000, 6, (1, -1), 0.5, 0.2, 4, 0.4)
    found = (stats.ttest_1samp(contrasts, 0, axis=1).pvalue < 0.05).mean()
    assert loose.power < tight.power
    assert tight.power == pytest.approx(found, abs=_error(found, 4_000))
    assert "icc 0.6: runs of one problem have 40% of the variance" in tight.assumption


@pytest.mark.parametrize(("d", "sizes"), [(1.5, (96, 3)), (0.8, (12, 8)), (1.2, (30, 6))])
def test_the_power_of_unequal_groups_is_that_of_welchs_test(d, sizes):
    rng = np.random.default_rng(3)
    first, second = (rng.standard_normal((8_000, size)) for size in sizes)
    found = (stats.ttest_ind(first + d, second, axis=1, equal_var=False).pvalue < 0.05).mean()
    assert welch_power(d, *sizes) == pytest.approx(found, abs=_error(found, 8_000))


def test_the_equivalence_of_unequal_groups_is_that_of_welchs_tests():
    rng = np.random.default_rng(4)
    first, second = rng.standard_normal((8_000, 30)), rng.standard_normal((8_000, 8))
    found = 1.0
    for shift, side in ((1.2, "greater"), (-1.2, "less")):
        test = stats.ttest_ind(first + shift, second, axis=1, equal_var=False, alternative=side)
        found = found & (test.pvalue < 0.05) if shift < 0 else test.pvalue < 0.05
    share = found.mean()
    power = welch_power(1.2, 30, 8, test="equivalence")
    assert power == pytest.approx(share, abs=_error(share, 8_000))


def test_large_groups_have_the_same_power_by_both_ways():
    exact, approximate = welch_power(0.3, 199, 150), welch_contrast_power(0.3, (1, -1), (199, 150))
    assert exact == pytest.approx(approximate, abs=1e-3)


def test_the_power_of_a_clustered_yes_no_outcome_is_that_of_the_sign_flip_test():
    study = _study(
        problems=8,
        replicates=40,
        effect=0.15,
        tests=("difference_in_means",),
        outcome={"expected_type": "bool", "sd": 0.5, "slope_sd": 0.19, "icc": 0.1},
    )
    power = _power(study)
    assert power.test == "sign-flip test by problem"
    rng, sets = np.random.default_rng(5), 1_500
    middle = 0.5 + np.sqrt(0.1) * 0.5 * rng.standard_normal((sets, 8, 1))
    effects = 0.15 + 0.19 * rng.standard_normal((sets, 8, 1))
    rates = np.clip(middle + effects * np.array([0.5, -0.5]), 0, 1)
    yes = rng.binomial(40, rates) / 40
    members = (np.arange(256)[None, :] >> np.arange(8)[:, None]) & 1
    sums = (yes[:, :, 0] - yes[:, :, 1]) @ members
    tails = np.minimum((sums <= 1e-12).mean(axis=1), (sums >= -1e-12).mean(axis=1))
    found = (2 * tails < 0.05).mean()
    assert power.power == pytest.approx(found, abs=_error(found, sets) + 0.03)


def test_five_problems_can_never_show_a_two_sided_difference_of_rates():
    assert sign_flip_power(5.0, 0.01, 5) == 0
    assert sign_flip_power(5.0, 0.01, 6) == 1
    assert sign_flip_power(5.0, 0.01, 5, test="one-sided") == 1
    assert sign_flip_power(0.5, 1.0, 2) is None


def test_the_power_of_an_interaction_is_by_problem_too():
    claim = {"kind": "moderation", "moderators": (Moderator("mode"),)}
    study = _study(
        problems=7, replicates=12, outcome={"slope_sd": 0.3}, factors=(ARM, MODE), claim=claim
    )
    power = _power(study)
    assert power.test == "interaction by problem"
    rng = np.random.default_rng(6)
    contrasts = _simulate_problems(rng, 4_000, 7, (1, -1, -1, 1), 0.5, 0.3, 12)
    found = (stats.ttest_1samp(contrasts, 0, axis=1).pvalue < 0.05).mean()
    assert power.power == pytest.approx(found, abs=_error(found, 4_000))


def test_the_power_of_an_interaction_of_unequal_cells_has_welchs_degrees_of_freedom():
    rng, sizes, sets = np.random.default_rng(7), (24, 24, 24, 6), 4_000
    cells = [rng.standard_normal((sets, size)) for size in sizes]
    weights = np.array([1, -1, -1, 1])
    means = np.stack([cell.mean(axis=1) for cell in cells]).T @ weights + 1.5
    parts = np.stack([cell.var(axis=1, ddof=1) / cell.shape[1] for cell in cells])
    df = parts.sum(axis=0) ** 2 / (parts**2 / (np.array(sizes) - 1)[:, None]).sum(axis=0)
    p = 2 * stats.t.sf(np.abs(means) / np.sqrt(parts.sum(axis=0)), df)
    found = (p < 0.05).mean()
    power = welch_contrast_power(1.5, weights, sizes)
    assert power == pytest.approx(found, abs=_error(found, sets))


def test_a_directed_claim_about_several_levels_has_the_power_of_its_least_clear_level():
    study = _study(
        problems=8,
        replicates=4,
        effect=1.0,
        outcome={"slope_sd": 0.5, "sd": 1.0},
        tests=("difference_in_means",),
        factors=(Factor("arm", levels=("a", "b", "c", "d")),),
        claim={"direction": "greater"},
    )
    power = _power(study)
    assert power.test == "every level against the baseline, by problem"
    assert "between each of 3 levels and 'a'" in power.assumption
    lines = _plan_lines(study)
    assert "then every level against the baseline, of which the least clear one decides" in lines
    rng, sets = np.random.default_rng(8), 600
    means = rng.standard_normal((sets, 4, 8)) * np.sqrt(0.5**2 / 2 + 1 / 4)
    contrasts = means[:, 1:] - means[:, :1] + 1.0
    p_values = [[problem_t_test(row, "greater").p for row in rows] for rows in contrasts]
    found = np.mean([max(adjust_p(row, "holm")) < 0.05 for row in p_values])
    assert power.power == pytest.approx(found, abs=_error(found, sets) + _error(found, 2_000))


def test_the_least_clear_of_unequal_levels_is_tested_by_welch():
    sizes, rng, sets = (12, 20, 30), np.random.default_rng(9), 2_000
    shown = 0
    for _ in range(sets):
        *levels, baseline = (rng.standard_normal(size) for size in sizes)
        p_values = [
            stats.ttest_ind(level + 0.9, baseline, equal_var=False, alternative="greater").pvalue
            for level in levels
        ]
        shown += max(adjust_p(p_values, "holm")) < 0.05
    found = shown / sets
    assert every_level_power(0.9, sizes) == pytest.approx(found, abs=2 * _error(found, sets))
    assert every_level_power(0.9, (12, 1, 30)) is None


def test_several_levels_are_an_analysis_of_variance_by_problem():
    study = _study(
        problems=8,
        replicates=20,
        outcome={"slope_sd": 0.4},
        factors=(Factor("arm", levels=("a", "b", "c")),),
    )
    power = _power(study)
    assert power.test == "analysis of variance by problem"
    rng, sets = np.random.default_rng(8), 4_000
    means = rng.standard_normal((sets, 8, 3)) * np.sqrt(0.4**2 / 2 + 1 / 20)
    means += np.array([0.25, -0.25, 0])
    grand = means.mean(axis=(1, 2), keepdims=True)
    levels, problems = means.mean(axis=1, keepdims=True), means.mean(axis=2, keepdims=True)
    error = ((means - levels - problems + grand) ** 2).sum(axis=(1, 2)) / 14
    between = 8 * ((levels - grand) ** 2).sum(axis=(1, 2)) / 2
    found = (stats.f.sf(between / error, 2, 14) < 0.05).mean()
    assert power.power == pytest.approx(found, abs=_error(found, sets))


@pytest.mark.slow
@pytest.mark.parametrize("problems", [3, 6, 12, 40])
@pytest.mark.parametrize("slope_sd", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("side", ["two-sided", "one-sided"])
def test_the_power_by_problem_agrees_with_simulations(problems, slope_sd, side):
    rng, sets = np.random.default_rng([9, problems]), 40_000
    contrasts = _simulate_problems(rng, sets, problems, (1, -1), 0.4, slope_sd, 10)
    alternative = "greater" if side == "one-sided" else side
    test = stats.ttest_1samp(contrasts, 0, axis=1, alternative=alternative)
    found = (test.pvalue < 0.05).mean()
    power = problem_power(0.4, slope_sd**2 + 2 / 10, problems, test=side, is_corrected=False)
    assert power == pytest.approx(found, abs=3 * np.sqrt(0.25 / sets))


# What is said and advised


def test_an_unstated_slope_gives_both_a_plausible_and_the_best_case():
    power = _power(_study())
    assert power.slope_sd_d == 0.25
    assert power.power < power.constant_power
    text = _plan_lines(_study(replicates=10))
    assert "if the effect were the same in every problem" in text
    assert "no slope_sd is stated, the effect is taken to vary between problems by 50%" in text
    assert "cautious" not in text


def test_problems_are_advised_where_replicates_cannot_help():
    study = _study(outcome={"slope_sd": 0.5})
    power = _power(study)
    assert power.needed_replicates is None
    assert 6 < power.needed_problems < 20
    text = _plan_lines(study)
    assert "add problems, not replicates: no number of replicates gives 6 problems" in text
    enough = _study(problems=power.needed_problems, outcome={"slope_sd": 0.5})
    assert _power(enough).power >= 0.8


def test_the_cheaper_of_problems_and_replicates_is_named():
    text = _plan_lines(_study(problems=6, replicates=5, outcome={"slope_sd": 0.3}))
    assert "replicates (the plan has 5) or" in text
    assert "problems take fewer runs" in text


def test_a_claim_about_these_problems_is_tested_within_them():
    plan = {"generalize": "these_problems_only"}
    study = _study(problems=4, replicates=5, plan=plan, tests=("welch_t",), outcome={"icc": 0.5})
    power = _power(study)
    assert power.problems == 0
    assert power.power == welch_power(0.5 / np.sqrt(0.5), 20, 20)


def test_curves_go_through_the_plan_and_rise_with_problems():
    curves = summarize_plan(_study(outcome={"slope_sd": 0.5})).power_curves
    assert [curve.over for curve in curves] == ["problems", "replicates"]
    for curve in curves:
        points = dict(curve.points)
        assert points[curve.planned] == _power(_study(outcome={"slope_sd": 0.5})).power
        powers = list(points.values())
        assert powers == sorted(powers)
    assert dict(curves[0].points)[24] > 0.95
    assert max(dict(curves[1].points).values()) < 0.6


# Pilots


def _run_pilot(folder, *, slope_sd, replicates=6, problems=60):
    """Run a study with problems of sd 1, runs of sd 0.5 and effects of 1 with this sd."""
    rng = np.random.default_rng(10)
    level, slope = rng.standard_normal(problems), 1 + slope_sd * rng.standard_normal(problems)
    study = _study(problems, replicates, output_dir=folder)

    def agent(task):
        number = int(task.problem.problem_id[1:])
        mean = level[number] + slope[number] * (task.factors["arm"] == "fancy")
        return AgentOutput({}, {"score": mean + 0.5 * rng.standard_normal()})

    run_study(
        study,
        agent_bindings={"agent": agent},
        problem_registry={
            name: ProblemPacket(name, "family", "brief") for name in study.problem_ids
        },
        executor="serial",
        show_progress=False,
    )
    return level, slope


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    """The folder of a pilot, and the levels and effects of its problems."""
    folder = tmp_path_factory.mktemp("pilot") / "out"
    return folder, *_run_pilot(folder, slope_sd=0.4)


def test_variances_are_estimated_from_a_pilot(pilot):
    folder, level, slope = pilot
    (entry,) = estimate_variances(folder, _study())
    assert (entry.outcome, entry.runs, entry.problems) == ("score", 720, 60)
    between = (level.var(ddof=1) + (level + slope).var(ddof=1)) / 2
    assert entry.sd == pytest.approx(np.sqrt(between + 0.25), rel=0.05)
    assert entry.icc == pytest.approx(between / (between + 0.25), abs=0.03)
    assert entry.slope_sd == pytest.approx(slope.std(ddof=1), rel=0.1)


def test_a_pilot_keeps_the_units_of_minimum_effects(pilot):
    plain, scaled = _study(), _study(outcome={"sd": 2.0})
    entries = estimate_variances(pilot[0], plain)
    (spec,) = apply_pilot(plain, entries).outcomes
    assert spec.sd is None
    assert spec.slope_sd == pytest.approx(entries[0].slope_sd / entries[0].sd)
    (spec,) = apply_pilot(scaled, entries).outcomes
    assert (spec.sd, spec.slope_sd) == (entries[0].sd, entries[0].slope_sd)


def test_plan_takes_a_pilot_and_draws_the_curve(pilot, run, tmp_path):
    write_study(_study(problems=8), tmp_path / "study.yaml", "yaml")
    arguments = ["plan", "study.yaml", "--pilot", pilot[0], "--power"]
    code, shown, _ = run(*arguments)
    assert code == 0
    assert "pilot    score: sd 0.9" in shown
    said = "the effect varies between problems with an sd of 0."
    assert said in " ".join(shown.split())
    assert "power    h1 (arm on score) by problems" in shown
    assert "(the plan)" in shown
    facts = json.loads(run(*arguments, "--json")[1])
    assert facts["pilot"][0]["problems"] == 60
    assert [curve["over"] for curve in facts["power_curves"]] == ["problems", "replicates"]


def test_a_pilot_without_replicates_is_refused(tmp_path):
    _run_pilot(tmp_path / "pilot", slope_sd=0.4, replicates=1, problems=4)
    with pytest.raises(StudyError, match="no replicates, so that runs can be told from problems"):
        estimate_variances(tmp_path / "pilot", _study())
