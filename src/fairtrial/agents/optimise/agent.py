"""The optimiser as an agent: a code problem in, the best candidate out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial import plugins
from fairtrial.agents.optimise.lines import LoopRules
from fairtrial.agents.optimise.loop import Loop
from fairtrial.agents.optimise.records import REPLY, open_journal
from fairtrial.agents.optimise.stream import Spent, Stream
from fairtrial.agents.optimise.telling import Telling, tell_tree
from fairtrial.agents.optimise.watching import Watcher, with_watcher
from fairtrial.agents.optimise.winner import Winner, crown, edits_record
from fairtrial.agents.proposers.command_workshop import make_ready
from fairtrial.agents.proposers.replay import write_records
from fairtrial.agents.task import Task
from fairtrial.arena.arena import Arena
from fairtrial.arena.opening import open_arena
from fairtrial.arena.settings import ArenaSettings
from fairtrial.errors import Mistake, StudyError
from fairtrial.model.code import Check, CodeProblem
from fairtrial.model.proposals import Brief, Kind
from fairtrial.model.record import build
from fairtrial.protocols import Proposer

REPLIES = "replies.jsonl"
"""In the run's workspace: what was answered, for the proposer `replay`."""


@dataclass(frozen=True, slots=True)
class Optimise:
    """Proposes candidates for a code problem, judges them, repairs and refines, picks the best.

    proposer: who proposes, by name: codemod, chat, command, patches, function, replay
    proposer_options: that proposer's own options
    lines: how many first proposals there are
    max_candidates: how many candidates there are in all
    repair: whether candidates that fail are repaired
    repairs: how often
    refinements: how often a line of candidates is refined
    batch_refine: how many neighbouring lines are refined in one request, where the proposer can
    patience: after how many steps without a gain a line ends
    slots: how many candidates are checked at once; as many as there are cores if 0
    max_seconds, max_tokens, max_cost_usd: when to stop asking; no bound if not given
    unsandboxed: whether candidates may run without a sandbox, where there is none
    """

    proposer: str = "codemod"
    proposer_options: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 4
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

    async def __call__(self, task: Task) -> dict[str, Any]:
        """One optimisation: what came of it, as a study keeps it."""
        found = await self.optimise(find_code(task), task, with_watcher(Telling(task.emit)))
        stream = found.stream
        tell_tree(task.emit, stream.entries, stream.judgements, stream.notes)
        replies = [entry.data for entry in task.journal.entries() if entry.kind == REPLY]
        write_records(task.workspace / REPLIES, replies)
        return found.as_output()

    async def optimise(self, problem: CodeProblem, task: Task, watcher: Watcher) -> Optimised:
        """The same, told to somebody."""
        proposer = make_proposer(
            self.proposer, self.proposer_options, self.max_cost_usd, problem.folder
        )
        rules = self._rules(task, problem, proposer)
        settings = ArenaSettings(unsandboxed=self.unsandboxed, say=watcher.say)
        async with open_arena(problem, slots=self.slots or None, settings=settings) as arena:
            proposer = await make_ready(proposer, arena)
            settings.say("timing the unchanged base")
            async with arena.bench() as bench:
                settings.say("asking for candidates")
                stream = Stream(
                    arena,
                    bench,
                    Loop(rules),
                    proposer,
                    await make_brief(arena),
                    journal=task.journal,
                    known=open_journal(task.journal, self._setting(arena)),
                    max_seconds=self.max_seconds,
                    watcher=watcher,
                )
                await stream.run()
                winner = await crown(stream, arena, bench, watcher)
                return Optimised(stream, winner, (*arena.notes, *bench.notes))

    def _setting(self, arena: Arena) -> dict[str, Any]:
        """What paid answers and finished verdicts depend on."""
        return {
            "proposer": self.proposer,
            "proposer_options": dict(self.proposer_options),
            "tree": arena.tree,
        }

    def _rules(self, task: Task, problem: CodeProblem, proposer: Proposer) -> LoopRules:
        kinds = {kind for kind in Kind if proposer.can(kind)}
        if not self.repair:
            kinds.discard(Kind.REPAIR)
        return LoopRules(
            lines=self.lines,
            max_candidates=self.max_candidates,
            repairs=self.repairs,
            refinements=self.refinements,
            batch=self.batch_refine if proposer.can_batch else 1,
            patience=self.patience,
            min_effect=problem.min_effect,
            seed=task.seed,
            kinds=frozenset(kinds),
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
        )


