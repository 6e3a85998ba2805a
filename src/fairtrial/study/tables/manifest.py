"""The manifest: what a set of tables holds, where it came from, and what is not in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import SCHEMA_VERSION
from fairtrial.study.tables.canonical import MANIFEST_FILE
from fairtrial.study.tables.generation import sha256_of
from fairtrial.study.tables.provenance import add_own
from fairtrial.study.tables.source import Source
from fairtrial.study.tables.spending import Spending


class Tally:
    """What is counted while runs are written down."""

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.models: set[str] = set()
        self.metrics_left_out: Mapping[str, int] = {}
        self.spent = Spending()

    def add(self, results: Sequence[RunResult]) -> None:
        """Count some runs."""
        for result in results:
            self.spent.add(result)
            status = str(result.status)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            told = result.run_spec.execution_metadata if result.run_spec is not None else {}
            model = result.provenance_info.get("model_name") or told.get("model_name")
            if model:
                self.models.add(str(model))


def make_manifest(
    source: Source, tally: Tally, place: Path, rows: Mapping[str, int]
) -> dict[str, Any]:
    """The manifest of the files that lie in a folder; `rows` says how many each table has."""
    files = sorted(path for path in place.iterdir() if path.name != MANIFEST_FILE)
    left_out = {**source.left_out, "metrics_without_column": dict(tally.metrics_left_out)}
    spent = source.spent or tally.spent
    return {
        "schema_version": SCHEMA_VERSION,
        "study_id": source.study.study_id,
        "generated_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status_counts": dict(sorted(tally.statuses.items())),
        "model_ids": sorted(tally.models),
        "run_count": rows["runs.csv"],
        "provenance": add_own(source.provenance, source.study.provenance_metadata),
        "sessions": list(source.sessions),
        "rescored": dict(source.rescored),
        "claims": dict(source.claims),
        "spent": {**spent.to_dict(), "not_in_runs": spent.beside(tally.spent).to_dict()},
        "left_out": left_out,
        "files": {path.name: _describe(path, rows.get(path.name)) for path in files},
    }


def _describe(path: Path, rows: int | None) -> dict[str, Any]:
    told: dict[str, Any] = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
    return told if rows is None else {**told, "rows": rows}
