"""The results of the first plan as they first were: not repeated, not scored again.

They show what the verdicts would be without the changes that were made after results were known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.amendments import FIRST_CONDITIONS_FACT
from fairtrial.study.ledger.fingerprint import study_fingerprint
from fairtrial.study.ledger.ledger_rows import BODY_COLUMN, has_evaluator_failed, read_condition
from fairtrial.study.ledger.packing import UnreadableError, unpack
from fairtrial.study.ledger.plan_changes import reconcile_order
from fairtrial.study.ledger.reader import BATCH_RUNS, LedgerReader
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study

_REPEATED = (
    "SELECT DISTINCT turn FROM attempts JOIN results USING (turn) "
    "WHERE attempts.status = ? AND results.status = ?"
)
_SCORED = (
    "SELECT turn, body, rows FROM scores JOIN bodies USING (turn) WHERE turn > ? "
    "ORDER BY turn LIMIT ?"
)
DESIGN_FIELDS = ("factors", "blocks", "constraints", "design_spec")


class FirstResultsReader(LedgerReader):
    """Reads the results of the runs of the first plan from a ledger, as they first were.

    Runs that left the plan are included, if they have a result; those that were added are not.
    """

    @classmethod
    def from_reader(cls, reader: LedgerReader, plan: RunPlan) -> FirstResultsReader:
        """Return a reader of the first results that shares another reader's connection.

        plan: the first plan
        """
        first = cls(reader.connection, reader.path)
        order = reconcile_order(reader, plan)
        repeated = frozenset(find_repeated_runs(reader))
        vars(first).update(
            study=plan.study, conditions=plan.conditions, plan=plan, order=order, repeated=repeated
        )
        return first

    repeated: frozenset[int]

    def _result(self, plan_index: int, row: tuple[Any, ...], events: Sequence[bytes]) -> RunResult:
        """Return a result without its later scores; a failed run that was repeated stays failed."""
        scores = row[-1]
        result = super()._result(plan_index, (*row[:-1], None), events)
        has_failed = row[0] in self.repeated
        if scores is not None and not has_failed:
            has_failed = has_evaluator_failed(unpack(row[BODY_COLUMN]))
        return replace(result, status=RunStatus.FAILED) if has_failed else result


def read_first_plan(reader: LedgerReader, study: Study) -> RunPlan | None:
    """Return the plan of the first version of a study; None if its conditions were not kept.

    study: the first version
    """
    data = reader.fact(FIRST_CONDITIONS_FACT)
    if data is None:
        before, after = (study_fingerprint(one, ()) for one in (study, reader.study))
        is_same = all(before[name] == after[name] for name in DESIGN_FIELDS)
        return RunPlan(study, reader.conditions) if is_same else None
    try:
        return RunPlan(study, list(map(read_condition, unpack(data))))
    except (UnreadableError, TypeError) as error:
        raise damaged(reader.path, f"the first conditions can't be read: {error}") from error


def find_repeated_runs(reader: LedgerReader) -> list[int]:
    """Return the execution indexes of runs that failed, were repeated on request and succeeded."""
    values = (RunStatus.FAILED.value, RunStatus.SUCCESS.value)
    with explained(reader.path):
        return [index for (index,) in reader.connection.execute(_REPEATED, values)]


def find_changed_scores(reader: LedgerReader) -> list[int]:
    """Return the execution indexes of runs whose new scores differ from their first ones."""
    changed: list[int] = []
    last = -1
    while True:
        with explained(reader.path):
            rows = reader.connection.execute(_SCORED, (last, BATCH_RUNS)).fetchall()
        if not rows:
            return changed
        try:
            changed += [index for index, body, scores in rows if _are_changed(body, scores)]
        except (UnreadableError, KeyError, TypeError, AttributeError) as error:
            raise damaged(reader.path, f"scores can't be read: {error}") from error
        last = rows[-1][0]


def _are_changed(body: bytes, scores: bytes) -> bool:
    content = unpack(body)
    if has_evaluator_failed(content):
        return True
    # repr, so that nan equals nan
    return repr(_values(content["evaluations"])) != repr(_values(unpack(scores)["rows"]))


def _values(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    return [(row.get("metric_name"), row.get("metric_value")) for row in rows]


def take_claims(study: Study, claims: Study) -> Study:
    """Return a study with the hypotheses, outcomes and analysis plans of another one."""
    return replace(
        study,
        hypotheses=claims.hypotheses,
        outcomes=claims.outcomes,
        analysis_plans=claims.analysis_plans,
    )
