"""Studies with simulated results, for tests of the report."""

import random

from fairtrial.study import (
    AnalysisPlan,
    Factor,
    Hypothesis,
    OutcomeSpec,
    RunBudget,
    RunResult,
    RunStatus,
    Study,
    build_design,
    plan_runs,
)
from fairtrial.study.executors import FailureKind

ONE_PROBLEM = {"problem_ids": ("p1",), "run_budget": RunBudget(replicates=20)}
"""Parts of a study whose tests have runs as units."""


def make_study(**parts):
    """Return a study of one factor with two levels, one outcome and one planned hypothesis."""
    fields = {
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
    return Study(**fields)


def make_claim(**parts):
    fields = {
        "hypothesis_id": "h1",
        "label": "Fancy helps",
        "statement": "Fancy runs score higher.",
        "independent_vars": ("arm",),
        "dependent_vars": ("score",),
        **parts,
    }
    return Hypothesis(**fields)


def make_plan(*tests, **parts):
    fields = {"analysis_plan_id": "p", "hypothesis_ids": ("h1",), **parts}
    return AnalysisPlan(tests=tests or ("difference_in_means",), **fields)


def simulate(study, value, *, fails=lambda spec, condition, rng: False, seed=1):
    """Return the conditions and simulated results of a study.

    value: called as `value(spec, condition, rng)`; returns a score or a dict of metrics
    fails: called the same way; returns whether the run fails
    """
    rng = random.Random(seed)
    conditions = build_design(study)
    by_id = {condition.condition_id: condition for condition in conditions}
    results = []
    for spec in plan_runs(study, conditions):
        condition = by_id[spec.condition_id]
        if fails(spec, condition, rng):
            results.append(fail(spec))
            continue
        simulated = value(spec, condition, rng)
        metrics = simulated if isinstance(simulated, dict) else {"score": simulated}
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


def break_run(spec):
    return RunResult(
        run_id=spec.run_id,
        status=RunStatus.BROKEN,
        run_spec=spec,
        failure_kind=FailureKind.BROKEN,
        error_info="no network",
    )


def lose(results, choose, how):
    """Return results in which the chosen runs are lost.

    choose: called with a result; returns whether its run is lost
    how: `failed`, `broken` or `no value`
    """
    make = {"failed": fail, "broken": break_run, "no value": lambda spec: succeed(spec, {})}[how]
    return [make(result.run_spec) if choose(result) else result for result in results]


def level(condition, name="arm"):
    return condition.factor_assignments[name]


def noisy(**effects):
    """Return a function for `simulate`: a noisy score with an effect for each named arm."""
    return lambda spec, condition, rng: effects.get(level(condition), 0.0) + rng.gauss(0, 1)
