"""The rows of runs that a page embeds, totals of all runs, and the details of some.

A page of a large study has a selection of its runs: those that did not succeed first, then others
evenly over the plan. Charts of all runs are made from totals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.page.plain_data import clean_data, clean_text, round_number
from fairtrial.study.report.outcome_reader import OutcomeReader
from fairtrial.study.report.run_table import RunTable

MOST_RUNS = 3_000
MOST_FAILED = 1_000
"""Of the embedded runs, those that did not succeed, unless there are too few others."""
DETAIL_BYTES = 2_500_000
"""Size of all details together."""
LONGEST_DETAIL = 60_000
MOST_EVENTS = 200
SHORTER = (12_000, 2_000, 300)
"""The longest text in the details of a run; a smaller one is tried if they are too large."""


@dataclass(slots=True)
class RunRow:
    """One run in the table of runs; `start` and `end` are seconds since 1970."""

    plan_index: int
    run_id: str
    condition: int
    agent: str | None
    problem: str | None
    replicate: int
    status: str
    failure: str | None
    error: str
    attempt: int
    latency: float
    cost: float
    tokens: int
    start: float | None
    end: float | None
    values: list[float | None] = field(default_factory=list)


@dataclass(slots=True)
class FailureGroup:
    """Runs that did not succeed for the same reason."""

    kind: str
    message: str
    runs: int = 0
    examples: list[str] = field(default_factory=list)


def read_rows(reader: LedgerReader, data: RunTable, outcomes: Sequence[str]) -> list[RunRow]:
    """Return a row for each result, in plan order."""
    study = data.study
    indices = {condition.condition_id: i for i, condition in enumerate(data.conditions)}
    readers = [OutcomeReader(study, data.readers[name].spec) for name in outcomes]
    rows = []
    for batch in reader.result_batches():
        for plan_index, result in batch:
            row = make_row(plan_index, result, indices)
            if row is None:
                continue
            is_success = result.status is RunStatus.SUCCESS
            condition = data.conditions[row.condition]
            row.values = [
                round_number(one.read(result, condition)) if is_success else None for one in readers
            ]
            rows.append(row)
    rows.sort(key=lambda row: row.plan_index)
    return rows


def make_row(plan_index: int, result: RunResult, conditions: Mapping[str, int]) -> RunRow | None:
    """Return the row of a result, without outcomes; None if its condition is unknown.

    conditions: the index of each condition by its id
    """
    spec = result.run_spec
    index = None if spec is None else conditions.get(spec.condition_id)
    if spec is None or index is None:
        return None
    tokens = sum(
        value if isinstance(value := result.metrics.get(name), int) else 0
        for name in ("input_tokens", "output_tokens")
    )
    return RunRow(
        plan_index=plan_index,
        run_id=result.run_id,
        condition=index,
        agent=spec.agent_spec_ref,
        problem=spec.problem_spec_ref,
        replicate=spec.replicate,
        status=result.status.value,
        failure=None if result.failure_kind is None else str(result.failure_kind),
        error=clean_text(result.error_info or "", 300),
        attempt=result.attempt,
        latency=result.latency,
        cost=result.cost,
        tokens=tokens,
        start=_seconds(result.started_at),
        end=_seconds(result.ended_at),
    )


def _seconds(time: str | None) -> float | None:
    try:
        return None if time is None else datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None


def select_rows(rows: Sequence[RunRow], most: int = MOST_RUNS) -> list[RunRow]:
    """Return the rows that a page embeds: some that did not succeed, others evenly."""
    if len(rows) <= most:
        return list(rows)
    failed = [row for row in rows if row.status != RunStatus.SUCCESS.value]
    succeeded = [row for row in rows if row.status == RunStatus.SUCCESS.value]
    chosen = _spread(failed, max(min(MOST_FAILED, most // 2), most - len(succeeded)))
    chosen += _spread(succeeded, most - len(chosen))
    return sorted(chosen, key=lambda row: row.plan_index)


def _spread(rows: Sequence[RunRow], most: int) -> list[RunRow]:
    if len(rows) <= most:
        return list(rows)
    return [rows[i * len(rows) // most] for i in range(most)]


def group_failures(rows: Sequence[RunRow], most: int = 50) -> list[dict[str, Any]]:
    """Return the runs that did not succeed, grouped by kind and message, most frequent first."""
    groups: dict[tuple[str, str], FailureGroup] = {}
    for row in rows:
        if row.status == RunStatus.SUCCESS.value:
            continue
        message = row.error.partition("\n")[0][:160]
        kind = row.failure or row.status
        group = groups.setdefault((kind, message), FailureGroup(kind, message))
        group.runs += 1
        if len(group.examples) < 5:
            group.examples.append(row.run_id)
    ordered = sorted(groups.values(), key=lambda group: -group.runs)
    return [
        {"kind": g.kind, "message": g.message, "runs": g.runs, "examples": g.examples}
        for g in ordered[:most]
    ]


def pack_rows(
    rows: Sequence[RunRow], agents: dict[str | None, int], problems: dict[str | None, int]
) -> dict[str, Any]:
    """Return rows as columns, which take the least space.

    agents, problems: the codes of their names, also in charts; new names are added
    """
    for row in rows:
        agents.setdefault(row.agent, len(agents))
        problems.setdefault(row.problem, len(problems))
    begin = min((row.start for row in rows if row.start is not None), default=0.0)
    return {
        "id": [row.run_id for row in rows],
        "condition": [row.condition for row in rows],
        "agent": [agents[row.agent] for row in rows],
        "problem": [problems[row.problem] for row in rows],
        "replicate": [row.replicate for row in rows],
        "status": [row.status for row in rows],
        "failure": [row.failure for row in rows],
        "error": [row.error[:160] for row in rows],
        "attempt": [row.attempt for row in rows],
        "latency": [round_number(row.latency, 4) for row in rows],
        "cost": [round_number(row.cost, 4) for row in rows],
        "tokens": [row.tokens for row in rows],
        "start": [None if row.start is None else round(row.start - begin, 3) for row in rows],
        "end": [None if row.end is None else round(row.end - begin, 3) for row in rows],
        "values": [list(column) for column in zip(*(row.values for row in rows), strict=True)],
        "agents": [clean_text(name or "–", 200) for name in agents],
        "problems": [clean_text(name or "–", 200) for name in problems],
        "begin": begin,
    }


def read_details(reader: LedgerReader, rows: Sequence[RunRow]) -> dict[str, Any]:
    """Return the details of as many runs as the page has room for, by run id.

    Runs that did not succeed come first, then others evenly, so that every part of the plan has
    some.
    """
    failed = [row for row in rows if row.status != RunStatus.SUCCESS.value]
    others = [row for row in rows if row.status == RunStatus.SUCCESS.value]
    details: dict[str, Any] = {}
    room = DETAIL_BYTES
    for row in (*failed, *_scatter(others)):
        result = reader.result(row.plan_index)
        if result is None:
            continue
        detail = describe_run(reader, row.plan_index, result)
        room -= len(json.dumps(detail))
        if room < 0:
            break
        details[row.run_id] = detail
    return details


def _scatter(rows: Sequence[RunRow]) -> Iterator[RunRow]:
    """Yield all rows, such that any first part of them is spread over the plan."""
    step = max(1, len(rows) // 64)
    for start in range(step):
        yield from rows[start::step]


def describe_run(reader: LedgerReader, plan_index: int, result: RunResult) -> dict[str, Any]:
    """Return everything known of one run, within the size that a page has room for."""
    attempts = reader.attempts(reader.execution_indexes[plan_index]) if result.attempt > 1 else []
    facts = {
        "outputs": result.outputs,
        "metrics": result.metrics,
        "evaluations": list(result.evaluator_outputs),
        "events": [_describe_event(event) for event in result.observations[:MOST_EVENTS]],
        "left_out_events": max(0, len(result.observations) - MOST_EVENTS),
        "error": result.error_info,
        "traceback": result.traceback,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "workspace": list(result.artifact_refs),
        "seed": None if result.run_spec is None else result.run_spec.seed,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "executor": result.executor,
        "host": result.host,
        "attempts": [
            {
                "attempt": attempt.attempt,
                "status": attempt.status.value,
                "failure": None if attempt.failure_kind is None else str(attempt.failure_kind),
                "error": attempt.details.get("error_info"),
                "traceback": attempt.details.get("traceback"),
                "latency": attempt.latency_s,
            }
            for attempt in attempts
        ],
    }
    facts = {name: value for name, value in facts.items() if value not in (None, "", [], {}, 0)}
    for longest in SHORTER:
        detail: dict[str, Any] = clean_data(facts, longest)
        if len(json.dumps(detail)) <= LONGEST_DETAIL:
            return detail
    detail["events"] = detail.get("events", [])[:10]
    return detail if len(json.dumps(detail)) <= LONGEST_DETAIL else {"too_large": True}


def _describe_event(event: Mapping[str, Any]) -> dict[str, Any]:
    names = ("timestamp", "event_type", "actor_id", "tool_name", "text", "meta")
    return {name: event[name] for name in names if event.get(name) not in (None, "", {})}
