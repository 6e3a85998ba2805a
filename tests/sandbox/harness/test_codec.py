"""Tagged JSON: values survive a round trip, and hostile objects do no harm."""

import collections
import dataclasses
import datetime
import decimal
import enum
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy
import pytest
from hypothesis import given
from old_python import find_old_python
from value_strategies import values

from fairtrial.sandbox.harness import codec, decoder
from fairtrial.sandbox.wire import Caps, dump_encoded, encode, encode_raised

HARNESS = Path(codec.__file__).parent


def same(one, other):
    """Return whether values and types are equal at all levels; NaN equals NaN, but not -0.0 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, decimal.Decimal):
        return str(one) == str(other)
    if isinstance(one, dict):
        # In order, too.
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (set, frozenset)):
        return sorted(map(spell, one)) == sorted(map(spell, other))
    if isinstance(one, (list, tuple, collections.deque)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (datetime.datetime, datetime.time)):
        return repr(one) == repr(other)
    return one == other


def spell(value):
    return dump_encoded(encode(value))


@given(values)
def test_what_is_written_down_can_be_made_again_with_its_types(value):
    text = dump_encoded(encode(value))
    assert text.isascii()
    assert "\n" not in text
    assert same(decoder.decode(json.loads(text)), value)


@given(values)
def test_the_same_value_gives_the_same_text(value):
    assert spell(decoder.decode(json.loads(spell(value)))) == spell(value)


@pytest.mark.parametrize("value", [{"$": 1}, {"$": "tuple", "items": [1]}, [{"$": {"$": 2}}]])
def test_a_dictionary_that_looks_like_a_tag_stays_a_dictionary(value):
    assert same(decoder.decode(json.loads(spell(value))), value)


def test_the_order_of_an_ordered_dictionary_is_its_own():
    value = collections.OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert encode(value)["items"] == [["b", 2], ["a", 1]]


@pytest.mark.parametrize(
    "value",
    [
        numpy.arange(6.0).reshape(2, 3),
        numpy.array([[1, 2]], dtype=">i2").T,
        numpy.array([math.nan, -0.0, math.inf], dtype="f4"),
        numpy.array(["a", "bcd"]),
        numpy.array([b"a", b"bcd"]),
        numpy.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
        numpy.array([True, False]),
        numpy.array(3 + 4j),
        numpy.empty((0, 3)),
        numpy.arange(12).reshape(3, 4)[::2, ::-1],
    ],
)
def test_arrays_keep_dtype_shape_and_content(value):
    again = decoder.decode(json.loads(spell(value)))
    assert type(again) is numpy.ndarray
    assert (again.dtype, again.shape) == (value.dtype, value.shape)
    assert again.tobytes() == value.tobytes()
    again[...] = again  # it can be changed, like any other argument


def test_object_arrays_are_written_item_by_item():
    value = numpy.array([[1, "a"], [None, (2,)]], dtype=object)
    again = decoder.decode(json.loads(spell(value)))
    assert again.shape == (2, 2)
    assert same(again.tolist(), value.tolist())


@pytest.mark.parametrize(
    "value", [numpy.float64(0.1), numpy.int8(-3), numpy.bool_(True), numpy.str_("a")]
)
def test_numbers_of_numpy_are_not_those_of_python(value):
    again = decoder.decode(json.loads(spell(value)))
    assert type(again) is type(value)
    assert again == value
    assert spell(value) != spell(value.item())


def test_structured_arrays_are_written_with_their_dtype():
    value = numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
    told = encode(value)
    assert told["items"] == [{"$": "tuple", "items": [1, 2.5]}]
    assert "'a'" in told["dtype"]


Point = collections.namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Node:
    kind: ClassVar[int] = 1
    name: str = ""
    cache: dict = dataclasses.field(default_factory=dict, compare=False)


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("a",)
    a: int


class Mine(dict):
    pass


class Tagged(str):
    __slots__ = ("note",)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, "a"), {"$": "namedtuple", "names": ["x", "y"], "items": [1, "a"]}),
        (Color.RED, {"$": "enum", "name": "RED", "value": {"$": "tuple", "items": [1, 2]}}),
        (Level.LOW, {"$": "enum", "name": "LOW", "value": 1}),
        (Node(name="n"), {"$": "dataclass", "state": {"name": "n"}}),
        (Slotted(3), {"$": "dataclass", "state": {"a": 3}}),
        (Mine(a=1), {"$": "object", "base": {"a": 1}, "state": {}}),
    ],
)
def test_user_defined_classes_keep_their_name(value, expected):
    told = encode(value)
    assert told.pop("type") == f"{__name__}.{type(value).__name__}"
    assert told == expected


def test_what_a_subclass_of_a_built_in_type_has_besides_is_written():
    mine, tagged = Mine(a=1), Tagged("x")
    mine.note, tagged.note = [2], 3
    assert encode(mine)["state"] == {"note": [2]}
    assert encode(tagged)["state"] == {"note": 3}
    assert encode(tagged)["base"] == "x"


def test_exceptions_are_their_type_and_arguments():
    error = OSError(2, "gone", "file")
    assert encode_raised(error) == {"type": "builtins.FileNotFoundError", "args": [2, "gone"]}
    assert encode(KeyError(("a", 1))) == {
        "$": "exception",
        "type": "builtins.KeyError",
        "args": [{"$": "tuple", "items": ["a", 1]}],
    }


def test_iterators_are_written_item_by_item():
    def changing():
        items = []
        for number in range(3):
            items.append(number)
            yield items  # the same list every time

    def failing():
        yield 1
        raise ValueError("no more")

    assert encode(changing()) == {"$": "iterator", "items": [[0], [0, 1], [0, 1, 2]]}
    assert encode(map(abs, [-1])) == encode(iter([1]))
    assert encode(failing())["raised"]["type"] == "builtins.ValueError"
    assert list(decoder.decode(encode(iter((1, 2))))) == [1, 2]


def test_a_value_that_holds_itself_is_marked_and_a_shared_one_is_written_twice():
    loop = [1]
    loop.append({"again": loop})
    assert encode(loop) == [1, {"again": {"$": "cycle", "up": 2}}]
    inner = [1]
    assert encode([inner, inner]) == [[1], [1]]


def test_objects_without_content_that_can_be_read_say_their_type_and_nothing_else():
    assert encode(object()) == {"$": "opaque", "type": "builtins.object"}
    assert encode([lambda: 0]) == [{"$": "opaque", "type": "builtins.function"}]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([0] * 20, "more than 10 values"),
        ([[[[[[0]]]]]], "deeper than 5 levels"),
        ("a" * 200, "more than 100 bytes"),
        (b"a" * 200, "more than 100 bytes"),
        (1 << 2000, "more than 100 bytes"),
        (numpy.zeros(100), "more than 100 bytes"),
        (itertools.count(), "more than 10 values"),
        ({"a": {"b": itertools.repeat("x")}}, "more than 10 values"),
    ],
)
def test_what_is_too_large_is_marked(value, why):
    told = encode(value, Caps(depth=5, items=10, size=100))
    assert told["$"] == "unreadable"
    assert why in told["why"]


def test_a_value_that_grows_by_sharing_is_stopped():
    laughs = ["ha"]
    for _ in range(40):
        laughs = [laughs] * 10
    assert encode(laughs, Caps(items=10_000))["$"] == "unreadable"


# What a candidate might send in the place of a right result.


class Liar:
    """Claims to be the list that is expected."""

    __class__ = list

    def __len__(self):
        return 1 << 40

    def __iter__(self):
        return itertools.repeat(0)

    def __eq__(self, other):
        return True

    __hash__ = None


class Endless(list):
    def __iter__(self):
        return itertools.repeat(0)

    def __len__(self):
        return 1 << 40


class Hidden(dict):
    def items(self):
        return [("right", 1)]

    keys = values = __iter__ = items


class Poser(type):
    """A class that claims to be `int`."""

    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return hash(int)

    __name__ = property(lambda cls: "int")
    __mro__ = property(lambda cls: (int, object))


class Posed(int, metaclass=Poser):
    def __int__(self):
        return 7

    __index__ = __repr__ = __str__ = __int__


class Text(str):
    def __str__(self):
        return "right"

    __repr__ = __format__ = encode = __str__


class Real(float):
    def __repr__(self):
        return "1.5"

    __float__ = __sub__ = __str__ = __repr__


class Moment(datetime.datetime):
    year = 1999


class Bare:
    @property
    def __dict__(self):
        raise SystemError


@pytest.mark.parametrize(
    ("kind", "content", "base"),
    [
        (Endless, [1], [1]),
        (Hidden, {"wrong": 2}, {"wrong": 2}),
        (Posed, 3, 3),
        (Text, "wrong", "wrong"),
        (Real, 2.5, 2.5),
    ],
    ids=["list", "dict", "int", "str", "float"],
)
def test_objects_that_lie_are_seen_as_what_they_are(kind, content, base):
    told = json.loads(dump_encoded(encode(kind(content))))
    assert told["$"] == "object"
    assert told["base"] == base
    assert type(told["base"]) is type(base)


def test_an_object_is_no_list_for_saying_so():
    told = encode(Liar())
    assert told["$"] == "object"
    assert told["type"].endswith("Liar (with its own __class__)")


def test_a_class_that_hides_its_attributes_can_not_be_compared():
    assert encode(Bare())["$"] == "opaque"


def test_a_subclass_can_not_hide_a_date():
    assert encode(Moment(2020, 1, 2))["base"]["items"][:3] == [2020, 1, 2]


def test_reading_that_raises_is_marked():
    class Broken:
        def __iter__(self):
            return self

        def __next__(self):
            raise SystemError("no")

    class Zone(datetime.tzinfo):
        def utcoffset(self, when):
            raise RuntimeError

    assert encode(Broken())["raised"]["type"] == "builtins.SystemError"
    told = encode([datetime.datetime(2020, 1, 1, tzinfo=Zone())])
    assert told == {"$": "unreadable", "why": "reading it raised builtins.RuntimeError"}


@pytest.mark.parametrize(
    "node",
    [
        encode(Point(1, 2)),
        encode(Color.RED),
        encode(Node()),
        encode(Mine()),
        encode(object()),
        encode(ValueError()),
        encode(int),
        {"$": "cycle", "up": 1},
        {"$": "eval", "value": "1"},
        {"$": ["tuple"]},
        {"$": "tuple"},
        {"$": "set", "items": [[1]]},
        {"$": "path", "type": "system", "value": "x"},
        {"$": "defaultdict", "items": [], "factory": "open"},
        {"$": "ndarray", "dtype": "O", "shape": [1], "value": "AAAAAAAAAAA="},
        {"$": "datetime", "items": [2020, 1, 1, 0, 0, 0, 0, 0], "zone": {"type": "os.system"}},
    ],
)
def test_only_plain_types_are_made_again(node):
    with pytest.raises(ValueError, match=r"can't be|cannot|not"):
        decoder.decode([node])


TRIED_ELSEWHERE = """
import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, uuid, array, sys
P = collections.namedtuple("P", "x y")
class C(enum.Enum):
    A = 1
