"""Balance: counts of levels, association of factors, and the effect of constraints."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from fairtrial.study import (
    Block,
    Constraint,
    DesignSpec,
    Factor,
    Study,
    balance_report,
    build_design,
)
from fairtrial.study.design.balance import MAX_PAIRS, design_balance, design_balance_report
from fairtrial.study.report.plan_text import balance_lines


def _rows(**columns):
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _pair(rows):
    (pair,) = design_balance(rows).pairs
    return pair


# One factor


def test_counts_levels_and_their_ratio():
    balance = design_balance(_rows(model=["a", "b", "a", "a"], depth=[1, 1.0, 2, 2]))
    model, depth = balance.factors
    assert model.counts == {"a": 3, "b": 1}
    assert model.max_to_min_ratio == 3.0
    assert depth.counts == {"1": 2, "2": 2}  # 1 and 1.0 are one level
    assert balance.rows == 4


def test_values_that_look_alike_are_not_one_level():
    (factor,) = design_balance([{"x": value} for value in (1, "1", True, None, [1], [1])]).factors
    assert factor.counts == {"1": 1, '"1"': 1, "true": 1, "null": 1, "[1]": 2}


def test_a_missing_cell_is_a_level_of_its_own():
    x, y = design_balance([{"x": 1}, {"x": 2, "y": "b"}]).factors
    assert x.counts == {"1": 1, "2": 1}
    assert y.counts == {"null": 1, "b": 1}


def test_a_scale_has_too_many_values_to_list():
    (factor,) = design_balance([{"x": i / 7} for i in range(50)]).factors
    assert factor.counts == {}
    assert factor.n_levels == 50


def test_short_report_has_two_figures_for_each_factor():
    rows = _rows(a=[1, 1, 2, 3], b=["x", "x", "x", "x"])
    assert design_balance_report(rows) == {
        "a": {"n_levels": 3.0, "max_to_min_ratio": 2.0},
        "b": {"n_levels": 1.0, "max_to_min_ratio": 1.0},
    }
    assert design_balance_report([]) == {}


# Two factors


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_full_factorials_have_no_association(levels, others, repeats):
    product = itertools.product("abcd"[:levels], "wxyz"[:others])
    pair = _pair([{"a": a, "b": b} for a, b in product] * repeats)
    assert pair.equal
    assert pair.association == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["a", "b", "c"], ["x", "y", "z"]),
        ([1, 2, 3], ["x", "y", "x"]),  # the second follows from the first
        ([-1, 0, 1], [1, 0, 1]),  # uncorrelated, and yet decided
        ([-1, 1], [1, -1]),
    ],
)
def test_factors_that_move_together_are_named(first, second):
    balance = design_balance(_rows(a=first * 4, b=second * 4))
    confounded = [(pair.first, pair.second) for pair in balance.pairs if pair.is_confounded]
    assert confounded == [("a", "b")]
    assert not balance.pairs[0].equal


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=4))
def test_association_of_levels_is_cramers_v(cells):
    first, second = zip(*cells, strict=True)
    pair = _pair(_rows(a=first, b=second))
    names = sorted(set(first)), sorted(set(second))
    table = np.array([[cells.count((a, b)) for b in names[1]] for a in names[0]])
    expected = stats.contingency.association(table) if min(table.shape) > 1 else 0.0
    assert pair.measure == "cramers_v"
    assert pair.association == pytest.approx(expected, abs=1e-6)


def test_association_of_numbers_is_their_correlation():
    rng = np.random.default_rng(3)
    x = rng.random(40)
    y = 0.6 * x + rng.random(40)
    pair = _pair(_rows(x=x.tolist(), y=(-y).tolist()))
    assert pair.measure == "correlation"
    assert pair.association == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert pair.equal is None


def test_association_of_a_scale_and_levels_is_the_correlation_ratio():
    x = [float(i) for i in range(12)]
    pair = _pair(_rows(x=x, group=["low"] * 6 + ["high"] * 6))
    between = 12 * (8.5 - 5.5) ** 2
    assert pair.measure == "correlation_ratio"
    assert pair.association == pytest.approx((between / np.var(x) / 12) ** 0.5)


def test_center_points_are_no_association():
    corners = [{"a": a, "b": b} for a in (-1, 1) for b in (-1, 1)]
    pair = _pair(corners * 2 + [{"a": 0.0, "b": 0.0}] * 4)
    assert pair.association == 0
    assert pair.equal is False


def test_few_samples_of_a_range_are_not_confounded():
    """Each value occurs once, so each decides the other: that says nothing about ranges."""
    assert _pair(_rows(x=[0.1, 0.9, 0.5, 0.3], y=[0.6, 0.2, 0.1, 0.9])).association < 0.9


def test_pairs_are_capped_and_said_to_be():
    rows = [{f"f{i}": (i + j) % 2 for i in range(40)} for j in range(4)]
    balance = design_balance(rows)
    assert len(balance.pairs) == MAX_PAIRS
    assert balance.pairs_left_out == 40 * 39 // 2 - MAX_PAIRS


def test_empty_table_has_nothing_to_say():
    assert design_balance([]).to_dict() == {
        "rows": 0,
        "factors": [],
        "pairs": [],
        "pairs_left_out": 0,
    }


# Constraints


def _report(constraints, blocks=()):
    study = Study(
        "s",
        "s",
        factors=(
            Factor("model", levels=("tiny", "big")),
            Factor("depth", levels=(1, 2, 3)),
            Factor("tone", levels=("x", "y")),
        ),
        blocks=blocks,
        constraints=constraints,
    )
    return balance_report(study, build_design(study))


def test_excluded_conditions_say_what_they_unbalance():
    report = _report(
        (
            Constraint("shallow", expression='not (model == "tiny" and depth > 1)'),
            Constraint("polite", expression='tone == "x"', severity="warning"),
        )
    )
    assert report.excluded == 4
    assert report.before.rows == 12
    assert report.after.rows == 8
    assert [str(loss) for loss in report.lost_levels] == [
        "model=tiny keeps 2 of 6 conditions (shallow)",
        "depth=2 keeps 2 of 4 conditions (shallow)",
        "depth=3 keeps 2 of 4 conditions (shallow)",
    ]
    assert [str(loss) for loss in report.lost_cells] == [
        "model=tiny with depth=2 never runs (shallow)",
        "model=tiny with depth=3 never runs (shallow)",
    ]
    before, after = report.before.pairs[0], report.after.pairs[0]
    assert (before.first, before.second) == (after.first, after.second) == ("model", "depth")
    assert before.equal
    assert not after.equal
    assert after.association > before.association == 0


def test_a_level_that_never_runs_is_reported_once():
    report = _report((Constraint("no_big", expression='model != "big"'),))
    assert [str(loss) for loss in report.lost_levels] == ["model=big never runs (no_big)"]
    assert report.lost_cells == ()


def test_blocks_count_as_columns():
    rule = Constraint("rest", expression='not (blocks["day"] == "sun" and model == "big")')
    report = _report((rule,), blocks=(Block("day", ("sat", "sun")),))
    assert [loss.levels for loss in report.lost_cells] == [{"model": "big", "block_day": "sun"}]


def test_without_exclusions_nothing_is_lost():
    report = _report(())
    assert (report.excluded, report.lost_levels, report.lost_cells) == (0, (), ())
    assert all(pair.equal for pair in report.after.pairs)


def test_report_is_plain_data():
    report = _report((Constraint("no_big", expression='model != "big"'),))
    data = report.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["lost_levels"][0]["constraints"] == ["no_big"]


# What the plan says of it


def _study(kind="full", levels=((0, 1), ("x", "y"), (1, 2, 3)), rules=(), **spec):
    return Study(
        "s",
        "s",
        factors=tuple(Factor(f"f{i}", levels=values) for i, values in enumerate(levels)),
        blocks=(Block("day", ("sat", "sun")),) if kind != "latin_square" else (),
        constraints=tuple(Constraint(f"c{i}", expression=rule) for i, rule in enumerate(rules)),
        design_spec=DesignSpec(kind=kind, **spec),
    )


def _is_even(study, conditions):
    """By the definition: all levels of the study, and all pairs of two factors' levels."""
    kept = [
        {**condition.factor_assignments, **condition.block_assignments}
        for condition in conditions
        if condition.admissible
    ]
    levels = {factor.name: factor.iter_values() for factor in study.factors}
    levels |= {block.name: block.levels for block in study.blocks}

    def is_even(*names):
        cells = itertools.product(*(levels[name] for name in names))
        counts = [sum(tuple(row[n] for n in names) == cell for row in kept) for cell in cells]
        return len(set(counts)) == 1 and sum(counts) == len(kept)

    pairs = itertools.combinations(levels, 2)
    return all(map(is_even, levels)) and all(is_even(*pair) for pair in pairs)


