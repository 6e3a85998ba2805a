"""What the rows of a ledger hold, as the records that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from fairtrial.study.ledger.packing import UnreadableError, pack, unpack
from fairtrial.study.ledger.summary import Attempt
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import FailureKind, RunResult, RunSpec, RunStatus

RESULTS = (
    "SELECT turn, run_id, seed, status, failure_kind, attempt, session, cost_usd, latency_s, body, "
    "stdout, stderr, crc, scores.rows "
    "FROM results LEFT JOIN bodies USING (turn) LEFT JOIN scores USING (turn)"
)
"""The rows that `result_of` reads."""
ATTEMPT, SESSION, BODY = 5, 6, 9
"""Where they hold these."""
LAST_ATTEMPT = (
    "SELECT max(attempt) FROM (SELECT attempt FROM results WHERE turn = :turn "
    "UNION ALL SELECT max(attempt) FROM attempts WHERE turn = :turn "
    "UNION ALL SELECT max(attempt) FROM events WHERE turn = :turn)"
)
SENSELESS = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
"""What comes of a row that holds other things than those that were written."""


def read_result(
    spec: RunSpec,
    row: tuple[Any, ...],
    events: Iterable[bytes],
    run_by: tuple[str | None, str | None],
) -> RunResult:
    """What came of a run; raises `UnreadableError` for a row that makes no sense.

    run_by: the executor and the host
    """
    _, run_id, seed, status, kind, attempt, _, cost, latency, body, out, err, crc, scores = row
    if run_id != spec.run_id or seed != spec.seed:
        raise UnreadableError(
            f"it holds {run_id} with seed {seed}, not {spec.run_id} with seed {spec.seed}"
        )
    try:
        if crc32(body) != crc:
            raise UnreadableError("its bytes are not those that were written")
        told = unpack(body)
        judged = None if scores is None else unpack(scores)
        started_at, metadata = told["started_at"], told["execution_metadata"]
        return RunResult(
            run_id=run_id,
            status=RunStatus(status),
            outputs=told["outputs"],
            metrics={**told["metrics"], **judged["metrics"]} if judged else told["metrics"],
            evaluator_outputs=tuple(judged["rows"] if judged else told["evaluations"]),
            # Of the whole run; the column is what this attempt has added.
            cost=told["metrics"].get("cost_usd", cost),
            latency=latency,
            trace_refs=tuple(told["trace_refs"]),
            artifact_refs=tuple(told["artifact_refs"]),
            error_info=None if kind is None else told["error_info"],
            provenance_info=told["provenance"],
            observations=tuple([unpack(data) for data in events]) if events else (),
            run_spec=_told_spec(spec, metadata) if metadata else spec,
            started_at=started_at,
            ended_at=_later(started_at, latency),
            failure_kind=None if kind is None else FailureKind(kind),
            attempt=attempt,
            executor=run_by[0],
            host=run_by[1],
            traceback=None if kind is None else told["traceback"],
            stdout=_text_of(out),
            stderr=_text_of(err),
        )
    except SENSELESS as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def read_attempt(row: tuple[Any, ...]) -> Attempt:
    """An attempt; raises `UnreadableError` for a row that makes no sense."""
    execution_index, attempt, session, status, kind, cost, tokens, latency, body, out, err = row
    try:
        how = RunStatus(status), None if kind is None else FailureKind(kind)
        printed = _text_of(out), _text_of(err)
    except SENSELESS as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
    return Attempt(
        execution_index, attempt, session, *how, cost, tokens, latency, unpack(body), *printed
    )


def _text_of(printed: bytes | None) -> str:
    return "" if printed is None else printed.decode("utf-8", "replace")


def _told_spec(spec: RunSpec, metadata: Mapping[str, Any]) -> RunSpec:
    return RunSpec(
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


def _later(started_at: str | None, latency_s: float) -> str | None:
    """When a run ended: by its length, since the wall clock may have been set back meanwhile."""
    if started_at is None:
        return None
    ended = datetime.fromisoformat(started_at) + timedelta(seconds=latency_s)
    return ended.isoformat(timespec="milliseconds")


def pack_condition(condition: Condition) -> bytes:
    """A condition, as `condition_of` reads it."""
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
    """A condition; raises `UnreadableError` for bytes that are none."""
    told = unpack(data)
    try:
        return Condition(
            told["condition_id"],
            told["factors"],
            told["blocks"],
            told["metadata"],
            told["admissible"],
            tuple(told["messages"]),
        )
    except SENSELESS as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
