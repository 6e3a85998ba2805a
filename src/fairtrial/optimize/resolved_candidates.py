"""Candidates of a reply, resolved against the base."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.arena import Arena, Candidate, Changes, Rejection


@dataclass(frozen=True, slots=True)
class ResolvedCandidate:
    """A candidate and its change against the base.

    candidate: the candidate
    resolved: its change, or why it is unusable
    diff: its change as a unified diff; of an unusable one, the diff that it came with
    """

    candidate: Candidate
    resolved: Changes | Rejection
    diff: str

    @property
    def digest(self) -> str:
        """The digest of its normalized change; of its own bytes, if it is unusable."""
        if isinstance(self.resolved, Changes):
            return self.resolved.digest
        content = hashlib.sha256(self.candidate.diff or b"")
        for path, state in sorted(self.candidate.files.items()):
            content.update(path.encode("utf-8", "surrogateescape") + b"\0" + state.content + b"\0")
        return f"unusable-{content.hexdigest()}"


async def resolve_candidates(
    arena: Arena, candidates: Sequence[Candidate | None]
) -> list[ResolvedCandidate | None]:
    """Resolve candidates in their order; None stays None."""
    results = iter(
        await arena.read_all([candidate for candidate in candidates if candidate is not None])
    )
    resolved: list[ResolvedCandidate | None] = []
    for candidate in candidates:
        if candidate is None:
            resolved.append(None)
            continue
        changes, diff = next(results)
        diff = diff or (candidate.diff or b"").decode("utf-8", "replace")
        resolved.append(ResolvedCandidate(candidate, changes, diff))
    return resolved