@dataclasses.dataclass
class D:
    a: int = 1
class L(list):
    pass
values = [
    None, True, 1, 2**70, 1.5, float("nan"), -0.0, "\\ud800", "$", {"$": 1}, {1: 2}, {"a": [1]},
    (1,), {3, 1}, frozenset("ab"), b"x", bytearray(b"y"), 1j, range(3), slice(1, 2),
    datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.timezone.utc), datetime.date(2020, 1, 2),
    datetime.time(1, 2), datetime.timedelta(1, 2, 3), decimal.Decimal("1.10"),
    fractions.Fraction(1, 3), uuid.UUID(int=5), pathlib.PurePosixPath("a/b"),
    collections.OrderedDict(b=1), collections.Counter("aab"), collections.deque([1], 3),
    collections.defaultdict(int, a=1), array.array("i", [1, 2]), iter([1, 2]), {"a": 1}.keys(),
    P(1, 2), C.A, D(), L([1]), ValueError("x", 1), object(), ..., int,
]
"""


OLD = find_old_python()


@pytest.mark.skipif(OLD is None, reason="there is no Python 3.8 here")
def test_an_old_python_writes_and_reads_the_same():
    program = """
import sys, types
package = types.ModuleType("harness")
package.__path__ = [sys.argv[1]]
sys.modules["harness"] = package
from harness import codec, decoder
exec(sys.argv[2])
for value in values:
    told = codec.dump_encoded(codec.encode(value))
    print(told)
    try:
        again = codec.dump_encoded(codec.encode(decoder.decode(__import__("json").loads(told))))
    except ValueError:
        continue
    assert again == told, (again, told)
"""
    outputs = [
        subprocess.run(
            [python, "-c", program, str(HARNESS), TRIED_ELSEWHERE],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for python in (OLD, sys.executable)
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 43
