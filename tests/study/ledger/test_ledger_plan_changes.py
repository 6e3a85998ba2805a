"""A changed plan: runs in both plans keep their execution index and result."""

import pytest
from hypothesis import given, strategies as st
from ledger_kit import add, begin, make_plan, make_study, write_plan

from fairtrial import Factor, RunBudget, SeedPolicy
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.ledger.plan_changes import map_order, reconcile_order
from fairtrial.study.ledger.reader import REMOVED

plans = st.builds(
    lambda xs, ys, agents, replicates, seed, most: make_plan(
        make_study(
            factors=[Factor("x", levels=sorted(xs)), Factor("y", levels=sorted(ys))],
            agent_specs=agents,
            run_budget=RunBudget(replicates=replicates, max_runs=most, max_runs_policy="balanced"),
            seed_policy=SeedPolicy(base_seed=seed),
        )
    ),
    st.sets(st.integers(0, 3), min_size=1),
    st.sets(st.sampled_from("abc"), min_size=1),
    st.lists(st.sampled_from(["p", "q", "r"]), min_size=1, unique=True),
    st.integers(1, 3),
    st.integers(0, 1),
    st.none() | st.integers(1, 20),
)


def identity(plan, plan_index):
    spec = plan.spec(plan_index)
    return spec.run_id, spec.seed


def identities(plan, order):
    return [None if plan_index == REMOVED else identity(plan, plan_index) for plan_index in order]


@given(plans, plans)
def test_every_run_keeps_its_execution_index_or_is_gone(old, new):
    before = identities(old, old.order())
    carried = map_order(old, old.order(), new)
    after = identities(new, carried)
    still_there = {identity(new, plan_index) for plan_index in range(len(new))}
    for was, now in zip(before, after, strict=False):
        assert now == (was if was in still_there else None)
    # every run of the new plan has one execution index, new ones in the new plan's own order
    assert sorted(plan_index for plan_index in carried if plan_index != REMOVED) == list(
        range(len(new))
    )
    fresh = [plan_index for plan_index in new.order() if identity(new, plan_index) not in before]
    assert list(carried[len(before) :]) == fresh


@given(plans)
def test_a_plan_that_has_not_changed_keeps_its_order(plan):
    assert list(map_order(plan, plan.order(), plan)) == list(plan.order())


@given(plans, plans, plans)
def test_runs_with_results_get_their_execution_indexes_back(first, second, third):
    results = [
        (execution_index, *identity(first, plan_index))
        for execution_index, plan_index in enumerate(first.order())
        if execution_index % 3
    ]
    recorded = {(run_id, seed): execution_index for execution_index, run_id, seed in results}
    order = map_order(first, first.order(), second)
    gone = [row for row in results if order[row[0]] == REMOVED]
    order = map_order(second, order, third, gone)
    assert sorted(plan_index for plan_index in order if plan_index != REMOVED) == list(
        range(len(third))
    )
    for execution_index, plan_index in enumerate(order):
        if plan_index != REMOVED and identity(third, plan_index) in recorded:
            assert execution_index == recorded[identity(third, plan_index)]


GROWTHS = {
    "replicates": ({"replicates": 2}, {"replicates": 5}),
    "levels": ({"levels": 2}, {"levels": 4}),
    "agents": ({"agent_specs": ["a"]}, {"agent_specs": ["b", "a"]}),
    "another factor's order": (
        {"factors": [Factor("x", levels=[1, 2]), Factor("y", levels=[3, 4])]},
        {"factors": [Factor("y", levels=[4, 3]), Factor("x", levels=[2, 1])]},
    ),
}


@pytest.mark.parametrize(("before", "after"), GROWTHS.values(), ids=GROWTHS)
def test_a_plan_that_grows_keeps_all_execution_indexes(before, after):
    old, new = make_plan(**before), make_plan(**after)
    carried = map_order(old, old.order(), new)
    assert identities(new, carried)[: len(old)] == identities(old, old.order())
    assert len(carried) == len(new)


def test_another_seed_makes_other_runs_of_the_same_ids():  # a known trap
    old = make_plan()
    new = make_plan(seed_policy=SeedPolicy(base_seed=1))
    assert [spec.run_id for spec in old.specs()] == [spec.run_id for spec in new.specs()]
    carried = map_order(old, old.order(), new)
    assert list(carried) == [REMOVED] * len(old) + list(new.order())


def test_a_level_that_leaves_and_comes_back_has_its_results_again(tmp_path):
    whole, part = make_plan(levels=3), make_plan(levels=2)
    ledger, plan, order = begin(tmp_path, whole)
    for execution_index in range(4):  # not all of them
        add(ledger, plan, order, execution_index)
    ledger.commit()
    done = {plan.spec(order[execution_index]).run_id for execution_index in range(4)}

    def change(new):
        write_plan(ledger, new, reconcile_order(LedgerReader(ledger.connection, ledger.path), new))
        reader = LedgerReader(ledger.connection, ledger.path)
        return reader, {result.run_id for result in reader.results()}

    reader, kept = change(part)
    assert kept == done & {spec.run_id for spec in part.specs()}
    assert reader.left_out == len(done) - len(kept) > 0
    assert reader.summary().counts == {"success": len(kept)}
    reader, kept = change(whole)
    assert kept == done
    assert reader.left_out == 0
    assert len(reader.order) >= len(whole)
    ledger.close()


def test_a_run_with_a_new_execution_index_is_not_in_the_plan_twice():
    plan = make_plan(levels=1, replicates=1)
    run_id, seed = identity(plan, 0)
    carried = map_order(plan, [REMOVED, 0, REMOVED], plan, [(0, run_id, seed), (2, run_id, seed)])
    assert list(carried) == [REMOVED, 0, REMOVED]
    assert list(map_order(plan, [REMOVED, 0], make_plan(levels=1, replicates=2))) == [REMOVED, 0, 1]


def test_an_empty_plan_leaves_every_run_behind():
    old = make_plan()
    nothing = type(old)(old.study, [])
    assert list(map_order(old, old.order(), nothing)) == [REMOVED] * len(old)
    assert list(map_order(nothing, [], old)) == list(old.order())
