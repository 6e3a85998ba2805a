"""The manifest of a set of tables: its files and checksums, provenance, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import SCHEMA_VERSION
from fairtrial.study.tables.canonical import MANIFEST_FILE
from fairtrial.study.tables.generation import file_sha256
from fairtrial.study.tables.provenance import merge_metadata
from fairtrial.study.tables.source import TableSource
from fairtrial.study.tables.spending import Spending


class ManifestTotals:
    """Totals over all results, counted while the tables are written.

    statuses: number of runs by status
    models: names of the models that were used
    metrics_left_out: number of values of each metric without a column
    spent: cost of the runs in the table
    """

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.models: set[str] = set()
        self.metrics_left_out: Mapping[str, int] = {}
        self.spent = Spending()

    def add(self, results: Sequence[RunResult]) -> None:
        """Count some results."""
        for result in results:
            self.spent.add(result)
            status = str(result.status)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            metadata = result.run_spec.execution_metadata if result.run_spec is not None else {}
            model = result.provenance_info.get("model_name") or metadata.get("model_name")
            if model:
                self.models.add(str(model))


def build_manifest(
    source: TableSource, totals: ManifestTotals, folder: Path, rows: Mapping[str, int]
) -> dict[str, Any]:
    """Return the manifest of the files in a folder.

    rows: number of rows of each table, by file name
    """
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST_FILE)
    left_out = {**source.left_out, "metrics_without_column": dict(totals.metrics_left_out)}
    spent = source.spent or totals.spent
    return {
        "schema_version": SCHEMA_VERSION,
        "study_id": source.study.study_id,
        "generated_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status_counts": dict(sorted(totals.statuses.items())),
        "model_ids": sorted(totals.models),
        "run_count": rows["runs.csv"],
        "provenance": merge_metadata(source.provenance, source.study.provenance_metadata),
        "sessions": list(source.sessions),
        "rescored": dict(source.rescored),
        "claims": dict(source.claims),
        "lock": None if source.lock is None else source.lock.to_dict(),
        "spent": {**spent.to_dict(), "not_in_runs": spent.minus(totals.spent).to_dict()},
        "left_out": left_out,
        "files": {path.name: _describe(path, rows.get(path.name)) for path in files},
    }


def _describe(path: Path, rows: int | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"sha256": file_sha256(path), "bytes": path.stat().st_size}
    return facts if rows is None else {**facts, "rows": rows}
