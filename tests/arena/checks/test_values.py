"""Comparison of encoded values: which are equal, and where others differ."""

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import json
import math
import re

import numpy
import pytest
from hypothesis import given, settings, strategies as st
from value_strategies import atoms, values

from fairtrial.arena.checks.comparison_rules import ComparisonRules
from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.value_comparison import MAX_DIFFERENCES, compare
from fairtrial.arena.checks.value_text import render, render_call
from fairtrial.sandbox.wire import dump_encoded, encode

EXACT = {"rel_tol": 0.0, "abs_tol": 0.0}
NORMAL = {"rel_tol": 1e-9, "abs_tol": 0.0}
Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Node:
    name: str
    links: list


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Mine(dict):
    pass


def differ(expected, actual, **tolerance):
    return compare(encode(expected), encode(actual), ComparisonRules(**(tolerance or NORMAL)))


def places(expected, actual, **tolerance):
    return [difference.where for difference in differ(expected, actual, **tolerance).first]


@given(values)
def test_a_value_equals_itself(value):
    node = json.loads(dump_encoded(encode(value)))
    assert compare(node, json.loads(dump_encoded(node)), ComparisonRules(**EXACT)).count == 0
    assert compare(node, json.loads(dump_encoded(node)), ComparisonRules(**NORMAL)).count == 0


def spots(node, where="result"):
    """Yield every position in nested lists and dictionaries, with a function to change it."""
    if isinstance(node, list):
        for place in range(len(node)):
            yield f"{where}[{place}]", node, place
            yield from spots(node[place], f"{where}[{place}]")
    elif isinstance(node, dict):
        for key in node:
            yield f"{where}[{key!r}]", node, key
            yield from spots(node[key], f"{where}[{key!r}]")


trees = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.lists(trees, min_size=1, max_size=4), st.data())
def test_a_single_change_is_found_in_its_place(value, data):
    changed = copy.deepcopy(value)
    where, holder, place = data.draw(st.sampled_from(list(spots(changed))))
    before, holder[place] = holder[place], decimal.Decimal("4.25")
    differences = differ(value, changed, **EXACT)
    assert differences.count == 1
    assert differences.first[0].where == where
    assert differences.first[0].actual == "Decimal('4.25')"
    assert differences.first[0].expected == render(encode(before))


@given(values, values)
def test_values_are_equal_only_if_they_are_written_alike(one, other):
    is_equal = differ(one, other, **EXACT).count == 0
    assert is_equal == (differ(other, one, **EXACT).count == 0)
    if dump_encoded(encode(one)) == dump_encoded(encode(other)):
        assert is_equal


forged = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["$", "items", "value", "type", "state", "args", "dtype", "shape", "names"]
            ),
            inner
            | st.sampled_from(
                ["tuple", "set", "dict", "ndarray", "int", "float", "complex", "object"]
            ),
            max_size=4,
        )
    ),
)


@given(values, forged)
def test_nothing_forged_raises_and_only_the_same_is_equal(value, node):
    expected = json.loads(dump_encoded(encode(value)))
    differences = compare(expected, node, ComparisonRules(**NORMAL))
    assert all(isinstance(difference.actual, str) for difference in differences.first)
    render(node)


@pytest.mark.parametrize(
    "tags", [{"$": "tuple"}, {"$": "tuple", "items": "ab"}, {"$": "tuple", "items": {"0": "a"}}]
)
def test_a_forged_form_equals_nothing(tags):
    assert compare(encode(("a", "b")), tags, ComparisonRules(**NORMAL)).count
    assert compare(encode(()), tags, ComparisonRules(**NORMAL)).count


