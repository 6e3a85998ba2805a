"""Randomized blocks, and repeated measures in sequences balanced for carry-over."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
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
    RunBudget,
    SeedPolicy,
    Study,
    build_design,
    execution_order,
    plan_runs,
)
from fairtrial.study.design import design_table
from fairtrial.study.design.blocks import WilliamsDesign


def make_study(kind: str, treatments: int, blocks: Sequence[Block] = (), **fields: Any) -> Study:
    spec = fields.pop("design_spec", DesignSpec(kind=kind))
    return Study(
        study_id="blocks",
        title="blocks",
        factors=(Factor(name="t", levels=tuple(range(treatments))),),
        blocks=tuple(blocks),
        design_spec=spec,
        **fields,
    )


def subjects(count: int) -> Block:
    return Block(name="subject", levels=tuple(f"s{number}" for number in range(count)))


def in_blocks(conditions: Sequence[Condition]) -> list[list[Any]]:
    """The treatments of each block, in order; fails if a block is left and come back to."""
    result: dict[str, list[Any]] = {}
    last = ""
    for condition in conditions:
        block = repr(condition.block_assignments)
        assert block == last or block not in result
        result.setdefault(block, []).append(condition.factor_assignments["t"])
        last = block
    return list(result.values())


def executed(study: Study, conditions: Sequence[Condition]) -> list[tuple[Condition, Any]]:
    """The runs in the order in which they are executed, each with its condition."""
    specs = list(plan_runs(study, conditions))
    by_id = {condition.condition_id: condition for condition in conditions}
    return [
        (by_id[specs[place].condition_id], specs[place])
        for place in execution_order(study, conditions)
    ]


# --- randomized blocks


def test_every_block_holds_all_treatments_in_an_order_of_its_own() -> None:
    block = Block(name="day", levels=(1, 2, 3, 4))
    orders = in_blocks(build_design(make_study("randomized_block", 8, [block])))
    assert [sorted(order) for order in orders] == [list(range(8))] * 4
    assert len({tuple(order) for order in orders}) == 4
    assert list(range(8)) not in orders


def test_orders_within_blocks_are_uniform() -> None:
    blocks = [Block(name="day", levels=tuple(range(1200)))]
    orders = in_blocks(build_design(make_study("randomized_block", 3, blocks)))
    counts = Counter(map(tuple, orders))
    assert len(counts) == 6
    # 200 are expected of each; 5 standard deviations of a binomial are 65.
    assert all(135 < count < 265 for count in counts.values())


def test_the_seed_decides_the_orders() -> None:
    block = Block(name="day", levels=(1, 2))
    study = make_study("randomized_block", 7, [block])
    other = replace(study, seed_policy=SeedPolicy(base_seed=1))
    assert build_design(study) == build_design(study)
    assert in_blocks(build_design(study)) != in_blocks(build_design(other))


def test_randomized_block_has_the_ids_of_the_full_factorial() -> None:
    blocks = [Block(name="day", levels=(1, 2)), Block(name="site", levels=("n", "s"))]
    study = make_study("randomized_block", 5, blocks)
    factorial = replace(study, design_spec=DesignSpec(kind="full_factorial"))
    ids = [condition.condition_id for condition in build_design(study)]
    assert ids != [condition.condition_id for condition in build_design(factorial)]
    assert sorted(ids) == sorted(condition.condition_id for condition in build_design(factorial))


@pytest.mark.parametrize("kind", ["randomized_block", "repeated_measures"])
def test_randomize_and_counterbalance_leave_the_order_alone(kind: str) -> None:
    blocks = [subjects(4)]
    plain = make_study(kind, 6, blocks)
    spec = DesignSpec(kind=kind, randomize=True, counterbalance=True)
    assert build_design(replace(plain, design_spec=spec)) == build_design(plain)


def test_without_blocks_there_is_one_block() -> None:
    conditions = build_design(make_study("randomized_block", 9))
    assert [c.metadata["order_in_block"] for c in conditions] == list(range(9))
    assert {c.metadata["design_kind"] for c in conditions} == {"randomized_block"}
    assert [c.factor_assignments["t"] for c in conditions] != list(range(9))


def test_a_block_that_is_added_leaves_the_earlier_ones_unchanged() -> None:
    few = make_study("randomized_block", 6, [Block(name="day", levels=(1, 2))])
    more = make_study("randomized_block", 6, [Block(name="day", levels=(1, 2, 3))])
    assert build_design(more)[:12] == build_design(few)


def test_excluded_treatments_stay_in_every_block() -> None:
    rule = Constraint(constraint_id="odd", expression="t % 2 == 1 or day == 1")
    block = Block(name="day", levels=(1, 2))
    conditions = build_design(make_study("randomized_block", 4, [block], constraints=(rule,)))
    assert Counter(c.admissible for c in conditions) == {True: 6, False: 2}


@pytest.mark.parametrize("kind", ["randomized_block", "repeated_measures"])
def test_a_billion_conditions_are_refused_by_their_number(kind: str) -> None:
    blocks = [Block(name=f"b{number}", levels=tuple(range(100))) for number in range(3)]
    with pytest.raises(StudyError, match="1,000,000,000 conditions"):
        build_design(make_study(kind, 1000, blocks))


# --- Williams squares


@given(st.integers(2, 31))
def test_a_square_is_balanced_in_place_and_in_carry_over(size: int) -> None:
    # The property that the published construction is used for.
    square = WilliamsDesign(size)
    places: Counter[tuple[int, int]] = Counter()
    followed: Counter[tuple[int, int]] = Counter()
    for number in range(square.count):
        order = sorted(range(size), key=lambda t: square.find_position(t, number))
        assert [square.find_position(t, number) for t in order] == list(range(size))
        places.update(zip(range(size), order, strict=True))
        followed.update(itertools.pairwise(order))
    times = square.count // size
    assert square.count == (size if size % 2 == 0 else 2 * size)
    assert set(places.values()) == {times}
    assert len(places) == size * size
    assert set(followed.values()) == {times}
    assert len(followed) == size * (size - 1)


def test_a_single_treatment_needs_a_single_sequence() -> None:
    assert WilliamsDesign(1).count == 1
    assert WilliamsDesign(1).find_position(0, 0) == 0


# --- repeated measures


def carry_over(sequences: Sequence[Sequence[int]]) -> Counter[tuple[int, int]]:
    return Counter(pair for order in sequences for pair in itertools.pairwise(order))


@pytest.mark.parametrize(("treatments", "count"), [(2, 2), (4, 4), (6, 12), (3, 6), (5, 10)])
def test_subjects_of_the_block_named_so_are_balanced(treatments: int, count: int) -> None:
    study = make_study("repeated_measures", treatments, [subjects(count)])
    orders = in_blocks(build_design(study))
    assert len(orders) == count
    pairs = carry_over(orders)
    assert len(pairs) == treatments * (treatments - 1)
    assert len(set(pairs.values())) == 1
    facts = design_table(study).facts
    assert facts["carry_over_balanced"] is True
    assert facts["subjects"] == count
    assert "advice" not in facts


def test_subjects_are_dealt_sequences_anew_under_each_other_block() -> None:
    blocks = [Block(name="session", levels=("am", "pm")), subjects(4)]
    orders = in_blocks(build_design(make_study("repeated_measures", 4, blocks)))
    assert orders[:4] == orders[4:]
    assert len({tuple(order) for order in orders}) == 4
    # The same where the subject is not the last of the blocks.
    turned = in_blocks(build_design(make_study("repeated_measures", 4, blocks[::-1])))
    assert turned[::2] == turned[1::2] == orders[:4]


def test_an_incomplete_round_of_subjects_is_reported_with_advice() -> None:
    facts = design_table(make_study("repeated_measures", 4, [subjects(6)])).facts
    assert facts == {
        "sequences": 4,
        "subjects": 6,
        "carry_over_balanced": False,
        "advice": "use a multiple of 4 subjects",
    }
    lone = make_study("repeated_measures", 3, run_budget=RunBudget(replicates=4))
    assert design_table(lone).facts["advice"] == "use a multiple of 6 replicates"


@pytest.mark.parametrize(
    ("days", "replicates", "balanced"),
    [(1, 4, True), (1, 8, True), (1, 6, False), (2, 2, False), (4, 1, True), (4, 3, True)],
)
def test_balance_over_replicates_and_blocks_is_counted_not_guessed(
    days: int, replicates: int, balanced: bool
) -> None:
    blocks = [Block(name="day", levels=tuple(range(days)))]
    study = make_study("repeated_measures", 4, blocks, run_budget=RunBudget(replicates=replicates))
    table = design_table(study)
    sequences = []
    for day in range(days):
        rows = [c for c in build_design(study) if c.block_assignments["day"] == day]
        for replicate in range(replicates):
            places = {
                row.metadata["within_subject_positions"][
                    replicate % len(row.metadata["within_subject_positions"])
                ]: row.factor_assignments["t"]
                for row in rows
            }
            sequences.append([places[place] for place in range(4)])
    pairs = carry_over(sequences)
    assert (len(pairs) == 12 and len(set(pairs.values())) == 1) is balanced
    assert table.facts["carry_over_balanced"] is balanced
    assert table.facts["subjects"] == days * replicates


@given(
    treatments=st.integers(1, 6),
    count=st.integers(0, 5),
    days=st.integers(1, 3),
    replicates=st.integers(1, 7),
    agents=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_every_subject_is_run_in_one_go_and_in_its_sequence(
    treatments: int, count: int, days: int, replicates: int, agents: int, seed: int
) -> None:
    # The design and the execution order together.
    blocks = [Block(name="day", levels=tuple(range(days)))] + ([subjects(count)] if count else [])
    study = make_study(
        "repeated_measures",
        treatments,
        blocks,
        run_budget=RunBudget(replicates=replicates),
        agent_specs=tuple(f"a{number}" for number in range(agents)),
        seed_policy=SeedPolicy(base_seed=seed),
        constraints=(Constraint(constraint_id="c", expression="t != 1 or day > 0"),),
    )
    conditions = build_design(study)
    runs = executed(study, conditions)
    assert len({spec.run_id for _, spec in runs}) == len(runs)
    sessions: dict[Any, list[int]] = defaultdict(list)
    last: Any = None
    for condition, spec in runs:
        block = condition.block_assignments
        session = (block["day"], block.get("subject"), spec.replicate, spec.agent_spec_ref)
        assert session == last or session not in sessions
        last = session
        sessions[session].append(condition.factor_assignments["t"])
    in_turn = [session[0] for session in sessions]
    assert in_turn == sorted(in_turn)  # one day is finished before the next
    for (day, subject, replicate, _), order in sessions.items():
        met = [t for t in range(treatments) if t != 1 or day > 0]
        # Day 0 has a treatment less, so the days after it count from 0 among themselves.
        first = day if treatments < 2 else max(day - 1, 0)
        number = int(subject[1:]) if subject else first + replicate - 1
        square = WilliamsDesign(len(met))
        assert order == sorted(
            met, key=lambda t: square.find_position(met.index(t), number % square.count)
        )


def test_replicates_that_are_added_change_no_earlier_sequence() -> None:
    few = make_study("repeated_measures", 5, run_budget=RunBudget(replicates=3))
    more = make_study("repeated_measures", 5, run_budget=RunBudget(replicates=25))
    for early, late in zip(build_design(few), build_design(more), strict=True):
        assert early.condition_id == late.condition_id
        places = late.metadata["within_subject_positions"]
        assert places[:3] == early.metadata["within_subject_positions"]
        assert len(places) == 10


def test_conditions_stand_in_the_first_subjects_order() -> None:
    conditions = build_design(make_study("repeated_measures", 5))
    assert [c.metadata["within_subject_order"] for c in conditions] == [0, 1, 2, 3, 4]
    assert [c.factor_assignments["t"] for c in conditions] == [0, 1, 4, 2, 3]
    assert {c.metadata["design_kind"] for c in conditions} == {"repeated_measures"}


def test_what_constraints_rule_out_is_in_no_sequence() -> None:
    rule = Constraint(
        constraint_id="child", description="not for s1", expression="t != 2 or subject != 's1'"
    )
    study = make_study("repeated_measures", 4, [subjects(2)], constraints=(rule,))
    conditions = build_design(study)
    first, second = conditions[:4], conditions[4:]
    assert [c.metadata["within_subject_order"] for c in first] == [0, 1, 2, 3]
    assert [c.metadata["within_subject_order"] for c in second] == [0, 1, 2, None]
    assert not second[-1].admissible
    assert second[-1].constraint_messages == ("child: not for s1",)
    assert second[-1].factor_assignments == {"t": 2}
    assert second[-1].metadata["within_subject_positions"] == []


def test_subjects_that_meet_different_treatments_are_balanced_among_their_own() -> None:
    # Even subjects meet 4 treatments (4 sequences), odd ones 3 (6 sequences).
    odd = "[" + ", ".join(f"'s{number}'" for number in range(1, 12, 2)) + "]"
    rule = Constraint(constraint_id="c", expression=f"t != 3 or subject not in {odd}")
    study = make_study("repeated_measures", 4, [subjects(12)], constraints=(rule,))
    orders = defaultdict(list)
    for number, order in enumerate(in_blocks([c for c in build_design(study) if c.admissible])):
        orders[number % 2].append(order)
    assert set(carry_over(orders[1]).values()) == {2}
    facts = design_table(study).facts
    assert facts["sequences"] == 10
    assert facts["carry_over_balanced"] is False  # six subjects for four sequences
    assert facts["advice"] == (
        "use a multiple of 12 subjects for each set of admissible treatments"
    )


def test_a_study_that_rules_everything_out_has_no_sequences() -> None:
    rule = Constraint(constraint_id="never", expression="t < 0")
    study = make_study("repeated_measures", 3, [subjects(2)], constraints=(rule,))
    conditions = build_design(study)
    assert not any(c.admissible for c in conditions)
    assert design_table(study).facts["sequences"] == 0
    assert list(execution_order(study, conditions)) == []


def test_many_treatments_cost_no_square() -> None:
    study = make_study("repeated_measures", 3_000)
    table = design_table(study)
    assert table.facts["sequences"] == 3_000
    assert table.size == 3_000
    rows = list(table.rows)
    assert [row.metadata["within_subject_positions"] for row in rows[:3]] == [[0], [1], [2]]


def test_the_designs_are_functions_of_the_study_alone() -> None:
    # Whatever else draws random numbers.
    study = make_study("randomized_block", 6, [Block(name="day", levels=(1, 2))])
    random.seed(1)
    first = build_design(study)
    random.seed(2)
    assert build_design(study) == first


def test_options_are_refused() -> None:
    spec = DesignSpec(kind="repeated_measures", options={"squares": 2})
    with pytest.raises(StudyError, match=r"design_spec.options.squares: unknown key"):
        build_design(make_study("repeated_measures", 3, design_spec=spec))
