"""The audit itself: judge null candidates and mutants by the checks of an open arena."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fairtrial.arena.arena import Arena
from fairtrial.arena.audit.audit_checks import (
    find_audited_functions,
    limit_checks,
    prepare_timed_comparisons,
)
from fairtrial.arena.audit.definitions import Definition, find_definition
from fairtrial.arena.audit.mutations import Mutation, find_mutations, is_valid
from fairtrial.arena.audit.nulls import change_file, make_null, spell_literal
from fairtrial.arena.audit.reach import trace_functions
from fairtrial.arena.audit.selection import order_mutations
from fairtrial.arena.candidates.resolution import editable_files
from fairtrial.arena.checks.encoded_values import TAG, Encoded
from fairtrial.arena.checks.function_check import PreparedFunctionCheck
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.adequacy import Adequacy, MutantResult, NullKind, NullResult
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.opening import open_arena
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.core import events, on_one_line

LONGEST_WHY, LONGEST_ANSWER = 200, 60
NOTHING_LEFT = "checks not audited: all of them fail on the base on purpose"
NOT_NAMED = "checks not audited: no function is named by a check or a benchmark"


@dataclass(frozen=True, slots=True)
class AuditLimits:
    """How much an audit does.

    mutants: how many mutants are judged
    seed: the seed of their choice
    max_seconds: after this long no more are judged
    mutant_seconds: how long mutants are judged, at most
    slowest_s: if the checks take longer than this on the base, no mutants are judged
    """

    mutants: int = 20
    seed: int = 0
    max_seconds: float = 60.0
    mutant_seconds: float = float("inf")
    slowest_s: float = float("inf")


QUICK = AuditLimits(mutants=5, max_seconds=30.0, mutant_seconds=5.0, slowest_s=2.0)
"""What precedes every evaluation."""


async def audit_problem(
    problem: CodeProblem,
    limits: AuditLimits | None = None,
    *,
    settings: ArenaSettings | None = None,
) -> Adequacy:
    """Judge null candidates and mutants by a problem's checks; return what the checks reject.

    limits: how much is done; by default 20 mutants within a minute
    settings: options of the arena
    """
    settings = settings or ArenaSettings()
    async with open_arena(problem, settings=settings) as arena:
        settings.emit(events.PhaseStarted(events.Phase.AUDIT))
        return await audit_arena(arena, limits or AuditLimits())


async def audit_arena(arena: Arena, limits: AuditLimits = QUICK) -> Adequacy:
    """Audit the checks of an open arena, once: the result is kept in `arena.adequacy`."""
    if arena.adequacy is None:
        arena.adequacy = await _Audit(arena, limits).run()
    return arena.adequacy


@dataclass(slots=True)
class _Wanted:
    """A candidate to be judged by an audit.

    name: its name
    changes: its changes to the base
    judgement: its judgement; None if there was no time
    """

    name: str
    changes: Changes
    judgement: Judgement | None = None


class _Audit:
    """One audit.

    arena: the arena whose checks are audited
    limits: how much is done
    """

    def __init__(self, arena: Arena, limits: AuditLimits) -> None:
        self.arena, self.limits = arena, limits
        self.began = time.monotonic()
        self.notes: list[str] = []
        self.checks: list[PreparedCheck] = []
        self.judge_arena = arena

    @property
    def left_s(self) -> float:
        """How much time is left."""
        return max(0.0, self.limits.max_seconds - (time.monotonic() - self.began))

    async def run(self) -> Adequacy:
        functions = find_audited_functions(self.arena.problem)
        if not functions:
            return Adequacy(notes=(NOT_NAMED,))
        resources = self.arena.resources
        added = await prepare_timed_comparisons(resources, self.arena.checks)
        self.checks = limit_checks([*self.arena.checks, *added])
        if not self.checks:
            return Adequacy(notes=(NOTHING_LEFT,))
        # An arena of its own: its verdicts and time limits must not reach real candidates.
        self.judge_arena = Arena(resources, self.checks, self.arena.path_rules, ())
        definitions = self._find_definitions(functions)
        nulls = await self._judge_nulls(definitions)
        mutants, left = await self._judge_mutants(functions)
        left += sum(null.passed is None and not null.why for null in nulls)
        seconds = time.monotonic() - self.began
        return Adequacy(
            tuple(definitions), tuple(nulls), tuple(mutants), left, seconds, tuple(self.notes)
        )

    def _find_definitions(self, functions: Sequence[str]) -> dict[str, Definition]:
        resources = self.arena.resources
        roots = (*resources.import_roots, resources.problem.cwd)
        definitions = {}
        for function in functions:
            definition = find_definition(resources.pool.base, roots, function)
            if definition is None:
                self.notes.append(f"{function} not audited: no file of the tree defines it")
            else:
                definitions[function] = definition
        return definitions

    # -- null candidates --

    async def _judge_nulls(self, definitions: dict[str, Definition]) -> list[NullResult]:
        base = self.arena.resources.pool.base
        wanted = {}
        for function, definition in definitions.items():
            literal = spell_literal(self._find_answer(function))
            for kind in NullKind:
                changes = make_null(base, definition, kind, literal)
                wanted[function, kind] = _Wanted(f"null: {kind}", changes)
        await self._judge_all(list(wanted.values()), self.left_s)
        results = [
            self._read_null(function, kind, null.judgement)
            for (function, kind), null in wanted.items()
        ]
        untouched = self._find_untouched(results)
        return [null for null in results if null.function not in untouched]

    def _read_null(self, function: str, kind: NullKind, judgement: Judgement | None) -> NullResult:
        if judgement is None:
            return NullResult(function, kind, None)
        rejection = judgement.rejection
        # An empty value that is accepted is what the base returns.
        is_answer = kind == NullKind.CONSTANT or (kind == NullKind.EMPTY and rejection is None)
        answer = self._render_answer(function) if is_answer else ""
        if rejection is None:
            return NullResult(function, kind, True, answer=answer, judge=self._find_judge(function))
        why = on_one_line(f"{rejection.reason.value}: {rejection.message}", LONGEST_WHY)
        failures = rejection.failures
        check = failures[0].check if failures else ""
        passed = None if judgement.is_unjudged else False
        return NullResult(function, kind, passed, check, why, answer)

    def _find_answer(self, function: str) -> Encoded:
        """Return the base's first result of a function; an unreadable value if no check has it."""
        check = self._find_check(function)
        outcome = read_line(check.expectation.lines[0]) if check else {}
        return outcome.get("result", {TAG: "unreadable", "why": "no result"})

    def _render_answer(self, function: str) -> str:
        """Return the base's first result of a function as text; empty if it isn't plain data."""
        answer = self._find_answer(function)
        return render(answer, LONGEST_ANSWER) if spell_literal(answer) else ""

    def _find_judge(self, function: str) -> str:
        """Return the accept function of a check in which the base has several answers."""
        check = self._find_check(function)
        if check is None or len(set(check.expectation.lines)) < 2:
            return ""
        return check.expectation.check.accept

    def _find_check(self, function: str) -> PreparedFunctionCheck | None:
        for check in self.checks:
            if isinstance(check, PreparedFunctionCheck) and check.calls(function):
                return check
        return None

    def _find_untouched(self, nulls: Sequence[NullResult]) -> set[str]:
        """Return the functions whose replacement had no effect, though a check calls them."""
        untouched = set()
        for null in nulls:
            if null.kind == NullKind.RAISE and null.passed and self._find_check(null.function):
                untouched.add(null.function)
                self.notes.append(
                    f"{null.function} not audited: replacing its definition has no effect"
                )
        return untouched

    # -- mutants --

    async def _judge_mutants(self, functions: Sequence[str]) -> tuple[list[MutantResult], int]:
        """Return the judged mutants, and how many of the chosen ones were left."""
        base_s = sum(check.base_s for check in self.checks)
        if self.limits.mutants < 1:
            return [], 0
        if base_s > self.limits.slowest_s:
            self.notes.append(
                f"no mutants: the checks take {base_s:.1f} s on the base; `fairtrial audit` judges "
                "them"
            )
            return [], 0
        chosen = await self._choose_mutations(functions)
        wanted = [
            (mutation, source, _Wanted(mutation.change, change_file(mutation.path, changed)))
            for mutation, source, changed in chosen
        ]
        limit_s = min(self.left_s, self.limits.mutant_seconds)
        await self._judge_all([mutant for _, _, mutant in wanted], limit_s)
        judged = [
            _read_mutant(mutation, source, mutant.judgement)
            for mutation, source, mutant in wanted
            if mutant.judgement is not None
        ]
        return judged, len(wanted) - len(judged)

    async def _choose_mutations(
        self, functions: Sequence[str]
    ) -> list[tuple[Mutation, bytes, bytes]]:
        """Return the chosen mutations, each with the source before and after it."""
        resources = self.arena.resources
        states = await editable_files(resources.pool.snapshot, self.arena.path_rules)
        sources = {path: state.content for path, state in states.items() if not state.is_link}
        limit_s = max(1.0, self.left_s / 2)
        reached = await trace_functions(resources, self.checks, functions, sources, limit_s)
        self.notes += reached.notes
        mutations = [
            mutation
            for path, lines in sorted(reached.lines.items())
            for mutation in find_mutations(path, sources[path], lines)
        ]
        if not mutations and not reached.notes:
            self.notes.append("no mutants: the functions run no line of an editable file")
        return list(itertools.islice(self._apply(mutations, sources), self.limits.mutants))

    def _apply(
        self, mutations: Sequence[Mutation], sources: dict[str, bytes]
    ) -> Iterator[tuple[Mutation, bytes, bytes]]:
        for mutation in order_mutations(mutations, self.limits.seed):
            source = sources[mutation.path]
            changed = mutation.apply(source)
            if is_valid(changed):
                yield mutation, source, changed

    async def _judge_all(self, wanted: Sequence[_Wanted], limit_s: float) -> None:
        """Judge candidates concurrently until the time is over."""
        import anyio

        async def judge(item: _Wanted) -> None:
            candidate = Candidate(item.name, files={})
            with suppress(NoRoomError):  # what follows says so, if the disk is still full
                item.judgement = await self.judge_arena.judge(candidate, item.changes)

        with anyio.move_on_after(limit_s):
            async with anyio.create_task_group() as tasks:
                for item in wanted:
                    tasks.start_soon(judge, item)


def _read_mutant(mutation: Mutation, source: bytes, judgement: Judgement) -> MutantResult:
    rejection = judgement.rejection
    failures = rejection.failures if rejection else ()
    return MutantResult(
        mutation.path,
        mutation.line,
        mutation.function,
        mutation.change,
        mutation.render_diff(source),
        None if judgement.is_unjudged else judgement.verdict == Verdict.PASSED,
        failures[0].check if failures else "",
    )
