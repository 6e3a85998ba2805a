"""Results in the hands of callers: kept, changed, and looked at again after later calls."""

from textwrap import dedent

import pytest
from calls_kit import Slots

from fairtrial.arena import Reason

MAKER = """
    def make(rng):
        return ([rng.randrange(100) for _ in range(5)],), {}
"""
NUMPY_MAKER = """
    import numpy
    def make(rng):
        return (numpy.array([[rng.random() for _ in range(3)] for _ in range(2)]),), {}
"""
MEMO = """
_memo = {}
def run(items):
    key = tuple(items)
    if key not in _memo:
        _memo[key] = sorted(items)
    return KEPT
"""
SORTED = "def run(items): return sorted(items)"
ROWS = "def run(items): return [[item] for item in items]"
COUNTS = "def run(items): return {item: items.count(item) for item in sorted(items)}"
DOUBLE = "def run(table): return table * 2"


@pytest.fixture
def judge(tmp_path):
    """Return the rejection of a candidate for `tools:run`, and the notes on the base."""

    def judge(base, candidate, maker=MAKER, **changes):
        slots = Slots(tmp_path, {"tools.py": base, "bench/inputs.py": maker})
        prepared = slots.prepare(**{"function": "tools:run", "cases": 4, **changes})
        return slots.judge(prepared, tools=candidate).rejection, prepared.notes

    return judge


@pytest.mark.parametrize(
    ("base", "candidate", "where"),
    [
        (SORTED, MEMO.replace("KEPT", "_memo[key]"), "called again, after its first result"),
        (
            SORTED,
            "_out = []\ndef run(items):\n    _out[:] = sorted(items)\n    return _out",
            "the result, after later calls",
        ),
        (
            "def run(items): return list(items)",
            "def run(items): return items",
            "what the result shares with the arguments",
        ),
        (
            "def run(items): return [[0] for _ in items]",
            "def run(items): return [[0]] * len(items)",
            "parts of the result",
        ),
    ],
    ids=["memo", "reused list", "argument", "inner aliases"],
)
def test_results_that_share_objects_are_rejected_unless_the_check_allows_it(
    judge, base, candidate, where
):
    rejection, _ = judge(base, candidate)
    assert rejection.reason == Reason.DIFFERENT
    assert where in rejection.message
    assert "`aliasing: any` in this check allows" in rejection.message
    assert rejection.failures[0].differences[0].where.startswith(where)
    assert judge(base, candidate, aliasing="any")[0] is None


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        (SORTED, MEMO.replace("KEPT", "list(_memo[key])")),
        (SORTED, "def run(items):\n    items = list(items)\n    items.sort()\n    return items"),
        (ROWS, "def run(items): return list(map(list, zip(items)))"),
        ("def run(items): return items", "def run(items): return items"),
        ("def run(items): return (n for n in items)", "def run(items): return iter(list(items))"),
        (MEMO.replace("KEPT", "_memo[key]"), SORTED),
        (MEMO.replace("KEPT", "_memo[key]"), MEMO.replace("KEPT", "_memo[key]")),
    ],
    ids=["copied memo", "own copy", "rows", "argument", "iterator", "no memo", "same memo"],
)
def test_honest_results_and_results_that_are_the_base_s_pass(judge, base, candidate):
    assert judge(base, candidate)[0] is None


def test_a_base_that_hands_out_what_it_keeps_is_named(judge):
    _, notes = judge(MEMO.replace("KEPT", "_memo[key]"), SORTED)
    assert any("depend on what callers do with earlier ones" in note for note in notes)
    assert not any("depend on" in note for note in judge(SORTED, SORTED)[1])


def test_a_list_and_a_generator_are_alike_where_a_view_makes_them_so(judge):
    view = {"view": "builtins:sorted"}
    generator = "def run(items): return (item for item in items)"
    assert judge("def run(items): return list(items)", generator, **view)[0] is None
    assert judge(generator, "def run(items): return list(items)", **view)[0] is None


def test_another_order_of_a_dictionary_is_rejected_unless_the_check_allows_it(judge):
    other = COUNTS.replace("sorted(items)", "sorted(items, reverse=True)")
    rejection, _ = judge(COUNTS, other)
    assert rejection.failures[0].differences[0].where == "order of result"
    assert "`dict_order: any` in this check allows another order" in rejection.message
    assert judge(COUNTS, other, dict_order="any")[0] is None


def test_an_order_that_varies_on_the_base_is_not_compared(judge):
    base = "def run(items): return {name: 0 for name in {'a', 'b', 'c', 'd', 'e', 'f', 'g'}}"
    rejection, notes = judge(base, "def run(items): return dict.fromkeys('abcdefg', 0)")
    assert rejection is None
    assert any("the order of dictionaries" in note for note in notes)


