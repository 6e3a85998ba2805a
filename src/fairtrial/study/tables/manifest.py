"""The manifest of a set of tables: its files and checksums, provenance, and what is left out."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import SCHEMA_VERSION
from fairtrial.study.tables.canonical import MANIFEST_FILE
from fairtrial.study.tables.csv_tables import CsvFile
from fairtrial.study.tables.generation import file_sha256
from fairtrial.study.tables.provenance import merge_metadata
from fairtrial.study.tables.source import TableSource
from fairtrial.study.tables.spending import Spending, count_tokens


class ManifestTotals:
    """Totals over all results, counted while the tables are written.

    statuses: number of runs by status
    models: names of the models that were used
    metrics_left_out: number of values of each metric without a column
    """

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.models: set[str] = set()
        self.metrics_left_out: Mapping[str, int] = {}
        self._places, self._costs = array("Q"), array("d")
        self._tokens = 0

    @property
    def spent(self) -> Spending:
        """The cost of the runs in the table, added up in their order there."""
        total = Spending(tokens=self._tokens)
        for number in sorted(range(len(self._places)), key=self._places.__getitem__):
            total.cost_usd += self._costs[number]
        return total

    def add(self, batch: Sequence[tuple[int, RunResult]]) -> None:
        """Count some results, each with its position in the table of runs."""
        for place, result in batch:
            cost_usd = result.cost
            if cost_usd and math.isfinite(cost_usd):
                self._places.append(place)
                self._costs.append(cost_usd)
            self._tokens += count_tokens(result.metrics)
            metadata = result.run_spec.execution_metadata if result.run_spec is not None else {}
            model = result.provenance_info.get("model_name") or metadata.get("model_name")
            if model:
                self.models.add(str(model))
        for status, count in Counter([result.status for _, result in batch]).items():
            self.statuses[str(status)] = self.statuses.get(str(status), 0) + count


def build_manifest(
    source: TableSource, totals: ManifestTotals, folder: Path, tables: Mapping[str, CsvFile]
) -> dict[str, Any]:
    """Return the manifest of the files in a folder.

    tables: the tables among them, by file name
    """
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST_FILE)
    left_out = {**source.left_out, "metrics_without_column": dict(totals.metrics_left_out)}
    in_runs = totals.spent
    spent = source.spent or in_runs
    return {
        "schema_version": SCHEMA_VERSION,
        "study_id": source.study.study_id,
        "generated_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status_counts": dict(sorted(totals.statuses.items())),
        "model_ids": sorted(totals.models),
        "run_count": tables["runs.csv"].rows,
        "provenance": merge_metadata(source.provenance, source.study.provenance_metadata),
        "sessions": list(source.sessions),
        "rescored": dict(source.rescored),
        "claims": dict(source.claims),
        "lock": None if source.lock is None else source.lock.to_dict(),
        "spent": {**spent.to_dict(), "not_in_runs": spent.minus(in_runs).to_dict()},
        "left_out": left_out,
        "files": {path.name: _describe(path, tables.get(path.name)) for path in files},
    }


def _describe(path: Path, table: CsvFile | None) -> dict[str, Any]:
    if table is None:
        return {"sha256": file_sha256(path), "bytes": path.stat().st_size}
    return {"sha256": table.sha256, "bytes": table.size, "rows": table.rows}
