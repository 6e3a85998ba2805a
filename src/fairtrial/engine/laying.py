"""The plan and the ledger brought together: a fresh start, or going on with what is there."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Callable, Iterator

from fairtrial.design.constraints import Expression
from fairtrial.design.plan import RunPlan
from fairtrial.engine.settings import RunSettings
from fairtrial.errors import LedgerError
from fairtrial.ledger.carrying import carry_order
from fairtrial.ledger.prints import differences, study_print
from fairtrial.ledger.reading import GONE, LedgerReader
from fairtrial.ledger.store import Ledger
from fairtrial.model.runs import RunSpec, RunStatus

CHUNK = 10_000
MOST_DIFFERENCES = 20


def lay_plan(ledger: Ledger, plan: RunPlan, settings: RunSettings) -> array[int]:
    """Lay the plan down in the ledger; returns the order of execution, place by turn.

    Refuses a ledger with results unless it is to be resumed, and one of a different study unless
    the changes are accepted.
    """
    study = plan.study
    reader = LedgerReader(ledger.connection, ledger.path)
    facts = {
        "study": json.dumps(study.to_dict()),
        "folder": None if study.folder is None else str(study.folder),
        "print": json.dumps(study_print(study, plan.conditions)),
    }
    is_new = ledger.fact("print") is None or next(reader.done_turns(), None) is None
    if not is_new:
        _refuse(ledger, plan, settings, facts["print"] or "")
        if ledger.fact("study") == facts["study"] and ledger.fact("print") == facts["print"]:
            return reader.order
    order = plan.order() if is_new else carry_order(reader, plan)
    ledger.write_plan(facts, plan.conditions, order)
    return order


def _refuse(ledger: Ledger, plan: RunPlan, settings: RunSettings, print_: str) -> None:
    folder = ledger.path.parent if ledger.path is not None else None
    changes = differences(json.loads(ledger.fact("print")), json.loads(print_))
    if changes and not (settings.resume and settings.accept_changes):
        more = len(changes) - MOST_DIFFERENCES
        shown = [*changes[:MOST_DIFFERENCES], *([f"and {more:,} more"] if more > 0 else [])]
        raise LedgerError(
            f"{folder} holds results of a different study:\n  "
            + "\n  ".join(shown)
            + "\nchoose another --output, or --resume --accept-changes to keep the results whose "
            "runs are still in the plan"
        )
    if not settings.resume:
        raise LedgerError(
            f"{folder} holds results of this study already; go on with --resume, or choose "
            "another --output"
        )


def set_aside_unfinished(ledger: Ledger, reader: LedgerReader, settings: RunSettings) -> None:
    """Make pending again what broke and, where that is asked for, what failed."""
    statuses = [RunStatus.BROKEN]
    if settings.retry == "failed":
        statuses.append(RunStatus.FAILED)
    turns = [turn for status in statuses for turn in reader.turns_with(status)]
    if turns:
        ledger.set_aside(turns)


def pending_turns(ledger: Ledger, plan: RunPlan, order: array[int]) -> Iterator[int]:
    """The turns that are still to come; looks ahead by a chunk, so that memory stays flat.

    No query stays open meanwhile: a reader that never ends keeps the write-ahead log from being
    folded back.
    """
    for start in range(0, len(order), CHUNK):
        stop = min(start + CHUNK, len(order))
        rows = ledger.connection.execute(
            "SELECT turn FROM results WHERE turn >= ? AND turn < ?", (start, stop)
        ).fetchall()
        done = {turn for (turn,) in rows}
        for turn in range(start, stop):
            if turn not in done and order[turn] != GONE and not plan.is_skipped(order[turn]):
                yield turn


def selected(
    turns: Iterator[int], plan: RunPlan, order: array[int], settings: RunSettings
) -> Iterator[int]:
    """The turns that this session is about, where it is to do only some."""
    if settings.only is not None:
        expression = Expression(settings.only)
        turns = (turn for turn in turns if _matches(expression, plan, order[turn]))
    return turns if settings.limit is None else itertools.islice(turns, settings.limit)


def _matches(expression: Expression, plan: RunPlan, place: int) -> bool:
    condition, spec = plan.condition_at(place), plan.spec(place)
    factors = {**_facts_of(spec), **condition.factor_assignments}
    return expression.holds(factors, condition.block_assignments)


def _facts_of(spec: RunSpec) -> dict[str, object]:
    return {
        "agent_id": spec.agent_spec_ref,
        "problem_id": spec.problem_id,
        "replicate": spec.replicate,
        "condition_id": spec.condition_id,
        "run_id": spec.run_id,
    }


def attempt_counter(ledger: Ledger) -> Callable[[int], int]:
    """The number of a turn's next attempt.

    Only turns that an earlier session came to can have had one, and those that were cut off by a
    kill have left nothing but events.
    """
    tables = ("results", "attempts", "events")
    query = " UNION ALL ".join(f"SELECT max(turn) AS turn FROM {name}" for name in tables)
    highest = ledger.connection.execute(f"SELECT max(turn) FROM ({query})").fetchone()[0]
    if highest is None:
        return lambda turn: 1

    def count(turn: int) -> int:
        if turn > highest:
            return 1
        row = ledger.connection.execute(
            "SELECT max(coalesce((SELECT max(attempt) FROM attempts WHERE turn = ?), 0), "
            "coalesce((SELECT max(attempt) FROM events WHERE turn = ?), 0))",
            (turn, turn),
        ).fetchone()
        return int(row[0]) + 1

    return count
