"""The arena: candidates come in as a stream, each is judged on its own slot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fairtrial.arena.blame import blame_us, is_our_fault, rejected, unjudged
from fairtrial.arena.build import run_build
from fairtrial.arena.candidates.patches import render_patch
from fairtrial.arena.candidates.paths import Change, PathRules
from fairtrial.arena.candidates.protection import protection_of
from fairtrial.arena.candidates.resolution import editable_texts, resolve
from fairtrial.arena.checks.check_results import Tally
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.disk_guard import Use
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.verdicts import Basis, Reason, Rejection, Verdict
from fairtrial.arena.resources import Ground
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.task_groups import run_all
from fairtrial.arena.timing.bench import Bench, can_time, open_bench
from fairtrial.core import StudyError

if TYPE_CHECKING:
    from anyio import Event, Semaphore

BASE = "base"
"""What a candidate that changes nothing is a duplicate of."""
READERS = 4
"""How many candidates are read at once, which is mostly waiting for git."""
_STRENGTH = list(Basis)


@dataclass(slots=True)
class _Entry:
    """A digest that was seen: its judgement, once there is one."""

    done: Event
    judgement: Judgement | None = None


class Arena:
    """Judges candidates against one base; as many callers at once as there are.

    problem: whose candidates they are, with paths relative to the repository's top
    base: the commit that stands for the user's tree
    tree: what that holds, whenever it was made
    notes: what people should know of the base and its checks
    """

    def __init__(
        self, ground: Ground, trials: Sequence[Trial], rules: PathRules, notes: Sequence[str]
    ) -> None:
        import anyio

        self._ground, self._trials, self._rules = ground, tuple(trials), rules
        self._seen: dict[str, _Entry] = {}
        self._readers: Semaphore = anyio.Semaphore(READERS)
        self._room = ground.room
        self.base = ground.pool.snapshot.commit
        self.tree = ground.pool.snapshot.tree
        self.notes = tuple(notes)
        self.sandbox_name = ground.sandbox.name
        self.problem = ground.problem

    @property
    def basis(self) -> Basis:
        """What a pass rests on: the strongest of the checks that all had to hold."""
        return max((trial.basis for trial in self._trials), key=_STRENGTH.index)

    async def resolve(self, candidate: Candidate) -> Changes | Rejection:
        """What a candidate comes to against the base, or why it can't be used."""
        try:
            return await resolve(candidate, self._ground.pool.snapshot, self._rules)
        except StudyError as error:
            return Rejection(Reason.UNUSABLE, str(error))
        except Exception as error:  # one candidate must not cost the others theirs
            self._room.look()
            return blame_us(error)

    async def resolve_all(self, candidates: Sequence[Candidate]) -> list[Changes | Rejection]:
        """The same for many, in their order."""
        return await run_all([partial(self._resolve, each) for each in candidates])

    async def _resolve(self, candidate: Candidate) -> Changes | Rejection:
        async def read(use: Use) -> Changes | Rejection:
            async with self._reading():
                self._room.begin(use)
                return await self.resolve(candidate)

        try:
            return await self._room.settle(read, is_our_fault)
        except NoRoomError as error:
            return blame_us(error)

    async def read_all(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[Changes | Rejection, str]]:
        """The same, each with its patch; nothing for one that can't be used."""
        return await run_all([partial(self._read, each) for each in candidates])

    async def _read(self, candidate: Candidate) -> tuple[Changes | Rejection, str]:
        resolved = await self._resolve(candidate)
        async with self._reading():
            return resolved, await self.render(resolved)

    async def render(self, resolved: Changes | Rejection) -> str:
        """A candidate's changes as a patch; nothing for one that can't be used."""
        if isinstance(resolved, Rejection):
            return ""
        async with self._ground.lock.shared():
            patch = await render_patch(resolved, self._ground.pool.snapshot)
        return patch.decode("utf-8", "replace")

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[None]:
        """Never beside what is timed, and a few at once.

        Not on the cores of checks: who waits for the clock with one of them keeps checks waiting.
        """
        async with self._ground.lock.shared(), self._readers:
            yield

    async def sources(self) -> dict[str, str]:
        """The files of the base that candidates may change, as far as they are texts."""
        return (await editable_texts(self._ground.pool.snapshot, self._rules))[0]

    async def list_unread(self) -> list[str]:
        """Texts among the same files that `sources` leaves out: they aren't UTF-8."""
        return (await editable_texts(self._ground.pool.snapshot, self._rules))[1]

    async def judge(
        self,
        candidate: Candidate,
        resolved: Changes | Rejection | None = None,
        begun: Callable[[], None] | None = None,
    ) -> Judgement:
        """Check a candidate; never raises for what a candidate is or does.

        What fails on a full disk raises `NoRoomError`: whoever goes on would judge nothing else.
        One that equals an earlier one after normalisation, or the base, inherits its verdict.
        `begun` is called when it has got a slot.
        """
        if resolved is None:
            resolved = await self._resolve(candidate)
        if isinstance(resolved, Rejection):
            if is_our_fault(resolved):
                self._room.mind()
            return rejected(candidate, "", resolved)
        if not resolved.digest:
            return Judgement(candidate.name, "", Verdict.PASSED, self.basis, duplicate_of=BASE)
        return await self._judge_once(candidate, resolved, begun)

    async def _judge_once(
        self, candidate: Candidate, changes: Changes, begun: Callable[[], None] | None
    ) -> Judgement:
        import anyio

        while (entry := self._seen.get(changes.digest)) is not None:
            await entry.done.wait()
            if entry.judgement is not None:
                return entry.judgement.inherited_by(candidate.name)
        entry = self._seen[changes.digest] = _Entry(anyio.Event())
        try:
            judgement = await self._check(candidate, changes, begun)
            if judgement.verdict != Verdict.INCONCLUSIVE:
                entry.judgement = judgement
            return judgement
        finally:
            if entry.judgement is None:  # cancelled, or our own fault: the next one is tried
                del self._seen[changes.digest]
            entry.done.set()

    async def _check(
        self, candidate: Candidate, changes: Changes, begun: Callable[[], None] | None
    ) -> Judgement:
        async def check(use: Use, slot: WorktreeSlot) -> Tally:
            if begun is not None:
                begun()
            self._room.begin(use)
            try:
                return await self._run_checks(slot, changes)
            finally:
                await self._room.clear(slot)

        try:
            tally = await self._room.settle(
                lambda use: self._ground.undisturbed(partial(check, use)),
                lambda tally: tally.rejection is not None,
            )
        except NoRoomError:
            raise
        except Exception as error:  # one candidate must not cost the others theirs
            return unjudged(candidate, error, changes)
        return Judgement(
            name=candidate.name,
            digest=changes.digest,
            verdict=Verdict.REJECTED if tally.rejection else Verdict.PASSED,
            basis=self.basis,
            rejection=tally.rejection and tally.rejection.cleaned(),
            not_exercised=() if tally.rejection else self._unloaded(changes, tally.loaded),
            check_s=tally.wall_s,
            cpu_s=tally.cpu_s,
            peak_rss_mb=tally.peak_rss_mb,
        )

    async def _run_checks(self, slot: WorktreeSlot, changes: Changes) -> Tally:
        tally = Tally()
        try:
            await slot.write_candidate(changes)
        except StudyError as error:
            tally.rejection = Rejection(Reason.UNUSABLE, str(error))
            return tally
        # A warm process may hold another module of that name, and would never look for this one.
        stage = self._ground.stage(slot, may_be_warm=not self._adds_names(changes))
        rejection, touched = await run_build(stage, slot)
        tally.rejection = rejection or self._find_tampering("build", self._judging(touched))
        for trial in self._trials:
            if tally.rejection is not None:
                break
            run = await trial.run(stage)
            self._room.look()  # while what it has written is there
            touched = await slot.restage()
            tally.add(run)
            tally.rejection = tally.rejection or self._find_tampering(trial.label, touched)
            tally.loaded = {_inside(file, str(stage.seen)) for file in tally.loaded}
        return tally

    def _adds_names(self, changes: Changes) -> bool:
        """Whether modules or packages come from it that the base has none of at the same place."""
        base, problem = self._ground.pool.base, self._ground.problem
        roots = {PurePosixPath(root) for root in (*self._ground.import_roots, problem.cwd, ".")}
        for path in (PurePosixPath(each) for each, state in changes.files.items() if state):
            for root in roots:
                first = path.relative_to(root).parts[0] if path.is_relative_to(root) else ""
                if first and not (base / root / first).exists():
                    return True
        return False

    def _judging(self, paths: Sequence[str]) -> list[str]:
        """Those files that judge candidates; others a build may write anew, to keep them."""
        return [
            path
            for path in paths
            if protection_of(path) and self._rules.mistake(path, Change.CHANGED)
        ]

    def _find_tampering(self, label: str, touched: Sequence[str]) -> Rejection | None:
        """Files that were changed while a check ran, and that the base's own run leaves alone."""
        odd = sorted(set(touched) - self._ground.disturbed)
        if not odd:
            return None
        shown = ", ".join(odd[:5]) + (f" and {len(odd) - 5} more" if len(odd) > 5 else "")
        return Rejection(Reason.TAMPERING, f"{label}: it changed {shown} while it ran")

    def _unloaded(self, changes: Changes, loaded: set[str]) -> tuple[str, ...]:
        """Changed Python files that no check imported; none where no check can tell what it did."""
        if not loaded:
            return ()
        kept = (path for path, state in changes.files.items() if state is not None)
        return tuple(
            sorted(
                path for path in kept if PurePosixPath(path).suffix == ".py" and path not in loaded
            )
        )

    @property
    def can_time(self) -> bool:
        """Whether the problem has anything that can be timed."""
        return can_time(self._ground.problem)

    @asynccontextmanager
    async def bench(self) -> AsyncIterator[Bench]:
        """What times candidates that passed; the base is timed first."""
        async with open_bench(self._ground, self._trials) as bench:
            yield bench

    def parts(self) -> tuple[Ground, tuple[Trial, ...], PathRules]:
        """What it works with: for those who hand the winner over (`arena/handover`)."""
        return self._ground, self._trials, self._rules

    @property
    def kept(self) -> Path | None:
        """Where the slots stay, if they do."""
        return self._ground.pool.kept


def _inside(file: str, seen: str) -> str:
    """A file as the repository names it, if it lies in the slot."""
    return file[len(seen) + 1 :] if file.startswith(seen + "/") else file