@dataclass(frozen=True, slots=True)
class Optimised:
    """What came of an optimisation.

    stream: all that was tried
    winner: the best, confirmed; None if none is worth taking
    notes: what people should know
    """

    stream: Stream
    winner: Winner | None
    notes: tuple[str, ...] = ()

    @property
    def spent(self) -> Spent:
        """What it cost."""
        return self.stream.spent

    def as_output(self) -> dict[str, Any]:
        """What a study keeps of it."""
        judgements = self.stream.judgements.values()
        estimate = self.winner.estimate if self.winner else None
        return {
            "best": self.winner.id if self.winner else None,
            "ratio": estimate.ratio if estimate else None,
            "low": estimate.low if estimate else None,
            "high": estimate.high if estimate else None,
            "confidence": estimate.confidence if estimate else None,
            "adopt": self.winner is not None,
            "sessions": estimate.sessions if estimate else None,
            "candidates": len(judgements),
            "passed": sum(each.rejection is None for each in judgements),
            "tokens": self.spent.tokens,
            "cost_usd": self.spent.cost_usd if self.spent.is_cost_known else None,
            "why_over": self.stream.why_over,
            "patch": self.winner.patch if self.winner else "",
            "edits": edits_record(self.winner.finding.edits) if self.winner else {},
            "explanation": self.winner.explanation if self.winner else "",
            "notes": list(self.notes),
        }


def find_code(task: Task) -> CodeProblem:
    """The code problem that a task is about."""
    code = getattr(task.problem, "code", None)
    if not isinstance(code, CodeProblem):
        name = getattr(task.problem, "problem_id", "it")
        raise StudyError(
            Mistake(
                (),
                f"an optimiser needs a code problem, and {name} is none",
                "problems: {name: {use: code, options: {path: problem.yaml}}}",
            )
        )
    return code


def make_proposer(
    name: str, options: Mapping[str, Any], max_cost_usd: float | None, folder: Path
) -> Proposer:
    """The proposer of that name, with its options checked.

    folder: the problem's, where proposers that name files or functions look for them
    """
    kind = plugins.load("proposers", name)
    mistakes: list[Mistake] = []
    made: Any = build(kind, dict(options), ("proposer_options",), mistakes)
    if mistakes:
        raise StudyError(mistakes)
    check_ceiling, check_ready = (
        getattr(made, method, None) for method in ("check_ceiling", "check_ready")
    )
    if check_ceiling is not None:
        check_ceiling(max_cost_usd)
    if check_ready is not None:  # not all of them have anything to look for
        check_ready(*[folder] * bool(inspect.signature(check_ready).parameters))
    proposer: Proposer = made
    return proposer


async def make_brief(arena: Arena) -> Brief:
    """What proposers are told of a problem."""
    problem = arena.problem
    return Brief(
        problem_id=problem.problem_id,
        task=problem.brief or "Make it faster; what it does must stay the same.",
        files=await arena.sources(),
        checks=tuple(map(_tell_check, problem.check)),
        benchmarks=tuple(
            f"{each.name}: {each.call or ' '.join(each.command)}" for each in problem.bench
        ),
        min_effect=problem.min_effect,
    )


def _tell_check(check: Check) -> str:
    if check.function:
        return f"{check.function} must give what it gives now"
    return f"{' '.join(check.command)} must pass"