def test_a_forged_tree_that_is_too_deep_is_no_more_than_different():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert compare(deep, copy.copy(deep), ComparisonRules(**NORMAL)).count == 1


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (1, "1"),
        ("a", b"a"),
        ([1], (1,)),
        ({1}, frozenset({1})),
        ({}, collections.OrderedDict()),
        ({"a": 1}, Mine(a=1)),
        (None, False),
        (1.0, decimal.Decimal(1)),
        (decimal.Decimal("1.1"), decimal.Decimal("1.10")),
        (1.5, numpy.float64(1.5)),
        ([1.5], numpy.array([1.5])),
        (numpy.array([1]), numpy.array([1], dtype="i4")),
        (numpy.array([1, 2]), numpy.array([[1, 2]])),
        (Color.RED, Color.BLUE),
        (Color.RED, 1),
        (ValueError("a"), TypeError("a")),
        (range(3), range(0, 3, 2)),
        (iter([1]), [1]),
        (datetime.time(1), datetime.time(1, tzinfo=datetime.UTC)),
        (collections.deque([1]), collections.deque([1], 3)),
        (collections.defaultdict(int), collections.defaultdict(list)),
        (int, bool),
        (2**60, 2**60 + 1),
    ],
    ids=lambda value: repr(value).partition(" object at")[0],
)
def test_types_count(expected, actual):
    expected, actual = encode(expected), encode(actual)
    differences = compare(expected, actual, ComparisonRules(**NORMAL))
    assert (differences.count, differences.first[0].where) == (1, "result")
    assert differences.first[0].expected != differences.first[0].actual
    assert compare(expected, expected, ComparisonRules(**NORMAL)).count == 0


@pytest.mark.parametrize(
    ("expected", "actual", "tolerance", "is_equal"),
    [
        (1.0, 1.0 + 1e-12, NORMAL, True),
        (1.0, 1.0 + 1e-6, NORMAL, False),
        (1.0, 1.0 + 1e-12, EXACT, False),
        (0.0, 1e-12, NORMAL, False),
        (0.0, 1e-12, {"rel_tol": 0.0, "abs_tol": 1e-9}, True),
        (math.nan, math.nan, EXACT, True),
        (math.nan, 1.0, NORMAL, False),
        (1.0, math.nan, NORMAL, False),
        (math.inf, math.inf, EXACT, True),
        (math.inf, -math.inf, NORMAL, False),
        (1e308, math.inf, {"rel_tol": 0.5, "abs_tol": 1.0}, False),
        (math.inf, 1.0, {"rel_tol": 0.5, "abs_tol": math.inf}, False),
        (0.0, -0.0, NORMAL, True),
        (0.0, -0.0, EXACT, False),
    ],
)
@pytest.mark.parametrize("make", [float, numpy.float64, lambda x: numpy.array([2.0, x])])
def test_floats_follow_the_rules_in_arrays_as_well(expected, actual, tolerance, is_equal, make):
    assert (differ(make(expected), make(actual), **tolerance).count == 0) == is_equal


@pytest.mark.parametrize(
    ("expected", "actual", "is_equal"),
    [
        (1 + 1e-17j, 1 + 0j, True),
        (1 + 1j, 1 + 1.1j, False),
        (complex(math.nan, 1), complex(math.nan, 1), True),
        (complex(math.inf, 1), complex(math.inf, 2), False),
        (complex(1, 1), complex(math.inf, 1), False),
    ],
)
def test_complex_numbers_are_compared_by_their_distance(expected, actual, is_equal):
    assert (differ(expected, actual).count == 0) == is_equal


def test_sets_and_dictionaries_have_no_order_but_ordered_ones_do():
    one = {"a": 1, (1, 2): [2]}
    assert not differ(one, dict(reversed(one.items()))).count
    ordered = collections.OrderedDict(one)
    turned = collections.OrderedDict(reversed(one.items()))
    assert places(ordered, turned) == ["list(result)"]
    nodes = {"$": "set", "items": [1, 2]}, {"$": "set", "items": [2, 1]}
    assert compare(*nodes, ComparisonRules(**NORMAL)).count == 0
    nested = [{"$": "frozenset", "items": [node]} for node in nodes]
    assert compare(*nested, ComparisonRules(**NORMAL)).count == 0


def test_sets_of_floats_are_compared_by_the_tolerance():
    assert not differ({0.1 + 0.2, 5.0}, {0.3, 5.0}).count
    assert differ({0.1 + 0.2, 5.0}, {0.3, 6.0}).count == 2


def test_a_set_says_what_is_missing_and_what_is_too_much():
    differences = differ({1, 2, (3,)}, {1, 4})
    shown = [(difference.expected, difference.actual) for difference in differences.first]
    assert shown == [("2", "nothing"), ("(3,)", "nothing"), ("nothing", "4")]


