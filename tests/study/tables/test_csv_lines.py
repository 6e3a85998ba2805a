"""Lines that are formatted by columns have the bytes of Python's own CSV writer."""

from hypothesis import given, settings, strategies as st

from fairtrial.core import table_files
from fairtrial.study.tables.csv_lines import format_lines

TRICKY = [0.0, -0.0, 1, 1.0, True, None, "", "%s", "100%", "a,b", '"', "\n", "\r", " x", 2**70]
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(TRICKY),
)
COLUMNS = st.one_of(
    st.just(CELLS),
    st.just(st.floats()),
    st.just(st.text(max_size=4)),
    st.sampled_from(TRICKY).map(st.just),
    st.just(st.sampled_from([0.0, -0.0])),
)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), columns=st.lists(COLUMNS, min_size=1, max_size=5))
def test_lines_by_columns_are_those_of_the_csv_writer(data, columns):
    rows = data.draw(st.lists(st.tuples(*columns).map(list), max_size=6))
    assert format_lines(rows) == [table_files.format_csv([row]) for row in rows]
