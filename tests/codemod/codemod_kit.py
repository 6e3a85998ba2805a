"""What the tests of transformations share: inputs, and how a function's behavior is recorded."""

import copy

from hypothesis import strategies as st

INTS = st.lists(st.integers(-9, 9), max_size=12)
FEW = st.lists(st.integers(0, 5), max_size=12)
TEXT = st.text("abcz. -\n'\"é", max_size=8)
TEXTS = st.lists(st.text("abcABz \n'\"é", max_size=3), max_size=6)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8)
SMALL = st.integers(0, 14)
NUMBER = st.integers(-3, 60)
WORDS = st.dictionaries(st.integers(0, 5), st.integers(0, 5), max_size=5)
LISTS = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 2), max_size=1), max_size=5)
GRAPH = st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=3), max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 4), "name": st.text("abAB", max_size=2)}),
    max_size=7,
)
ANY = st.one_of(
    FEW,
    FEW.map(tuple),
    FEW.map(set),
    WORDS,
    st.lists(st.lists(st.integers(0, 2), max_size=1), max_size=4),
    st.text("abc", max_size=3),
    st.none(),
)
"""Objects that may be tested for membership, or not."""


def load(text, name="f"):
    """Execute a source and return one of its functions."""
    names = {"__name__": "loaded"}
    exec(compile(text, "loaded.py", "exec", dont_inherit=True), names)
    return names[name]


def call(function, arguments):
    """Return what a function returns or raises, and its arguments afterwards, as texts."""
    mine = copy.deepcopy(arguments)
    try:
        return repr(function(*mine)), repr(mine)
    except Exception as error:
        return repr((type(error), error.args)), repr(mine)
