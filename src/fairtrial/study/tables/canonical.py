"""The canonical tables (schema 0.2.0): their columns, and the rows known before any run.

The module `rows` makes the rows of results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairtrial.core import canonical_json
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunSpec
from fairtrial.study.model.study import Study

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
RUN_COLUMNS = (
    "study_id",
    "condition_id",
    "run_id",
    "problem_id",
    "problem_family",
    "agent_id",
    "agent_kind",
    "pattern_name",
    "model_name",
    "seed",
    "replicate",
    "status",
    "start_time",
    "end_time",
    "latency_s",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "primary_outcome",
    "trace_path",
    "manifest_path",
    # columns beyond schema 0.2.0; the scalar metrics follow them
    "error_info",
    "failure_kind",
    "attempt",
    "executor",
    "host",
)
EVENT_COLUMNS = (
    "timestamp",
    "record_id",
    "text",
    "session_id",
    "actor_id",
    "event_type",
    "meta_json",
    "level",
    "study_id",
    "run_id",
    "condition_id",
    "trial_id",
    "step_id",
    "tool_name",
    "evaluation_id",
)
EVALUATION_COLUMNS = (
    "run_id",
    "evaluator_id",
    "metric_name",
    "metric_value",
    "metric_unit",
    "aggregation_level",
    "notes_json",
)
FACTOR_PREFIX = "factor_"
TABLES = ("conditions", "runs", "events", "evaluations")
STUDY_FILE, MANIFEST_FILE = "study.yaml", "manifest.json"
HYPOTHESES_FILE, PLANS_FILE = "hypotheses.json", "analysis_plan.json"
SQLITE_FILE = "study.sqlite"


def condition_columns(study: Study, conditions: Iterable[Condition] = ()) -> list[str]:
    """Return the columns of the table of conditions: key columns, then factors, then blocks.

    Undeclared factors and blocks, which only conditions made by hand can assign, come last.
    """
    factors = [factor.name for factor in study.factors]
    blocks = [f"block_{block.name}" for block in study.blocks]
    names = dict.fromkeys([*CONDITION_COLUMNS, *factors, *blocks])
    for condition in conditions:
        names.update(dict.fromkeys(condition.factor_assignments))
        names.update(dict.fromkeys(f"block_{name}" for name in condition.block_assignments))
    return list(names)


def factor_columns(study: Study, conditions: Iterable[Condition] = ()) -> dict[str, str]:
    """Return the columns of factors in the table of runs, by the names of the factors.

    They have a prefix: a factor may have the name of another column, and whoever joins the table
    with that of the conditions would otherwise have each factor twice.
    """
    names = dict.fromkeys(factor.name for factor in study.factors)
    for condition in conditions:
        names.update(dict.fromkeys(condition.factor_assignments))
    return {name: f"{FACTOR_PREFIX}{name}" for name in names}


def condition_rows(study: Study, conditions: Sequence[Condition]) -> Iterator[dict[str, Any]]:
    """Yield one row for each condition, including inadmissible ones."""
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
    """Yield one row for each planned run, with the columns that are known before it runs."""
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
