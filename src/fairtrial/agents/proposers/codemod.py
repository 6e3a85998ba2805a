"""Candidates without a model, a key or a network: transformations of known slow patterns."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fairtrial.agents.proposers.transforms.catalogue import CATALOGUE
from fairtrial.agents.proposers.transforms.overlaying import overlay
from fairtrial.agents.proposers.transforms.recipes import (
    Dish,
    Files,
    Recipe,
    Site,
    Step,
    cook,
    number_sites,
    parse,
    spell,
    touches,
    transformable,
)
from fairtrial.agents.proposers.transforms.writing import check_installed
from fairtrial.errors import Mistake, did_you_mean
from fairtrial.model.candidates import Candidate, FileState
from fairtrial.model.proposals import Brief, Kind, Reply, Request, Tried, Usage
from fairtrial.model.record import Record
from fairtrial.sandbox.quiet import HostLock

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CodemodProposer(Record):
    """Real source transformations, each alone and in combinations; offline, and always the same.

    combinations: whether transformations are also combined, from the start and step by step
    families: the families or single transformations that may be used; empty for all
    most: how many different first proposals there are
    """

    combinations: bool = True
    families: tuple[str, ...] = ()
    most: int = 32

    name = "codemod"
    can_batch = False

    def _mistakes(self) -> Iterator[Mistake]:
        known = {word for each in CATALOGUE for word in (each.name, each.family)}
        for place, word in enumerate(self.families):
            if word not in known:
                message = f"there is no family or transformation '{word}'"
                yield Mistake(("families", place), message, did_you_mean(word, sorted(known)))
        if self.most < 1:
            yield Mistake(("most",), f"must be 1 or more, got {self.most}")

    @property
    def most_at_once(self) -> int:
        """As many as there are cores: it is all computation."""
        return len(os.sched_getaffinity(0))

    def can(self, kind: Kind) -> bool:
        """Refining is combining."""
        return self.combinations or kind in (Kind.INITIAL, Kind.REPAIR)

    def check_ready(self) -> None:
        """Whether libcst is installed, before anything starts: raises a `LabError`."""
        check_installed()

    def check_ceiling(self, max_cost: float | None) -> None:
        """Any ceiling will do: nothing is paid for."""

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """A candidate, or why there is none: a function of the files and the request."""
        from anyio import to_thread

        check_installed()
        began_s = time.monotonic()
        # It uses a core, so it must not run beside what is timed. The thread is waited for even
        # if we are cancelled: else it would go on without the lease.
        async with HostLock().shared():
            reply = await to_thread.run_sync(self.answer, brief, request)
        return replace(reply, usage=Usage(model=self.name, seconds=time.monotonic() - began_s))

    def answer(self, brief: Brief, request: Request) -> Reply:
        """The same at once, in this thread and without regard to others."""
        names = tuple(
            each.name
            for each in CATALOGUE
            if not self.families or {each.name, each.family} & {*self.families}
        )
        files, notes = transformable(brief.files)
        kitchen = _Kitchen(brief, files, names, self)
        if request.kind is Kind.INITIAL:
            recipe = kitchen.first(request.line)
            parent = None
        else:
            recipe, why = kitchen.follow(request)
            parent = request.about[0].digest if request.about else None
            if recipe is None:
                return Reply(refusal=why)
        if recipe is None:
            count = len(kitchen.plans)
            told = f"there are {count} proposals for these files" if count else "nothing applies"
            return Reply(refusal="; ".join([told, *notes]))
        return Reply(candidates=(kitchen.serve(recipe, parent, notes),))
