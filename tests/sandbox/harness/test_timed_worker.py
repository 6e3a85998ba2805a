"""The timed worker's fast path for plain values, and its exclusion of all others."""

import importlib
import json
import math
import sys

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


@pytest.mark.parametrize(
    "value",
    [(1, 2), [(1,)], {1: "a"}, {"$": 1}, math.nan, [math.inf], Text("a"), [Text("a")], {1}, b"a"],
)
def test_what_json_has_not_all_of_is_not_written_quickly(turns, value):
    assert turns.dump_plain(value) is None


@given(PLAIN)
def test_what_is_written_quickly_is_what_the_codec_writes(turns, value):
    assert turns.dump_plain(value) in (None, codec.dump_encoded(codec.encode(value)))


@given(PLAIN)
def test_inputs_are_read_as_they_were_written(turns, value):
    case = {"args": codec.encode([value]), "kwargs": codec.encode({"k": value})}
    args, kwargs = turns.read_case(codec.dump_encoded(case).encode("ascii"))
    assert repr((args, kwargs)) == repr(([value], {"k": value}))


@pytest.mark.parametrize(
    ("function", "args", "after"),
    [
        ("builtins:len", [[3, 1]], None),
        ("builtins:list.append", [[3, 1], 7], [[3, 1, 7], 7]),
        ("builtins:list.sort", [[3, 1]], [[1, 3]]),
    ],
)
def test_arguments_that_changed_are_reported(turns, function, args, after):
    work = turns.CallBatch({"function": function, "view": "", "caps": list(codec.Caps())})
    work.load_inputs(codec.dump_encoded({"args": args, "kwargs": {}}).encode("ascii"))
    work.run()
    first, _ = work.encode_results().split(b"\n")
    assert json.loads(first)["after"] == (after and {"args": after, "kwargs": {}})
