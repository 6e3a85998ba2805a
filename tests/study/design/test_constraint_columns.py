"""Constraints checked by columns give the same verdicts and errors as row by row."""

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial import Constraint, Factor, Study, build_design
from fairtrial.core import StudyError
from fairtrial.study.design import constraints as constraints_module
from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.model.conditions import DesignRow

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**60), 0.5, -0.0, 0.1 + 0.2, 1e300, 2.0]),
    st.sampled_from(["", "a", "b", "x y"]),
    st.sampled_from([[1, 2], ["a"], {"k": 1}]),
)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**52, 0.1, 0.2, 0.3, 1e308, -2.5]))
NAMES = ("x", "y", "z", "b")
REFERENCES = st.sampled_from(
    [*NAMES, 'factors["x"]', "factors.y", 'blocks["b"]', 'factors["none"]', "unknown"]
)
LITERALS = st.sampled_from(
    ["0", "1", "2.5", "-1", "0.3", "9007199254740993", "'a'", "True", "None", "[1, 'a']", "(1, 2)"]
)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])


def operands(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        inner.map(lambda text: f"-{text}" if not text.startswith("-") else text),
        st.tuples(st.sampled_from(["len", "int", "float", "str", "bool"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
    )


OPERANDS = st.recursive(st.one_of(REFERENCES, LITERALS), operands, max_leaves=4)
COMPARISONS = st.one_of(
    st.tuples(OPERANDS, OPERATORS, OPERANDS).map(" ".join),
    st.tuples(OPERANDS, OPERATORS, OPERANDS, OPERATORS, OPERANDS).map(" ".join),
    OPERANDS.map(lambda text: f"{text} is None"),
    OPERANDS,
    st.just("len(factors) > 2"),
    st.just("factors[x] == 1"),
)
EXPRESSIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' and '.join(parts)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' or '.join(parts)})"),
        inner.map(lambda text: f"(not {text})"),
    ),
    max_leaves=4,
)


@st.composite
def designs(draw):
    """Rows of a design with columns of any values or of numbers, some of them missing."""
    kinds = {name: draw(st.sampled_from([VALUES, NUMBERS])) for name in NAMES}
    levels = {name: draw(st.lists(kind, min_size=1, max_size=4)) for name, kind in kinds.items()}
    combinations = itertools.product(*(levels[name] for name in NAMES))
    rows = [
        DesignRow({"x": x, "y": y, "z": z}, {"b": b})
        for x, y, z, b in itertools.islice(combinations, 40)
    ]
    if draw(st.booleans()):
        rows[-1] = DesignRow({"x": 1, "b": 2}, {"y": 3})
    return rows


def judge_singly(checker, rows):
    """Return the verdicts, row by row, up to the first error, and that error."""
    verdicts = []
    for row in rows:
        try:
            verdicts.append(checker(row.factors, row.blocks))
        except StudyError as error:
            return verdicts, str(error)
    return verdicts, None


def judge_together(checker, rows):
    verdicts = []
    try:
        for row, admissible, messages in checker.check_rows(rows):
            assert row is rows[len(verdicts)]
            verdicts.append((admissible, messages))
    except StudyError as error:
        return verdicts, str(error)
    return verdicts, None


@settings(max_examples=400, deadline=None)
@given(rows=designs(), expressions=st.lists(EXPRESSIONS, min_size=1, max_size=3))
def test_columns_give_the_verdicts_and_errors_of_rows(rows, expressions):
    constraints = [
        Constraint(f"c{number}", "a rule", expression=text)
        for number, text in enumerate(expressions)
    ]
    checker = ConstraintChecker(constraints)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constraints_module, "MIN_CHECKS", 0)
        patch.setattr(constraints_module, "CHUNK_ROWS", 7)
        assert judge_together(checker, rows) == judge_singly(checker, rows)


def make_study(constraints, **fields):
    factors = (
        Factor("x", levels=tuple(range(40))),
        Factor("y", levels=("a", "b", None, True, 2.5)),
        Factor("z", levels=tuple(range(10))),
    )
    return Study("s", "S", factors=factors, constraints=tuple(constraints), **fields)


def test_thousands_of_conditions_are_marked_by_each_rule_that_they_break():
    rules = [
        Constraint("sum", "small", expression="x + z * 2 <= 30"),
        Constraint("text", "no b", expression="y != 'b' or x == 3"),
        Constraint("none", "y is set", expression="y is None or x < 39", severity="warning"),
    ]
    conditions = build_design(make_study(rules))
    assert len(conditions) == 2000
    for condition in conditions:
        x, y, z = (condition.factor_assignments[name] for name in "xyz")
        broken = {
            "sum": not x + z * 2 <= 30,
            "text": not (y != "b" or x == 3),
            "none": not (y is None or x < 39),
        }
        expected = [name for name, is_broken in broken.items() if is_broken]
        assert [text.partition(":")[0] for text in condition.constraint_messages] == expected
        assert condition.admissible == (not {"sum", "text"} & set(expected))


def test_an_error_in_one_of_thousands_of_conditions_names_the_first_of_them():
    rule = Constraint("late", "", expression="x < 20 or y == 'a' or y < 3")
    with pytest.raises(StudyError, match=r'fails for \{"x":20,"y":"b","z":0\}'):
        build_design(make_study([rule]))


def test_what_is_never_reached_raises_nothing_in_thousands_of_conditions():
    rule = Constraint("guarded", "", expression="y is None or y in ('a', 'b', True) or y < 3")
    assert all(condition.admissible for condition in build_design(make_study([rule])))
