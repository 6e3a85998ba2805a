"""The optimize loop as a state machine: the next requests, and the tree of candidates.

It is pure: no clock, no I/O. Replies and verdicts may come in any order; its decisions are a
function of its rules, the replies and the verdicts alone. Each lineage decides by itself
(`lineage.py`), and budgets are divided among lineages beforehand, so that neither the order of
arrival nor the number of slots matters::

    next_requests() ──► a proposer ──reply()──► entries ──► checks, timing ──judge()──► ...

*Equal candidates* are judged once: the one that comes first; others wait for its verdict. A lineage
counts the candidates that are new to itself against its share, as it can't know whether another
lineage will come to the same; so there are at most `max_candidates` different ones, maybe fewer. In
the tree, a duplicate is the one that is later by step and lineage, not the one that came later.

*To resume*, make a new loop with the same rules, and answer its requests from records: a reply by
its request's key, a verdict by the candidate's digest. It reaches the same state and continues from
there. (Not by ids: which of several equal candidates is judged may differ.)

*After `stop`* no request is made, but those that were made are paid for: their replies are entered,
judged and may win.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fairtrial.arena import Verdict
from fairtrial.optimize.lineage import (
    BASE,
    CandidateEntry,
    Lineage,
    LoopRules,
    PlannedRequest,
    count_lineages,
)
from fairtrial.optimize.proposals import Request, RequestKind, Tried, Usage

_FREE = Usage()


class OptimizeLoop:
    """Decides which requests to make, given replies and verdicts."""

    def __init__(self, rules: LoopRules) -> None:
        self.rules = rules
        count = count_lineages(rules)
        share, rest = divmod(rules.max_candidates, count)
        self._lineages = [Lineage(number, share + (number < rest)) for number in range(count)]
        self._pending: dict[str, list[tuple[Lineage, PlannedRequest]]] = {}
        self._judged: dict[str, str] = {"": BASE}  # by digest: the id that is judged for all equal
        self._verdicts = {"": Tried(BASE, "", "", Verdict.PASSED, "it equals the base")}
        self._why_stopped = ""
        for lineage in self._lineages:
            lineage.advance(rules)

    def next_requests(self) -> list[Request]:
        """Return the requests that can be made now and weren't returned before, in a fixed order.

        Each needs a `reply`; one that isn't made after all needs an empty one.
        """
        requests = []
        for first in range(0, len(self._lineages), self.rules.batch):
            group = self._lineages[first : first + self.rules.batch]
            single = [
                lineage for lineage in group if lineage.planned and not _is_batched(lineage.planned)
            ]
            requests += [self._make_request([lineage]) for lineage in single]
            # Lineages that are refined in one request wait for each other; otherwise their
            # grouping would depend on the order of arrival.
            ready = [lineage for lineage in group if lineage.planned is not None]
            if ready and all(lineage.planned is not None or lineage.why_over for lineage in group):
                requests.append(self._make_request(ready))
        return requests

    def _make_request(self, lineages: Sequence[Lineage]) -> Request:
        """Return one request for all these lineages, which plan the same."""
        planned = [
            (lineage, lineage.planned) for lineage in lineages if lineage.planned is not None
        ]
        lineage, first = planned[0]
        step = len(lineage.entries)
        request = Request(
            kind=first.kind,
            lineage=lineage.number,
            step=step,
            # Two lineages that come to the same candidate each make their own request.
            replicate=lineage.number,
            seed=_derive_seed(self.rules.seed, lineage.number, step),
            about=tuple(plan.about.tried for _, plan in planned if plan.about and plan.about.tried),
            history=_get_history(lineage) if len(planned) == 1 else (),
            wanted=len(planned),
        )
        self._pending[request.key] = planned
        for lineage, _ in planned:
            lineage.planned = None
        return request

    def reply(
        self,
        request: Request,
        digests: Sequence[str | None],
        diffs: Sequence[str | None] = (),
        usage: Usage = _FREE,
        names: Sequence[str] = (),
        why_none: str = "",
    ) -> list[CandidateEntry]:
        """Enter the candidates of a reply; return their entries.

        Entries without `duplicate_of` have to be judged.

        digests: the digest of each candidate; None for a missing one, "" for one that equals the
            base. A candidate that can't be resolved has no digest: any text will do that is equal
            for equal candidates only
        diffs: the candidates' own diffs, in the same order; without them a duplicate gets the diff
            of the candidate that was judged
        names: the proposer's names for them, in the same order
        why_none: why there are fewer candidates than wanted
        """
        planned = self._pending.get(request.key)
        if planned is None:
            raise ValueError(f"no reply to {request.key} is expected")
        if len(digests) > len(planned):
            raise ValueError(f"{request.key}: asked for {len(planned)}, got {len(digests)}")
        del self._pending[request.key]
        entries = []
        for place, (lineage, plan) in enumerate(planned):
            lineage.pay(usage, len(planned), self.rules.reply_tokens)
            digest = digests[place] if place < len(digests) else None
            if digest is None:
                self._continue_without(lineage, why_none, is_alone=len(planned) == 1)
            else:
                diff = diffs[place] if place < len(diffs) else None
                name = names[place] if place < len(names) else ""
                entries.append(self._enter(lineage, plan, digest, diff, name))
        return entries

    def _continue_without(self, lineage: Lineage, why: str, *, is_alone: bool) -> None:
        """End a lineage without a candidate; if it was one of several, plan a separate request."""
        if self._why_stopped or is_alone:
            lineage.why_over = self._why_stopped or why or "the proposer has nothing to propose"
            return
        lineage.advance(self.rules)
        if lineage.planned is not None:
            lineage.planned = replace(lineage.planned, is_alone=True)

    def _enter(
        self, lineage: Lineage, plan: PlannedRequest, digest: str, diff: str | None, name: str
    ) -> CandidateEntry:
        step = len(lineage.entries)
        entry = CandidateEntry(
            id=f"{lineage.number}.{step}",
            parent=plan.about.id if plan.about else None,
            kind=plan.kind,
            lineage=lineage.number,
            step=step,
            duplicate_of=self._judged.get(digest),
            digest=digest,
            diff=diff,
            name=name,
        )
        self._judged.setdefault(digest, entry.id)
        lineage.entries.append(entry)
        if digest in self._verdicts:
            self._settle(lineage)
        return lineage.entries[-1]

    def judge(self, id: str, tried: Tried) -> None:
        """Take a candidate's final verdict: after its timing, if it is timed.

        In the tree, the candidate keeps its own name, or has its id if it has no name.
        """
        awaited = {self._judged[digest]: digest for digest in self._judged.keys() - self._verdicts}
        if id not in awaited:
            raise ValueError(f"no verdict on {id} is expected")
        self._verdicts[awaited[id]] = tried
        for lineage in self._lineages:
            if lineage.awaits(awaited[id]):
                self._settle(lineage)

    def _settle(self, lineage: Lineage) -> None:
        """Apply the verdict on a lineage's last candidate: its own, or that of an equal one."""
        last = lineage.entries[-1]
        tried = self._verdicts[last.digest]
        diff = tried.diff if last.diff is None else last.diff
        own = replace(tried, name=last.name or last.id, digest=last.digest, diff=diff)
        lineage.entries[-1] = replace(last, tried=own)
        if self._why_stopped:
            lineage.why_over = self._why_stopped
        else:
            lineage.advance(self.rules)

    def stop(self, why: str) -> None:
        """Make no more requests, since time, tokens or money ran out, or on demand."""
        if self._why_stopped or self.is_over:
            return
        self._why_stopped = why or "stopped"
        for lineage in self._lineages:
            if lineage.planned is not None:
                lineage.planned, lineage.why_over = None, self._why_stopped

    @property
    def is_over(self) -> bool:
        """Whether no request is planned and no reply or verdict is awaited."""
        return all(lineage.why_over for lineage in self._lineages)

    @property
    def why_over(self) -> str:
        """Why it is over, in one line; empty while it isn't."""
        if not self.is_over:
            return ""
        if self._why_stopped:
            return self._why_stopped
        counts = Counter(lineage.why_over for lineage in self._lineages)
        return "; ".join(
            f"1 lineage: {why}" if count == 1 else f"{count} lineages: {_make_plural(why)}"
            for why, count in counts.items()
        )

    @property
    def entries(self) -> tuple[CandidateEntry, ...]:
        """The whole tree, lineage by lineage.

        Of equal candidates the first in the tree, by step and then by lineage, is the original.
        While the loop runs, an earlier one may still come.
        """
        originals: dict[str, str] = {"": BASE}
        entries = [entry for lineage in self._lineages for entry in lineage.entries]
        for entry in sorted(entries, key=lambda entry: (entry.step, entry.lineage)):
            originals.setdefault(entry.digest, entry.id)
        return tuple(
            replace(
                entry,
                duplicate_of=None
                if originals[entry.digest] == entry.id
                else originals[entry.digest],
            )
            for entry in entries
        )


def _is_batched(plan: PlannedRequest) -> bool:
    """Return whether a request waits for those of neighboring lineages."""
    return plan.kind == RequestKind.REFINE and not plan.is_alone


def _get_history(lineage: Lineage) -> tuple[Tried, ...]:
    return tuple(entry.tried for entry in lineage.entries if entry.tried is not None)


def _derive_seed(seed: int, lineage: int, step: int) -> int:
    """Return a seed of 32 bits, which every generator and every endpoint accepts."""
    text = f"{seed}/{lineage}/{step}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _make_plural(why: str) -> str:
    """Return the reason why one lineage is over in words for several."""
    share = "its share"
    return why.replace(share, "their share", 1) if why.startswith(share) else why
