"""Factorials: every combination once, ties and `when` applied, ids that survive new levels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fairtrial.core import StudyError
from fairtrial.study import (
    Block,
    Condition,
    Constraint,
    DesignSpec,
    Factor,
    Level,
    RunBudget,
    RunSpec,
    SeedPolicy,
    Study,
    build_design,
    execution_order,
    materialize_conditions,
    plan_runs,
)
from fairtrial.study.design import design_table
from fairtrial.study.design.factorial import combinations, count_combinations

PLENTY = 10**6
sizes = st.lists(st.integers(1, 4), max_size=4)


def make_study(*factors: Factor, **fields: Any) -> Study:
    return Study(study_id="f", title="f", factors=factors, **fields)


def numbered(name: str, size: int, **fields: Any) -> Factor:
    return Factor(name=name, levels=tuple(range(size)), **fields)


def factors_of(counts: list[int]) -> tuple[Factor, ...]:
    return tuple(numbered(f"f{index}", size) for index, size in enumerate(counts))


def blocks_of(counts: list[int]) -> tuple[Block, ...]:
    return tuple(
        Block(name=f"b{index}", levels=tuple(range(size))) for index, size in enumerate(counts)
    )


def rows(*factors: Factor) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in combinations(factors)]


# --- every combination


@given(sizes, st.lists(st.integers(1, 3), max_size=2))
def test_the_conditions_are_the_product_of_factors_and_blocks(
    factor_sizes: list[int], block_sizes: list[int]
) -> None:
    study = make_study(*factors_of(factor_sizes), blocks=blocks_of(block_sizes))
    conditions = build_design(study)
    # The last factor changes fastest but for the blocks, which change within it.
    assert [
        (*c.factor_assignments.values(), *c.block_assignments.values()) for c in conditions
    ] == list(itertools.product(*map(range, factor_sizes), *map(range, block_sizes)))
    assert design_table(study).size == len(conditions) == math.prod(factor_sizes + block_sizes)
    assert len({c.condition_id for c in conditions}) == len(conditions)


def test_a_factor_without_levels_holds_its_default() -> None:
    assert rows(numbered("a", 2), Factor(name="b", default="x")) == [(0, "x"), (1, "x")]


@pytest.mark.parametrize("kind", ["full_factorial", "constrained_factorial", "full"])
def test_the_names_of_the_factorial_mean_the_same(kind: str) -> None:
    study = make_study(*factors_of([2, 3]))
    named = replace(study, design_spec=DesignSpec(kind=kind))
    assert build_design(named) == build_design(study)


def test_randomize_shuffles_by_the_seed_and_keeps_every_id() -> None:
    study = make_study(*factors_of([4, 4]))
    shuffled = build_design(replace(study, design_spec=DesignSpec(randomize=True)))
    plain = build_design(study)
    assert shuffled != plain
    assert sorted(shuffled, key=plain.index) == plain


def test_counterbalance_brings_neighbors_apart() -> None:
    study = make_study(numbered("a", 5), design_spec=DesignSpec(counterbalance=True))
    assert [c.factor_assignments["a"] for c in build_design(study)] == [0, 2, 4, 3, 1]


# --- ties and conditions


def test_tied_factors_move_in_step() -> None:
    factors = (
        Factor(name="model", levels=("small", "large")),
        numbered("depth", 2),
        Factor(name="tokens", levels=(100, 200), tied_to="model"),
    )
    assert rows(*factors) == [
        ("small", 0, 100),
        ("small", 1, 100),
        ("large", 0, 200),
        ("large", 1, 200),
    ]


def test_a_factor_exists_only_where_its_condition_holds() -> None:
    factors = (
        Factor(name="search", levels=("greedy", "beam")),
        Factor(name="width", levels=(2, 4), when="search == 'beam'"),
    )
    assert rows(*factors) == [("greedy", None), ("beam", 2), ("beam", 4)]
    with_default = (factors[0], replace(factors[1], default=1))
    assert rows(*with_default)[0] == ("greedy", 1)


def test_a_level_exists_only_where_its_condition_holds() -> None:
    levels = (Level(name="low", value=1), Level(name="high", value=9, when="model == 'large'"))
    factors = (
        Factor(name="model", levels=("small", "large")),
        Factor(name="effort", levels=levels),
    )
    assert rows(*factors) == [("small", 1), ("large", 1), ("large", 9)]


def test_conditions_nest() -> None:
    factors = (
        numbered("a", 2),
        numbered("b", 2, when="a == 1"),
        numbered("c", 2, when="b == 1"),
    )
    assert rows(*factors) == [(0, None, None), (1, 0, None), (1, 1, 0), (1, 1, 1)]


def test_a_tie_follows_a_factor_out_of_existence() -> None:
    factors = (
        numbered("a", 2),
        Factor(name="b", levels=(10, 20), when="a == 1", default=0),
        Factor(name="name of b", levels=("ten", "twenty"), tied_to="b", default="none"),
    )
    assert rows(*factors) == [(0, 0, "none"), (1, 10, "ten"), (1, 20, "twenty")]


def test_a_tie_follows_the_level_number_where_levels_are_conditional() -> None:
    levels = (Level(name="x", value="x", when="a == 1"), Level(name="y", value="y"))
    factors = (
        numbered("a", 2),
        Factor(name="b", levels=levels),
        Factor(name="t", levels=("for x", "for y"), tied_to="b"),
    )
    assert rows(*factors) == [(0, "y", "for y"), (1, "x", "for x"), (1, "y", "for y")]


def test_a_factor_left_without_levels_leaves_no_combination() -> None:
    levels = (Level(name="x", value="x", when="a == 1"),)
    assert rows(numbered("a", 2), Factor(name="b", levels=levels)) == [(1, "x")]


@st.composite
def conditional_factors(draw: st.DrawFn) -> list[Factor]:
    factors: list[Factor] = []
    for index in range(draw(st.integers(1, 5))):
        size = draw(st.integers(1, 3))
        earlier = [factor for factor in factors if factor.tied_to is None]
        when = None
        tied_to = None
        level_when = None
        if earlier:
            other = draw(st.sampled_from(earlier))
            condition = f"{other.name} == {draw(st.integers(0, 2))}"
            form = draw(st.sampled_from(["free", "when", "level", "tied", "tied when"]))
            when = condition if "when" in form else None
            level_when = condition if form == "level" else None
            if "tied" in form:
                tied_to, size = other.name, len(other.levels)
        levels = [
            Level(name=str(value), value=value, when=level_when if value else None)
            for value in range(size)
        ]
        factors.append(
            Factor(name=f"f{index}", levels=tuple(levels), when=when, tied_to=tied_to, default=-1)
        )
    return factors


def by_definition(factors: list[Factor]) -> list[dict[str, Any]]:
    """The combinations, found by trying all values for all factors."""

    def holds(text: str | None, row: dict[str, Any]) -> bool:
        if text is None:
            return True
        name, _, value = text.partition(" == ")
        return bool(row[name] == int(value))

    def fits(factor: Factor, row: dict[str, Any]) -> bool:
        value = row[factor.name]
        if not holds(factor.when, row):
            return bool(value == -1)
        if factor.tied_to is not None:
            return bool(value == row[factor.tied_to])
        return any(level.value == value and holds(level.when, row) for level in factor.levels)

    names = [factor.name for factor in factors]
    tried = [[*range(len(factor.levels)), -1] for factor in factors]
    products = (dict(zip(names, row, strict=True)) for row in itertools.product(*tried))
    return [row for row in products if all(fits(factor, row) for factor in factors)]


@given(conditional_factors())
def test_conditional_combinations_are_those_that_fit_the_definition(factors: list[Factor]) -> None:
    made = list(combinations(factors))
    assert made == by_definition(factors)
    assert count_combinations(factors, PLENTY) == len(made)


@given(sizes)
def test_the_count_is_the_number_of_combinations(counts: list[int]) -> None:
    factors = factors_of(counts)
    assert count_combinations(factors, PLENTY) == len(list(combinations(factors)))


# --- too many


def test_a_billion_conditions_are_refused_with_their_number() -> None:
    factors = tuple(numbered(f"f{index}", 1000) for index in range(3))
    with pytest.raises(StudyError, match=r"1,000,000,000 conditions.*max_conditions \(100,000\)"):
        build_design(make_study(*factors))


def test_a_billion_blocks_are_refused_with_their_number() -> None:
    study = make_study(numbered("a", 1), blocks=blocks_of([1000, 1000, 1000]))
    with pytest.raises(StudyError, match="1,000,000,000 conditions"):
        build_design(study)


def test_conditional_factors_are_counted_without_making_them() -> None:
    factors = (numbered("a", 2), *(numbered(f"f{i}", 1000, when="a == 1") for i in range(3)))
    study = make_study(*factors, blocks=blocks_of([2]))
    with pytest.raises(StudyError, match=r"has 2,000,000,002 conditions, more than"):
        build_design(study)
    tied = Factor("t", levels=(Level("x", "x"), Level("y", "y")), tied_to="f0")
    with pytest.raises(StudyError, match=r"has 1,073,741,824 conditions, more than"):
        build_design(make_study(*(numbered(f"f{i}", 2) for i in range(30)), tied))


def test_what_depends_on_very_many_factors_is_counted_no_further_than_the_limit() -> None:
    factors = [numbered(f"f{i}", 2) for i in range(30)]
    every = " and ".join(f"f{i} == 1" for i in range(30))
    spec = DesignSpec(max_conditions=5_000)
    with pytest.raises(StudyError, match=r"at least 5,001 conditions, more than"):
        build_design(make_study(*factors, numbered("z", 2, when=every), design_spec=spec))


@pytest.mark.parametrize("kind", ["full_factorial", "randomized_block", "repeated_measures"])
def test_a_billion_ways_that_lead_nowhere_are_not_walked(kind: str) -> None:
    factors = [numbered(f"f{i}", 2) for i in range(30)]
    never = Factor("z", levels=(Level("p", 1, when="f0 == 5"),))
    assert build_design(make_study(*factors, never, design_spec=DesignSpec(kind=kind))) == []


def test_the_limit_can_be_raised() -> None:
    study = make_study(*factors_of([2, 2]), design_spec=DesignSpec(max_conditions=3))
    with pytest.raises(StudyError, match="4 conditions"):
        build_design(study)
    raised = replace(study, design_spec=DesignSpec(max_conditions=4))
    assert len(build_design(raised)) == 4


# --- augmenting


def plan(study: Study) -> tuple[list[Condition], list[RunSpec]]:
    conditions = build_design(study)
    return conditions, list(plan_runs(study, conditions))


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    days=st.integers(1, 2),
    replicates=st.integers(1, 3),
    data=st.data(),
)
def test_new_levels_and_replicates_keep_every_id_and_seed(
    counts: list[int], days: int, replicates: int, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(["full_factorial", "randomized_block", "repeated_measures"]))
    spec = DesignSpec(kind=kind, randomize=data.draw(st.booleans()))
    more = [size + data.draw(st.integers(0, 2)) for size in counts]
    study = make_study(
        *factors_of(counts),
        blocks=blocks_of([days]),
        design_spec=spec,
        run_budget=RunBudget(replicates=replicates),
    )
    larger = replace(
        study,
        factors=factors_of(more),
        blocks=blocks_of([days + data.draw(st.integers(0, 1))]),
        run_budget=RunBudget(replicates=replicates + data.draw(st.integers(0, 2))),
        design_spec=replace(spec, replicates=data.draw(st.integers(1, 2))),
    )
    conditions, runs = plan(study)
    more_conditions, more_runs = plan(larger)
    later_conditions = {c.condition_id: c for c in more_conditions}
    later_runs = {run.run_id: run for run in more_runs}
    for condition in conditions:
        later = later_conditions[condition.condition_id]
        assert later.factor_assignments == condition.factor_assignments
        assert later.block_assignments == condition.block_assignments
    for run in runs:
        assert later_runs[run.run_id] == run


def test_replicates_of_the_design_multiply_those_of_the_budget() -> None:
    study = make_study(
        numbered("a", 2),
        design_spec=DesignSpec(replicates=3),
        run_budget=RunBudget(replicates=2),
    )
    conditions, runs = plan(study)
    assert len(conditions) == 2
    assert [run.replicate for run in runs] == [1, 2, 3, 4, 5, 6] * 2


# --- constraints


def ruled(expression: str, severity: str = "error") -> Study:
    rule = Constraint(
        constraint_id="rule", description="of thumb", expression=expression, severity=severity
    )
    return make_study(numbered("a", 2), numbered("b", 2), constraints=(rule,))


def test_inadmissible_conditions_are_kept_with_messages_and_never_planned() -> None:
    study = ruled("a + b < 2")
    conditions, runs = plan(study)
    assert [c.admissible for c in conditions] == [True, True, True, False]
    assert [c.constraint_messages for c in conditions] == [(), (), (), ("rule: of thumb",)]
    assert [run.condition_id for run in runs] == [c.condition_id for c in conditions[:3]]
    assert sorted(execution_order(study, conditions)) == [0, 1, 2]


def test_a_warning_says_so_and_the_condition_runs() -> None:
    conditions, runs = plan(ruled("a + b < 2", "warning"))
    assert conditions[3].admissible
    assert conditions[3].constraint_messages == ("rule: of thumb",)
    assert len(runs) == 4


def test_a_constraint_that_never_holds_leaves_nothing_to_run() -> None:
    conditions, runs = plan(ruled("a > 5"))
    assert len(conditions) == 4
    assert not any(c.admissible for c in conditions)
    assert runs == []


def test_ids_do_not_depend_on_constraints() -> None:
    free = make_study(numbered("a", 2), numbered("b", 2))
    assert [c.condition_id for c in build_design(ruled("a > 5"))] == [
        c.condition_id for c in build_design(free)
    ]


# --- without a study


def test_conditions_can_be_made_without_a_study() -> None:
    factors = (numbered("x", 3), numbered("y", 2))
    blocks = (Block("site", ("n", "s")),)
    rules = (Constraint("c", "not both", expression="x + y < 3"),)
    study = make_study(*factors, blocks=blocks, constraints=rules)
    made = materialize_conditions(factors, blocks, rules)
    assert made == build_design(study) == materialize_conditions(study)
    assert [c.admissible for c in made].count(False) == 2
    assert [c.block_assignments for c in materialize_conditions(factors)] == [{}] * 6


def test_conditions_without_a_study_are_ordered_by_the_seed_that_is_given() -> None:
    factors = (numbered("x", 9),)
    by_default = materialize_conditions(factors, randomize=True)
    assert by_default == materialize_conditions(factors, seed=0, randomize=True)
    by_seed = materialize_conditions(factors, seed=5, randomize=True)
    assert by_seed != by_default
    study = make_study(
        *factors, design_spec=DesignSpec(randomize=True), seed_policy=SeedPolicy(base_seed=5)
    )
    assert by_seed == build_design(study) == materialize_conditions(study, randomize=True)
    spread = [
        c.factor_assignments["x"] for c in materialize_conditions(factors, counterbalance=True)
    ]
    assert spread == [0, 2, 4, 6, 8, 7, 5, 3, 1]


def test_a_thousand_conditional_factors_are_no_more_than_a_long_list():
    first = Factor("f0", levels=(0, 1))
    others = [
        Factor(f"f{index}", levels=(1,), default=0, when="f0 == 1") for index in range(1, 1_000)
    ]
    study = Study("s", "t", factors=(first, *others))
    assert [set(c.factor_assignments.values()) for c in build_design(study)] == [{0}, {1}]


def test_a_condition_that_can_not_be_judged_is_reported_where_it_stands():
    first = Factor("x", levels=(1, 2))
    for second, place in [
        (Factor("y", levels=(1, 2), default=0, when="x"), ("factors", 1, "when")),
        (
            Factor("y", levels=(1, Level("l", 2, when="x < 'a'"))),
            ("factors", 1, "levels", 1, "when"),
        ),
    ]:
        with pytest.raises(StudyError) as caught:
            build_design(make_study(first, second))
        assert [mistake.path for mistake in caught.value.mistakes] == [place]
