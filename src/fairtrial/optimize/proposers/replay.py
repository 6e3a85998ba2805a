"""The proposer `replay`, and the files of recorded replies.

A record is one line of JSON: the request's key, the request, and the whole reply. Records are found
by their key alone, so that a replay doesn't depend on measured figures in prompts.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.arena import Workshop
from fairtrial.core import Mistake, Record, StudyError, atomic_write, on_one_line
from fairtrial.optimize.option_paths import resolve_option_path
from fairtrial.optimize.proposals import Brief, Reply, Request
from fairtrial.optimize.proposer import PreflightContext, Proposer
from fairtrial.optimize.replies import read_record

LONGEST_KEY = 300


@dataclass(frozen=True, slots=True)
class Replay(Proposer, Record):
    """Recorded replies, without a model, a key or a network.

    path: the record: one line of JSON for each reply, or the output directory of the optimization
        that made it; relative to the folder of the problem's file
    most_at_once: how many requests may be under way at the same time
    """

    path: Path
    most_at_once: int = 8

    name = "replay"
    can_batch = True

    def _mistakes(self) -> Iterator[Mistake]:
        if self.most_at_once < 1:
            yield Mistake(("most_at_once",), f"must be 1 or more, got {self.most_at_once}")

    def preflight(self, context: PreflightContext) -> None:
        """Raise a `StudyError` if the record is missing or can't be read."""
        if context.folder is None:
            return
        record = find_record(resolve_option_path(self.path, context.folder, "path"))
        if not record.exists():
            hint = (
                "name a replies.jsonl, or the output directory of an optimization that is done; "
                "it starts at the folder of the problem's file"
            )
            raise StudyError(Mistake(("path",), f"there is no {record}", hint))
        read_records(record)

    async def open(self, workshop: Workshop) -> Replay:
        """Return the same proposer with the path of the record itself."""
        return replace(
            self, path=find_record(resolve_option_path(self.path, workshop.folder, "path"))
        )

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Return the recorded reply, with its recorded usage; a refusal if there is none."""
        from anyio import to_thread

        records = await to_thread.run_sync(read_records, self.path)
        record = records.get(request.key)
        if record is not None:
            return read_record(record)
        key = on_one_line(request.key, LONGEST_KEY)
        return Reply(refusal=f"{self.path} holds no answer to {key} ({len(records)} others)")


def find_record(path: Path) -> Path:
    """Return the record at a path, or the one in an output directory.

    Raise a `StudyError` for a directory with records of no run, or of several.
    """
    if not path.is_dir():
        return path
    records = sorted(path.glob("workspaces/*/attempt-*/replies.jsonl"), key=_attempt_key)
    runs = sorted({record.parent.parent.name for record in records})
    if len(runs) == 1:
        return records[-1]
    message = f"{path} holds records of {len(runs)} runs" if runs else f"{path} holds no record"
    hint = f"name one: {records[0]}" if runs else "it is there when an optimization is done"
    raise StudyError(Mistake(("path",), message, hint))


def _attempt_key(record: Path) -> tuple[str, list[int]]:
    """Return the sort key: the run and the attempt (`attempt-1.2` is `attempt-1` after a kill)."""
    numbers = re.findall(r"\d+", record.parent.name)
    return record.parent.parent.name, [int(number) for number in numbers]


def read_records(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the records in a file by key; the last of a key counts. Raises `StudyError`."""
    try:
        stat = path.stat()
        return _read_file(path, stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudyError(f"can't be read: {reason}", source=str(path)) from None


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a file that `Replay` can read; nothing is left of it if writing fails."""
    with atomic_write(path) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n")


@functools.lru_cache(maxsize=4)
def _read_file(path: Path, mtime_ns: int, size: int) -> Mapping[str, Mapping[str, Any]]:
    """Read a file; cached until the file changes."""
    records: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            read_record(record)
        except (ValueError, RecursionError) as error:
            reason = error.mistakes[0].message if isinstance(error, StudyError) else "is not JSON"
            raise StudyError(Mistake((), reason, line=number), source=str(path)) from None
        records[record["key"]] = record
    return records
