"""Two studies side by side: what differs in their plans, their verdicts, their outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial.study.ledger.fingerprint import differences, study_fingerprint
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.page import page_data
from fairtrial.study.page.outcome_charts import chart_outcomes
from fairtrial.study.page.plain_data import clean_text
from fairtrial.study.page.verdict_cards import make_cards
from fairtrial.study.report.hypothesis_testing import judge_table
from fairtrial.study.report.run_table import collect_run_table
from fairtrial.study.report.summary_section import choose_outcomes
from fairtrial.study.tables.results import Results

MOST_DIFFERENCES = 200


def compare_studies(first: Path, second: Path) -> dict[str, Any]:
    """Return two studies side by side, as plain data.

    Verdicts and outcomes of a study with pending runs are left out: showing them is an interim
    look. Raises `LedgerError` if one can't be read.
    """
    with _open(first) as one, _open(second) as other:
        fingerprints = [
            study_fingerprint(results.study, results.conditions) for results in (one, other)
        ]
        changes = differences(*fingerprints)
        return {
            "studies": [_describe(one), _describe(other)],
            "differences": [clean_text(text, 400) for text in changes[:MOST_DIFFERENCES]],
            "left_out": max(0, len(changes) - MOST_DIFFERENCES),
        }


def read_verdicts(folder: Path) -> list[dict[str, Any]]:
    """Return the verdict on each claim of a finished study; empty if runs are pending.

    Raises `LedgerError` if it can't be read.
    """
    with _open(folder) as results:
        if results.reader.summary().pending or not results.study.hypotheses:
            return []
        data = collect_run_table(results.study, results.conditions, results)
        return make_cards(data, judge_table(data))


def _open(folder: Path) -> Results:
    return Results(LedgerReader.open(folder))


def _describe(results: Results) -> dict[str, Any]:
    summary = results.reader.summary()
    described = page_data.describe_study(results.study, results.folder, summary)
    if summary.pending:
        return {**described, "verdicts": None, "outcomes": []}
    data = collect_run_table(results.study, results.conditions, results)
    names = page_data.chart_names(data)
    labels = [one["label"] for one in page_data.describe_conditions(data.conditions, names)]
    agents = [clean_text(name or "–", 200) for name in data.agents]
    outcomes = chart_outcomes(data, choose_outcomes(data)[: page_data.MOST_OUTCOMES])
    for outcome in outcomes:
        for group in outcome["groups"]:
            group["label"] = labels[group["condition"]] if group["condition"] < len(labels) else "?"
            group["agent"] = agents[group["agent"]]
    return {
        **described,
        "verdicts": make_cards(data, judge_table(data)),
        "outcomes": [{"name": one["name"], "groups": one["groups"]} for one in outcomes],
    }
