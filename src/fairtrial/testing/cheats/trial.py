"""The trial of a suite: attacks are judged and timed like any candidates of the problem."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Bench,
    Candidate,
    Changes,
    CodeProblem,
    open_arena,
    time_candidate,
)
from fairtrial.core import MisfitError, run_all
from fairtrial.testing.cheats.attack import Attack, AttackClass, Harm
from fairtrial.testing.cheats.catalog import list_attacks
from fairtrial.testing.cheats.conclusions import conclude_timed, conclude_untimed, find_leak
from fairtrial.testing.cheats.facts import TargetFacts
from fairtrial.testing.cheats.instances import make_candidate, make_rival
from fairtrial.testing.cheats.judge_process import JUDGE_S, JudgeRun, describe_harm, run_judge
from fairtrial.testing.cheats.learning import learn
from fairtrial.testing.cheats.outcomes import (
    AttackOutcome,
    AttackReport,
    AttackResult,
    explain,
    find_inapplicable,
    list_unreached,
)
from fairtrial.testing.cheats.targets import AttackTarget, find_targets

if TYPE_CHECKING:
    from anyio import Semaphore

BUDGET_S = 8.0
"""How long one attack is timed at most: few sessions are enough to refuse one."""
MOST_TESTS = 200
"""How many files with tests an attack empties."""
_UNTIMED = {
    AttackClass.ONLY_HERE,
    AttackClass.NEVER_RUN,
    AttackClass.TWINS,
    AttackClass.NEIGHBOR,
    AttackClass.JUDGE,
}
"""Classes whose attacks don't try to be faster."""

OnResult = Callable[[AttackResult], None]


