"""Comparisons on simulated clocks, judged at a gate."""

import math
from dataclasses import dataclass, replace

import anyio
import numpy as np
from clock_kit import changes_of, make_replicates

from fairtrial.arena import Basis, Judgement, Reason, Rejection, Verdict
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.decision import DecisionRules, measure

RULES = DecisionRules(alpha=0.05, min_effect=0.02, budget_s=1_000.0)
REJECTED = Judgement(
    "change", "d", Verdict.REJECTED, rejection=Rejection(Reason.TESTS, "1 test fails")
)


@dataclass
class ReplayTimer:
    """A `Timer` that takes these session statistics, log(candidate/base), one after another."""

    statistics: object

    async def run(self, changes, label, first, count, budget_s):
        taken = self.statistics[first : first + count]
        batch = SessionBatch(seconds=float(len(taken)))
        for at, (session,) in enumerate(make_replicates(map(float, taken)), first):
            batch.replicates.append((replace(session, number=at),))
        return batch


def sessions(mean, spread=0.002, count=46):
    """Session statistics around log(1 + mean), alternating so that none is a trend."""
    return math.log1p(mean) + spread * np.resize([1.0, -1.0, -1.0, 1.0, 0.5, -0.5], count)


def judge_statistics(statistics, *, slowdown=0.0, rules=RULES):
    """Return the judgement of code that takes so much longer, on a machine with this noise."""

    async def work():
        timer = ReplayTimer(statistics + math.log1p(slowdown))
        return await measure(timer, "change", changes_of("change"), rules)

    return Judgement("change", "d", Verdict.PASSED, Basis.COMPARED).with_timing(anyio.run(work))


def count_failures(gate, rows, *, slowdown=0.0, rules=RULES):
    """Return how many of these comparisons fail at a gate."""
    judged = (judge_statistics(row, slowdown=slowdown, rules=rules) for row in rows)
    return sum(gate.judge([judgement]).has_failed for judgement in judged)
