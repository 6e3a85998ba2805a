"""The canonical tables, schema 0.2.0: their columns, and the rows that a study makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairtrial.model.conditions import Condition
from fairtrial.model.identity import canonical_json
from fairtrial.model.runs import RunSpec
from fairtrial.model.study import Study

CONDITION_COLUMNS = (
    "study_id",
    "condition_id",
    "admissible",
    "constraint_messages",
    "assignment_meta_json",
)
PLAN_COLUMNS = (
    "study_id",
    "condition_id",
    "run_id",
    "problem_id",
    "agent_id",
    "seed",
    "replicate",
)


def condition_columns(study: Study) -> list[str]:
    """The columns of the table of conditions: its keys, then factors, then blocks."""
    factors = [factor.name for factor in study.factors]
    return [*CONDITION_COLUMNS, *factors, *(f"block_{block.name}" for block in study.blocks)]


def condition_rows(study: Study, conditions: Sequence[Condition]) -> Iterator[dict[str, Any]]:
    """One row for each condition, inadmissible ones included."""
    for condition in conditions:
        yield {
            "study_id": study.study_id,
            "condition_id": condition.condition_id,
            "admissible": condition.admissible,
            "constraint_messages": canonical_json(condition.constraint_messages),
            "assignment_meta_json": canonical_json(condition.metadata),
            **condition.factor_assignments,
            **{f"block_{name}": value for name, value in condition.block_assignments.items()},
        }


def plan_rows(runs: Iterable[RunSpec]) -> Iterator[dict[str, Any]]:
    """One row for each planned run: the columns of the table of runs that are known beforehand."""
    for run in runs:
        yield {
            "study_id": run.study_id,
            "condition_id": run.condition_id,
            "run_id": run.run_id,
            "problem_id": run.problem_id,
            "agent_id": run.agent_spec_ref,
            "seed": run.seed,
            "replicate": run.replicate,
        }
