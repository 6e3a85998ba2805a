"""The arena: judges candidates against one base, each on a slot of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fairtrial.arena.build import run_build
from fairtrial.arena.candidate_sources import BASE
from fairtrial.arena.candidates.patches import render_patch
from fairtrial.arena.candidates.paths import PathChange, PathRules, show_path
from fairtrial.arena.candidates.protection import get_protection
from fairtrial.arena.candidates.resolution import editable_texts, resolve
from fairtrial.arena.checks.base_expectations import find_failing_on_purpose
from fairtrial.arena.checks.check_results import CheckResults
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.disk_guard import DiskUse
from fairtrial.arena.evaluator_failures import (
    is_evaluator_failure,
    make_evaluator_rejection,
    rejected,
    unjudged,
)
from fairtrial.arena.model.adequacy import Adequacy
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.verdicts import Basis, Reason, Rejection, Verdict
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.bench import Bench, has_timed_tests, open_bench
from fairtrial.arena.workshop.workshop import ArenaWorkshop
from fairtrial.core import StudyError, run_all

if TYPE_CHECKING:
    from anyio import Event, Semaphore

READERS = 4
"""How many candidates are resolved at once, which is mostly waiting for git."""
MOST_LEFT_OUT = 5
_STRENGTH = list(Basis)


@dataclass(slots=True)
class _SeenDigest:
    """A candidate digest under judgement or judged.

    done: set when the judgement is there, or was given up
    judgement: the judgement; None while it is under way
    """

    done: Event
    judgement: Judgement | None = None


class Arena:
    """Judges candidates against one base; safe for concurrent callers.

    resources: what checks, benchmarks and agents share
    checks: the checks, prepared on the base, in the problem's order
    path_rules: which paths candidates may change
    problem: the code problem, with paths relative to the repository's top
    base: the commit in the arena's own repository that holds the user's tree
    tree: the git tree of that commit, which doesn't depend on when it was made
    top: the top of the user's tree, which the base is a copy of
    notes: remarks for people on the base and its checks
    remarks: the same without those that only say how inputs were made
    sandbox_name: the kind of sandbox that candidates' commands run in
    adequacy: what the checks reject, once they were audited
    """

    def __init__(
        self,
        resources: ArenaResources,
        checks: Sequence[PreparedCheck],
        path_rules: PathRules,
        notes: Sequence[str],
        input_notes: Collection[str] = (),
    ) -> None:
        import anyio

        self.resources = resources
        self.checks = tuple(checks)
        self.path_rules = path_rules
        self.problem = resources.problem
        self.base = resources.pool.snapshot.commit
        self.tree = resources.pool.snapshot.tree
        self.top = resources.pool.snapshot.source
        self.notes = tuple(notes)
        self.remarks = tuple(note for note in notes if note not in input_notes)
        self.sandbox_name = resources.sandbox.name
        self.adequacy: Adequacy | None = None
        self._seen: dict[str, _SeenDigest] = {}
        self._readers: Semaphore = anyio.Semaphore(READERS)
        self._disk_guard = resources.disk_guard

    @property
    def basis(self) -> Basis:
        """The strongest evidence that a pass rests on, of all checks that had to hold."""
        return max((check.basis for check in self.checks), key=_STRENGTH.index)

    @property
    def vetoes(self) -> tuple[str, ...]:
        """Why no candidate may be adopted: the audit found that the checks accept anything."""
        veto = self.adequacy.veto if self.adequacy else ""
        return (veto,) if veto else ()

    async def resolve(self, candidate: Candidate) -> Changes | Rejection:
        """Return a candidate's changes to the base, or a rejection if it can't be used."""
        try:
            return await resolve(candidate, self.resources.pool.snapshot, self.path_rules)
        except StudyError as error:
            return Rejection(Reason.UNUSABLE, str(error))
        except Exception as error:  # one candidate must not cost the others theirs
            self._disk_guard.check()
            return make_evaluator_rejection(error)

    async def resolve_all(self, candidates: Sequence[Candidate]) -> list[Changes | Rejection]:
        """Resolve several candidates concurrently; results in their order."""
        return await run_all([partial(self._resolve, candidate) for candidate in candidates])

    async def _resolve(self, candidate: Candidate) -> Changes | Rejection:
        async def read(use: DiskUse) -> Changes | Rejection:
            async with self._reading():
                self._disk_guard.start(use)
                return await self.resolve(candidate)

        try:
            return await self._disk_guard.run(read, is_evaluator_failure)
        except NoRoomError as error:
            return make_evaluator_rejection(error)

    async def read_all(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[Changes | Rejection, str]]:
        """Resolve several candidates, each with its patch; an empty one if it can't be used."""
        return await run_all([partial(self._read, candidate) for candidate in candidates])

    async def _read(self, candidate: Candidate) -> tuple[Changes | Rejection, str]:
        resolved = await self._resolve(candidate)
        async with self._reading():
            return resolved, await self.render(resolved)

    async def render(self, resolved: Changes | Rejection) -> str:
        """Return a candidate's changes as a patch; an empty one if it can't be used."""
        if isinstance(resolved, Rejection):
            return ""
        async with self.resources.lock.shared():
            patch = await render_patch(resolved, self.resources.pool.snapshot)
        return patch.decode("utf-8", "replace")

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[None]:
        """Read at most `READERS` candidates at once, and none while something is timed.

        This takes no core of the checks: they would wait for a reader that waits for timing.
        """
        async with self.resources.lock.shared(), self._readers:
            yield

    async def sources(self) -> dict[str, str]:
        """Return the text of each file of the base that candidates may change, by path."""
        return (await editable_texts(self.resources.pool.snapshot, self.path_rules))[0]

    async def list_unread(self) -> list[str]:
        """Return the editable text files that `sources` leaves out because they aren't UTF-8."""
        return (await editable_texts(self.resources.pool.snapshot, self.path_rules))[1]

    async def judge(
        self,
        candidate: Candidate,
        resolved: Changes | Rejection | None = None,
        begun: Callable[[], None] | None = None,
    ) -> Judgement:
        """Check a candidate and return its judgement, whatever the candidate is or does.

        One that equals the base or an earlier candidate after normalization inherits its verdict.

        resolved: what `resolve` returned for it, if it was called before
        begun: called when the candidate has got a slot

        Raises `NoRoomError` if the disk is full: no other candidate could be judged either.
        """
        if resolved is None:
            resolved = await self._resolve(candidate)
        if isinstance(resolved, Rejection):
            if is_evaluator_failure(resolved):
                self._disk_guard.require_space_if_idle()
            return rejected(candidate, "", resolved)
        failing = "" if resolved.digest else find_failing_on_purpose(self.checks)
        if failing:
            message = f"{failing}: it changes nothing, and the base fails what must pass"
            return rejected(candidate, "", Rejection(Reason.TESTS, message))
        if not resolved.digest:
            notes = describe_left_out(resolved)
            return Judgement(
                candidate.name, "", Verdict.PASSED, self.basis, duplicate_of=BASE, notes=notes
            )
        return await self._judge_once(candidate, resolved, begun)

    async def _judge_once(
        self, candidate: Candidate, changes: Changes, begun: Callable[[], None] | None
    ) -> Judgement:
        import anyio

        while (entry := self._seen.get(changes.digest)) is not None:
            await entry.done.wait()
            if entry.judgement is not None:
                return entry.judgement.inherited_by(candidate.name)
        entry = self._seen[changes.digest] = _SeenDigest(anyio.Event())
        try:
            judgement = await self._check(candidate, changes, begun)
            if judgement.verdict != Verdict.INCONCLUSIVE:
                entry.judgement = judgement
            return judgement
        finally:
            if entry.judgement is None:  # canceled, or the arena failed: the next one is tried
                del self._seen[changes.digest]
            entry.done.set()

    async def _check(
        self, candidate: Candidate, changes: Changes, begun: Callable[[], None] | None
    ) -> Judgement:
        async def check(use: DiskUse, slot: WorktreeSlot) -> CheckResults:
            if begun is not None:
                begun()
            self._disk_guard.start(use)
            try:
                return await self._run_checks(slot, changes)
            finally:
                await self._disk_guard.reset_if_full(slot)

        try:
            tally = await self._disk_guard.run(
                lambda use: self.resources.run_undisturbed(partial(check, use)),
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
            not_exercised=() if tally.rejection else self._find_unloaded(changes, tally.loaded),
            check_s=tally.wall_s,
            cpu_s=tally.cpu_s,
            peak_rss_mb=tally.peak_rss_mb,
            notes=describe_left_out(changes),
        )

    async def _run_checks(self, slot: WorktreeSlot, changes: Changes) -> CheckResults:
        tally = CheckResults()
        try:
            await slot.write_candidate(changes)
        except StudyError as error:
            tally.rejection = Rejection(Reason.UNUSABLE, str(error))
            return tally
        # A warm process may hold another module of that name, and would never look for this one.
        stage = self.resources.stage(slot, may_be_warm=not self._adds_names(changes))
        rejection, touched = await run_build(stage, slot)
        tally.rejection = rejection or self._find_tampering("build", self._find_protected(touched))
        for check in self.checks:
            if tally.rejection is not None:
                break
            run = await check.run(stage)
            self._disk_guard.check()  # before the files that it has written are removed
            touched = await slot.restage()
            tally.add(run)
            tally.rejection = tally.rejection or self._find_tampering(check.label, touched)
            tally.loaded = {_relative_to_slot(file, str(stage.seen)) for file in tally.loaded}
        return tally

    def _adds_names(self, changes: Changes) -> bool:
        """Return whether it adds a top-level module or package to an import root."""
        base, problem = self.resources.pool.base, self.resources.problem
        roots = {PurePosixPath(root) for root in (*self.resources.import_roots, problem.cwd, ".")}
        for path in (PurePosixPath(name) for name, state in changes.files.items() if state):
            for root in roots:
                first = path.relative_to(root).parts[0] if path.is_relative_to(root) else ""
                if first and not (base / root / first).exists():
                    return True
        return False

    def _find_protected(self, paths: Sequence[str]) -> list[str]:
        """Return the protected ones of these files; a build may write to all others."""
        return [
            path
            for path in paths
            if get_protection(path) and self.path_rules.find_violation(path, PathChange.CHANGED)
        ]

    def _find_tampering(self, label: str, touched: Sequence[str]) -> Rejection | None:
        """Reject a candidate whose run changed files that the base's own run leaves alone."""
        unexpected = sorted(set(touched) - self.resources.disturbed)
        if not unexpected:
            return None
        shown = ", ".join(unexpected[:5]) + (
            f" and {len(unexpected) - 5} more" if len(unexpected) > 5 else ""
        )
        return Rejection(Reason.TAMPERING, f"{label}: it changed {shown} while it ran")

    def _find_unloaded(self, changes: Changes, loaded: set[str]) -> tuple[str, ...]:
        """Return the changed Python files that no check imported; none if imports are unknown."""
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
        """Whether the problem has a benchmark, or tests that can be timed."""
        return bool(self.problem.bench) or has_timed_tests(self.checks)

    @asynccontextmanager
    async def bench(self) -> AsyncIterator[Bench]:
        """Prepare the problem's benchmarks on the base, and time candidates with them."""
        async with open_bench(self.resources, self.checks) as bench:
            yield bench

    def make_workshop(self) -> ArenaWorkshop:
        """Return a workshop, which gives agents private copies of the base while this is open."""
        return ArenaWorkshop(self.resources, self.path_rules)

    @property
    def kept(self) -> Path | None:
        """The folder with the slots, if they are kept afterwards."""
        return self.resources.pool.kept


def describe_left_out(changes: Changes) -> tuple[str, ...]:
    """Return a note on files of a revision that were left out; none if there are none."""
    paths = changes.left_out
    if not paths:
        return ()
    shown = ", ".join(map(show_path, paths[:MOST_LEFT_OUT]))
    more = f" and {len(paths) - MOST_LEFT_OUT:,} more" if len(paths) > MOST_LEFT_OUT else ""
    return (f"left out, since candidates may not change them: {shown}{more}",)


def _relative_to_slot(file: str, seen: str) -> str:
    """Return a path relative to the slot, if the file lies in it."""
    return file[len(seen) + 1 :] if file.startswith(seen + "/") else file
