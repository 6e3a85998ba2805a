"""The situations of `verdicts.py`: studies with simulated outcomes, with and without an effect.

A study is planned once; only its outcomes are drawn anew. Outcomes have a standard deviation of
about 1 within a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from fairtrial import (
    AnalysisPlan,
    Constraint,
    DesignKind,
    DesignSpec,
    Factor,
    Hypothesis,
    OutcomeSpec,
    RunBudget,
    RunResult,
    RunStatus,
    Study,
    build_design,
    judge_hypotheses,
    plan_runs,
)

ARM = Factor("arm", levels=("plain", "fancy"))
PROBLEM_SD = 0.7
"""The standard deviation between problems."""
Outcomes = Mapping[str, np.ndarray]
Lost = Callable[[Any], RunResult]


class Plan:
    """The planned runs of a study as columns, and the results of simulated outcomes.

    study, conditions, specs: the study, its conditions and its planned runs
    problem, replicate: the problem and the replicate of each run, counted from 0
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.conditions = build_design(study)
        self.specs = list(plan_runs(study, self.conditions))
        self._by_id = {condition.condition_id: condition for condition in self.conditions}
        names = sorted({spec.problem_spec_ref or "" for spec in self.specs})
        self.problem = np.array([names.index(spec.problem_spec_ref or "") for spec in self.specs])
        self.replicate = np.array([spec.replicate - 1 for spec in self.specs])

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def problems(self) -> int:
        return int(self.problem.max()) + 1

    def level(self, factor: str) -> np.ndarray:
        """Return the value of a factor in each run."""
        conditions = (self._by_id[spec.condition_id] for spec in self.specs)
        return np.array([condition.factor_assignments[factor] for condition in conditions])

    def results(self, outcomes: Outcomes, lost: Mapping[int, Lost]) -> list[RunResult]:
        """Return the results of all runs; those in `lost` are made by its functions."""
        columns = {name: values.tolist() for name, values in outcomes.items()}
        results = []
        for index, spec in enumerate(self.specs):
            if index in lost:
                results.append(lost[index](spec))
                continue
            metrics = {name: values[index] for name, values in columns.items()}
            results.append(
                RunResult(spec.run_id, RunStatus.SUCCESS, metrics=metrics, run_spec=spec)
            )
        return results


@dataclass(frozen=True)
class Drawn:
    """Simulated outcomes of all runs, and how some of them were lost."""

    outcomes: Outcomes
    lost: Mapping[int, Lost] = field(default_factory=dict)


