"""The plan by place, and a plan that is cut evenly (spec 14, 17, trap: max_runs)."""

from collections import Counter, defaultdict

from hypothesis import given, strategies as st

from fairtrial import Constraint, Factor, RunBudget, Study, build_design, plan_runs, validate_study
from fairtrial.study import execution_order
from fairtrial.study.design.run_plan import RunPlan


@st.composite
def studies(draw):
    levels = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    rule = Constraint("c", "not both", expression="f0 != 0 or f0 == 1")
    most = draw(st.none() | st.integers(1, 60))
    return Study(
        "s",
        "s",
        factors=tuple(Factor(f"f{i}", levels=tuple(range(n))) for i, n in enumerate(levels)),
        constraints=(rule,) if draw(st.booleans()) else (),
        agent_specs=tuple(f"a{i}" for i in range(draw(st.integers(0, 3)))),
        problem_ids=tuple(f"p{i}" for i in range(draw(st.integers(0, 2)))),
        run_budget=RunBudget(
            replicates=draw(st.integers(1, 4)), max_runs=most, max_runs_policy="balanced"
        ),
    )


@given(studies())
def test_a_run_by_its_place_is_the_run_of_the_plan(study):
    conditions = build_design(study)
    plan = RunPlan(study, conditions)
    runs = list(plan_runs(study, conditions))
    assert len(plan) == len(runs)
    assert [plan.spec(place) for place in range(len(plan))] == runs
    assert list(plan.specs()) == runs
    assert list(plan.order()) == list(execution_order(study, conditions))
    for place, run in enumerate(runs):
        assert plan.condition_at(place).condition_id == run.condition_id


@given(studies())
def test_a_balanced_max_runs_cuts_evenly_over_conditions(study):
    plan = RunPlan(study, build_design(study))
    kept = [place for place in range(len(plan)) if not plan.is_skipped(place)]
    most = study.run_budget.max_runs
    assert plan.runnable == len(kept) == min(len(plan), len(plan) if most is None else most)
    counts = Counter(plan.spec(place).condition_id for place in kept)
    admissible = [c.condition_id for c in plan.conditions if c.admissible]
    per_condition = [counts.get(name, 0) for name in admissible]
    assert max(per_condition, default=0) - min(per_condition, default=0) <= 1
    places = defaultdict(list)
    for place in range(len(plan)):
        places[plan.spec(place).condition_id].append(place)
    for name in admissible:  # the first replicates are those that stay
        mine = places[name]
        assert [p for p in mine if not plan.is_skipped(p)] == mine[: counts.get(name, 0)]


def test_a_plan_over_max_runs_is_refused_unless_it_is_to_be_cut():
    study = Study("s", "s", factors=(Factor("x", levels=(1, 2, 3)),), run_budget=RunBudget(4))
    over = RunBudget(4, max_runs=5)
    cut = RunBudget(4, max_runs=5, max_runs_policy="balanced")
    (message,) = validate_study(Study("s", "s", factors=study.factors, run_budget=over))
    assert "max_runs allows 5" in message
    assert "balanced" in message
    assert validate_study(Study("s", "s", factors=study.factors, run_budget=cut)) == []
