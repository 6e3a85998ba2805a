"""Convert rows of a ledger to records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from fairtrial.study.ledger.ledger_summary import Attempt
from fairtrial.study.ledger.packing import UnreadableError, pack, unpack
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import (
    EVALUATOR_FAILED,
    FailureKind,
    RunResult,
    RunSpec,
    RunStatus,
    make_result,
    make_spec,
)

SELECT_RESULTS = (
    "SELECT turn, run_id, seed, status, failure_kind, attempt, session, cost_usd, latency_s, body, "
    "stdout, stderr, crc, scores.rows "
    "FROM results LEFT JOIN bodies USING (turn) LEFT JOIN scores USING (turn)"
)
"""Selects the rows that `read_result` reads."""
RUN_ID_COLUMN, SEED_COLUMN, ATTEMPT_COLUMN, SESSION_COLUMN, BODY_COLUMN = 1, 2, 5, 6, 9
"""The positions of these columns in them."""
SELECT_LAST_ATTEMPT = (
    "SELECT max(attempt) FROM (SELECT attempt FROM results WHERE turn = :turn "
    "UNION ALL SELECT max(attempt) FROM attempts WHERE turn = :turn "
    "UNION ALL SELECT max(attempt) FROM events WHERE turn = :turn)"
)
SAME_MILLISECOND_S = 0.000_999
"""What is shorter, even rounded to microseconds, ends in the millisecond that it started in."""
_STATUSES = {str(status): status for status in RunStatus}
_INVALID_ROW = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
"""The exceptions of reading a row whose content has changed."""


def read_result(
    spec: RunSpec,
    row: tuple[Any, ...],
    events: Iterable[bytes],
    run_by: tuple[str | None, str | None],
    *,
    is_own: bool = False,
) -> RunResult:
    """Return the result of a run; raises `UnreadableError` for an invalid row.

    spec: the run, which the row must belong to
    row: a row of `SELECT_RESULTS`
    events: the packed events of the attempt
    run_by: the executor and the host of the session
    is_own: whether this process has written the row, so that its checksum needn't be compared
    """
    _, run_id, seed, status, kind, attempt, _, cost, latency, body, out, err, crc, scores = row
    if run_id != spec.run_id or seed != spec.seed:
        raise UnreadableError(
            f"it holds {run_id} with seed {seed}, not {spec.run_id} with seed {spec.seed}"
        )
    try:
        if not is_own and crc32(body) != crc:
            raise UnreadableError("its bytes are not those that were written")
        content = unpack(body)
        rescored = None if scores is None else unpack(scores)
        started_at, metadata = content["started_at"], content["execution_metadata"]
        return make_result(
            run_id,
            _STATUSES.get(status) or RunStatus(status),
            content["outputs"],
            {**content["metrics"], **rescored["metrics"]} if rescored else content["metrics"],
            tuple(rescored["rows"] if rescored else content["evaluations"]),
            # The metric covers the whole run; the column only this attempt.
            content["metrics"].get("cost_usd", cost),
            latency,
            tuple(content["trace_refs"]),
            tuple(content["artifact_refs"]),
            None if kind is None else content["error_info"],
            content["provenance"],
            tuple([unpack(data) for data in events]) if events else (),
            _add_metadata(spec, metadata) if metadata else spec,
            started_at,
            _end_time(started_at, latency),
            None if kind is None else FailureKind(kind),
            attempt,
            run_by[0],
            content.get("host", run_by[1]),
            None if kind is None else content["traceback"],
            _decode_output(out),
            _decode_output(err),
            kind is not None and has_evaluator_failed(content),
        )
    except _INVALID_ROW as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def has_evaluator_failed(content: Mapping[str, Any]) -> bool:
    """Return whether the agent had finished and its evaluator failed, by the body of a run."""
    if "evaluator_failed" in content:
        return bool(content["evaluator_failed"])
    # Older ledgers say it in the error only.
    return (content["error_info"] or "").startswith(EVALUATOR_FAILED)


def read_attempt(row: tuple[Any, ...]) -> Attempt:
    """Return an attempt; raises `UnreadableError` for an invalid row."""
    execution_index, attempt, session, status, kind, cost, tokens, latency, body, out, err = row
    try:
        outcome = RunStatus(status), None if kind is None else FailureKind(kind)
        printed = _decode_output(out), _decode_output(err)
    except _INVALID_ROW as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
    return Attempt(
        execution_index, attempt, session, *outcome, cost, tokens, latency, unpack(body), *printed
    )


def _decode_output(printed: bytes | None) -> str:
    return "" if printed is None else printed.decode("utf-8", "replace")


def _add_metadata(spec: RunSpec, metadata: Mapping[str, Any]) -> RunSpec:
    return make_spec(
        spec.run_id,
        spec.study_id,
        spec.condition_id,
        spec.problem_id,
        spec.replicate,
        spec.seed,
        spec.agent_spec_ref,
        spec.problem_spec_ref,
        {**spec.execution_metadata, **metadata},
    )


def _end_time(started_at: str | None, latency_s: float) -> str | None:
    """Return when a run ended, by its duration, since the wall clock may have been set back."""
    if started_at is None:
        return None
    if 0 <= latency_s < SAME_MILLISECOND_S and _is_in_milliseconds(started_at):
        return started_at
    ended = datetime.fromisoformat(started_at) + timedelta(seconds=latency_s)
    return ended.isoformat(timespec="milliseconds")


def _is_in_milliseconds(time: str) -> bool:
    """Return whether a time has the form of `agents.events.now`."""
    return len(time) == 29 and time[19] == "." and time.endswith("+00:00")


def pack_condition(condition: Condition) -> bytes:
    """Return a condition in the form that `read_condition` reads."""
    return pack(
        {
            "condition_id": condition.condition_id,
            "factors": condition.factor_assignments,
            "blocks": condition.block_assignments,
            "metadata": condition.metadata,
            "admissible": condition.admissible,
            "messages": condition.constraint_messages,
        }
    )


def read_condition(data: bytes) -> Condition:
    """Return a condition; raises `UnreadableError` for other bytes."""
    content = unpack(data)
    try:
        return Condition(
            content["condition_id"],
            content["factors"],
            content["blocks"],
            content["metadata"],
            content["admissible"],
            tuple(content["messages"]),
        )
    except _INVALID_ROW as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
