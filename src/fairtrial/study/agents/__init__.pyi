"""The names of `fairtrial.study.agents`; `_facade.attach` reads them from here."""

from fairtrial.study.agents.hooks import (
    AgentHooks as AgentHooks,
)
from fairtrial.study.agents.journal import (
    Journal as Journal,
    JournalEntry as JournalEntry,
)
from fairtrial.study.model.expenses import (
    NO_EXPENSE as NO_EXPENSE,
    Expense as Expense,
)
from fairtrial.study.protocols import (
    Agent as Agent,
)
