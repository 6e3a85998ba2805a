"""Packing results: read back unchanged, or refused."""

import collections
import dataclasses
import math
import types
import uuid
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fairtrial.study.executors import pack, unpack
from fairtrial.study.ledger import packing
from fairtrial.study.ledger.packing import UnreadableError, UnwritableError

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.binary(max_size=20)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


class Colour(Enum):
    RED = "red"


class Rank(IntEnum):
    FIRST = 1


class Word(StrEnum):
    A = "a"


class Text(str):
    __slots__ = ()


@dataclasses.dataclass
class Point:
    x: int
    inner: object = None


def same(left, right):
    """Equal, types included; NaN equals NaN, 0.0 is not -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(map(same, left.values(), right.values()))
    if isinstance(left, float):
        alike = left == right or (math.isnan(left) and math.isnan(right))
        return alike and math.copysign(1, left) == math.copysign(1, right)
    return left == right


@given(values)
def test_plain_values_come_back_with_their_types(value):
    assert same(unpack(pack(value)), value)


@given(values)
def test_the_plain_form_of_a_plain_value_is_itself(value):
    # The way that odd values take, for those that never take it.
    assert same(packing._plain(value, 0), value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2.0, True)), [1, [2.0, True]]),
        ({3, 1, 2}, [1, 2, 3]),
        (range(3), [0, 1, 2]),
        (Colour.RED, "red"),
        (Rank.FIRST, 1),
        (Word.A, "a"),
        (Text("t"), "t"),
        (Point(1, Point(2)), {"x": 1, "inner": {"x": 2, "inner": None}}),
        (PurePosixPath("a/b"), "a/b"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date(2024, 1, 2), "2024-01-02"),
        (time(1, 2), "01:02:00"),
        (datetime(2024, 1, 2, 3), "2024-01-02T03:00:00"),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), "2024-01-02T03:00:00+00:00"),
        (Decimal("0.1"), 0.1),
        (Decimal("NaN"), math.nan),
        (bytearray(b"x"), b"x"),
        pytest.param(memoryview(b"x"), b"x", id="memoryview"),
        (collections.OrderedDict(a=1), {"a": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (np.float64(1.5), 1.5),
        (np.float32(1.5), 1.5),
        (np.longdouble(1.5), 1.5),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("t"), "t"),
        (np.array(7), 7),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.0, np.nan]), [1.0, math.nan]),
        (np.array([{"a": np.int64(1)}], dtype=object), [{"a": 1}]),
        (np.datetime64("2024-01-02"), "2024-01-02"),
        ({"a": {np.int64(1): np.float64(2)}}, {"a": {"1": 2.0}}),
        (10**30, 10**30),
        ([-(10**30), {"a": (2**64,)}], [-(10**30), {"a": [2**64]}]),
    ],
    ids=str,
)
def test_other_values_have_one_plain_form(value, plain):
    assert same(unpack(pack(value)), plain)
    assert same(unpack(pack({"deep": [value]})), {"deep": [plain]})


def test_keys_become_text_and_sets_a_sorted_list_whatever_is_in_them():
    keys = {2: "a", 1.5: "b", None: "c", Colour.RED: "d", False: "e"}
    assert list(unpack(pack(keys))) == ["2", "1.5", "None", "red", "False"]
    mixed = {"b", 1, None, (1, 2)}
    assert sorted(map(str, unpack(pack(mixed)))) == ["1", "None", "[1, 2]", "b"]
    assert pack(mixed) == pack({(1, 2), None, 1, "b"})


@pytest.mark.parametrize(
    "value",
    [{1: "a", "1": "b"}, {Colour.RED: 1, "red": 2}, {"deep": [{np.int64(1): 1, 1.0: 2, "1": 3}]}],
)
def test_keys_that_become_the_same_text_are_refused_not_dropped(value):
    with pytest.raises(UnwritableError, match="two keys"):
        pack(value)


class Hostile(collections.abc.Mapping):
    def __getitem__(self, key):
        raise RuntimeError("no")

    def __iter__(self):
        return iter(["a"])

    def __len__(self):
        return 1


class Liar:
    __dict__ = property(lambda self: 1 / 0)

    @property
    def tolist(self):
        raise RuntimeError("no")


def lie_about_module():
    kind = type("Fake", (), {"tolist": lambda self: self})
    kind.__module__ = "numpy"
    return kind()


def cycle():
    value = {"a": []}
    value["a"].append(value)
    return value


def nest(depth, wrap):
    value = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        print,
        1j,
        Liar(),
        Hostile(),
        lie_about_module(),
        Point,
        iter([1]),
        np.array([1j]),
        {(1, 2): 3},
        {b"a": 1},
        Decimal("1e400"),
        Decimal("sNaN"),
        "lone \ud800 surrogate",
        {"\udfff": 1},
        cycle(),
        nest(101, lambda inner: [inner]),
        nest(101, lambda inner: {"a": inner}),
        nest(101, lambda inner: (inner,)),
        nest(10_000, lambda inner: [inner]),
        nest(10_000, lambda inner: {"a": (inner,)}),
        nest(10_000, lambda inner: Point(1, inner)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_plain_form_is_refused_and_never_becomes_its_text(value):
    with pytest.raises(UnwritableError) as caught:
        pack(value)
    assert str(caught.value)
    with pytest.raises(UnwritableError):
        pack({"outputs": {"x": value}})


def test_as_deep_as_is_allowed_is_read_back_on_a_deep_stack():
    data = pack(nest(100, lambda inner: [inner]))

    def dig(depth):
        return unpack(data) if not depth else dig(depth - 1)

    assert dig(500) == nest(100, lambda inner: [inner])


def test_a_refusal_says_what_it_was_and_what_to_do():
    with pytest.raises(UnwritableError, match=r"type complex .* return text, numbers"):
        pack({"z": 1j})
    with pytest.raises(UnwritableError, match="surrogate"):
        pack("\ud800")


def test_what_is_too_large_for_a_row_is_refused(monkeypatch):
    monkeypatch.setattr(packing, "MAX_BYTES", 2**20)
    pack(b"x" * (2**20 - 5))
    with pytest.raises(UnwritableError, match="1 MB"):
        pack(b"x" * 2**20)


@given(st.binary())
def test_other_bytes_are_unreadable_and_nothing_worse(data):
    with suppress(UnreadableError):
        unpack(data)
