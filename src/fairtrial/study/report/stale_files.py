"""Files in an output directory that were made from older tables than it has now."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core import FairtrialError
from fairtrial.study.report.report_document import full_report
from fairtrial.study.tables.canonical import MANIFEST_FILE
from fairtrial.study.tables.export import COMPLETE_CASES_FOLDER
from fairtrial.study.tables.results import open_results


def find_stale_files(folder: Path, report_name: str) -> list[str]:
    """Return the names of the report and the folder of complete cases, if they are out of date.

    report_name: the name of the report in the folder; a report that would be the same is not stale
    """
    stale = []
    if _is_older(folder, report_name) and not _is_same_report(folder, report_name):
        stale.append(report_name)
    # Every export writes both manifests.
    if _is_older(folder, f"{COMPLETE_CASES_FOLDER}/{MANIFEST_FILE}"):
        stale.append(COMPLETE_CASES_FOLDER)
    return stale


def _is_older(folder: Path, name: str) -> bool:
    """Return whether the tables were written later, maybe with the same content."""
    path = folder / name
    return path.exists() and path.stat().st_mtime_ns < (folder / MANIFEST_FILE).stat().st_mtime_ns


def _is_same_report(folder: Path, report_name: str) -> bool:
    """Return whether a report made now would be the same."""
    try:
        with open_results(folder) as results:
            left_out = results.reader.summary().left_out
            text = full_report(results.study, results.conditions, results, left_out=left_out)
        return (folder / report_name).read_text("utf-8") == text
    except (FairtrialError, OSError, UnicodeDecodeError):
        return False
