"""The proposer `replay`, and the file format of recorded replies.

A record is one line of JSON: the request's key, the request, and the whole reply. Records are found
by their key alone, so that a replay doesn't depend on measured figures in prompts.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.arena import Candidate, FileState, Workshop
from fairtrial.core import Mistake, Record, StudyError, atomic_write, canonical, on_one_line
from fairtrial.optimize.option_paths import resolve_option_path
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import PreflightContext, Proposer

VERSION = 1
"""The version of the file format; records of other versions are refused."""
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


# -- replies as plain data --


def make_record(request: Request, reply: Reply) -> dict[str, Any]:
    """Return a reply as plain data, with the key of its request."""
    about = [{"name": tried.name, "digest": tried.digest} for tried in request.about]
    asked = {
        "kind": request.kind.value,
        "lineage": request.lineage,
        "step": request.step,
        "replicate": request.replicate,
        "seed": request.seed,
        "wanted": request.wanted,
        "about": about,
    }
    answered = {
        "candidates": [candidate and _pack_candidate(candidate) for candidate in reply.candidates],
        "usage": asdict(reply.usage),
        "refusal": reply.refusal,
        "exchange": canonical.to_plain(reply.exchange),
    }
    return {"version": VERSION, "key": request.key, "request": asked, "reply": answered}


def read_record(record: Mapping[str, Any]) -> Reply:
    """Return the reply that a record holds; raise a `StudyError` if it is no valid record."""
    version = record.get("version") if isinstance(record, Mapping) else None
    if version != VERSION:
        expected = f"expected a record of version {VERSION}"
        raise StudyError(f"{expected}, got {'none' if version is None else repr(version)}")
    try:
        if not isinstance(record["key"], str):
            raise TypeError("key")
        answered = record["reply"]
        return Reply(
            tuple(packed and _unpack_candidate(packed) for packed in answered["candidates"]),
            _unpack_usage(answered["usage"]),
            _text(answered["refusal"]),
            tuple(dict(entry) for entry in answered["exchange"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        detail = on_one_line(f"{type(error).__name__}: {error}", LONGEST_KEY)
        raise StudyError(f"is no record of a reply ({detail})") from None


def _pack_candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "diff": None if candidate.diff is None else _pack_bytes(candidate.diff),
        "files": {
            path: {
                "content": _pack_bytes(state.content),
                "executable": state.executable,
                "is_link": state.is_link,
            }
            for path, state in candidate.files.items()
        },
        "parent": candidate.parent,
        "origin": candidate.origin,
        "note": candidate.note,
    }


def _unpack_candidate(data: Mapping[str, Any]) -> Candidate:
    return Candidate(
        _text(data["name"]),
        None if data["diff"] is None else _unpack_bytes(data["diff"]),
        {
            path: FileState(_unpack_bytes(state["content"]), state["executable"], state["is_link"])
            for path, state in data["files"].items()
        },
        None if data["parent"] is None else _text(data["parent"]),
        _text(data["origin"]),
        _text(data["note"]),
    )


def _pack_bytes(content: bytes) -> str | dict[str, str]:
    """Return text as text, so that records are readable, and other bytes as base64."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _unpack_bytes(packed: Any) -> bytes:
    if isinstance(packed, str):
        return packed.encode("utf-8")
    return base64.b64decode(packed["base64"], validate=True)


def _unpack_usage(data: Mapping[str, Any]) -> Usage:
    cost = data["cost_usd"]
    return Usage(
        _text(data["model"]),
        int(data["prompt_tokens"]),
        int(data["completion_tokens"]),
        None if cost is None else float(cost),
        float(data["seconds"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value
