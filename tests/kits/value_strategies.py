"""Values that can be written down, for property tests."""

import array
import collections
import datetime
import math
import pathlib

from hypothesis import strategies as st

zones = st.one_of(
    st.none(),
    st.just(datetime.UTC),
    st.integers(-1439, 1439).map(
        lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))
    ),
    st.just(datetime.timezone(datetime.timedelta(hours=1), "here")),
    st.timezones(),
)
surrogates = st.text(st.characters(), max_size=6)  # lone ones among them
atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 2**53, 2**53 + 1, -(2**53) - 1]),
    surrogates,
    st.sampled_from(["$", "", "\ud83d\ude00", "\udc80"]),
    st.binary(max_size=8),
)
hashables = st.one_of(
    atoms,
    st.complex_numbers(),
    st.dates(),
    st.timedeltas(),
    st.datetimes(timezones=zones),
    st.times(),
    st.decimals().filter(lambda number: not number.is_snan()),  # can't be hashed
    st.fractions(),
    st.uuids(),
    st.builds(pathlib.PurePosixPath, st.sampled_from(["a/b", "/", "c d"])),
    st.builds(pathlib.PosixPath, st.just("x")),
    st.builds(range, st.integers(0, 9), st.integers(-9, 9), st.integers(1, 3)),
    st.just(...),
)
hashables = st.one_of(
    hashables,
    st.lists(hashables, max_size=3).map(tuple),
    st.frozensets(hashables, max_size=3),
)
leaves = st.one_of(
    hashables,
    st.binary(max_size=8).map(bytearray),
    st.builds(slice, st.none() | st.integers(), st.none() | st.integers()),
    st.lists(st.integers(-9, 9), max_size=4).map(lambda items: array.array("i", items)),
    st.lists(st.floats(allow_nan=False), max_size=4).map(lambda items: array.array("d", items)),
)


def nested(inner):
    pairs = st.dictionaries(hashables, inner, max_size=4)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.sets(hashables, max_size=4),
        pairs,
        st.dictionaries(st.text(max_size=3), inner, max_size=4),
        pairs.map(collections.OrderedDict),
        st.dictionaries(hashables, st.integers(), max_size=4).map(collections.Counter),
        pairs.map(lambda found: collections.defaultdict(list, found)),
        st.builds(collections.deque, st.lists(inner, max_size=4), st.sampled_from([None, 3, 9])),
    )


values = st.recursive(leaves, nested, max_leaves=12)