TWO = ((0, 1),) * 5
EVEN_OR_NOT = {
    "full": _study(),
    "one level gone": _study(rules=["f2 != 3"]),
    "one block gone": _study(rules=["day != 'sun'"]),
    "one pair gone": _study(rules=["not (f0 == 1 and f2 == 3)"]),
    "many levels": _study(levels=(tuple(range(30)), (0.5, 1.5, 2.5))),
    "many levels, one gone": _study(levels=(tuple(range(30)), (0.5, 1.5, 2.5)), rules=["f0 != 7"]),
    "fraction": _study("frac2", TWO),
    "fraction, one level gone": _study("frac2", TWO, rules=["f0 != 1"]),
    "fraction with center": _study("frac2", TWO, center_points=2),
    "screening": _study("pb", TWO),
    "screening of many": _study("pb", ((0, 1),) * 30),
    "square": _study("latin_square", ((1, 2, 3),) * 3),
    "square, one level gone": _study("latin_square", ((1, 2, 3),) * 3, rules=["f0 != 1"]),
    "samples": _study("lhs", ((0, 1), (0, 1)), n_samples=8),
    "few samples": _study("lhs", ((0, 1),), n_samples=2),
    "one sample": _study("sobol", ((0, 1), (0, 1)), n_samples=1),
    "the ends alone": _study("d_optimal", ((0, 1, 2, 3),), n_samples=6),
    "surface": _study("ccd", ((0, 1), (0, 1))),
}


