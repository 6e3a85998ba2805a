"""Situations of `verdicts.py` that go on in time: continued studies and timing sessions."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.random import Generator

from fairtrial import (
    Condition,
    RunBudget,
    RunOutput,
    RunSpec,
    judge_hypotheses,
    open_results,
    run_study,
)
from fairtrial.arena import Changes, Measurement, Sample, Session
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.decision import DecisionRules, measure
from verdict_scenarios import Scenario, Scored, holds, make_study

FIRST_REPLICATES = 10
ADDED_REPLICATES = 5
MIN_EFFECT = 0.02
SPREAD = 0.015
ARMS = ("base", "candidate")


def continue_while_undecided(looks: int) -> Scenario:
    """Return a study that gets more replicates until its claim is supported, through the ledger."""

    def score(rng: Generator, effect: float) -> Scored:
        def run(run_spec: RunSpec, condition: Condition) -> RunOutput:
            is_fancy = condition.factor_assignments["arm"] == "fancy"
            return RunOutput({}, {"score": effect * is_fancy + rng.standard_normal()})

        study = make_study(replicates=FIRST_REPLICATES, problem_ids=(), agent_specs=())
        with tempfile.TemporaryDirectory() as folder:
            # Later looks can't support a claim, as the second one shows: only the last is made.
            for look in sorted({0, 1, looks - 1}):
                replicates = FIRST_REPLICATES + look * ADDED_REPLICATES
                study = replace(
                    study, output_dir=Path(folder) / "out", run_budget=RunBudget(replicates)
                )
                run_study(
                    study,
                    condition_runner=run,
                    executor="serial",
                    resume=look > 0,
                    accept_changes=look > 0,
                    show_progress=False,
                )
                with open_results(folder + "/out") as results:
                    (test,) = judge_hypotheses(results.study, results.conditions, results)
                if str(test.verdict) == "supported":
                    break
        covered = () if test.interval is None else (holds(test.interval, effect),)
        return Scored(float(str(test.verdict) == "supported"), 0.0, covered)

    return Scenario(
        f"look_and_add_{looks}",
        f"look, then add {ADDED_REPLICATES} replicates, {looks} times (through the ledger)",
        score,
        None,
        cost=3,
    )


class SimulatedTimer:
    """Timing sessions with these statistics, log(candidate/base)."""

    def __init__(self, statistics: Sequence[float]) -> None:
        self.statistics = statistics

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> SessionBatch:
        batch = SessionBatch()
        for number in range(first, first + count):
            batch.replicates.append((make_session(number, self.statistics[number]),))
        return batch


def make_session(number: int, statistic: float) -> Session:
    """Return a session in which the candidate always takes exp(statistic) times as long."""
    samples = []
    for round_number in range(4):
        for position, arm in enumerate(ARMS if round_number % 2 else ARMS[::-1]):
            seconds = 2e-3 * (math.exp(statistic) if arm == "candidate" else 1.0)
            samples.append(
                Sample(round_number, position, arm, 4, seconds, seconds, round_number > 0)  # type: ignore[arg-type]
            )
    return Session("simulated", number, tuple(samples), 0.25)


def time_autocorrelated(rho: float) -> Scenario:
    """Return a timed comparison whose sessions depend on the one before."""
    rules = DecisionRules(alpha=0.05, min_effect=MIN_EFFECT, budget_s=1e9)

    def score(rng: Generator, effect: float) -> Scored:
        noise = rng.standard_normal(60)
        values = [noise[0]]
        for shock in noise[1:]:
            values.append(rho * values[-1] + math.sqrt(1 - rho * rho) * shock)
        truth = -math.log1p(effect)
        timer = SimulatedTimer([truth + SPREAD * value for value in values])
        result = asyncio.run(measure(timer, "candidate", None, rules))
        assert isinstance(result, Measurement)
        is_claimed = str(result.verdict) in ("faster", "slower")
        estimate = result.estimate
        covered = () if estimate is None else (holds((estimate.low, estimate.high), 1 + effect),)
        return Scored(float(is_claimed), 0.0, covered)

    return Scenario(
        f"timing_autocorrelated_{rho:g}",
        f"timing sessions autocorrelated, rho = {rho:g}: any difference claimed",
        score,
        0.05,
    )


def make_sequences() -> list[Scenario]:
    """Return the situations that go on in time."""
    return [
        *(continue_while_undecided(looks) for looks in (6, 20)),
        *(time_autocorrelated(rho) for rho in (0.0, 0.4, 0.6)),
    ]