@dataclass(frozen=True)
class Scored:
    """What a study concluded from one set of data.

    supported: the share of its claims that it calls supported
    qualified: the share that it calls supported with a reservation
    covered: for each interval, whether it holds the true value
    """

    supported: float
    qualified: float = 0.0
    covered: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A situation in which a study may be wrong.

    name, situation: its name and its description
    score: simulates one set of data with an effect of this size and judges it
    effect: a realistic effect, for the power; None if power makes no sense
    null: the effect at which "supported" is wrong
    cost: about how many times as long it takes as others; so many times fewer sets of data
    is_biased: whether the data are biased, so that no interval can hold its confidence; the
        verdict has to say so
    """

    name: str
    situation: str
    score: Callable[[Generator, float], Scored]
    effect: float | None
    null: float = 0.0
    cost: int = 1
    is_biased: bool = False


def make_study(
    *tests: str,
    problems: int = 1,
    replicates: int = 10,
    outcomes: Sequence[str] = ("score",),
    outcome: Mapping[str, Any] | None = None,
    claim: Mapping[str, Any] | None = None,
    plan: Mapping[str, Any] | None = None,
    **parts: Any,
) -> Study:
    """Return a study of one claim on each outcome."""
    fields = {"independent_vars": ("arm",), "label": "Claim", "statement": "There is an effect."}
    claims = tuple(
        Hypothesis(
            hypothesis_id=f"h{number}", dependent_vars=(name,), **{**fields, **(claim or {})}
        )
        for number, name in enumerate(outcomes, 1)
    )
    declared = AnalysisPlan(
        analysis_plan_id="main",
        hypothesis_ids=tuple(hypothesis.hypothesis_id for hypothesis in claims),
        tests=tests or ("difference_in_means",),
        **(plan or {}),
    )
    given = {
        "factors": (ARM,),
        "outcomes": tuple(OutcomeSpec(name, primary=True, **(outcome or {})) for name in outcomes),
        "hypotheses": claims,
        "analysis_plans": (declared,),
        "problem_ids": tuple(f"p{number:02}" for number in range(problems)),
        "agent_specs": ("agent",),
        "run_budget": RunBudget(replicates=replicates),
        **parts,
    }
    return Study("simulated", "A simulated study", **given)


def simulate(
    study: Study,
    draw: Callable[[Generator, Plan, float], Drawn],
    *,
    truth: Callable[[float], float] = float,
    claims_size: bool = False,
) -> Callable[[Generator, float], Scored]:
    """Return a function that draws outcomes and judges the study by its own plan.

    truth: the true value of what is estimated, from the effect
    claims_size: whether only the claim of a least size counts as supported
    """
    plan = Plan(study)

    def score(rng: Generator, effect: float) -> Scored:
        drawn = draw(rng, plan, effect)
        results = plan.results(drawn.outcomes, drawn.lost)
        tests = [test for test in judge_hypotheses(study, plan.conditions, results) if test.decides]
        verdicts = [
            str(test.verdict) if not claims_size or "at least" in test.why else "" for test in tests
        ]
        intervals = [test.interval for test in tests if test.interval is not None]
        return Scored(
            supported=verdicts.count("supported") / len(tests),
            qualified=sum(v.startswith("supported ") or "," in v for v in verdicts) / len(tests),
            covered=tuple(holds(interval, truth(effect)) for interval in intervals),
        )

    return score


def holds(interval: Sequence[float | None], value: float) -> bool:
    low, high = interval
    return (low is None or low <= value) and (high is None or value <= high)


def draw_clustered(
    slope_sd: float = 0.0,
    problem_sd: float = PROBLEM_SD,
    names: Sequence[str] = ("score",),
) -> Callable[[Generator, Plan, float], Drawn]:
    """Return a drawing of outcomes with problems of different difficulty.

    slope_sd: the standard deviation of the effect between problems
    problem_sd: that of the problems' difficulty; the one of a problem's runs is 1
    """

    def draw(rng: Generator, plan: Plan, effect: float) -> Drawn:
        is_fancy = plan.level("arm") == "fancy"
        outcomes = {}
        for name in names:
            level = problem_sd * rng.standard_normal(plan.problems)
            effects = effect + slope_sd * rng.standard_normal(plan.problems)
            noise = rng.standard_normal(len(plan))
            outcomes[name] = level[plan.problem] + effects[plan.problem] * is_fancy + noise
        return Drawn(outcomes)

    return draw


def draw_deterministic(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes that depend on arm and problem only."""
    is_fancy = plan.level("arm") == "fancy"
    values = rng.standard_normal((2, plan.problems))
    values[1] += effect
    return Drawn({"score": values[is_fancy.astype(int), plan.problem]})


