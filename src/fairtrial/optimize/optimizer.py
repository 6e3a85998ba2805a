"""The optimiser as an agent: a code problem in, the best candidate out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairtrial.arena import SEEDED, Arena, ArenaSettings, CodeProblem, Judged, open_arena
from fairtrial.core import LabError, Mistake, Record, StudyError, blaming_nobody, dump, plugins
from fairtrial.optimize.confirmation import Winner, crown, edits_record
from fairtrial.optimize.journal import open_journal, problem_print
from fairtrial.optimize.lineage import LoopRules
from fairtrial.optimize.loop import Loop
from fairtrial.optimize.preparation import (
    build_proposer,
    check_ceilings,
    choose_lines,
    estimate_reply,
    make_brief,
    make_proposer,
    prepare_proposer,
    tell_estimate,
)
from fairtrial.optimize.proposals import Brief, RequestKind, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.replay import Replay, write_records
from fairtrial.optimize.requests import Spent
from fairtrial.optimize.scheduler import Stream
from fairtrial.optimize.study_events import Telling, tell_tree, tell_unjudged, tell_unread
from fairtrial.optimize.watching import Watcher, with_watcher
from fairtrial.study import AgentOutput, RunBudget, Task

REPLIES = "replies.jsonl"
"""In the run's workspace: what was answered, for the proposer `replay`."""


