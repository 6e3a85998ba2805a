"""Parts of executors: captured output, event limits, frames and the assignment source."""

import pytest
from hypothesis import given, strategies as st

from fairtrial.study import Condition, RunSpec, RunStatus
from fairtrial.study.executors import Assignment, FailureKind, Outcome, pack, unpack
from fairtrial.study.runner.executors import (
    event_limit as events,
    frames,
    output_capture as capture,
)
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.frames import (
    DONE,
    EVENT,
    READY,
    CorruptFrameError,
    FrameBuffer,
    dump_assignment,
    dump_outcome,
    load_assignment,
    load_outcome,
    make_frame,
    make_request,
    split_request,
)
from fairtrial.study.runner.executors.output_capture import BoundedOutput
from fairtrial.testing.executor_work import assign

CHUNKS = st.lists(st.binary(max_size=30), max_size=20)
CONTENTS = st.lists(st.tuples(st.sampled_from([READY, EVENT, DONE]), st.binary(max_size=40)))


# -- output --


@given(CHUNKS)
def test_the_beginning_and_the_end_are_kept(chunks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture, "HEAD_BYTES", 50)
        patch.setattr(capture, "TAIL_BYTES", 20)
        kept = BoundedOutput()
        for chunk in chunks:
            kept.add(chunk)
        whole, taken = b"".join(chunks), kept.take()
    if len(whole) <= 70:
        assert taken == whole
    else:
        note = b"\n[... %d more bytes]\n" % (len(whole) - 70)
        assert taken == whole[:50] + note + whole[-20:]
    assert kept.take() == b""


def test_large_numbers_are_written_for_people():
    kept = BoundedOutput()
    for _ in range(20):
        kept.add(b"x" * 64 * 1024)
    assert b"[... 1,245,184 more bytes]" in kept.take()


# -- events --


def test_events_beyond_the_limit_are_counted(monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENTS", 3)
    sent = []
    emitter = events.LimitedEmitter(sent.append)
    for number in range(5):
        emitter(pack(number))
    emitter.close()
    emitter(pack("late"))
    *kept, last = map(unpack, sent)
    assert kept == [0, 1, 2]
    assert last["meta"] == {"dropped": 2}
    assert "2 more events" in last["text"]


def test_a_large_event_leaves_room_for_small_ones(monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 100)
    sent = []
    emitter = events.LimitedEmitter(sent.append)
    for size in (60, 60, 30):
        emitter(b"x" * size)
    emitter.close()
    assert [len(data) for data in sent[:-1]] == [60, 30]


def test_nothing_is_said_where_nothing_was_dropped():
    sent = []
    events.LimitedEmitter(sent.append).close()
    assert sent == []


# -- frames --


@given(CONTENTS, st.lists(st.integers(1, 30), min_size=1))
def test_frames_come_out_however_the_pipe_cuts_them(contents, sizes):
    data = b"".join(make_frame(kind, content) for kind, content in contents)
    buffer, frames_read, number = FrameBuffer(), [], 0
    while data:
        size = sizes[number % len(sizes)]
        frames_read += buffer.add(data[:size])
        data, number = data[size:], number + 1
    assert frames_read == contents


@given(st.binary(min_size=20, max_size=60))
def test_anything_else_is_seen(noise):
    good = make_frame(EVENT, b"x")
    if noise[:2] == good[:2]:
        return
    with pytest.raises(CorruptFrameError):
        list(FrameBuffer().add(good + noise))


def test_a_frame_that_claims_too_much_is_refused(monkeypatch):
    frame = make_frame(EVENT, b"x" * 100)
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 99)
    with pytest.raises(CorruptFrameError):
        list(FrameBuffer().add(frame[:20]))


@given(st.binary(), st.binary())
def test_requests_come_out_whole_or_not_at_all(content, rest):
    request = make_request(content)
    assert split_request(request + rest) == (content, len(request))
    assert split_request(request[:-1]) is None or not content


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
MAPPINGS = st.dictionaries(st.text(), VALUES, max_size=3)


@given(
    st.builds(
        Assignment,
        st.integers(0, 2**32),
        st.integers(1, 100),
        st.builds(RunSpec, *[st.text()] * 4, *[st.integers()] * 2, *[st.text()] * 2, MAPPINGS),
        st.builds(
            Condition, st.text(), MAPPINGS, MAPPINGS, MAPPINGS, st.booleans(), st.tuples(st.text())
        ),
        st.none() | st.floats(0.1, 100),
        st.lists(st.binary(max_size=20), max_size=3).map(tuple),
        st.lists(st.tuples(st.text(), st.floats(0.1, 100)), max_size=3).map(tuple),
    )
)
def test_an_assignment_crosses_unchanged(assignment):
    assert load_assignment(dump_assignment(assignment)) == assignment


def test_every_field_of_an_assignment_is_named_above():
    # `dump_assignment` lists them one by one; a new one has to be added there and here.
    fields = ("execution_index", "attempt", "spec", "condition", "timeout_s", "journal", "demand")
    assert Assignment._fields == fields


@given(
    st.builds(
        Outcome,
        st.sampled_from(RunStatus),
        st.none() | st.sampled_from(FailureKind),
        st.floats(allow_nan=False),
        st.integers(0, 2**63 - 1),
        st.floats(0, 1e9),
        st.binary(),
    )
)
def test_an_outcome_crosses_unchanged(outcome):
    assignment = assign(3, attempt=2)
    back = load_outcome(dump_outcome(assignment, outcome), assignment)
    assert back == outcome
    assert isinstance(back.status, RunStatus)


def test_an_outcome_of_something_else_is_garbled():
    outcome = Outcome(RunStatus.SUCCESS, None, 0.0, 2**70, 0.0, b"")
    content = dump_outcome(assign(3), outcome)
    assert load_outcome(content, assign(3)).tokens == 2**63 - 1
    for other in (assign(4), assign(3, attempt=2)):
        with pytest.raises(CorruptFrameError):
            load_outcome(content, other)
    with pytest.raises(CorruptFrameError):
        load_outcome(content[:10], assign(3))


# -- where assignments come from --


def test_a_feed_is_asked_no_more_often_than_it_wants():
    answers = [assign(0), 60.0, assign(1), None]
    source = AssignmentSource(lambda: answers.pop(0))
    assert source.take() == assign(0)
    assert source.take() is None
    assert source.take() is None
    assert 1 < source.wait_s(100) <= 60
    assert source.wait_s(0.1) == 0.1
    assert not source.is_exhausted
    source.poll_again()
    assert source.take() == assign(1)
    assert source.take() is None
    assert source.is_exhausted
    source.give_back(assign(5))
    assert not source.is_exhausted
    assert source.wait_s(1) == 0
    assert source.take() == assign(5)
