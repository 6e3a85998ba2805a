"""What every column of every table means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairtrial.core import canonical_json, is_scalar, scalar_text
from fairtrial.study.design.runs import count_runs
from fairtrial.study.extensions import extensions
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study
from fairtrial.study.report.text import code, count, plain_text, table

MOST_CONDITIONS = 100
MOST_LEVELS = 20
Column = tuple[str, str, str]
"""Name, type, meaning."""

CONDITIONS: tuple[Column, ...] = (
    ("study_id", "text", "the study"),
    ("condition_id", "text", "the condition; the same levels always get the same id"),
    ("admissible", "true/false", "whether it runs: constraints may keep it from that"),
    ("constraint_messages", "JSON list", "the constraints that it breaks"),
    ("assignment_meta_json", "JSON", "how the design made it"),
)
RUNS: tuple[Column, ...] = (
    ("study_id", "text", "the study"),
    ("condition_id", "text", "the condition, as in conditions.csv"),
    ("run_id", "text", "the run: condition, agent, problem and replicate make it"),
    ("problem_id", "text", "the problem; empty for a condition runner"),
    ("problem_family", "text", "the sort of problem"),
    ("agent_id", "text", "the agent"),
    ("agent_kind", "text", "the sort of agent, as it says itself"),
    ("pattern_name", "text", "how the agent works, as it says itself"),
    ("model_name", "text", "the model behind the agent, as it says itself"),
    ("seed", "whole number", "the run's seed"),
    ("replicate", "whole number", "which repetition this is, from 1"),
    ("status", "text", "success, failed (the subject's doing), broken (ours), skipped"),
    ("start_time", "time, UTC", "when the run began"),
    ("end_time", "time, UTC", "when it ended"),
    ("latency_s", "seconds", "how long it took"),
    ("input_tokens", "whole number", "tokens that went into the model"),
    ("output_tokens", "whole number", "tokens that came out of it"),
    ("cost_usd", "US dollars", "what it cost"),
    (
        "primary_outcome",
        "number",
        "the agent's own metric of that name, else the first primary outcome, else the first "
        "evaluation",
    ),
    ("trace_path", "path", "where the agent's trace is"),
    ("manifest_path", "path", "the manifest of this set of tables"),
    ("error_info", "text", "what went wrong, in a line"),
    ("failure_kind", "text", "why the run did not succeed: exception, timeout, crash, ..."),
    ("attempt", "whole number", "which attempt this is the result of"),
    ("executor", "text", "what ran it: serial, processes, threads"),
    ("host", "text", "the machine"),
)
EVENTS: tuple[Column, ...] = (
    ("timestamp", "time, UTC", "when it happened"),
    ("record_id", "text", "the event"),
    ("text", "text", "what it says"),
    ("session_id", "text", "the session it belongs to; by default the run"),
    ("actor_id", "text", "who did it; by default the agent"),
    ("event_type", "text", "what sort of event it is"),
    ("meta_json", "JSON", "anything else"),
    ("level", "text", "how large a part of the run it is about"),
    ("study_id", "text", "the study"),
    ("run_id", "text", "the run, as in runs.csv"),
    ("condition_id", "text", "the condition, as in conditions.csv"),
    ("trial_id", "text", "the trial within the run, if it has any"),
    ("step_id", "text", "the step within the run, if it has any"),
    ("tool_name", "text", "the tool that was called, if one was"),
    ("evaluation_id", "text", "the evaluation it belongs to, if it does"),
)
EVALUATIONS: tuple[Column, ...] = (
    ("run_id", "text", "the run, as in runs.csv"),
    ("evaluator_id", "text", "what judged it"),
    ("metric_name", "text", "what was measured"),
    ("metric_value", "number", "its value; yes and no are 1 and 0"),
    ("metric_unit", "text", "its unit"),
    ("aggregation_level", "text", "what the value is about: the run, or a part of it"),
    ("notes_json", "JSON", "anything else"),
)
METRICS = {
    "tool_call_count": "tools that were called",
    "step_event_count": "events that are steps of the work",
    "unique_actor_count": "different actors among the events",
}


def render_codebook(
    study: Study, conditions: Sequence[Condition], metrics: Iterable[str] = ()
) -> str:
    """Every table, column by column; the outcomes; and what condition ids stand for.

    metrics: the names of the metrics that runs have beside the columns of every run
    """
    return codebook_text(study, conditions, metrics) + "\n"


def codebook_text(study: Study, conditions: Sequence[Condition], metrics: Iterable[str]) -> str:
    known = {name for name, _, _ in RUNS}
    others = [name for name in metrics if name not in known]
    parts = ["## Codebook"]
    for title, rows in (
        ("conditions.csv", [*_spell(CONDITIONS), *_assigned(study)]),
        ("runs.csv", [*_spell(RUNS), *(_metric(study, name) for name in others)]),
        ("events.csv", list(_spell(EVENTS))),
        ("evaluations.csv", list(_spell(EVALUATIONS))),
        *_extra_tables(study),
    ):
        parts += [f"### {title}", table(["column", "type", "meaning"], rows)]
    if study.outcomes:
        parts += ["### Outcomes", _outcome_table(study)]
    if conditions:
        parts += ["### Conditions", _condition_table(study, conditions)]
    return "\n\n".join(parts)


def _extra_tables(study: Study) -> Iterator[tuple[str, list[list[str]]]]:
    for extension in extensions():
        extra = extension.table()
        if extra is not None and extension.is_used_by(study):
            columns = [(name, each.unit, each.meaning) for name, each in extra.columns.items()]
            yield f"{extra.name}.csv", list(_spell(columns))


def _spell(columns: Sequence[Column]) -> Iterator[list[str]]:
    return ([code(name), kind, meaning] for name, kind, meaning in columns)


def _assigned(study: Study) -> Iterator[list[str]]:
    for factor in study.factors:
        told = plain_text(factor.description) if factor.description else "a factor"
        shown = "; ".join(_level(level.name, level.value) for level in factor.levels[:MOST_LEVELS])
        more = len(factor.levels) - MOST_LEVELS
        shown += f" and {more:,} more" if more > 0 else ""
        yield [code(factor.name), _type(factor), f"{told}: {shown}" if shown else told]
    for block in study.blocks:
        levels = ", ".join(plain_text(level) for level in block.levels[:MOST_LEVELS])
        yield [code(f"block_{block.name}"), "level", f"a block: {levels}"]


def _level(name: str, value: object) -> str:
    text = scalar_text(value) if is_scalar(value) else canonical_json(value)
    return plain_text(name) if text == name else f"{plain_text(name)} = {code(text)}"


def _type(factor: Factor) -> str:
    if factor.dtype:
        return plain_text(factor.dtype)
    kinds = {type(level.value).__name__ for level in factor.levels}
    return " or ".join(sorted(kinds)) if kinds else "value"


def _metric(study: Study, name: str) -> list[str]:
    told = {outcome.column: outcome.description for outcome in study.outcomes}
    meaning = METRICS.get(name) or told.get(name) or "a metric of the agent"
    return [code(name), "value", plain_text(meaning)]


def _outcome_table(study: Study) -> str:
    rows = []
    for outcome in study.outcomes:
        where = f"{outcome.source_table}.{outcome.column}"
        facts = [plain_text(outcome.description)] if outcome.description else []
        facts += [f"derived: {plain_text(outcome.derivation)}"] if outcome.derivation else []
        facts += [f"sd {outcome.sd:g}"] if outcome.sd is not None else []
        rows.append(
            [
                code(outcome.name),
                "primary" if outcome.primary else "secondary",
                code(where),
                plain_text(outcome.aggregation),
                plain_text(outcome.expected_type),
                plain_text(outcome.missing_data_policy),
                "; ".join(facts),
            ]
        )
    columns = ["outcome", "role", "found in", "aggregation", "type", "if missing", "what it is"]
    return table(columns, rows)


def _condition_table(study: Study, conditions: Sequence[Condition]) -> str:
    factors = [factor.name for factor in study.factors]
    blocks = [block.name for block in study.blocks]
    rows = []
    for condition in conditions[:MOST_CONDITIONS]:
        cells = [_cell(condition.factor_assignments, name) for name in factors]
        cells += [_cell(condition.block_assignments, name) for name in blocks]
        remark = "" if condition.admissible else "never runs"
        rows.append([code(condition.condition_id), *cells, remark])
    columns = ["condition_id", *map(code, factors), *(code(f"block_{name}") for name in blocks), ""]
    text = table(columns, rows)
    more = len(conditions) - MOST_CONDITIONS
    tail = f"{count(count_runs(study, conditions), 'planned run')} in all."
    return f"{text}\n\n" + (f"… and {count(more, 'more condition')}; {tail}" if more > 0 else tail)


def _cell(assigned: object, name: str) -> str:
    value = assigned.get(name) if hasattr(assigned, "get") else None
    if value is None:
        return "–"
    return plain_text(scalar_text(value) if is_scalar(value) else canonical_json(value))