@pytest.mark.parametrize(
    ("candidate", "layout"),
    [
        ("def run(table): return (table.T * 2).T.copy(order='F')", "writable"),
        (
            "def run(table):\n    a = table * 2\n    a.flags.writeable = False\n    return a",
            "C-cont",
        ),
    ],
    ids=["memory order", "read-only"],
)
def test_another_layout_of_an_array_is_rejected_unless_the_check_allows_it(
    judge, candidate, layout
):
    rejection, _ = judge(DOUBLE, candidate, NUMPY_MAKER)
    (difference, *_) = rejection.failures[0].differences
    assert difference.where == "layout of result"
    assert difference.expected == "C-contiguous and writable"
    assert layout in difference.actual
    assert "`array_layout: any`" in rejection.message
    assert judge(DOUBLE, candidate, NUMPY_MAKER, array_layout="any")[0] is None


def test_an_array_may_be_more_usable_than_the_base_s(judge):
    base = (
        "def run(table):\n    a = (table * 2)[:, ::2]\n    a.flags.writeable = False\n    return a"
    )
    assert judge(base, base.replace("[:, ::2]", "[:, ::2].copy()"), NUMPY_MAKER)[0] is None


def test_a_view_of_an_argument_is_not_a_copy(judge):
    base = "def run(table): return table[:1].copy()"
    rejection, _ = judge(base, "def run(table): return table[:1]", NUMPY_MAKER)
    assert rejection.failures[0].differences[0].where.startswith("arguments, after the result")


@pytest.mark.parametrize(
    ("candidate", "where"),
    [
        (
            "class Lie(Exception):\n    __module__, __qualname__ = 'builtins', 'ValueError'\n"
            "def run(items): raise Lie(1)",
            "the exception",
        ),
        (
            "class Odd(Exception): pass\ndef run(items): raise Odd(1)",
            "base classes of the exception",
        ),
    ],
)
def test_an_exception_that_callers_would_not_catch_is_another_one(judge, candidate, where):
    base = "class Odd(ValueError): pass\ndef run(items): raise Odd(1)"
    if "Lie" in candidate:
        base = "def run(items): raise ValueError(1)"
    rejection, _ = judge(base, candidate)
    assert rejection.failures[0].differences[0].where == where


def test_a_class_of_its_own_with_more_base_classes_is_still_caught(judge):
    base = "class Odd(ValueError): pass\ndef run(items): raise Odd(1)"
    assert judge(base, base.replace("(ValueError)", "(ValueError, LookupError)"))[0] is None


@pytest.mark.parametrize("aliasing", ["strict", "any"])
def test_calls_are_repeated_in_a_second_process(judge, aliasing):
    once = """
        import os
        _is_second = os.path.exists("seen")
        open("seen", "w").close()
        def run(items):
            return [] if _is_second else sorted(items)
    """
    rejection, _ = judge(SORTED, dedent(once), aliasing=aliasing)
    assert "in a second process: len(result) should be 5, is 0" in rejection.message


COUNTER = "import collections\ndef run(items): return collections.Counter(items)"
POINT = """
import dataclasses
@dataclasses.dataclass
class Point:
    total: int
_memo = {}
def run(items):
    return MADE
"""


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        (
            COUNTER,
            "import collections\n_memo = {}\ndef run(items):\n"
            "    return _memo.setdefault(tuple(items), collections.Counter(items))",
        ),
        (
            POINT.replace("MADE", "Point(sum(items))"),
            POINT.replace("MADE", "_memo.setdefault(tuple(items), Point(sum(items)))"),
        ),
    ],
    ids=["counter", "dataclass"],
)
def test_a_memo_of_counters_or_dataclasses_hands_out_what_it_keeps(judge, base, candidate):
    rejection, _ = judge(base, candidate)
    assert "called again, after its first result was changed" in rejection.message
    assert judge(base, base + "\n# honest\n")[0] is None


def test_frozen_dataclasses_may_be_shared(judge):
    frozen = POINT.replace("@dataclasses.dataclass", "@dataclasses.dataclass(frozen=True)")
    base = frozen.replace("MADE", "Point(sum(items))")
    memo = frozen.replace("MADE", "_memo.setdefault(tuple(items), Point(sum(items)))")
    assert judge(base, memo)[0] is None


def test_a_list_that_a_thread_fills_after_the_return_is_looked_at_before(judge):
    later = """
        import threading
        def run(items):
            result = []
            def fill():
                rest = list(items)
                for _ in range(20_000):
                    rest.sort()
                result.extend(rest)
            threading.Thread(target=fill, daemon=True).start()
            return result
    """
    assert judge(SORTED, dedent(later))[0] is not None


def test_results_that_depend_on_the_hash_seed_differ_in_the_second_process(judge):
    seeded = """
        import os
        def run(items):
            return sorted(items) if os.environ["PYTHONHASHSEED"] == "0" else items
    """
    rejection, _ = judge(SORTED, dedent(seeded))
    assert "in a second process" in rejection.message
