"""The wire format between a study and its worker processes.

To the worker: requests, each a length and a pickle. From the worker: frames, each with a magic
number, so that anything else that gets into the pipe is detected. Frames are not pickled: nothing
that an agent writes is executed by the study.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter

from fairtrial.core import Mistake, StudyError
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import (
    Assignment,
    FailureKind,
    Finished,
    Outcome,
    RunSpec,
    RunStatus,
)

READY, EVENT, DONE, ENTRY = 1, 2, 3, 4
"""Kinds of frames: worker ready, event, outcome, journal entry."""
DURABLE = b"kept"
"""The prefix of a request that confirms a journal entry; no pickle begins like this."""
MAX_FRAME_BYTES = 256 * 1024 * 1024
_MAGIC = 0x5FA1
_HEAD = struct.Struct("<HBI")
_DONE = struct.Struct("<QIBBdqd")
_LENGTH = struct.Struct("<I")
_STATUSES = tuple(RunStatus)
_KINDS = (None, *FailureKind)
_MAX_TOKENS = 2**63 - 1
# Pickling tuples takes a third of the time of dataclasses with slots.
_spec_values = attrgetter(*(field.name for field in fields(RunSpec)))
_condition_values = attrgetter(*(field.name for field in fields(Condition)))


class CorruptFrameError(Exception):
    """Something other than valid frames came through the pipe."""


# -- to the worker --


def make_request(content: bytes) -> bytes:
    """Return the bytes of a request with this content."""
    return _LENGTH.pack(len(content)) + content


def split_request(data: bytes | bytearray) -> tuple[bytes, int] | None:
    """Return the content of the first request in `data` and its end; None if incomplete."""
    if len(data) < _LENGTH.size:
        return None
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    return (bytes(data[_LENGTH.size : end]), end) if len(data) >= end else None


def dump_assignment(assignment: Assignment) -> bytes:
    """Return an assignment as the content of a request; `StudyError` if it can't be pickled."""
    condition = assignment.condition
    try:
        return pickle.dumps(
            (
                assignment.execution_index,
                assignment.attempt,
                _spec_values(assignment.spec),
                _condition_values(condition),
                assignment.timeout_s,
                assignment.journal,
                assignment.demand,
            ),
            pickle.HIGHEST_PROTOCOL,
        )
    except Exception as error:  # pickle raises whatever the value's own methods do
        raise StudyError(
            Mistake(
                ("conditions", condition.condition_id),
                f"has a value that can't reach a worker process: {error}",
                "use text, numbers, lists and mappings, or --executor serial",
            )
        ) from error


def load_assignment(content: bytes) -> Assignment:
    """Return the assignment that `dump_assignment` was given."""
    execution_index, attempt, spec, condition, *rest = pickle.loads(content)
    return Assignment(execution_index, attempt, RunSpec(*spec), Condition(*condition), *rest)


def dump_durable(number: int) -> bytes:
    """Return the content of the request that confirms journal entry `number` as durable."""
    return DURABLE + str(number).encode()


# -- from the worker --


def make_frame(kind: int, content: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return _HEAD.pack(_MAGIC, kind, len(content)) + content


def dump_outcome(assignment: Assignment | Finished, outcome: Outcome) -> bytes:
    """Return an outcome as the content of a `DONE` frame."""
    head = _DONE.pack(
        assignment.execution_index,
        assignment.attempt,
        _STATUSES.index(outcome.status),
        _KINDS.index(outcome.failure_kind),
        outcome.cost_usd,
        min(int(outcome.tokens), _MAX_TOKENS),
        outcome.latency_s,
    )
    return head + outcome.body


def load_outcome(content: bytes, assignment: Assignment) -> Outcome:
    """Return the outcome of `assignment`; raises `CorruptFrameError` for any other content."""
    try:
        execution_index, attempt, status, kind, cost_usd, tokens, latency_s = _DONE.unpack_from(
            content
        )
        if (execution_index, attempt) != (assignment.execution_index, assignment.attempt):
            raise CorruptFrameError
        body = content[_DONE.size :]
        return Outcome(_STATUSES[status], _KINDS[kind], cost_usd, tokens, latency_s, body)
    except (struct.error, IndexError):
        raise CorruptFrameError from None


class FrameBuffer:
    """Collects bytes and splits them into frames."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the frames that are now complete, as kind and content."""
        buffer = self._data
        buffer += data
        while len(buffer) >= _HEAD.size:
            magic, kind, size = _HEAD.unpack_from(buffer)
            if magic != _MAGIC or not READY <= kind <= ENTRY or size > MAX_FRAME_BYTES:
                raise CorruptFrameError
            end = _HEAD.size + size
            if len(buffer) < end:
                return
            content = bytes(buffer[_HEAD.size : end])
            del buffer[:end]
            yield kind, content
