"""Latin squares: every treatment once in every row and column; messages for misfits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fairtrial.core import StudyError
from fairtrial.study import Block, Constraint, DesignSpec, Factor, Study, build_design
from fairtrial.study.design import design_table
from fairtrial.study.model.identity import fingerprint, hash_condition

NAMES = ("row_factor", "column_factor", "treatment_factor")


def make_study(*factors: Factor, options: dict[str, Any] | None = None, **fields: Any) -> Study:
    return Study(
        study_id="latin",
        title="latin",
        factors=factors,
        design_spec=DesignSpec(kind="latin_square", options=options or {}),
        **fields,
    )


def factor(name: str, size: int, **fields: Any) -> Factor:
    return Factor(name=name, levels=tuple(f"{name}{number}" for number in range(size)), **fields)


def options(row: str, column: str, treatment: str) -> dict[str, str]:
    return dict(zip(NAMES, (row, column, treatment), strict=True))


def messages(study: Study) -> list[str]:
    with pytest.raises(StudyError) as caught:
        build_design(study)
    return [str(mistake) for mistake in caught.value.mistakes]


@given(st.integers(2, 12))
def test_every_treatment_is_once_in_every_row_and_column(size: int) -> None:
    study = make_study(
        factor("t", size), factor("c", size), factor("r", size), options=options("r", "c", "t")
    )
    conditions = build_design(study)
    assert design_table(study).size == len(conditions) == size * size
    for line in ("r", "c"):
        met = {(c.factor_assignments[line], c.factor_assignments["t"]) for c in conditions}
        assert len(met) == size * size


def test_treatment_is_row_plus_column_and_the_cell_is_in_the_id() -> None:
    study = make_study(
        factor("r", 3), factor("c", 3), factor("t", 3), options=options("r", "c", "t")
    )
    conditions = build_design(study)
    assert [c.factor_assignments["t"] for c in conditions] == [
        *("t0", "t1", "t2"),
        *("t1", "t2", "t0"),
        *("t2", "t0", "t1"),
    ]
    cell = {"design_kind": "latin_square", "latin_square_row": 1, "latin_square_col": 2}
    assert conditions[5].condition_id == hash_condition(
        fingerprint({"r": "r1", "c": "c2", "t": "t0"}, {}), cell
    )
    assert cell.items() <= conditions[5].metadata.items()


def test_three_factors_are_taken_in_their_order_and_it_is_reported() -> None:
    study = make_study(factor("a", 4), factor("b", 4), factor("c", 4))
    named = replace(
        study, design_spec=DesignSpec(kind="latin_square", options=options("a", "b", "c"))
    )
    assert build_design(study) == build_design(named)
    assert design_table(study).facts == {
        **options("a", "b", "c"),
        "note": "row, column and treatment are the factors in the order listed",
    }
    assert "note" not in design_table(named).facts


def test_the_square_keeps_its_order() -> None:
    study = make_study(factor("a", 4), factor("b", 4), factor("c", 4))
    spec = DesignSpec(kind="latin_square", randomize=True, counterbalance=True)
    assert build_design(replace(study, design_spec=spec)) == build_design(study)


def test_a_tied_factor_follows_its_leader() -> None:
    study = make_study(
        factor("a", 3), factor("b", 3), factor("c", 3), factor("label", 3, tied_to="c")
    )
    for condition in build_design(study):
        number = condition.factor_assignments["c"][1:]
        assert condition.factor_assignments["label"] == f"label{number}"


def test_cells_that_break_a_constraint_are_kept_and_marked() -> None:
    rule = Constraint(constraint_id="corner", expression="not (a == 'a0' and b == 'b0')")
    study = make_study(factor("a", 3), factor("b", 3), factor("c", 3), constraints=(rule,))
    assert [c.admissible for c in build_design(study)] == [False] + [True] * 8


def test_missing_and_unknown_names_are_reported_at_once() -> None:
    study = make_study(
        factor("operator", 3),
        factor("machine", 3),
        factor("oil", 3),
        options={"row_factor": "operater", "column_factor": "machine"},
        blocks=(Block(name="day", levels=(1, 2)),),
    )
    missing = "is missing: a Latin square needs a row, a column and a treatment factor"
    assert messages(study) == [
        "design_spec.options.row_factor: 'operater' is not a free factor; did you mean 'operator'?",
        f"design_spec.options.treatment_factor: {missing}; known: operator, oil",
        "blocks: a Latin square has no blocks besides its rows and columns; "
        "make the block a factor and name it as row_factor or column_factor",
    ]


def test_factors_that_are_not_used_and_sizes_that_differ_are_reported_at_once() -> None:
    study = make_study(
        factor("a", 3),
        factor("b", 2),
        factor("c", 3),
        factor("spare", 2),
        options=options("a", "b", "c"),
    )
    assert messages(study) == [
        "factors: a Latin square needs as many levels in each of its factors: "
        "'a' has 3, 'b' has 2, 'c' has 3",
        "factors[3]: 'spare' is neither row, column nor treatment of the Latin square; "
        "remove it, or tie it to one of the three (tied_to)",
    ]


def test_one_factor_can_not_play_two_parts() -> None:
    study = make_study(
        factor("a", 2), factor("b", 2), factor("c", 2), options=options("a", "a", "c")
    )
    result = messages(study)
    assert result[0] == (
        "design_spec.options.column_factor: 'a' is the row_factor already; "
        "name three different factors"
    )
    assert "'b' is neither row, column nor treatment" in result[1]


def test_a_tied_factor_can_not_be_named() -> None:
    study = make_study(
        factor("a", 2), factor("b", 2), factor("c", 2, tied_to="a"), options=options("a", "b", "c")
    )
    assert "'c' is not a free factor" in messages(study)[0]


def test_a_square_of_one_is_no_square() -> None:
    study = make_study(factor("a", 1), factor("b", 1), Factor(name="c", default=0))
    assert messages(study) == [
        f"factors[{index}].levels: '{name}' needs two levels or more"
        for index, name in enumerate("abc")
    ] + [
        "factors: a Latin square needs as many levels in each of its factors: "
        "'a' has 1, 'b' has 1, 'c' has 0"
    ]


def test_two_factors_without_options_give_an_error_about_what_is_missing() -> None:
    result = messages(make_study(factor("a", 2), factor("b", 2)))
    assert len(result) == 3
    assert all(
        f"design_spec.options.{name}" in text for name, text in zip(NAMES, result, strict=True)
    )


def test_a_huge_square_is_refused_by_its_size() -> None:
    study = make_study(*(Factor(name=name, levels=tuple(range(1_000))) for name in "abc"))
    with pytest.raises(StudyError, match="1,000,000 conditions"):
        build_design(study)
