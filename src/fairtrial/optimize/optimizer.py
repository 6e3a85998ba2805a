"""The optimizer as an agent of a study: a code problem in, the best candidate out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import Field, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Bench,
    CodeProblem,
    TimingFiles,
    open_arena,
    rough_seconds,
)
from fairtrial.core import FieldPath, MisfitError, Mistake, Record, StudyError, events, fields
from fairtrial.optimize.code_problem import BoundCode
from fairtrial.optimize.confirmation import (
    MINIMIZING_BUDGETS,
    MOST_CONTENDERS,
    confirm_winner,
    make_result,
    refuse_unfounded,
)
from fairtrial.optimize.journal import OptimizationJournal, problem_fingerprint, read_journal
from fairtrial.optimize.lineage import LoopRules
from fairtrial.optimize.loop import OptimizeLoop
from fairtrial.optimize.option_flags import OptionFlag, flag, list_flags
from fairtrial.optimize.preparation import (
    audit_checks,
    build_proposer,
    check_ceilings,
    check_proposer,
    choose_lineages,
    describe_estimate,
    make_brief,
    opened_proposer,
)
from fairtrial.optimize.proposals import Brief, RequestKind, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.replay import Replay, write_records
from fairtrial.optimize.requests import ProposerClient, UsageTotal
from fairtrial.optimize.result import JudgedOutput, OptimizationResult
from fairtrial.optimize.run_samples import SAMPLES
from fairtrial.optimize.scheduler import Scheduler
from fairtrial.optimize.study_events import (
    describe_unjudged,
    describe_unread,
    record_events,
    record_tree,
)
from fairtrial.study import AgentOutput, RunBudget, Task, agents, problems

REPLIES = "replies.jsonl"
"""The file in the run's workspace with all replies, for the proposer `replay`."""
_OLDER_NAMES = {"lines": "lineages"}
"""Options of studies of earlier versions, and their present names."""
_RENAMED_RULES = {"batch": "batch_refine"}
"""Options whose name in `LoopRules` is another one."""


