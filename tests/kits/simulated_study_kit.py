"""Studies with made-up results, for the tests of the report."""

import random

from fairtrial.study import (
    AnalysisPlan,
    Factor,
    FailureKind,
    Hypothesis,
    OutcomeSpec,
    RunBudget,
    RunResult,
    RunStatus,
    Study,
    build_design,
    plan_runs,
)


def make_study(**parts):
    """A study of one factor with two levels, one outcome and one planned hypothesis."""
    given = {
        "study_id": "s",
        "title": "A study",
        "factors": (Factor("arm", levels=("plain", "fancy")),),
        "outcomes": (OutcomeSpec("score", primary=True),),
        "hypotheses": (make_claim(),),
        "analysis_plans": (make_plan(),),
        "problem_ids": ("p1", "p2", "p3", "p4"),
        "agent_specs": ("a",),
        "run_budget": RunBudget(replicates=5),
        **parts,
    }
    return Study(**given)


def make_claim(**parts):
    given = {
        "hypothesis_id": "h1",
        "label": "Fancy helps",
        "statement": "Fancy runs score higher.",
        "independent_vars": ("arm",),
        "dependent_vars": ("score",),
        **parts,
    }
    return Hypothesis(**given)


def make_plan(*tests, **parts):
    given = {"analysis_plan_id": "p", "hypothesis_ids": ("h1",), **parts}
    return AnalysisPlan(tests=tests or ("difference_in_means",), **given)


def simulate(study, value, *, fails=lambda spec, condition, rng: False, seed=1):
    """The results of a study: `value(spec, condition, rng)` is a score or a mapping of metrics."""
    rng = random.Random(seed)
    conditions = build_design(study)
    by_id = {condition.condition_id: condition for condition in conditions}
    results = []
    for spec in plan_runs(study, conditions):
        condition = by_id[spec.condition_id]
        if fails(spec, condition, rng):
            results.append(fail(spec))
            continue
        found = value(spec, condition, rng)
        metrics = found if isinstance(found, dict) else {"score": found}
        results.append(succeed(spec, metrics))
    return conditions, results


def succeed(spec, metrics, **parts):
    return RunResult(
        run_id=spec.run_id,
        status=RunStatus.SUCCESS,
        metrics=metrics,
        run_spec=spec,
        latency=0.25,
        cost=0.01,
        **parts,
    )


def fail(spec):
    return RunResult(
        run_id=spec.run_id,
        status=RunStatus.FAILED,
        run_spec=spec,
        failure_kind=FailureKind.EXCEPTION,
        error_info="boom",
    )


def level(condition, name="arm"):
    return condition.factor_assignments[name]


def noisy(**effects):
    """A score with noise, and an effect for each level of `arm` that is named."""
    return lambda spec, condition, rng: effects.get(level(condition), 0.0) + rng.gauss(0, 1)
