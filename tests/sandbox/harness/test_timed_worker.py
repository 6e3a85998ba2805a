"""The timed worker: packed inputs, digests of results, and all other values."""

import importlib
import json
import pickle
import sys
from array import array
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fairtrial.sandbox.harness import codec


@pytest.fixture(scope="module")
def turns():
    path, modules = list(sys.path), set(sys.modules)
    yield importlib.import_module("fairtrial.sandbox.harness.timed_worker")
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("_fairtrial_harness"):
            del sys.modules[name]


class Text(str):
    """Not plain: a class may run any code when it is inspected."""

    __slots__ = ()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def packing(turns):
    return turns.packing


PACKED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "value",
    [Text("a"), [Text("a")], 1j, range(3), Fraction(1, 2), OrderedDict(a=1), len, Text, [[Text]]],
)
def test_what_is_not_plain_is_not_packed(packing, value):
    assert packing.pack_plain(value) is None


def test_a_value_that_contains_itself_is_not_packed(packing):
    value = []
    value.append(value)
    assert packing.pack_plain(value) is None


@given(PACKED)
def test_what_is_packed_is_what_it_was(packing, value):
    assert repr(packing.unpack_plain(packing.pack_plain(value))) == repr(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], (1,)),
        ([1], [1.0]),
        ([True], [1]),
        (b"a", bytearray(b"a")),
        (b"a", "a"),
        ({1}, frozenset({1})),
        (0.0, -0.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([[1], [2]], [[1, 2]]),
        (array("b", b"a"), b"a"),
        (memoryview(b"a"), b"a"),
    ],
)
def test_values_of_other_types_or_orders_are_packed_otherwise(packing, one, other):
    assert packing.pack_plain(one) != packing.pack_plain(other)


def test_shared_parts_are_packed_like_equal_ones(packing):
    part = ["x" * 9]
    assert packing.pack_plain([part, part]) == packing.pack_plain([["x" * 9], ["x" * 9]])


@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.astype("float32"),
        lambda array: array.reshape(3, 2),
        lambda array: np.asfortranarray(array),
        lambda array: array + 1,
        lambda array: array.tolist(),
        lambda array: array.tobytes(),
        lambda array: array.view(type("Own", (np.ndarray,), {})),
        lambda array: array[0, 0],
    ],
)
def test_arrays_are_packed_by_type_shape_layout_and_content(packing, change):
    made = np.arange(6.0).reshape(2, 3)
    packed = packing.pack_plain([made], has_arrays=True)
    assert packed == packing.pack_plain([made.copy()], has_arrays=True)
    assert packed != packing.pack_plain([change(made)], has_arrays=True)


def test_an_array_that_can_not_be_written_to_is_another_one(packing):
    one, other = np.arange(3), np.arange(3)
    other.flags.writeable = False
    assert packing.pack_plain(one, has_arrays=True) != packing.pack_plain(other, has_arrays=True)


def test_only_plain_values_are_unpacked(packing):
    for data in (pickle.dumps(len), pickle.dumps(Fraction(1, 2)), b"", b"\x80", b"{}"):
        with pytest.raises(ValueError, match="packed"):
            packing.unpack_plain(data)


@given(st.lists(PACKED, max_size=4), st.integers(0, 3))
def test_inputs_are_split_as_they_were_joined(packing, values, lines):
    inputs = [packing.pack_plain(value) for value in values] + [b"{}"] * lines
    assert packing.split_inputs(packing.join_inputs(inputs)) == inputs


@given(PLAIN)
def test_inputs_are_read_as_they_were_written(turns, packing, value):
    case = {"args": codec.encode([value]), "kwargs": codec.encode({"k": value})}
    line = codec.dump_encoded(case).encode("ascii")
    packed = packing.pack_plain(([value], {"k": value}))
    for data in (line, packed):
        args, kwargs = turns.read_case(data)
        assert repr((args, kwargs)) == repr(([value], {"k": value}))
    assert packing.unpack_case(packed) == case or value != value or "nan" in repr(value)


def test_arrays_are_sent_as_they_are(turns, packing):
    made = np.arange(6.0).reshape(2, 3)
    case = {"args": codec.encode([made, [1]]), "kwargs": {}}
    packed = packing.pack_case(case)
    assert made.tobytes() in packed
    args, _ = turns.read_case(packed)
    assert (args[0] == made).all()
    assert packing.unpack_case(packed) == case
    assert packing.pack_case({"args": [1], "kwargs": {}}) is None


def run_batch(turns, function, args):
    work = turns.CallBatch({"function": function, "view": "", "caps": list(codec.Caps())})
    packed = turns.packing.pack_plain((args, {}))
    work.load_inputs(turns.packing.join_inputs([packed]))
    work.run()
    return work


@pytest.mark.parametrize(
    ("function", "args", "after"),
    [
        ("builtins:len", [[3, 1]], None),
        ("builtins:len", [{3, 1, 99, "a"}], None),
        ("builtins:list.append", [[3, 1], 7], [[3, 1, 7], 7]),
        ("builtins:list.sort", [[3, 1]], [[1, 3]]),
    ],
)
def test_arguments_that_changed_are_reported(turns, function, args, after):
    work = run_batch(turns, function, args)
    first, _ = work.list_values().split(b"\n")
    assert json.loads(first)["after"] == (after and {"args": after, "kwargs": {}})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("builtins:sorted", [[3, 1]]), ("builtins:list", [[3, 1]])),
        (("builtins:list.sort", [[3, 1]]), ("builtins:list.reverse", [[3, 1, 2]])),
        (("builtins:int", ["5"]), ("builtins:float", ["5"])),
        (("builtins:int", ["x"]), ("builtins:float", ["x"])),
        (("builtins:bytes", [b"a"]), ("builtins:bytearray", [b"a"])),
        (("builtins:iter", [[1, 2]]), ("builtins:list", [[1, 2]])),
    ],
)
def test_other_results_exceptions_or_changes_have_another_digest(turns, one, other):
    digests = [turns.close_turn(run_batch(turns, *call)) for call in (one, other, one)]
    assert digests[0][:16] == digests[2][:16] != digests[1][:16]


def test_results_can_be_read_in_full_after_their_digest(turns):
    work = run_batch(turns, "builtins:iter", [[1, 2]])
    turns.close_turn(work)
    assert b'"items":[1,2]' in work.list_values() == work.list_values()