class RunContext(Protocol):
    """What an optimization needs of its surroundings; a `Task` has it."""

    @property
    def seed(self) -> int:
        """The seed of random choices."""
        ...

    @property
    def journal(self) -> OptimizationJournal:
        """Keeps replies and verdicts."""
        ...

    @property
    def workspace(self) -> Path | None:
        """A folder on the disk of the journal, to check for free space; None if unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Optimizer(Record, agents.AgentHooks):
    """Gets candidates for a code problem from a proposer, judges and refines them, picks the best.

    proposer: the name of the proposer: codemod, chat, command, patches, function, replay
    proposer_options: the options of the proposer
    lineages: how many first proposals there are; 0 for as many as suit the proposer
    max_candidates: how many candidates there are in all
    repair: whether candidates that fail their checks are repaired
    repairs: how often a candidate is repaired
    refinements: how often a lineage is refined
    batch_refine: how many neighboring lineages are refined in one request, if the proposer can
    patience: after how many generations without a gain a lineage ends; a generation is a proposal
        or a refinement, with its repairs
    slots: how many candidates are checked at once; 0 for one for each core
    max_seconds: after how many seconds no more requests are made
    max_tokens: after how many tokens no more requests are made
    max_cost_usd: after how many US dollars no more requests are made
    unsandboxed: whether candidates may run without a sandbox, if there is none or the problem says
        plain
    audit: whether the checks are audited first; checks that accept a function that does no work
        end the optimization
    minimize: whether changes that carry no part of the best candidate's gain are taken out
    """

    proposer: str = flag("codemod", "--agent", "NAME")
    proposer_options: Mapping[str, Any] = field(default_factory=dict)
    lineages: int = flag(
        0,
        "--lineages",
        "N",
        help="How many first proposals there are; by default as many as suit the proposer.",
        least=1,
        most=1_000,
    )
    max_candidates: int = flag(16, "--max-candidates", "K", least=1, most=10_000)
    repair: bool = flag(True, "--no-repair", help="Don't ask for repairs of candidates that fail.")
    repairs: int = flag(2, "--repairs", "N", least=0)
    refinements: int = flag(2, "--refinements", "N", least=0)
    batch_refine: int = flag(1, "--batch-refine", "N", least=1)
    patience: int = flag(1, "--patience", "N", least=1)
    slots: int = flag(
        0,
        "--parallel-candidates",
        "N",
        help="How many candidates are checked at once; by default one for each core.",
        least=1,
        most=256,
    )
    max_seconds: float | None = flag(None, "--max-seconds", "S", least=1)
    max_tokens: int | None = flag(None, "--max-tokens", "N", least=1)
    max_cost_usd: float | None = flag(None, "--max-cost", "USD", least=0)
    unsandboxed: bool = flag(
        False,
        "--unsandboxed",
        help="Run candidates without a sandbox if there is none, or if the problem says plain.",
    )
    audit: bool = flag(
        True, "--no-audit", help="Don't test first whether the checks reject wrong candidates."
    )
    minimize: bool = flag(
        True,
        "--no-minimize",
        help="Don't take changes that carry no part of its gain out of the best candidate.",
    )
    _built: Proposer | None = field(
        default=None, init=False, compare=False, repr=False, metadata=fields.NOT_IN_FILES
    )

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return cls.modernize_options(data)

    def _mistakes(self) -> Iterator[Mistake]:
        mistakes: list[Mistake] = []
        self._set("_built", build_proposer(self.proposer, self.proposer_options, mistakes))
        yield from mistakes
        for name in ("lineages", "slots"):
            if getattr(self, name) < 0:
                yield Mistake((name,), f"must be 0 or more, got {getattr(self, name)}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            yield Mistake(("max_seconds",), f"must be more than 0, got {self.max_seconds:g}")
        try:
            self._rules(self.lineages or 1)
        except StudyError as error:
            for mistake in error.mistakes:
                path = tuple(_RENAMED_RULES.get(str(part), part) for part in mistake.path)
                yield replace(mistake, path=path)

    @property
    def built_proposer(self) -> Proposer:
        """The proposer, which is built when the options are checked."""
        assert self._built is not None, "options with mistakes make no optimizer"
        return self._built

    def with_proposer(self, proposer: Proposer) -> Optimizer:
        """Return the same optimizer with a proposer that is given as an object."""
        changed = copy(self)
        changed._set("_built", proposer)
        changed._set("proposer", proposer.name)
        return changed

    def check_start(self, budget: RunBudget) -> None:
        """Raise a `StudyError` if no run can start: a missing key, a ceiling that can't be kept."""
        ceilings = [
            ceiling for ceiling in (self.max_cost_usd, budget.max_cost_usd) if ceiling is not None
        ]
        check_proposer(self.built_proposer, None, min(ceilings, default=None))

    def check_problem(self, problem: problems.Problem, *, imports: bool) -> None:
        """Raise a `StudyError` if no run on this problem can start: a missing file or program.

        imports: whether modules of the user may be imported to check that they exist
        """
        code = get_code_problem(problem)
        check_proposer(self.built_proposer, code, None, may_import=imports)

    def check_proposer(self, problem: CodeProblem) -> None:
        """Raise a `StudyError` if the proposer can't start on this problem."""
        check_proposer(self.built_proposer, problem, self.max_cost_usd)

    async def __call__(self, task: Task) -> AgentOutput:
        """Run one optimization; return its result as a study stores it."""
        emit = events.emit_to_all(record_events(task.emit), task.emit_progress)
        with MisfitError.instead_of_study_errors():
            scheduler, result = await self.optimize(get_code_problem(task.problem), task, emit)
        record_tree(task.emit, scheduler)
        write_records(task.workspace / REPLIES, scheduler.replies)
        TimingFiles(samples=task.workspace / SAMPLES).write_samples(scheduler.measurements)
        refuse_unfounded(result, scheduler.judgements.values())
        # Replayed replies were paid for before: they count for the loop, but not for the study.
        paid = UsageTotal() if self.proposer == Replay.name else scheduler.spent
        return AgentOutput(JudgedOutput(result), metrics=paid.as_metrics())

    @staticmethod
    def modernize_options(options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of an optimizer with the present names of renamed ones."""
        return {_OLDER_NAMES.get(name, name): value for name, value in options.items()}

    @classmethod
    def list_flags(cls) -> dict[str, tuple[Field[Any], OptionFlag]]:
        """Return the options that have a command-line flag, with their flags, by name."""
        return list_flags(cls)

    def describe_duration(self, problem: CodeProblem) -> str:
        """Return how long timing takes at most, in one sentence."""
        count = self.max_candidates
        timed = count + min(MOST_CONTENDERS, count)  # the best are measured again
        timed += MINIMIZING_BUDGETS if self.minimize else 0
        text = "one candidate; timing it twice"
        if count > 1:
            text = f"up to {count} candidates; timing them, and the best again,"
        most_s = timed * problem.timing_budget_s
        return f"{text} takes {rough_seconds(most_s)} at most, and mostly far less"

    async def optimize(
        self, problem: CodeProblem, task: RunContext, emit: events.Emit
    ) -> tuple[Scheduler, OptimizationResult]:
        """Run one optimization; return its scheduler, which has all candidates, and its result."""
        self.check_proposer(problem)
        if not task.journal.entries():
            await self.built_proposer.probe()
        settings = ArenaSettings(unsandboxed=self.unsandboxed, audit=self.audit, emit=emit)
        async with open_arena(problem, slots=self.slots or None, settings=settings) as arena:
            audit_notes = await audit_checks(arena, settings)
            _emit_notes(emit, arena.remarks)
            _emit_notes(emit, audit_notes)
            async with opened_proposer(self.built_proposer, arena) as proposer:
                emit(events.PhaseStarted(events.Phase.BASE_TIMING))
                async with arena.bench() as bench:
                    scheduler, result = await self._search(arena, bench, proposer, task, emit)
        return scheduler, replace(
            result,
            problem=problem_fingerprint(problem),
            notes=(*result.notes, *audit_notes),
            adequacy=arena.adequacy.as_dict() if arena.adequacy else None,
        )

    async def _search(
        self, arena: Arena, bench: Bench, proposer: Proposer, task: RunContext, emit: events.Emit
    ) -> tuple[Scheduler, OptimizationResult]:
        brief = await make_brief(arena)
        unread = describe_unread(await arena.list_unread())
        _emit_notes(emit, unread)
        reply = proposer.estimate(brief)
        check_ceilings(reply, self.max_tokens, self.max_cost_usd)
        loop = await self._make_loop(task, arena.problem, proposer, brief, reply)
        estimate = describe_estimate(reply, self.max_candidates, self.max_cost_usd)
        emit(events.Remark(estimate) if estimate else events.PhaseStarted(events.Phase.PROPOSALS))
        if self.proposer == Replay.name:
            emit(events.Remark("tokens and cost are those of the recording; nothing is paid now."))
        earlier = read_journal(task.journal, self._journal_setting(arena))
        client = ProposerClient(
            proposer, brief, task.journal, earlier, self.max_seconds, task.workspace
        )
        scheduler = Scheduler(arena, bench, loop, client, emit)
        await scheduler.run()
        confirmation = await confirm_winner(scheduler, arena, bench, emit, minimize=self.minimize)
        notes = (*bench.notes, *describe_unjudged(scheduler.judgements.values()))
        _emit_notes(emit, notes)
        result = make_result(scheduler, confirmation)
        return scheduler, replace(result, tree=arena.tree, notes=(*arena.notes, *unread, *notes))

    async def _make_loop(
        self, task: RunContext, problem: CodeProblem, proposer: Proposer, brief: Brief, reply: Usage
    ) -> OptimizeLoop:
        lineages = self.lineages or await choose_lineages(proposer, brief, self.max_candidates)
        rules = self._rules(lineages)
        return OptimizeLoop(
            replace(
                rules,
                batch=rules.batch if proposer.can_batch else 1,
                min_effect=problem.min_effect,
                seed=task.seed,
                kinds=frozenset(kind for kind in rules.kinds if proposer.can(kind)),
                reply_tokens=reply.tokens,
                reply_cost_usd=reply.cost_usd or 0.0,
            )
        )

    def _journal_setting(self, arena: Arena) -> dict[str, Any]:
        """Return what replies and verdicts depend on."""
        incidental = self.built_proposer.incidental_options
        options = {
            name: value for name, value in self.proposer_options.items() if name not in incidental
        }
        return {
            "proposer": self.proposer,
            "proposer_options": options,
            "problem": arena.problem.identity(),
            "tree": arena.tree,
        }

    def _rules(self, lineages: int) -> LoopRules:
        """Return the loop's limits, as far as the options say."""
        return LoopRules(
            lineages=lineages,
            max_candidates=self.max_candidates,
            repairs=self.repairs,
            refinements=self.refinements,
            batch=self.batch_refine,
            patience=self.patience,
            kinds=frozenset(
                kind for kind in RequestKind if self.repair or kind != RequestKind.REPAIR
            ),
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
        )


def _emit_notes(emit: events.Emit, notes: Iterable[str]) -> None:
    """Show notes as soon as they are known, not only at the end."""
    for text in notes:
        emit(events.Remark(f"note: {text}."))


def get_code_problem(problem: problems.Problem) -> CodeProblem:
    """Return the code problem that a study's problem holds; raise a `StudyError` if it has none."""
    if not isinstance(problem, BoundCode):
        raise StudyError(
            Mistake(
                (),
                f"an optimizer needs a code problem, and {problem.problem_id} is none",
                "problems: {name: {use: code, options: {path: problem.yaml}}}",
            )
        )
    return problem.code