@pytest.mark.parametrize("study", EVEN_OR_NOT.values(), ids=EVEN_OR_NOT)
def test_only_even_designs_are_called_even(study):
    conditions = build_design(study)
    report = balance_report(study, conditions)
    lines = balance_lines(report)
    is_even = _is_even(study, conditions) and not report.after.pairs_left_out
    assert report.after.is_even == is_even
    assert any("even: every level" in line for line in lines) == is_even
    assert lines
    assert not any(line.rstrip().endswith(":") for line in lines)


def test_a_level_that_nothing_runs_with_is_counted():
    study = EVEN_OR_NOT["one level gone"]
    lines = balance_lines(balance_report(study, build_design(study)))
    assert "balance  f2: 1 in 8 conditions, 2 in 8, 3 in 0" in lines


def test_levels_stand_in_the_order_of_the_study():
    study = _study(rules=["not (f0 == 0 and f2 == 1)"], randomize=True)
    report = balance_report(study, build_design(study))
    assert [list(factor.counts) for factor in report.after.factors[:3]] == [
        ["0", "1"],
        ["x", "y"],
        ["1", "2", "3"],
    ]


def test_tiny_and_huge_numbers_have_associations_too():
    for scale in (1e-200, 1.0, 1e140):
        rows = _rows(x=[scale * i for i in range(12)], y=[i % 5 for i in range(12)])
        assert _pair(rows).association == pytest.approx(
            abs(np.corrcoef(range(12), [i % 5 for i in range(12)])[0, 1])
        )


@pytest.mark.parametrize("huge", [10**400, 1.7e308])
def test_a_number_too_large_to_be_reckoned_with_is_a_level(huge):
    balance = design_balance(_rows(x=[-huge, huge, 1], y=[1, 2, 3]))
    assert balance.factors[0].n_levels == 3
    assert balance.pairs[0].association <= 1
