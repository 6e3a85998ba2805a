"""The summary of a study for a pull request or an issue, in Markdown that GitHub shows.

Texts of studies and agents are data: nothing in the summary mentions, links or injects.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairtrial.core import atomic_write
from fairtrial.study.ledger.interim_looks import record_interim_look
from fairtrial.study.report.comparison_results import ProblemEffect
from fairtrial.study.report.deviations import deviation_lines
from fairtrial.study.report.forest_plot import draw_forest_plot
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_table
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_count,
    format_interval,
    format_list,
    format_p,
    format_signed,
    format_table,
)
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.summary_section import condition_text, interim_warning, lead_line
from fairtrial.study.report.verdicts import TestVerdict
from fairtrial.study.tables.results import Results, open_results

LONGEST_SUMMARY = 60_000
"""GitHub refuses texts of more than 65,536 characters."""
LONGEST_NOTE = 5_000
LONGEST_SECTION, LONGEST_CLAIMS = 20_000, 30_000
MOST_CLAIMS, MOST_FAILURES, MOST_CANDIDATES = 60, 15, 40
BAR = 20
_NOTHING = "\N{ZERO WIDTH SPACE}"
_LINKS = re.compile(r"[@#$]|://|www\.|(?<=\bGH)-(?=\d)", re.IGNORECASE)
_COMMITS = re.compile(r"\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}\b")
"""What sites turn into mentions and links after Markdown is processed."""
_CODE = re.compile(r"(?<![\\`])(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
"""Code that this package quoted: backticks of other texts are escaped."""
MARKS = {
    TestVerdict.SUPPORTED: "✅",
    TestVerdict.NOT_SUPPORTED: "❌",
    TestVerdict.CONTRADICTED: "❌",
}


def write_pull_request_summary(folder: Path, target: Path) -> None:
    """Test the hypotheses of the study in a folder, and write the summary to a file.

    Of an unfinished study this is an interim look, and is recorded as one. Raises `LedgerError` if
    the folder has no results, and `StudyError` if the file can't be written.
    """
    with open_results(folder) as results:
        text = render_pull_request_summary(results)
        with atomic_write(target) as file:
            file.write(text)
        record_interim_look(folder, results.study, results.reader.summary())


def render_pull_request_summary(results: Results) -> str:
    """Return the summary of a study in Markdown, of less than 65,536 characters."""
    data = collect_run_table(results.study, results.conditions, results)
    tests = judge_table(data)
    title = results.study.title or results.study.study_id
    parts = [f"### {neutralize(escape_markdown(title, 200))}", neutralize(lead_line(data))]
    if data.pending and len(data):
        parts.append(interim_warning(data))
    parts += _claims([test for test in tests if test.decides])
    room = LONGEST_SUMMARY - LONGEST_NOTE - sum(len(part) + 2 for part in parts)
    left_out: list[str] = []
    for heading, text in _sections(data, tests, results):
        section = fold(heading, text)
        if len(section) > min(room, LONGEST_SECTION):
            left_out.append(heading)
            continue
        room -= len(section) + 2
        parts.append(section)
    if left_out:
        names = neutralize(escape_markdown(", ".join(left_out), 1_000))
        parts.append(f"Left out, since they are too long: {names}")
    return "\n\n".join(parts) + "\n"


def neutralize(text: str) -> str:
    """Return Markdown in which no text outside of code can be a mention or a link."""
    parts, last = [], 0
    for candidates in _CODE.finditer(text):
        parts += [_break_links(text[last : candidates.start()]), candidates[0]]
        last = candidates.end()
    return "".join([*parts, _break_links(text[last:])])


def _break_links(text: str) -> str:
    text = _LINKS.sub(lambda match: match[0][:1] + _NOTHING + match[0][1:], text)
    return _COMMITS.sub(lambda match: re.sub("(.{6})", rf"\1{_NOTHING}", match[0]), text)


def fold(heading: str, text: str) -> str:
    """Return a section that readers open."""
    return f"<details><summary>{html.escape(heading)}</summary>\n\n{text}\n\n</details>"


def _claims(tests: Sequence[HypothesisTest]) -> list[str]:
    """Return a table with the verdict on each claim, on as many as there is room for."""
    shown = tests[:MOST_CLAIMS]
    while shown:
        table = _claims_table(shown)
        if len(table) <= LONGEST_CLAIMS:
            more = len(tests) - len(shown)
            return [table, *([f"{format_count(more, 'claim')} left out."] if more else [])]
        shown = shown[: len(shown) // 2]
    return []


def _claims_table(tests: Sequence[HypothesisTest]) -> str:
    rows = []
    for test in tests:
        size = ""
        if test.estimate is not None:
            interval = format_interval(test.interval)
            size = f"{escape_markdown(test.difference, 120)}: {format_signed(test.estimate)} "
            size = f"{size}{interval}".strip().replace("[", "\\[")
        evidence = f"p {format_p(test.p_adjusted)}" if test.p_adjusted is not None else ""
        rows.append(
            [
                MARKS.get(test.verdict, "❔"),
                neutralize(escape_markdown(test.label or test.hypothesis_id, 200)),
                f"**{test.verdict}** ({escape_markdown(test.standing)})",
                neutralize(f"{escape_markdown(test.outcome, 80)}: {size}" if size else ""),
                escape_markdown(evidence),
            ]
        )
    return format_table(["", "claim", "verdict", "effect", "evidence"], rows)


def _sections(
    data: RunTable, tests: Sequence[HypothesisTest], results: Results
) -> Iterator[tuple[str, str]]:
    """Yield headings and texts, the most important first."""
    yield from _effects(tests)
    if candidates := _candidates(results):
        yield "Candidates", candidates
    if why := [f"{escape_markdown(t.label)}: {escape_markdown(t.why)}" for t in tests if t.decides]:
        yield "Why", neutralize(format_list(why))
    if failures := _failures(results):
        yield "Failures", failures
    if data.conditions and len(data):
        yield "Outcomes by condition", neutralize(condition_text(data))
    left_out = results.reader.summary().left_out
    if deviations := list(deviation_lines(data, tests, left_out)):
        yield "Deviations from the plan", neutralize(format_list(deviations))


def _effects(tests: Sequence[HypothesisTest]) -> Iterator[tuple[str, str]]:
    """Yield a plot of the effects on each outcome, and of the problems of each claim."""
    measured = [test for test in tests if test.decides and test.estimate is not None]
    for outcome in dict.fromkeys(test.outcome for test in measured):
        rows = [
            ProblemEffect(test.label or test.hypothesis_id, (), test.estimate, test.interval)
            for test in measured
            if test.outcome == outcome and test.estimate is not None
        ]
        heading = f"Effects on {_plain_line(outcome)}"
        yield heading, _fence(draw_forest_plot(rows, None, None))
    for test in measured:
        if len(test.by_problem) > 1:
            heading = f"Problem by problem: {_plain_line(test.label or test.hypothesis_id)}"
            plot = draw_forest_plot(test.by_problem, test.estimate, test.interval, test.confidence)
            yield heading, _fence(plot)


def _failures(results: Results) -> str:
    """Return runs that did not succeed by kind and message, as a table."""
    groups: dict[tuple[str, str], int] = {}
    for batch in results.reader.result_batches():
        for _, result in batch:
            if result.failure_kind is not None:
                message = (result.error_info or "").partition("\n")[0][:160]
                key = str(result.failure_kind), message
                groups[key] = groups.get(key, 0) + 1
    ordered = sorted(groups.items(), key=lambda item: -item[1])
    rows = [
        [f"{runs:,}", kind, neutralize(escape_markdown(message))]
        for (kind, message), runs in ordered[:MOST_FAILURES]
    ]
    more = len(ordered) - MOST_FAILURES
    note = f"\n\n{format_count(more, 'further kind')} left out." if more > 0 else ""
    return format_table(["runs", "kind", "message"], rows, right=[0]) + note if rows else ""


def _candidates(results: Results) -> str:
    """Return the candidates that were timed or rejected, as a table with a bar for each ratio."""
    candidates = list(results.candidates)
    if not candidates:
        return ""
    shown = sorted(candidates, key=lambda row: -(_number(row["ratio"]) or 0.0))[:MOST_CANDIDATES]
    most = max((_number(row["ratio"]) or 0.0 for row in shown), default=0.0)
    rows = []
    for row in shown:
        ratio = _number(row["ratio"])
        speed = bar = ""
        if ratio is not None:
            low, high = _number(row["low"]), _number(row["high"])
            interval = "" if low is None or high is None else f" \\[{low:.2f}, {high:.2f}]"
            speed, bar = f"{ratio:.2f}x{interval}", "█" * max(1, round(BAR * ratio / most))
        why = row["reason"] or row["note"] or row["name"] or ""
        texts = (row["candidate_id"], row["verdict"] or "", why)
        cells = [neutralize(escape_markdown(text, 160)) for text in texts]
        rows.append([*cells[:2], speed, bar, cells[2]])
    more = len(candidates) - len(shown)
    note = f"\n\n{format_count(more, 'candidate')} left out." if more else ""
    return format_table(["candidate", "verdict", "speed", "", "what"], rows) + note


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value == value else None


def _plain_line(text: str) -> str:
    """Return a text as one short line that is no link, for headings of sections."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return _break_links(line[:120])


def _fence(text: str) -> str:
    """Return a text as a code block that no line of it can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
