"""Plackett-Burman designs, checked by their rows."""

import itertools
import json

import numpy as np
import pyDOE3
import pytest
from hypothesis import given, strategies as st

from fairtrial import Study, StudyError, build_design
from fairtrial.core import canonical_json
from fairtrial.study.design import design_table


def study(count, **options):
    return Study.from_dict(
        {
            "study_id": "s",
            "title": "t",
            "factors": [{"name": f"f{i}", "levels": [-1, 1]} for i in range(count)],
            "design_spec": {"kind": "plackett_burman", "options": options},
        }
    )


def matrix(count, **options):
    rows = design_table(study(count, **options)).rows
    return np.array([list(row.factors.values()) for row in rows])


def facts(count, **options):
    return design_table(study(count, **options)).facts


def correlations(rows):
    """|correlation| of each main effect with each two-factor interaction of other factors."""
    count = rows.shape[1]
    return {
        abs(rows[:, main] @ (rows[:, a] * rows[:, b])) / len(rows)
        for a, b in itertools.combinations(range(count), 2)
        for main in range(count)
        if main not in (a, b)
    }


@pytest.mark.parametrize("count", range(2, 48))
def test_smallest_multiple_of_four_runs_balanced_and_orthogonal(count):
    rows = matrix(count)
    assert len(rows) % 4 == 0
    assert count < len(rows) <= count + 4
    assert set(rows.ravel().tolist()) == {-1, 1}
    assert not rows.sum(axis=0).any()
    assert (rows.T @ rows == len(rows) * np.eye(count)).all()


# The first rows that Plackett & Burman (1946) print, for sizes that are computed here.
PRINTED = {
    8: "+++-+--",
    12: "++-+++---+-",
    20: "++--++++-+-+----++-",
    24: "+++++-+-++--++--+-+----",
}


@pytest.mark.parametrize("size", PRINTED)
def test_rows_are_the_printed_ones_shifted_round(size):
    rows = ["".join("-+"[int(value > 0)] for value in row) for row in matrix(size - 1)]
    first = PRINTED[size]
    assert rows[0] == first
    assert rows[1] == first[-1] + first[:-1]
    assert rows[-1] == "-" * (size - 1)


@pytest.mark.parametrize("count", range(2, 24))
def test_pydoe3_needs_as_many_runs(count):
    theirs = pyDOE3.pbdesign(count)
    assert len(theirs) == len(matrix(count))
    assert (theirs.T @ theirs == len(theirs) * np.eye(count)).all()


@pytest.mark.parametrize("count", [3, 7, 11, 15, 19, 23, 27, 31, 35])
def test_partial_aliasing_is_reported_as_it_is(count):
    reported = facts(count)
    assert reported["rows"] == count + 1
    assert reported["resolution"] == "III"
    assert reported["largest_alias_correlation"] == pytest.approx(max(correlations(matrix(count))))


def test_with_twelve_runs_every_interaction_is_spread_by_a_third():
    assert correlations(matrix(11)) == {4 / 12}
    assert "partly aliased" in facts(11)["note"]
    assert "0.33" in facts(11)["note"]
    assert "fully aliased" in facts(7)["note"]


@pytest.mark.parametrize(("count", "foldover"), [(2, False), (2, True), (3, True), (4, True)])
def test_few_factors_may_be_a_full_factorial(count, foldover):
    assert facts(count, foldover=foldover)["resolution"] == "full"
    assert len({tuple(row) for row in matrix(count, foldover=foldover).tolist()}) == 2**count


@given(st.integers(3, 47))
def test_foldover_clears_main_effects_and_keeps_the_rows_that_were_there(count):
    before, after = matrix(count), matrix(count, foldover=True)
    assert (after[: len(before)] == before).all()
    assert (after[len(before) :] == -before).all()
    reported = facts(count, foldover=True)
    assert reported["resolution"] == ("full" if count <= 4 else "IV")
    assert reported["largest_alias_correlation"] == 0
    if count <= 20:
        assert correlations(after) == {0}


def test_foldover_keeps_condition_ids():
    before, after = build_design(study(11)), build_design(study(11, foldover=True))
    assert [c.condition_id for c in after[:12]] == [c.condition_id for c in before]


def test_facts_are_plain():
    assert json.loads(canonical_json(facts(47))) == facts(47)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "at least two factors"),
        (1, "at least two factors"),
        (48, "takes up to 47 factors; there are 48; tie some together"),
    ],
)
def test_too_few_and_too_many_factors_are_refused(count, message):
    with pytest.raises(StudyError, match=message):
        matrix(count)


def test_three_levels_are_refused():
    made = Study.from_dict(
        {
            "study_id": "s",
            "title": "t",
            "factors": [{"name": "a", "levels": [1, 2, 3]}, {"name": "b", "levels": [1, 2]}],
            "design_spec": {"kind": "pb"},
        }
    )
    with pytest.raises(StudyError, match="'a' has 3"):
        build_design(made)
