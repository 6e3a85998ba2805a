"""What differs between two studies, apart from their results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.ledger.fingerprint import CONDITIONS, differences, study_fingerprint
from fairtrial.study.ledger.study_lock import describe_code_changes, read_lock
from fairtrial.study.report.run_table import ReportTotals
from fairtrial.study.tables.results import Results

FROM_PROVENANCE = {
    "fairtrial": ("package_versions", "fairtrial"),
    "Python": ("python_version",),
    "platform": ("platform",),
    "git commit": ("git_sha",),
}
"""What the provenance of sessions says of where runs were made."""
NONE = "none recorded"
MAX_LINES = 40
SHORT_SHA = 12


@dataclass(frozen=True, slots=True)
class StudyDifference:
    """One thing that differs between two studies.

    what: what differs
    first, second: what it is in either study; empty if `what` says it all
    """

    what: str
    first: str = ""
    second: str = ""

    def text(self) -> str:
        """Return the difference in one line."""
        return f"{self.what}: {self.first} → {self.second}" if self.first else self.what


def find_differences(
    first: Results, second: Results, totals: tuple[ReportTotals, ReportTotals]
) -> Iterator[StudyDifference]:
    """Yield what differs between two studies: definition, models, code, dates, versions.

    totals: the totals over the results of both
    """
    yield from _compare_definitions(first, second)
    pairs = [
        ("models", _names(totals[0].models), _names(totals[1].models)),
        ("dates", _dates(totals[0]), _dates(totals[1])),
        ("hosts", _names(totals[0].hosts), _names(totals[1].hosts)),
        ("executors", _names(totals[0].executors), _names(totals[1].executors)),
    ]
    records = [_provenance(results) for results in (first, second)]
    for what, path in FROM_PROVENANCE.items():
        pairs.append((what, _values(records[0], path), _values(records[1], path)))
    for what, of_first, of_second in pairs:
        if of_first != of_second:
            yield StudyDifference(what, of_first, of_second)
    yield from _compare_packages(*records)
    locks = [read_lock(results.reader) for results in (first, second)]
    if locks[0] is not None and locks[1] is not None:
        for line in describe_code_changes(locks[0], locks[1]):
            yield StudyDifference(f"code: {line}")


def _compare_definitions(first: Results, second: Results) -> Iterator[StudyDifference]:
    """Yield how the definitions of two studies differ: factors, agents, problems, seeds, ..."""
    parts = []
    for results in (first, second):
        study = results.study
        part = study_fingerprint(study, [])
        del part["study_id"], part[CONDITIONS]
        part["replicates"] = count_replicates(study)
        part["outcomes"] = [dump_record(outcome) for outcome in study.outcomes]
        part["timeout_s"] = study.run_budget.timeout_s
        parts.append(part)
    lines = differences(*parts)
    for line in lines[:MAX_LINES]:
        yield StudyDifference(line.replace(" -> ", " → "))
    if len(lines) > MAX_LINES:
        yield StudyDifference(f"and {len(lines) - MAX_LINES:,} more differences of definition")


def _names(counter: Counter[str]) -> str:
    return ", ".join(sorted(counter)) or NONE


def _dates(totals: ReportTotals) -> str:
    days = [text[:10] for text in (totals.first_start, totals.last_end) if text]
    return " to ".join(dict.fromkeys(days)) or NONE


def _provenance(results: Results) -> list[Mapping[str, Any]]:
    """Return the provenance of each session of a study."""
    records: list[Mapping[str, Any]] = []
    for session in results.reader.sessions.values():
        try:
            record = json.loads(session.get("provenance") or "{}")
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def _values(records: Sequence[Mapping[str, Any]], path: tuple[str, ...]) -> str:
    """Return the values of a field of provenance over all sessions, in order."""
    values: list[str] = []
    for record in records:
        value: Any = record
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            is_dirty = path == ("git_sha",) and record.get("git_dirty")
            text = str(value)[:SHORT_SHA] if path == ("git_sha",) else str(value)
            values.append(f"{text} with changes" if is_dirty else text)
    return ", ".join(dict.fromkeys(values)) or NONE


def _compare_packages(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> Iterator[StudyDifference]:
    """Yield the packages with other versions, apart from fairtrial."""
    names = {
        str(name)
        for record in (*first, *second)
        if isinstance(record.get("package_versions"), Mapping)
        for name in record["package_versions"]
    } - {"fairtrial"}
    for name in sorted(names, key=str.lower):
        versions = [_values(records, ("package_versions", name)) for records in (first, second)]
        if versions[0] != versions[1]:
            yield StudyDifference(f"package {name}", *versions)