def draw_binary(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return successes whose rates differ between problems, as does their difference."""
    sign = np.where(plan.level("arm") == "fancy", 0.5, -0.5)
    level = rng.standard_normal(plan.problems)
    effects = effect + 0.9 * rng.standard_normal(plan.problems)
    logits = level[plan.problem] + effects[plan.problem] * sign
    return Drawn({"score": (rng.random(len(plan)) < 1 / (1 + np.exp(-logits))).astype(float)})


def draw_cells(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes of a 2 x 2 design whose smallest cell has four times the spread."""
    is_small = (plan.level("arm") == "fancy") & (plan.level("mode") == "hard")
    noise = rng.standard_normal(len(plan)) * np.where(is_small, 4.0, 1.0)
    return Drawn({"score": noise + effect * is_small})


def draw_groups(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes of two groups; the smaller one has four times the spread."""
    is_small = plan.level("arm") == "fancy"
    noise = rng.standard_normal(len(plan)) * np.where(is_small, 4.0, 1.0)
    return Drawn({"score": noise + effect * is_small})


def draw_skewed_effects(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes of problems of which a few gain much and most lose a little."""
    is_fancy = plan.level("arm") == "fancy"
    level = PROBLEM_SD * rng.standard_normal(plan.problems)
    effects = effect + 2 * (rng.exponential(1.0, plan.problems) - 1)
    noise = rng.standard_normal(len(plan))
    return Drawn({"score": level[plan.problem] + effects[plan.problem] * is_fancy + noise})


def draw_counts(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return counts, most of them 0, whose rates differ between problems and arms."""
    is_fancy = plan.level("arm") == "fancy"
    rates = rng.gamma(0.5, 0.6, (2, plan.problems))
    rates[1] *= np.exp(effect)
    return Drawn({"score": rng.poisson(rates[is_fancy.astype(int), plan.problem]).astype(float)})


def draw_rare(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return successes with a rate of 2 % on average that differs between problems."""
    is_fancy = plan.level("arm") == "fancy"
    rates = rng.beta(0.2, 9.8, (2, plan.problems))
    rates[1] = np.minimum(1.0, rates[1] + effect)
    successes = rng.random(len(plan)) < rates[is_fancy.astype(int), plan.problem]
    return Drawn({"score": successes.astype(float)})


def draw_half_deterministic(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes of a deterministic arm and a random one."""
    is_fancy = plan.level("arm") == "fancy"
    level = rng.standard_normal(plan.problems)
    effects = effect + 0.5 * rng.standard_normal(plan.problems)
    noise = np.where(is_fancy, 0.0, rng.standard_normal(len(plan)))
    return Drawn({"score": level[plan.problem] + effects[plan.problem] * is_fancy + noise})


def draw_slopes(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes whose slope over the factor differs between problems."""
    x = plan.level("arm").astype(float)
    level = PROBLEM_SD * rng.standard_normal(plan.problems)
    slopes = effect + rng.standard_normal(plan.problems)
    noise = rng.standard_normal(len(plan))
    return Drawn({"score": level[plan.problem] + slopes[plan.problem] * x + noise})


def lose_cells(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes of which 15 % of the cells of problem and arm are lost at random."""
    drawn = draw_clustered(slope_sd=0.5)(rng, plan, effect)
    is_lost = rng.random((2, plan.problems)) < 0.15
    (runs,) = np.nonzero(is_lost[(plan.level("arm") == "fancy").astype(int), plan.problem])
    return replace(drawn, lost=dict.fromkeys(runs.tolist(), make_valueless))


def draw_slope(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes whose spread grows with the factor."""
    x = plan.level("arm").astype(float)
    return Drawn({"score": effect * x + rng.standard_normal(len(plan)) * (0.1 + 2 * x**2)})


def draw_subjects(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return outcomes of subjects under four conditions whose differences vary unequally."""
    arm = np.array([("a", "b", "c", "d").index(level) for level in plan.level("arm")])
    subjects = int(plan.replicate.max()) + 1
    values = np.array([0.3, 0.3, 0.3, 2.5]) * rng.standard_normal((subjects, 4))
    values += rng.standard_normal((subjects, 1)) + effect * np.array([0, 0, 1, 1])
    return Drawn({"score": values[plan.replicate, arm]})


def draw_lognormal(rng: Generator, plan: Plan, effect: float) -> Drawn:
    """Return lognormal outcomes whose means differ by `effect`."""
    mean = np.exp(0.5)
    factor = np.where(plan.level("arm") == "fancy", (mean + effect) / mean, 1.0)
    return Drawn({"score": factor * rng.lognormal(size=len(plan))})


def lose_worst(make_lost: Lost) -> Callable[[Generator, Plan, float], Drawn]:
    """Return a drawing that loses the worst third of the second arm."""
    draw = draw_clustered()

    def draw_with_losses(rng: Generator, plan: Plan, effect: float) -> Drawn:
        drawn = draw(rng, plan, effect)
        (fancy,) = np.nonzero(plan.level("arm") == "fancy")
        worst = fancy[np.argsort(drawn.outcomes["score"][fancy])[: len(fancy) // 3]]
        return replace(drawn, lost=dict.fromkeys(worst.tolist(), make_lost))

    return draw_with_losses


def make_failed(spec: Any) -> RunResult:
    return RunResult(spec.run_id, RunStatus.FAILED, run_spec=spec, error_info="simulated")


def make_broken(spec: Any) -> RunResult:
    return RunResult(spec.run_id, RunStatus.BROKEN, run_spec=spec, error_info="simulated")


def make_valueless(spec: Any) -> RunResult:
    return RunResult(spec.run_id, RunStatus.SUCCESS, run_spec=spec)


EIGHT = tuple(f"score{number}" for number in range(1, 9))
SIZED = {"claim": {"minimum_effect_of_interest": 0.5}, "outcome": {"sd": 1.0}}
UNEQUAL_CELLS = {
    "factors": (ARM, Factor("mode", levels=("easy", "hard")), Factor("part", levels=(1, 2, 3, 4))),
    "constraints": (Constraint("few", expression="part == 1 or arm == 'plain' or mode == 'easy'"),),
    "claim": {"kind": "moderation", "moderators": ("mode",)},
}
UNEQUAL_GROUPS = {
    "factors": (ARM, Factor("part", levels=(1, 2, 3, 4, 5))),
    "constraints": (Constraint("few", expression="part == 1 or arm == 'plain'"),),
}
NESTED_CELLS = {
    "factors": (
        ARM,
        Factor("mode", levels=("easy", "hard")),
        Factor("problem_id", levels=tuple(f"p{number:02}" for number in range(78))),
    ),
    "constraints": (
        Constraint(
            "own",
            expression=(
                "(arm == 'plain' and mode == 'easy') == (problem_id < 'p24') and "
                "(arm == 'plain' and mode == 'hard') == ('p24' <= problem_id < 'p48') and "
                "(arm == 'fancy' and mode == 'hard') == (problem_id >= 'p72')"
            ),
        ),
    ),
    "claim": {"kind": "moderation", "moderators": ("mode",)},
    "problem_ids": (),
}
"""Cells of 24, 24, 24 and 6 runs by plan: each cell has its own problems."""
NESTED_GROUPS = {
    "factors": (
        ARM,
        Factor("problem_id", levels=tuple(f"p{number:02}" for number in range(36))),
    ),
    "constraints": (Constraint("own", expression="(arm == 'plain') == (problem_id < 'p30')"),),
    "problem_ids": (),
}
"""Groups of 30 and 6 runs by plan: each group has its own problems."""
SAMPLED = {
    "factors": (Factor("arm", levels=(0.0, 1.0), dtype="float"),),
    "design_spec": DesignSpec(kind=DesignKind.LATIN_HYPERCUBE, n_samples=30),
}
SUBJECTS = {
    "factors": (Factor("arm", levels=("a", "b", "c", "d")),),
    "design_spec": DesignSpec(kind=DesignKind.REPEATED_MEASURES),
}


def make_scenarios() -> list[Scenario]:
    """Return the situations that need no ledger and no clock."""
    varying = draw_clustered(slope_sd=0.5)
    varies = "effect varies between problems (sd 0.5), 8 problems"
    worst = "the worst third of one arm lost as"
    losses = {"failed": make_failed, "without a value": make_valueless, "broken": make_broken}
    equivalent = {"claim": {"direction": "equivalent", "minimum_effect_of_interest": 0.5}}
    return [
        *(
            Scenario(
                f"varying_{test or 'default'}_{replicates}",
                f"{varies} × {replicates}, {test or 'default test'}",
                simulate(
                    make_study(*([test] if test else []), problems=8, replicates=replicates),
                    varying,
                ),
                0.6,
            )
            for test in ("", "paired_t", "mixed_effects")
            for replicates in (10, 40)
        ),
        *(
            Scenario(
                f"deterministic_{problems}",
                f"deterministic agent, {problems} problems × 10 identical replicates",
                simulate(make_study(problems=problems), draw_deterministic),
                1.5,
            )
            for problems in (5, 12)
        ),
        Scenario(
            "binary_clustered",
            "yes/no outcome clustered by problem, 8 × 40",
            simulate(
                make_study(problems=8, replicates=40, outcome={"expected_type": "bool"}),
                draw_binary,
                truth=lambda effect: 0.0 if effect == 0 else float("nan"),
            ),
            1.5,
        ),
        Scenario(
            "moderation_unequal",
            "moderation, cells of 24, 24, 24, 6, the small one with sd × 4",
            simulate(make_study(replicates=6, **UNEQUAL_CELLS), draw_cells),
            4.0,
        ),
        Scenario(
            "anova_unequal",
            "`anova` of 30 and 6 runs, the small group with sd × 4",
            simulate(make_study("anova", replicates=6, **UNEQUAL_GROUPS), draw_groups),
            4.0,
        ),
        Scenario(
            "moderation_by_plan",
            "the same cells, unequal by plan: each has its own problems",
            simulate(make_study(replicates=1, **NESTED_CELLS), draw_cells),
            6.0,
        ),
        Scenario(
            "anova_by_plan",
            "the same groups, unequal by plan: each has its own problems",
            simulate(make_study("anova", replicates=1, **NESTED_GROUPS), draw_groups),
            6.0,
        ),
        Scenario(
            "slope_growing_variance",
            "slope, variance grows with the factor",
            simulate(make_study(replicates=1, **SAMPLED), draw_slope),
            1.5,
        ),
        Scenario(
            "repeated_measures_nonspherical",
            "repeated-measures ANOVA, non-spherical, 12 subjects",
            simulate(make_study("paired_t", replicates=12, **SUBJECTS), draw_subjects),
            1.0,
        ),
        Scenario(
            "eight_claims",
            "eight claims, default policy: any supported",
            simulate(
                make_study(problems=10, outcomes=EIGHT), draw_clustered(problem_sd=0.0, names=EIGHT)
            ),
            0.5,
        ),
        Scenario(
            "holm_eight_sizes",
            'Holm, 8 outcomes of true size 0.5: any claimed "at least 0.5"',
            simulate(
                make_study(
                    problems=10,
                    outcomes=EIGHT,
                    plan={"multiple_comparison_policy": "holm"},
                    **SIZED,
                ),
                draw_clustered(problem_sd=0.0, names=EIGHT),
                claims_size=True,
            ),
            1.0,
            null=0.5,
        ),
        Scenario(
            "rank_equivalence",
            "equivalence by ranks, lognormal, means differ by the margin",
            simulate(
                make_study("mann_whitney", replicates=100, outcome={"sd": 2.16}, **equivalent),
                draw_lognormal,
            ),
            0.0,
            null=0.5,
        ),
        *(
            Scenario(
                f"few_{problems}",
                f"effect varies between problems (sd 0.5), {problems} problems × 10",
                simulate(make_study(problems=problems), varying),
                1.0,
            )
            for problems in (3, 4, 20)
        ),
        *(
            Scenario(
                f"skewed_effects_{problems}",
                f"a few problems gain much and most lose a little, {problems} problems × 3",
                simulate(make_study(problems=problems, replicates=3), draw_skewed_effects),
                2.0,
            )
            for problems in (12, 30)
        ),
        Scenario(
            "half_deterministic",
            "a deterministic arm against a random one, 10 problems × 10",
            simulate(make_study(problems=10), draw_half_deterministic),
            1.0,
        ),
        Scenario(
            "counts",
            "counts, most of them 0, 12 problems × 10",
            simulate(
                make_study(problems=12),
                draw_counts,
                truth=lambda effect: 0.0 if effect == 0 else float("nan"),
            ),
            2.0,
        ),
        Scenario(
            "rare_yes",
            "yes/no outcome of 2 % clustered by problem, 20 × 40",
            simulate(
                make_study(problems=20, replicates=40, outcome={"expected_type": "bool"}),
                draw_rare,
            ),
            0.05,
            cost=3,
        ),
        Scenario(
            "slopes_mixed",
            "slope differs between problems, `mixed_effects`, 8 × 20",
            simulate(
                make_study(
                    "mixed_effects",
                    problems=8,
                    replicates=2,
                    factors=SAMPLED["factors"],
                    design_spec=DesignSpec(kind=DesignKind.LATIN_HYPERCUBE, n_samples=10),
                ),
                draw_slopes,
            ),
            2.0,
        ),
        Scenario(
            "lost_cells",
            "15 % of the cells of problem and arm lost at random, 10 × 3",
            simulate(make_study(problems=10, replicates=3), lose_cells),
            1.0,
        ),
        *(
            Scenario(
                f"lost_{name.replace(' ', '_')}",
                f"{worst} {name}",
                simulate(make_study(problems=10, replicates=6), lose_worst(make_lost)),
                None,
                is_biased=True,
            )
            for name, make_lost in losses.items()
        ),
    ]