def test_places_are_written_as_python_would():
    expected = {"a": [Node("x", [Point(1, 2)])], 3: ValueError("no", [1]), "m": Mine(k=(1,))}
    actual = {"a": [Node("x", [Point(1, 5)])], 3: ValueError("no", [2]), "m": Mine(k=(2,))}
    assert places(expected, actual) == [
        "result['a'][0].links[0].y",
        "result[3].args[1][0]",
        "result['m']['k'][0]",
    ]
    assert places(numpy.eye(2), numpy.zeros((2, 2))) == ["result[0, 0]", "result[1, 1]"]


def test_missing_and_additional_keys_are_shown():
    differences = differ({"a": 1, "b": 2}, {"a": 1, "c": 3}).first
    assert [(item.where, item.expected, item.actual) for item in differences] == [
        ("result['b']", "2", "nothing"),
        ("result['c']", "nothing", "3"),
    ]


def test_a_dictionary_that_needs_a_tag_is_compared_with_one_that_does_not():
    assert places({"a": 1, "b": 2}, {"a": 1, "b": 3, 5: 4}) == ["result['b']", "result[5]"]
    tagged = {"$": "dict", "items": [["b", 2], ["a", 1]]}
    assert compare({"a": 1, "b": 2}, tagged, ComparisonRules(**NORMAL)).count == 0


def test_of_lists_of_other_length_the_first_difference_is_shown():
    differences = differ([1, 2, 3, 4], [1, 3, 4]).first
    assert [(item.where, item.expected, item.actual) for item in differences] == [
        ("len(result)", "4", "3"),
        ("result[1]", "2", "3"),
    ]


def test_a_few_differences_are_listed_and_all_are_counted():
    differences = differ([0] * 1000, [1] * 1000)
    assert (len(differences.first), differences.count) == (MAX_DIFFERENCES, 1000)
    differences = differ(numpy.zeros(1000), numpy.ones(1000))
    assert (len(differences.first), differences.count) == (MAX_DIFFERENCES, 1000)


def test_long_texts_are_shown_from_where_they_differ():
    text = "line of text\n" * 50
    (difference,) = differ(text, text[:400] + "X" + text[401:]).first
    assert difference.where == "result at character 400"
    assert "X" in difference.actual
    assert "X" not in difference.expected


@pytest.mark.parametrize("value", [object(), [lambda: 0], {"a": object()}, Node("x", [object()])])
def test_what_is_not_plain_equals_nothing_not_even_itself(value):
    assert differ(value, value).count == 1
    assert find_unplain(encode(value)) is not None


def test_what_is_too_large_equals_nothing():
    deep = []
    for _ in range(200):
        deep = [deep]
    assert differ(deep, deep).count == 1
    assert find_unplain(encode(deep))["$"] == "unreadable"


@given(values)
def test_plain_values_are_plain(value):
    assert find_unplain(encode(value)) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        1.5,
        "it's",
        b"x",
        [1, [2]],
        (1,),
        (),
        {"a": (1, 2)},
        {1: 2},
        {1},
        set(),
        frozenset({1}),
        1j,
        range(3),
        slice(1, None, 2),
        bytearray(b"x"),
        decimal.Decimal("1.10"),
        ...,
    ],
    ids=repr,
)
def test_short_values_are_shown_as_python_shows_them(value):
    shown = render(encode(value)).replace("range(0, 3, 1)", "range(0, 3)")
    assert shown == repr(value)


@given(values)
def test_values_are_shown_on_one_short_line(value):
    shown = render(encode(value), 50)
    assert len(shown) <= 50
    assert not re.search(r"[\n\x00-\x1f]", shown)
    assert "can't be read" not in shown


def test_calls_are_shown_as_they_would_be_written():
    case = {"args": [[3, 1], "x"], "kwargs": {"reverse": True}}
    assert render_call("tools:sort", case) == "sort([3, 1], 'x', reverse=True)"
    assert len(render_call("tools:sort", {"args": ["x" * 1000], "kwargs": {}}, 100)) == 100
