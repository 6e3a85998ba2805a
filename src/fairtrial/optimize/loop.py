"""The optimise loop as a state machine: what to ask for next, and what is the best so far.

Pure: no clock, no I/O. It is told replies and verdicts in whatever order they come; what it decides
is a function of its rules, the replies and the verdicts alone. Each line of descent decides by
itself (`lines.py`), and budgets are reserved by line number, so that arrival order and the number
of slots change nothing::

    ask() ──requests──► a proposer ──reply()──► entries ──► checks, timing ──judge()──► ask() ...

*Equal candidates* are judged once: whichever comes first. Others wait for its verdict if need be.
A line counts what is new to itself against its share, as it can't know whether another line will
come to the same; so there are `max_candidates` different ones at most, and maybe fewer. In the tree
a duplicate is the one that stands later, not the one that came later.

*To resume*, make a new loop with the same rules, and answer its requests by what was recorded: a
reply by its request's key, a verdict by the candidate's digest. It comes to the same state, however
much of it is known, and asks on from there. (Not by ids: who is judged for its equals may differ.)

*After `stop`* nothing is asked for, but what was asked for is paid for: its replies are entered,
judged and may win.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fairtrial.arena import Verdict
from fairtrial.optimize.lineage import BASE, Entry, Line, LoopRules, Move, count_lines
from fairtrial.optimize.proposals import Request, RequestKind, Tried, Usage

__all__ = ["BASE", "Entry", "Loop", "LoopRules"]

_FREE = Usage()


class Loop:
    """Asked what to do; told what came of it."""

    def __init__(self, rules: LoopRules) -> None:
        self.rules = rules
        count = count_lines(rules)
        each, rest = divmod(rules.max_candidates, count)
        self._lines = [Line(number, each + (number < rest)) for number in range(count)]
        self._asked: dict[str, list[tuple[Line, Move]]] = {}
        self._judged: dict[str, str] = {"": BASE}  # who is judged for all of its digest, by digest
        self._verdicts = {"": Tried(BASE, "", "", Verdict.PASSED, "it equals the base")}
        self._why_stopped = ""
        for line in self._lines:
            line.advance(rules)

    def ask(self) -> list[Request]:
        """Requests that can be made now and have not been given out yet, in a fixed order.

        Each needs its `reply`, sooner or later; one that is not made after all, an empty one.
        """
        requests = []
        for first in range(0, len(self._lines), self.rules.batch):
            group = self._lines[first : first + self.rules.batch]
            moving = [line for line in group if line.move and not _waits(line.move)]
            requests += [self._request([line]) for line in moving]
            # Those that are refined together wait for each other, or who is with whom would depend
            # on who comes first.
            ready = [line for line in group if line.move is not None]
            if ready and all(line.move is not None or line.why_over for line in group):
                requests.append(self._request(ready))
        return requests

    def _request(self, lines: Sequence[Line]) -> Request:
        """One for all these lines, which all want the same."""
        asked = [(line, line.move) for line in lines if line.move is not None]
        line, move = asked[0]
        step = len(line.entries)
        request = Request(
            kind=move.kind,
            line=line.number,
            step=step,
            # Two lines that come to the same candidate ask the same, each for itself.
            replicate=line.number,
            seed=_derive_seed(self.rules.seed, line.number, step),
            about=tuple(each.about.tried for _, each in asked if each.about and each.about.tried),
            history=_history(line) if len(asked) == 1 else (),
            wanted=len(asked),
        )
        self._asked[request.key] = asked
        for line, _ in asked:
            line.move = None
        return request

    def reply(
        self,
        request: Request,
        digests: Sequence[str | None],
        diffs: Sequence[str | None] = (),
        usage: Usage = _FREE,
        names: Sequence[str] = (),
        why_none: str = "",
    ) -> list[Entry]:
        """A reply came: the digest of each candidate (None: there is none); "" equals the base.

        `diffs` are the candidates' own, place by place like their digests; without them a duplicate
        has the diff of whoever was judged. `names` are what their makers call them, `why_none` why
        there are fewer than asked for. One that can't be resolved has no digest: any text will do
        that equals another's only if they are the same.

        Returns what was entered; those without `duplicate_of` have to be judged.
        """
        asked = self._asked.get(request.key)
        if asked is None:
            raise ValueError(f"nobody waits for a reply to {request.key}")
        if len(digests) > len(asked):
            raise ValueError(f"{request.key}: asked for {len(asked)}, got {len(digests)}")
        del self._asked[request.key]
        entered = []
        for place, (line, move) in enumerate(asked):
            line.pay(usage, len(asked), self.rules.reply_tokens)
            digest = digests[place] if place < len(digests) else None
            if digest is None:
                self._go_without(line, why_none, is_alone=len(asked) == 1)
            else:
                diff = diffs[place] if place < len(diffs) else None
                name = names[place] if place < len(names) else ""
                entered.append(self._enter(line, move, digest, diff, name))
        return entered

    def _go_without(self, line: Line, why: str, *, is_alone: bool) -> None:
        """There is no candidate for a line; if it was one of several, it is asked for by itself."""
        if self._why_stopped or is_alone:
            line.why_over = self._why_stopped or why or "the proposer has nothing to propose"
            return
        line.advance(self.rules)
        if line.move is not None:
            line.move = replace(line.move, is_alone=True)

    def _enter(self, line: Line, move: Move, digest: str, diff: str | None, name: str) -> Entry:
        step = len(line.entries)
        entry = Entry(
            id=f"{line.number}.{step}",
            parent=move.about.id if move.about else None,
            kind=move.kind,
            line=line.number,
            step=step,
            duplicate_of=self._judged.get(digest),
            digest=digest,
            diff=diff,
            name=name,
        )
        self._judged.setdefault(digest, entry.id)
        line.entries.append(entry)
        if digest in self._verdicts:
            self._settle(line)
        return line.entries[-1]

    def judge(self, id: str, tried: Tried) -> None:
        """A candidate's verdict; for one that is timed, after its timing.

        What the tree holds goes by the candidate's own name, or by its id if it has none.
        """
        awaited = {self._judged[digest]: digest for digest in self._judged.keys() - self._verdicts}
        if id not in awaited:
            raise ValueError(f"nobody waits for a verdict on {id}")
        self._verdicts[awaited[id]] = tried
        for line in self._lines:
            if line.awaits(awaited[id]):
                self._settle(line)

    def _settle(self, line: Line) -> None:
        """The verdict on a line's last candidate is known: its own, or that of its equal."""
        last = line.entries[-1]
        tried = self._verdicts[last.digest]
        diff = tried.diff if last.diff is None else last.diff
        own = replace(tried, name=last.name or last.id, digest=last.digest, diff=diff)
        line.entries[-1] = replace(last, tried=own)
        if self._why_stopped:
            line.why_over = self._why_stopped
        else:
            line.advance(self.rules)

    def stop(self, why: str) -> None:
        """No more requests: time, tokens or money ran out, or somebody said so."""
        if self._why_stopped or self.is_over:
            return
        self._why_stopped = why or "stopped"
        for line in self._lines:
            if line.move is not None:
                line.move, line.why_over = None, self._why_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more is to be asked of anybody."""
        return bool(self._why_stopped)

    @property
    def is_over(self) -> bool:
        """Whether nothing is asked for, awaited or to be judged any more."""
        return all(line.why_over for line in self._lines)

    @property
    def why_over(self) -> str:
        """Why it is over, in a line; empty while it isn't."""
        if not self.is_over:
            return ""
        if self._why_stopped:
            return self._why_stopped
        counts = Counter(line.why_over for line in self._lines)
        return "; ".join(
            f"1 line: {why}" if count == 1 else f"{count} lines: {_of_several(why)}"
            for why, count in counts.items()
        )

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The whole tree, line by line.

        Of equal candidates the first in the tree, by step and then by line, is the original. While
        the loop runs an earlier one may still come.
        """
        originals: dict[str, str] = {"": BASE}
        everyone = [entry for line in self._lines for entry in line.entries]
        for entry in sorted(everyone, key=lambda each: (each.step, each.line)):
            originals.setdefault(entry.digest, entry.id)
        found = []
        for entry in everyone:
            original = originals[entry.digest]
            found.append(replace(entry, duplicate_of=None if original == entry.id else original))
        return tuple(found)


def _waits(move: Move) -> bool:
    """Whether it waits for its neighbours."""
    return move.kind == RequestKind.REFINE and not move.is_alone


def _history(line: Line) -> tuple[Tried, ...]:
    return tuple(entry.tried for entry in line.entries if entry.tried is not None)


def _derive_seed(seed: int, line: int, step: int) -> int:
    """32 bits: as much as every generator and every endpoint takes."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{line}/{step}".encode()).digest()[:4], "big")


def _of_several(why: str) -> str:
    """Why several lines are over, where it is told of one."""
    share = "its share"
    return why.replace(share, "their share", 1) if why.startswith(share) else why
