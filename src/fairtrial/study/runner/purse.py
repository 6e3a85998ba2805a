"""Ceilings on cost and tokens: what is spent, and what is reserved for runs under way.

Before a run starts, an estimate of what it takes is reserved: the mean of the finished runs of its
agent. A strict ceiling reserves the most that a run can take, as the study states it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairtrial.study.ledger.ledger_summary import spell_cost
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import REMOVED
from fairtrial.study.model.runs import Outcome, RunSpec, RunStatus
from fairtrial.study.model.study import AgentBinding, RunBudget
from fairtrial.study.runner.payment_tracker import PaymentTracker

COUNTED = (RunStatus.SUCCESS, RunStatus.FAILED)
"""What other runs cost says nothing of the next one."""
MOST_UNKNOWN = 8
"""How many runs of an agent may be under way while none has shown what they cost. The first run is
alone; each attempt that ends and took nothing allows one more."""
STRICT_RUNS = 3
"""Under a strict ceiling, runs of an agent without a stated maximum go one by one until then."""
STRICT_FACTOR = 1.5
"""How much more than the dearest run so far a strict ceiling reserves without a stated maximum."""
MOST_READ = 1_000
"""How many earlier results are read for the first estimates of a session."""
ROUNDING = 1e-9


class Amount(NamedTuple):
    """What counts against the ceilings: US dollars, and tokens of either kind."""

    cost_usd: float = 0.0
    tokens: int = 0

    def plus(self, other: Amount) -> Amount:
        """Return the sum of two amounts."""
        return Amount(self.cost_usd + other.cost_usd, self.tokens + other.tokens)


NOTHING = Amount()


class AgentCosts:
    """What the finished runs of one agent took.

    runs: how many there are
    free: how many attempts took nothing, broken ones included
    total, largest: what all of them took, and what one took at most
    """

    def __init__(self) -> None:
        self.runs = self.free = 0
        self.total = self.largest = NOTHING

    def add(self, expense: Amount) -> None:
        """Add a finished run."""
        self.runs += 1
        self.free += expense == NOTHING
        self.total = self.total.plus(expense)
        self.largest = Amount(
            max(self.largest.cost_usd, expense.cost_usd), max(self.largest.tokens, expense.tokens)
        )

    @property
    def mean(self) -> Amount:
        """The mean of the runs; nothing without one."""
        count = max(1, self.runs)
        return Amount(self.total.cost_usd / count, round(self.total.tokens / count))


class Purse:
    """Decides whether another run may start under the ceilings of a study.

    spent: what all attempts that ended took
    payments: what attempts under way have paid
    has_ceiling: whether the study has a ceiling; without one, nothing is estimated
    is_exhausted: whether a run was refused with none under way
    """

    def __init__(
        self,
        budget: RunBudget,
        agents: Mapping[str, AgentBinding],
        payments: PaymentTracker,
        spent: Amount = NOTHING,
    ) -> None:
        """Make a purse.

        agents: the agents, which may state the most that a run can take
        payments: what attempts under way have paid
        """
        self.budget, self.spent, self.is_exhausted = budget, spent, False
        self.has_ceiling = budget.max_cost_usd is not None or budget.max_tokens is not None
        self.payments = payments
        self._stated = {
            name: Amount(binding.max_cost_usd or 0.0, binding.max_tokens or 0)
            for name, binding in agents.items()
            if binding.max_cost_usd is not None or binding.max_tokens is not None
        }
        self._costs: defaultdict[str | None, AgentCosts] = defaultdict(AgentCosts)
        self._under_way: Counter[str | None] = Counter()
        self._refused: str | None = None

    def learn(self, earlier: Iterable[tuple[str | None, Amount]]) -> None:
        """Take first estimates from earlier results: their agents, and what they took."""
        for agent, expense in earlier:
            self._costs[agent].add(expense)

    @property
    def is_spent(self) -> bool:
        """Whether what was paid so far, also by runs under way, is a ceiling or more."""
        paid = self.payments.under_way
        return self._reaches(self.spent.plus(Amount(paid.cost_usd, paid.tokens)))

    def admits(self, agent: str | None) -> bool:
        """Return whether a run of an agent may start now."""
        total = self.spent.plus(self.reserved())
        estimate = self.estimate(agent)
        may_start = not self._reaches(total) and not self._exceeds(total.plus(estimate))
        if not may_start:
            self._refused = agent
        return may_start and self._under_way[agent] < self._most_at_once(agent)

    def start(self, spec: RunSpec) -> None:
        """Count a run that starts."""
        self._under_way[spec.agent_spec_ref] += 1

    def end(self, spec: RunSpec) -> None:
        """Count an attempt that has ended; `settle` adds what it took."""
        self._under_way[spec.agent_spec_ref] -= 1

    def settle(self, spec: RunSpec, outcome: Outcome) -> None:
        """Add what an attempt took that has ended."""
        if not (self.has_ceiling or outcome.cost_usd or outcome.tokens):
            return
        expense = Amount(outcome.cost_usd, outcome.tokens)
        self.spent = self.spent.plus(expense)
        if not self.has_ceiling:
            return
        costs = self._costs[spec.agent_spec_ref]
        if outcome.status in COUNTED:
            costs.add(expense)
        else:
            costs.free += expense == NOTHING

    def estimate(self, agent: str | None) -> Amount:
        """Return what is reserved for a run of an agent."""
        costs, stated = self._costs[agent], self._stated.get(agent or "", NOTHING)
        if not self.budget.strict:
            return costs.mean if costs.runs else stated
        largest = costs.largest
        cost_usd = stated.cost_usd or largest.cost_usd * STRICT_FACTOR
        tokens = stated.tokens or round(largest.tokens * STRICT_FACTOR)
        return Amount(max(cost_usd, largest.cost_usd), max(tokens, largest.tokens))

    def reserved(self) -> Amount:
        """Return what is reserved for the runs under way; at least what they have paid."""
        total = NOTHING
        for agent, count in self._under_way.items():
            if count:
                estimate, paid = self.estimate(agent), self.payments.of_agent(agent)
                cost_usd = max(count * estimate.cost_usd, paid.cost_usd)
                total = total.plus(Amount(cost_usd, max(count * estimate.tokens, paid.tokens)))
        return total

    def describe(self) -> str:
        """Return what was spent, what the next run would take, and the ceiling, in one line."""
        estimate = self.estimate(self._refused)
        whose = f"the next run of '{self._refused}'" if self._refused else "the next run"
        parts = []
        for name, limit, spent, reserved in (
            ("max_cost_usd", self.budget.max_cost_usd, self.spent.cost_usd, estimate.cost_usd),
            ("max_tokens", self.budget.max_tokens, self.spent.tokens, estimate.tokens),
        ):
            if limit is not None and spent + reserved >= limit * (1 - ROUNDING):
                spell = spell_cost if name == "max_cost_usd" else "{:,.0f} tokens".format
                text = f"{spell(spent)} spent, {spell(reserved)} reserved for {whose}"
                parts.append(f"{text}, of {spell(limit)} (run_budget.{name})")
        return "; ".join(parts) or "a ceiling is reached"

    def _most_at_once(self, agent: str | None) -> float:
        """Return how many runs of an agent may be under way, by what is known of their cost."""
        costs = self._costs[agent]
        stated = self._stated.get(agent or "", NOTHING)
        needs = [
            (self.budget.max_cost_usd, stated.cost_usd),
            (self.budget.max_tokens, stated.tokens),
        ]
        if all(limit is None or most for limit, most in needs):
            return float("inf")
        if self.budget.strict:
            return 1 if costs.runs < STRICT_RUNS else float("inf")
        if costs.total != NOTHING or costs.runs >= MOST_UNKNOWN:
            return float("inf")
        return min(1 + costs.free, MOST_UNKNOWN)

    def _reaches(self, total: Amount) -> bool:
        limits = self.budget.max_cost_usd, self.budget.max_tokens
        pairs = zip(total, limits, strict=True)
        return any(limit is not None and used >= limit for used, limit in pairs)

    def _exceeds(self, total: Amount) -> bool:
        limits = self.budget.max_cost_usd, self.budget.max_tokens
        pairs = zip(total, limits, strict=True)
        return any(limit is not None and used > limit * (1 + ROUNDING) for used, limit in pairs)


def read_expenses(reader: LedgerReader) -> list[tuple[str | None, Amount]]:
    """Return agent and expense of the last results in a ledger, for first estimates."""
    query = (
        "SELECT turn, cost_usd, tokens FROM results WHERE status IN ('success', 'failed') "
        f"ORDER BY turn DESC LIMIT {MOST_READ}"
    )
    order, plan = reader.order, reader.plan
    return [
        (plan.spec(order[turn]).agent_spec_ref, Amount(cost_usd, tokens))
        for turn, cost_usd, tokens in reader.connection.execute(query).fetchall()
        if turn < len(order) and order[turn] != REMOVED
    ]