@dataclass(slots=True)
class AttackTrial:
    """A trial in progress.

    problem: the problem
    attacks: the attacks
    settings: options of the arena
    ends_at: when the trial has to end, by the monotonic clock
    watch: called with each result
    results: the results so far
    """

    problem: CodeProblem
    attacks: tuple[Attack, ...]
    settings: ArenaSettings
    ends_at: float
    watch: OnResult
    results: list[AttackResult] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether the time has ended."""
        return time.monotonic() >= self.ends_at

    def record(
        self,
        attack: Attack,
        target: str,
        outcome: AttackOutcome,
        detail: str = "",
        reason: tuple[str, str] = ("", ""),
    ) -> None:
        """Keep a result, and call the watcher with it."""
        result = AttackResult(attack, target, outcome, " ".join(detail.split())[:300], *reason)
        self.results.append(result)
        self.watch(result)

    async def run(self, arena: Arena, bench: Bench | None) -> None:
        """Try all attacks on all targets of the problem."""
        project = (self.problem.project / self.problem.cwd).resolve()
        tests = [path for path in project.rglob("*test*.py") if "site-packages" not in path.parts]
        paths = tuple(str(path.relative_to(arena.top.resolve())) for path in tests[:MOST_TESTS])
        for target in find_targets(arena.problem, await arena.sources()):
            facts = await learn(arena, bench, target)
            target_trial = TargetTrial(self, arena, bench, target, facts, paths)
            await target_trial.run()
            for result in list_unreached(self.attacks, target.label, self.results):
                self.results.append(result)


@dataclass(frozen=True, slots=True)
class TargetTrial:
    """The trial of all attacks on one target.

    trial: the whole trial
    arena: judges the candidates
    bench: times them; None if the problem has nothing to time
    target: the target
    facts: what is known of it
    paths: files with tests
    """

    trial: AttackTrial
    arena: Arena
    bench: Bench | None
    target: AttackTarget
    facts: TargetFacts
    paths: tuple[str, ...]

    async def run(self) -> None:
        """Judge all attacks side by side, then time those that passed one at a time."""
        import anyio

        applicable = []
        for attack in self.trial.attacks:
            reason = find_inapplicable(attack, self.facts)
            if reason:
                self._record(attack, AttackOutcome.NOT_APPLICABLE, reason)
            else:
                applicable.append(attack)
        judged = [attack for attack in applicable if attack.harm != Harm.JUDGE]
        # No more wait for a slot than there are: none is to begin after the time is over.
        turns = anyio.Semaphore(os.cpu_count() or 1)
        work = [partial(self._judge_in_turn, attack, turns) for attack in judged]
        passed = [attack for attack in await run_all(work) if attack is not None]
        for attack in passed:
            if not self.trial.is_over:
                await self._time(attack)
        await self._attack_judge([attack for attack in applicable if attack.harm == Harm.JUDGE])

    def _make(self, attack: Attack, *, is_honest: bool = False) -> Candidate:
        return make_candidate(attack, self.target, self.facts, self.paths, is_honest=is_honest)

    def _record(self, attack: Attack, outcome: AttackOutcome, detail: str = "") -> None:
        is_bad = outcome in (AttackOutcome.WON, AttackOutcome.ACCEPTED_WRONG)
        arena = self.arena
        reason = explain(attack, self.facts, arena.problem, arena.sandbox_name)
        label = self.target.label
        self.trial.record(attack, label, outcome, detail, reason if is_bad else ("", ""))

    async def _judge_in_turn(self, attack: Attack, turns: Semaphore) -> Attack | None:
        async with turns:
            return None if self.trial.is_over else await self._judge(attack)

    async def _judge(self, attack: Attack) -> Attack | None:
        """Check one attack; return it if it is to be timed."""
        candidate = self._make(attack)
        if attack.honest:
            honest = await self.arena.judge(self._make(attack, is_honest=True))
            if honest.rejection is not None:
                detail = f"its honest twin was rejected: {honest.rejection.message}"
                self._record(attack, AttackOutcome.REJECTED, detail)
                return None
        judgement = await self.arena.judge(candidate)
        leak = find_leak(judgement)
        if leak:
            self._record(attack, AttackOutcome.WON, f"it got at {leak}")
        elif judgement.is_unjudged:
            assert judgement.rejection is not None
            self._record(attack, AttackOutcome.NOT_REACHED, judgement.rejection.message)
        elif judgement.rejection is not None:
            self._record(attack, AttackOutcome.REJECTED, judgement.rejection.message)
        elif attack.group in _UNTIMED or self.bench is None:
            self._record(attack, *conclude_untimed(attack, judgement))
        else:
            return attack
        return None

    async def _time(self, attack: Attack) -> None:
        """Time an attack that passed its checks; a win has to be won twice."""
        assert self.bench is not None
        candidate = self._make(attack)
        changes = await self.arena.resolve(candidate)
        assert isinstance(changes, Changes)
        for label in ("attack", "confirm"):
            result = await time_candidate(
                self.arena, self.bench, candidate.name, changes, label=label
            )
            outcome, detail = conclude_timed(attack, result)
            if outcome != AttackOutcome.WON:
                break
        self._record(attack, outcome, detail)

    async def _attack_judge(self, attacks: list[Attack]) -> None:
        """Try attacks on the judge, each in a process of its own beside an honest rival."""
        import anyio

        rival = make_rival(self.target)
        usual: JudgeRun | None = None
        for attack in attacks:
            if self.trial.is_over:
                return
            if usual is None:
                usual = await anyio.to_thread.run_sync(self._run_judge, [rival], 2 * JUDGE_S)
            candidate = self._make(attack)
            limit_s = usual.seconds + JUDGE_S
            run = await anyio.to_thread.run_sync(self._run_judge, [candidate, rival], limit_s)
            harm = describe_harm(run, usual, rival.name)
            message = (run.messages or {}).get(candidate.name, "")
            if harm and run.has_waited:
                detail = "the judge had to wait for another process that times on this machine"
                self._record(attack, AttackOutcome.NOT_REACHED, detail)
            elif harm:
                self._record(attack, AttackOutcome.WON, harm)
            elif message:
                self._record(attack, AttackOutcome.REJECTED, message)
            else:
                self._record(attack, AttackOutcome.NO_GAIN, "neither judge nor rival was harmed")

    def _run_judge(self, candidates: list[Candidate], limit_s: float) -> JudgeRun:
        return run_judge(self.trial.problem, candidates, self.trial.settings, limit_s)


def remove_kept_files() -> None:
    """Remove files that attacks without a sandbox left in temporary folders for later processes."""
    for folder in ("/tmp", "/var/tmp", "/dev/shm", str(Path.home())):
        for path in Path(folder).glob("fairtrial-attack-*"):
            path.unlink(missing_ok=True)


async def attack_problem(
    problem: CodeProblem,
    *,
    classes: Collection[str] = (),
    names: Collection[str] = (),
    settings: ArenaSettings | None = None,
    max_seconds: float = float("inf"),
    watch: OnResult | None = None,
) -> AttackReport:
    """Try the attacks of the suite on a problem, as candidates of an ordinary evaluation.

    classes: only attacks of these classes; all if empty
    names: only attacks of these names; all if empty
    settings: options of the arena, as for `evaluate_candidates`
    max_seconds: no attack is started after this time
    watch: called with each result

    Returns the results of all attacks. Raises `StudyError` if the problem can't be used, or has
    nothing that candidates could attack.
    """
    attacks = tuple(a for a in list_attacks(classes) if not names or a.name in names)
    began = time.monotonic()
    settings = settings or ArenaSettings()
    budgets = (min(problem.budget_s, BUDGET_S), problem.budget_s)
    for budget_s in budgets:
        trial = AttackTrial(
            problem, attacks, settings, began + max_seconds, watch or (lambda result: None)
        )
        short = replace(problem, budget_s=budget_s)
        try:
            async with open_arena(short, settings=settings) as arena:
                if arena.can_time and settings.timing != "none":
                    async with arena.bench() as bench:
                        await trial.run(arena, bench)
                else:
                    await trial.run(arena, None)
        except MisfitError:
            if budget_s == budgets[-1]:
                raise
            continue
        finally:
            remove_kept_files()
        break
    return AttackReport(
        problem.problem_id,
        arena.sandbox_name,
        tuple(trial.results),
        time.monotonic() - began,
        arena.notes,
    )
