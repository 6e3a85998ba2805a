"""The codebook: the meaning of every column of every table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairtrial.core import canonical_json, is_scalar, scalar_text
from fairtrial.study.design.runs import count_runs
from fairtrial.study.extensions import extensions
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_count,
    format_table,
)
from fairtrial.study.tables.canonical import factor_columns

MAX_CONDITIONS = 100
MAX_LEVELS = 20
ColumnEntry = tuple[str, str, str]
"""Name, type and meaning of a column."""

CONDITIONS: tuple[ColumnEntry, ...] = (
    ("study_id", "text", "the study"),
    ("condition_id", "text", "the condition; the same levels always get the same id"),
    ("admissible", "true/false", "whether it runs; false if it violates a constraint"),
    ("constraint_messages", "JSON list", "the constraints that it violates"),
    ("assignment_meta_json", "JSON", "how the design generated it"),
)
RUNS: tuple[ColumnEntry, ...] = (
    ("study_id", "text", "the study"),
    ("condition_id", "text", "the condition, as in conditions.csv"),
    ("run_id", "text", "the run; derived from condition, agent, problem and replicate"),
    ("problem_id", "text", "the problem; empty for a condition runner"),
    ("problem_family", "text", "the kind of problem"),
    ("agent_id", "text", "the agent"),
    ("agent_kind", "text", "the kind of agent, as declared by the agent"),
    ("pattern_name", "text", "the pattern of work, as declared by the agent"),
    ("model_name", "text", "the model, as declared by the agent"),
    ("seed", "whole number", "the run's seed"),
    ("replicate", "whole number", "the repetition, from 1"),
    (
        "status",
        "text",
        "success, failed (by the agent), broken (by fairtrial or the machine), skipped",
    ),
    ("start_time", "time, UTC", "when the run began"),
    ("end_time", "time, UTC", "when it ended"),
    ("latency_s", "seconds", "how long it took"),
    ("input_tokens", "whole number", "input tokens of the model"),
    ("output_tokens", "whole number", "output tokens of the model"),
    ("cost_usd", "US dollars", "what it cost"),
    (
        "primary_outcome",
        "number",
        "the agent's own metric of that name, else the first primary outcome, else the first "
        "evaluation",
    ),
    ("trace_path", "path", "the agent's trace"),
    ("manifest_path", "path", "the manifest of this set of tables"),
    ("error_info", "text", "the error, in one line"),
    ("failure_kind", "text", "why the run did not succeed: exception, timeout, crash, ..."),
    ("attempt", "whole number", "the attempt that gave this result"),
    ("executor", "text", "the executor: serial, processes, threads, async, ray"),
    ("host", "text", "the machine"),
)
EVENTS: tuple[ColumnEntry, ...] = (
    ("timestamp", "time, UTC", "when it happened"),
    ("record_id", "text", "the event"),
    ("text", "text", "its text"),
    ("session_id", "text", "the session it belongs to; by default the run"),
    ("actor_id", "text", "the actor; by default the agent"),
    ("event_type", "text", "the type of event"),
    ("meta_json", "JSON", "anything else"),
    ("level", "text", "the part of the run that it is about"),
    ("study_id", "text", "the study"),
    ("run_id", "text", "the run, as in runs.csv"),
    ("condition_id", "text", "the condition, as in conditions.csv"),
    ("trial_id", "text", "the trial within the run, if any"),
    ("step_id", "text", "the step within the run, if any"),
    ("tool_name", "text", "the tool that was called, if any"),
    ("evaluation_id", "text", "the evaluation it belongs to, if any"),
)
EVALUATIONS: tuple[ColumnEntry, ...] = (
    ("run_id", "text", "the run, as in runs.csv"),
    ("evaluator_id", "text", "the evaluator"),
    ("metric_name", "text", "the metric"),
    ("metric_value", "number", "its value; yes and no are 1 and 0"),
    ("metric_unit", "text", "its unit"),
    ("aggregation_level", "text", "what the value is about: the run, or a part of it"),
    ("notes_json", "JSON", "anything else"),
)
METRICS = {
    "tool_call_count": "number of tool calls",
    "step_event_count": "number of events that are steps",
    "unique_actor_count": "number of different actors in the events",
}


def render_codebook(
    study: Study, conditions: Sequence[Condition], metrics: Iterable[str] = ()
) -> str:
    """Return the codebook: every column of every table, the outcomes, and the conditions.

    metrics: names of the runs' metrics; those of the fixed columns are ignored
    """
    return codebook_text(study, conditions, metrics) + "\n"


def codebook_text(study: Study, conditions: Sequence[Condition], metrics: Iterable[str]) -> str:
    """Return the codebook without a final newline, as a section of a report."""
    fixed = {name for name, _, _ in RUNS}
    metric_rows = [_metric_row(study, name) for name in metrics if name not in fixed]
    parts = ["## Codebook"]
    for title, rows in (
        ("conditions.csv", [*_column_rows(CONDITIONS), *_assignment_rows(study)]),
        ("runs.csv", [*_column_rows(RUNS), *_factor_rows(study), *metric_rows]),
        ("events.csv", list(_column_rows(EVENTS))),
        ("evaluations.csv", list(_column_rows(EVALUATIONS))),
        *_extra_tables(study),
    ):
        parts += [f"### {title}", format_table(["column", "type", "meaning"], rows)]
    if study.outcomes:
        parts += ["### Outcomes", _outcome_table(study)]
    if conditions:
        parts += ["### Conditions", _condition_table(study, conditions)]
    return "\n\n".join(parts)


def _extra_tables(study: Study) -> Iterator[tuple[str, list[list[str]]]]:
    for extension in extensions():
        extra = extension.table()
        if extra is not None and extension.is_used_by(study):
            columns = [
                (name, column.unit, column.meaning) for name, column in extra.columns.items()
            ]
            yield f"{extra.name}.csv", list(_column_rows(columns))


def _column_rows(columns: Sequence[ColumnEntry]) -> Iterator[list[str]]:
    return ([format_code(name), kind, meaning] for name, kind, meaning in columns)


def _assignment_rows(study: Study) -> Iterator[list[str]]:
    """Yield a row for each column of factors and blocks, with their levels."""
    for factor in study.factors:
        meaning = escape_markdown(factor.description) if factor.description else "a factor"
        levels = "; ".join(_level(level.name, level.value) for level in factor.levels[:MAX_LEVELS])
        more = len(factor.levels) - MAX_LEVELS
        levels += f" and {more:,} more" if more > 0 else ""
        text = f"{meaning}: {levels}" if levels else meaning
        yield [format_code(factor.name), _type(factor), text]
    for block in study.blocks:
        levels = ", ".join(escape_markdown(level) for level in block.levels[:MAX_LEVELS])
        yield [format_code(f"block_{block.name}"), "level", f"a block: {levels}"]


def _factor_rows(study: Study) -> Iterator[list[str]]:
    """Yield a row for each factor's column in the table of runs."""
    for name, column in factor_columns(study).items():
        meaning = f"the factor {format_code(name)}, as in conditions.csv"
        yield [format_code(column), "value", meaning]


