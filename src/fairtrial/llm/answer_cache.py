"""Recorded answers on disk, found by what was asked.

An answer's key is the digest of all that it depends on: address, request, seed and replicate. Two
replicates of a run are two samples, so they never share an answer.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import LabError, atomic_write, canonical_json
from fairtrial.llm.responses import ChatAnswer
from fairtrial.llm.secret import Secret, redact_all

_TRANSPORT_FIELDS = ("stream", "stream_options")
"""Fields of a request that don't change its answer."""


def default_folder() -> Path:
    """Return the folder of recorded answers that is used unless another one is given."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fairtrial" / "answers"


def answer_key(base_url: str, body: Mapping[str, Any], seed: int, replicate: int) -> str:
    """Return the key of an answer."""
    asked = {name: value for name, value in body.items() if name not in _TRANSPORT_FIELDS}
    facts = {"url": base_url.rstrip("/"), "body": asked, "seed": seed, "replicate": replicate}
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """Recorded answers in a folder, one file each; processes may share it.

    folder: where they are
    """

    folder: Path

    def find(self, key: str) -> ChatAnswer | None:
        """Return a recorded answer; None if there is none, or its file can't be read."""
        try:
            data = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LabError(f"a recorded answer can't be read: {error}") from None
        try:
            return ChatAnswer.from_dict(json.loads(data)["answer"], is_cached=True)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None  # a file that something else wrote

    def keep(self, key: str, body: Mapping[str, Any], answer: ChatAnswer, secret: Secret) -> None:
        """Record an answer; one that holds the key is not recorded."""
        document = {"request": redact_all(body, secret.redact), "answer": answer.as_dict()}
        text = json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1)
        if secret.is_in(text):
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(text)
        except OSError as error:
            raise LabError(f"an answer can't be recorded in {self.folder}: {error}") from None

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
