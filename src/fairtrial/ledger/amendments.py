"""What became of the plan after results were there: changes that p values don't allow for."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fairtrial.design.schedule import replicates_of
from fairtrial.ledger.faults import damaged
from fairtrial.ledger.reading import LedgerReader
from fairtrial.model.record import dump
from fairtrial.model.runs import RunStatus
from fairtrial.model.study import Study

FACT = "amendments"


@dataclass(frozen=True, slots=True)
class Amendment:
    """A change of the number of replicates that came after results.

    before, after: the replicates of each run, then and from then on
    runs_done: how many runs had succeeded or failed by then
    at: when the plan was laid down again
    """

    before: int
    after: int
    runs_done: int
    at: str


def read_amendments(reader: LedgerReader) -> tuple[Amendment, ...]:
    """The amendments of a study, the earliest first; none in a ledger that knows of none."""
    text = reader.fact(FACT)
    try:
        return tuple(Amendment(**each) for each in json.loads(text or "[]"))
    except (ValueError, TypeError) as error:
        raise damaged(reader.path, f"'{FACT}' can't be read: {error}") from error


def amended(reader: LedgerReader, study: Study, at: str) -> dict[str, str]:
    """The fact to lay down with a study that takes the place of the one in the ledger.

    Empty if there is nothing to tell: the replicates are the same, or nobody can have seen a
    result yet.
    """
    before, after = replicates_of(reader.study), replicates_of(study)
    counts = reader.summary().counts
    done = sum(counts.get(status.value, 0) for status in (RunStatus.SUCCESS, RunStatus.FAILED))
    if before == after or not done:
        return {}
    told = [*read_amendments(reader), Amendment(before, after, done, at)]
    return {FACT: json.dumps([dump(each) for each in told])}
