"""What is kept of a stream, whatever the pieces it comes in (spec 10)."""

from hypothesis import given, strategies as st

from fairtrial.sandbox.captured_output import Head, HeadAndTail

pieces = st.lists(st.binary(max_size=40), max_size=30)


@given(pieces, st.integers(0, 60))
def test_head_and_tail_are_kept_and_the_rest_is_counted(data, limit):
    capture = HeadAndTail(limit)
    for piece in data:
        capture.add(piece)
    whole, kept = b"".join(data), capture.captured()
    if len(whole) <= limit:
        assert (kept.head, kept.tail, kept.dropped) == (whole, b"", 0)
    else:
        assert whole.startswith(kept.head)
        assert whole.endswith(kept.tail)
        assert len(kept.head) + len(kept.tail) == limit
        assert abs(len(kept.head) - len(kept.tail)) <= 1
        assert kept.dropped == len(whole) - limit


@given(st.integers(0, 1000), st.integers(1, 200_000), st.integers(1, 5))
def test_long_streams_are_cut_on_the_way(limit, size, count):
    capture = HeadAndTail(limit)
    for number in range(count):
        capture.add(bytes([number]) * size)
    kept = capture.captured()
    assert len(kept.head) + len(kept.tail) + kept.dropped == size * count
    assert len(kept.tail) == 0 or kept.tail[-1] == count - 1


@given(pieces, st.integers(0, 60))
def test_the_beginning_is_kept(data, limit):
    head = Head(limit)
    for piece in data:
        head.add(piece)
    whole = b"".join(data)
    assert head.kept == whole[:limit]
    assert head.overflowed == (len(whole) > limit)
