"""What goes through the pipes between a study and its workers.

Down: requests, each a length and a pickle. Up: frames, each with a mark, so that anything else
that gets into the pipe is seen at once. Frames are not pickled: nothing that an agent writes is
run by the study.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter

from fairtrial.core import Mistake, StudyError
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import Assignment, FailureKind, Outcome, RunSpec, RunStatus

READY, EVENT, DONE, NOTE = 1, 2, 3, 4
KEPT = b"kept"
"""How the content of a request begins that says which note is durable; no pickle begins so."""
MOST_FRAME_BYTES = 256 * 1024 * 1024
_MARK = 0x5FA1
_HEAD = struct.Struct("<HBI")
_DONE = struct.Struct("<QIBBdqd")
_LENGTH = struct.Struct("<I")
_STATUSES = tuple(RunStatus)
_KINDS = (None, *FailureKind)
_MOST_TOKENS = 2**63 - 1
# Tuples cross in a third of the time that dataclasses with slots take.
_spec_values = attrgetter(*(field.name for field in fields(RunSpec)))
_condition_values = attrgetter(*(field.name for field in fields(Condition)))


class GarbledError(Exception):
    """Something else than frames came through the pipe."""


# -- down --


def make_request(content: bytes) -> bytes:
    """`content` as it goes down."""
    return _LENGTH.pack(len(content)) + content


def split_request(data: bytes | bytearray) -> tuple[bytes, int] | None:
    """The first request in `data` and where it ends; None if it isn't there in full."""
    if len(data) < _LENGTH.size:
        return None
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    return (bytes(data[_LENGTH.size : end]), end) if len(data) >= end else None


def dump_assignment(assignment: Assignment) -> bytes:
    """An assignment as the content of a request."""
    condition = assignment.condition
    try:
        return pickle.dumps(
            (
                assignment.turn,
                assignment.attempt,
                _spec_values(assignment.spec),
                _condition_values(condition),
                assignment.timeout_s,
                assignment.journal,
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
    """What `dump_assignment` was given."""
    turn, attempt, spec, condition, *rest = pickle.loads(content)
    return Assignment(turn, attempt, RunSpec(*spec), Condition(*condition), *rest)


def dump_kept(number: int) -> bytes:
    """The content of the request that says: note `number` of this assignment is durable."""
    return KEPT + str(number).encode()


# -- up --


def make_frame(kind: int, content: bytes = b"") -> bytes:
    """A message as it goes up."""
    return _HEAD.pack(_MARK, kind, len(content)) + content


def dump_outcome(assignment: Assignment, outcome: Outcome) -> bytes:
    """An outcome as the content of a frame that says DONE."""
    head = _DONE.pack(
        assignment.turn,
        assignment.attempt,
        _STATUSES.index(outcome.status),
        _KINDS.index(outcome.failure_kind),
        outcome.cost_usd,
        min(int(outcome.tokens), _MOST_TOKENS),
        outcome.latency_s,
    )
    return head + outcome.body


def load_outcome(content: bytes, assignment: Assignment) -> Outcome:
    """The outcome of `assignment`; anything else is garbled."""
    try:
        turn, attempt, status, kind, cost_usd, tokens, latency_s = _DONE.unpack_from(content)
        if (turn, attempt) != (assignment.turn, assignment.attempt):
            raise GarbledError
        body = content[_DONE.size :]
        return Outcome(_STATUSES[status], _KINDS[kind], cost_usd, tokens, latency_s, body)
    except (struct.error, IndexError):
        raise GarbledError from None


class FrameBuffer:
    """Bytes in, frames out."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The frames that are complete now, as kind and content."""
        buffer = self._data
        buffer += data
        while len(buffer) >= _HEAD.size:
            mark, kind, size = _HEAD.unpack_from(buffer)
            if mark != _MARK or not READY <= kind <= NOTE or size > MOST_FRAME_BYTES:
                raise GarbledError
            end = _HEAD.size + size
            if len(buffer) < end:
                return
            content = bytes(buffer[_HEAD.size : end])
            del buffer[:end]
            yield kind, content