@dataclass(frozen=True, slots=True)
class Optimise(Record):
    """Proposes candidates for a code problem, judges them, repairs and refines, picks the best.

    proposer: who proposes, by name: codemod, chat, command, patches, function, replay
    proposer_options: that proposer's own options
    lines: how many first proposals there are; 0 for as many as suit the proposer
    max_candidates: how many candidates there are in all
    repair: whether candidates that fail are repaired
    repairs: how often
    refinements: how often a line of candidates is refined
    batch_refine: how many neighbouring lines are refined in one request, where the proposer can
    patience: after how many steps without a gain a line ends
    slots: how many candidates are checked at once; as many as there are cores if 0
    max_seconds: when to stop asking: after so many seconds
    max_tokens: when to stop asking: after so many tokens
    max_cost_usd: when to stop asking: after so many US dollars
    unsandboxed: whether candidates may run without a sandbox, where there is none
    """

    proposer: str = "codemod"
    proposer_options: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 0
    max_candidates: int = 16
    repair: bool = True
    repairs: int = 2
    refinements: int = 2
    batch_refine: int = 1
    patience: int = 1
    slots: int = 0
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    unsandboxed: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        found: list[Mistake] = []
        build_proposer(self.proposer, self.proposer_options, found)
        yield from found
        for name in ("lines", "slots"):
            if getattr(self, name) < 0:
                yield Mistake((name,), f"must be 0 or more, got {getattr(self, name)}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            yield Mistake(("max_seconds",), f"must be more than 0, got {self.max_seconds:g}")
        try:
            self._rules(self.lines or 1)
        except StudyError as error:
            named = {"batch": "batch_refine"}
            for each in error.mistakes:
                yield replace(each, path=tuple(named.get(str(part), part) for part in each.path))

    def check_start(self, budget: RunBudget) -> None:
        """What would keep every run from starting: a missing key, a ceiling that can't be kept."""
        ceilings = [each for each in (self.max_cost_usd, budget.max_cost_usd) if each is not None]
        make_proposer(self.proposer, self.proposer_options, min(ceilings, default=None), None)

    def check_problem(self, problem: Any, *, imports: bool) -> None:
        """The same for one problem: a record, a folder or a program that isn't there.

        imports: whether functions of the user's own may be imported to see if they are there
        """
        code = code_of(problem)
        make_proposer(self.proposer, self.proposer_options, None, code, imports=imports)

    async def __call__(self, task: Task) -> AgentOutput:
        """One optimisation: what came of it, as a study keeps it."""
        watcher = with_watcher(Telling(task.emit))
        with blaming_nobody():
            found = await self.optimise(code_of(task.problem), task, watcher)
        stream = found.stream
        tell_tree(task.emit, stream.entries, stream.judgements, stream.candidates, stream.usages)
        write_records(task.workspace / REPLIES, stream.replies)
        found.refuse_unfounded()
        # What is told again was paid for before: it counts for the loop, but not for the study.
        paid = Spent() if self.proposer == Replay.name else stream.spent
        return AgentOutput(Judged(found.as_output()), metrics=paid.as_metrics())

    async def optimise(self, problem: CodeProblem, task: Task, watcher: Watcher) -> Optimised:
        """The same, told to somebody."""
        proposer = make_proposer(self.proposer, self.proposer_options, self.max_cost_usd, problem)
        settings = ArenaSettings(unsandboxed=self.unsandboxed, say=watcher.say)
        async with open_arena(problem, slots=self.slots or None, settings=settings) as arena:
            _tell(watcher, [each for each in arena.notes if SEEDED not in each])
            proposer = await prepare_proposer(proposer, arena)
            settings.say("timing the unchanged base")
            async with arena.bench() as bench:
                brief = await make_brief(arena)
                unread = tell_unread(await arena.list_unread())
                _tell(watcher, unread)
                each = estimate_reply(proposer, brief)
                check_ceilings(each, self.max_tokens, self.max_cost_usd)
                loop = await self._loop(task, problem, proposer, brief, each)
                told = tell_estimate(each, self.max_candidates, self.max_cost_usd)
                settings.say(told or "asking for candidates")
                if self.proposer == Replay.name:
                    settings.say("tokens and cost are those of back then: nothing is paid now.")
                stream = Stream(
                    arena,
                    bench,
                    loop,
                    proposer,
                    brief,
                    journal=task.journal,
                    known=open_journal(task.journal, self._setting(arena)),
                    max_seconds=self.max_seconds,
                    watcher=watcher,
                    folder=task.workspace,
                )
                await stream.run()
                crowning = await crown(stream, arena, bench, watcher)
                notes = (*bench.notes, *tell_unjudged(stream.judgements.values()))
                _tell(watcher, notes)
                notes = (*arena.notes, *unread, *notes)
                return Optimised(
                    stream,
                    crowning.winner,
                    arena.tree,
                    problem_print(problem),
                    notes,
                    crowning.out,
                )

    async def _loop(
        self, task: Task, problem: CodeProblem, proposer: Proposer, brief: Brief, each: Usage
    ) -> Loop:
        lines = self.lines or await choose_lines(proposer, brief, self.max_candidates)
        rules = self._rules(lines)
        kinds = {kind for kind in rules.kinds if proposer.can(kind)}
        return Loop(
            replace(
                rules,
                batch=rules.batch if proposer.can_batch else 1,
                min_effect=problem.min_effect,
                seed=task.seed,
                kinds=frozenset(kinds),
                reply_tokens=each.tokens,
                reply_cost_usd=each.cost_usd or 0.0,
            )
        )

    def _setting(self, arena: Arena) -> dict[str, Any]:
        """What paid answers and finished verdicts depend on."""
        kind = plugins.load("proposers", self.proposer)
        # How patient it is with the network, say, changes no answer.
        incidental = getattr(kind, "INCIDENTAL", ())
        options = {
            name: value for name, value in self.proposer_options.items() if name not in incidental
        }
        return {
            "proposer": self.proposer,
            "proposer_options": options,
            "problem": dump(arena.problem),
            "tree": arena.tree,
        }

    def _rules(self, lines: int) -> LoopRules:
        """What the options say of the loop."""
        return LoopRules(
            lines=lines,
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


@dataclass(frozen=True, slots=True)
class Optimised:
    """What came of an optimisation.

    stream: all that was tried
    winner: the best, confirmed; None if none is worth taking
    tree: the base that all of it is about, by its digest
    problem: the same of the problem, as its file has it
    notes: what people should know
    out: who looked better than the winner, and why it isn't
    """

    stream: Stream
    winner: Winner | None
    tree: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    out: Mapping[str, str] = field(default_factory=dict)

    @property
    def spent(self) -> Spent:
        """What it cost."""
        return self.stream.spent

    def refuse_unfounded(self) -> None:
        """Raise a `LabError` if nothing was found, and candidates are left that nobody judged.

        The base would count as the best that was found, and that would be our doing.
        """
        judgements = self.stream.judgements.values()
        if self.winner is None:
            for told in tell_unjudged(judgements):
                raise LabError(f"none that was judged is worth taking, and {told}")

    def as_output(self) -> dict[str, Any]:
        """What a study keeps of it."""
        judgements = self.stream.judgements.values()
        lost = sum(each.is_unjudged for each in judgements)
        estimate = self.winner.estimate if self.winner else None
        return {
            "best": self.winner.id if self.winner else None,
            "ratio": estimate.ratio if estimate else None,
            "low": estimate.low if estimate else None,
            "high": estimate.high if estimate else None,
            "confidence": estimate.confidence if estimate else None,
            "adopt": self.winner is not None,
            "sessions": estimate.sessions if estimate else None,
            "candidates": len(judgements) - lost,
            "passed": sum(each.rejection is None for each in judgements),
            "unjudged": lost,
            "tokens": self.spent.tokens,
            "cost_usd": self.spent.cost_usd if self.spent.is_cost_known else None,
            "why_over": self.stream.why_over,
            "tree": self.tree,
            "problem": self.problem,
            "patch": self.winner.patch if self.winner else "",
            "edits": edits_record(self.winner.finding.edits) if self.winner else {},
            "explanation": self.winner.explanation if self.winner else "",
            "notes": list(self.notes),
            "out": dict(self.out),
        }


def _tell(watcher: Watcher, notes: Iterable[str]) -> None:
    """Say what people should know when it is known, not only in the end."""
    for text in notes:
        watcher.say(f"note: {text}.")


def code_of(problem: Any) -> CodeProblem:
    """The code problem that a study's problem stands for; `StudyError` if it is none."""
    code = getattr(problem, "code", None)
    if not isinstance(code, CodeProblem):
        name = getattr(problem, "problem_id", "it")
        raise StudyError(
            Mistake(
                (),
                f"an optimiser needs a code problem, and {name} is none",
                "problems: {name: {use: code, options: {path: problem.yaml}}}",
            )
        )
    return code
