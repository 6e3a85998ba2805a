"""The data of a page: everything that it shows, as plain data of limited size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairtrial import __version__
from fairtrial.study.extensions import extensions
from fairtrial.study.ledger.ledger_summary import Summary, spell_cost
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.page import run_rows
from fairtrial.study.page.markdown_tree import parse_markdown
from fairtrial.study.page.outcome_charts import chart_outcomes, varied_names
from fairtrial.study.page.plain_data import clean_data, clean_text
from fairtrial.study.page.spending_charts import chart_spending
from fairtrial.study.page.verdict_cards import compare_precision, list_effects, make_cards
from fairtrial.study.report.deviations import deviation_lines, standing_text
from fairtrial.study.report.hypothesis_sections import render_tests
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_table
from fairtrial.study.report.looks_section import looks_text
from fairtrial.study.report.markdown_text import format_list
from fairtrial.study.report.methods_section import methods_text, setting_lines
from fairtrial.study.report.report_document import VERDICT_GUIDE
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.sensitivity import compare_analyses
from fairtrial.study.report.sensitivity_section import render_sensitivity
from fairtrial.study.report.summary_section import choose_outcomes, interim_warning
from fairtrial.study.tables.results import Results

MOST_CONDITIONS = 2_000
MOST_OUTCOMES = 4
LONGEST_SECTION = 150_000


def collect_page(
    results: Results, *, most_runs: int = run_rows.MOST_RUNS, with_details: bool = True
) -> dict[str, Any]:
    """Return everything that the page of a study shows.

    Tests the hypotheses, and reads all results twice. The size is limited: of a large study a few
    thousand runs are included, and charts are made from totals.

    most_runs: how many runs are included
    with_details: whether outputs, events and so on of runs are included
    """
    reader, study = results.reader, results.study
    summary = reader.summary()
    data = collect_run_table(study, results.conditions, results)
    tests = judge_table(data)
    outcomes = choose_outcomes(data)[:MOST_OUTCOMES]
    rows = run_rows.read_rows(reader, data, outcomes)
    shown = run_rows.select_rows(rows, most_runs)
    details = run_rows.read_details(reader, shown) if with_details else {}
    return {
        **describe_study(study, results.folder, summary),
        "warning": parse_markdown(interim_warning(data)) if data.pending and len(data) else [],
        **collect_parts(results),
        "verdicts": make_cards(data, tests),
        "standing": parse_markdown(standing_text(data, tests)),
        "effects": list_effects(tests),
        "precision": compare_precision(study, data, tests),
        "conditions": describe_conditions(data.conditions, chart_names(data)),
        "factors": [clean_text(name) for name in varied_names(data)],
        "outcomes": chart_outcomes(data, outcomes),
        "runs": run_rows.pack_rows(shown, dict(data.agents), dict(data.problems)),
        "all_runs": len(rows),
        "details": details,
        "failures": run_rows.group_failures(rows),
        "spending": chart_spending(data, rows),
        "record": _describe_record(data, tests, summary.left_out),
        "environment": describe_environment(reader.sessions),
    }


def describe_study(study: Study, folder: Path, summary: Summary) -> dict[str, Any]:
    """Return the head of a page: title, place and progress of a study."""
    return {
        "kind": "study",
        "title": clean_text(study.title or study.study_id, 300),
        "study": clean_text(study.study_id),
        "description": clean_text(study.description, 4_000),
        "folder": clean_text(folder),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "progress": describe_progress(summary),
    }


def collect_parts(results: Results) -> dict[str, Any]:
    """Return the sections that extensions add, and their scripts."""
    made = [(one, part) for one in extensions() if (part := one.page_part(results)) is not None]
    return {
        "parts": [{"name": part.name, "title": part.title, "data": part.data} for _, part in made],
        "scripts": [one.page_script() for one, _ in made],
    }


def describe_progress(summary: Summary) -> dict[str, Any]:
    """Return how far a study is."""
    session = summary.last_session or {}
    return {
        "planned": summary.planned,
        "done": summary.done,
        "pending": summary.pending,
        "statuses": dict(summary.counts),
        "failures": dict(summary.failures),
        "decided_early": summary.decided_early,
        "cost": spell_cost(summary.cost_usd) if summary.cost_usd else "",
        "tokens": summary.tokens,
        "is_running": summary.is_running,
        "ended_how": session.get("ended_how"),
        "ended_at": session.get("ended_at"),
    }


def chart_names(data: RunTable) -> list[str]:
    """Return the factors that tell conditions apart."""
    return varied_names(data) or [factor.name for factor in data.study.factors]


def describe_conditions(
    conditions: Sequence[Condition], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return id, label and levels of each condition.

    names: the factors that labels mention
    """
    return [
        {
            "id": condition.condition_id,
            "label": clean_text(_label_condition(condition, names), 200),
            "levels": clean_data(
                {**condition.factor_assignments, **condition.block_assignments}, 200
            ),
            "admissible": condition.admissible,
        }
        for condition in conditions[:MOST_CONDITIONS]
    ]


def _label_condition(condition: Condition, names: Sequence[str]) -> str:
    levels = []
    for name in names:
        value = condition.factor_assignments.get(name)
        if isinstance(value, (bool, int, float)):
            levels.append(f"{name.rpartition('.')[2]} {str(value).lower()}")
        elif value is not None:
            levels.append(str(value))
    levels += [str(value) for value in condition.block_assignments.values()]
    return " · ".join(levels) or "all runs"


def _describe_record(
    data: RunTable, tests: Sequence[HypothesisTest], left_out: int
) -> list[dict[str, Any]]:
    """Return sections of the report, for readers who want the whole of it."""
    deviations = format_list(deviation_lines(data, tests, left_out))
    sections = {
        "Deviations from the plan": deviations or "There are none.",
        "Interim looks": looks_text(data),
        "Sensitivity": render_sensitivity(compare_analyses(data, tests)),
        "How to read the verdicts": VERDICT_GUIDE if tests else "",
        "All tests": render_tests(tests) if tests else "",
        "Plan and methods": methods_text(data.study, data.conditions),
        "As it was run": format_list(setting_lines(data)),
    }
    return [
        {"title": title, "tree": parse_markdown(text[:LONGEST_SECTION])}
        for title, text in sections.items()
        if text
    ]


def describe_environment(sessions: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the last sessions: when, where and with what they ran."""
    described = []
    for session in list(sessions.values())[-20:]:
        facts = dict(session)
        try:
            facts["provenance"] = json.loads(facts.get("provenance") or "{}")
        except ValueError:
            facts["provenance"] = {}
        described.append(clean_data(facts, 400))
    return described