def _level(name: str, value: object) -> str:
    text = scalar_text(value) if is_scalar(value) else canonical_json(value)
    return (
        escape_markdown(name) if text == name else f"{escape_markdown(name)} = {format_code(text)}"
    )


def _type(factor: Factor) -> str:
    if factor.dtype:
        return escape_markdown(factor.dtype)
    kinds = {type(level.value).__name__ for level in factor.levels}
    return " or ".join(sorted(kinds)) if kinds else "value"


def _metric_row(study: Study, name: str) -> list[str]:
    descriptions = {outcome.column: outcome.description for outcome in study.outcomes}
    meaning = METRICS.get(name) or descriptions.get(name) or "a metric of the agent"
    return [format_code(name), "value", escape_markdown(meaning)]


def _outcome_table(study: Study) -> str:
    rows = []
    for outcome in study.outcomes:
        source = f"{outcome.source_table}.{outcome.column}"
        facts = [escape_markdown(outcome.description)] if outcome.description else []
        facts += [f"derived: {escape_markdown(outcome.derivation)}"] if outcome.derivation else []
        facts += [f"sd {outcome.sd:g}"] if outcome.sd is not None else []
        rows.append(
            [
                format_code(outcome.name),
                "primary" if outcome.primary else "secondary",
                format_code(source),
                escape_markdown(outcome.aggregation),
                escape_markdown(outcome.expected_type),
                escape_markdown(outcome.missing_data_policy),
                "; ".join(facts),
            ]
        )
    columns = ["outcome", "role", "found in", "aggregation", "type", "if missing", "what it is"]
    return format_table(columns, rows)


def _condition_table(study: Study, conditions: Sequence[Condition]) -> str:
    factors = [factor.name for factor in study.factors]
    blocks = [block.name for block in study.blocks]
    rows = []
    for condition in conditions[:MAX_CONDITIONS]:
        cells = [_cell(condition.factor_assignments, name) for name in factors]
        cells += [_cell(condition.block_assignments, name) for name in blocks]
        remark = "" if condition.admissible else "never runs"
        rows.append([format_code(condition.condition_id), *cells, remark])
    columns = [
        "condition_id",
        *map(format_code, factors),
        *(format_code(f"block_{name}") for name in blocks),
        "",
    ]
    text = format_table(columns, rows)
    more = len(conditions) - MAX_CONDITIONS
    tail = f"{format_count(count_runs(study, conditions), 'planned run')} in all."
    return f"{text}\n\n" + (
        f"… and {format_count(more, 'more condition')}; {tail}" if more > 0 else tail
    )


def _cell(assigned: object, name: str) -> str:
    value = assigned.get(name) if hasattr(assigned, "get") else None
    if value is None:
        return "–"
    return escape_markdown(scalar_text(value) if is_scalar(value) else canonical_json(value))
