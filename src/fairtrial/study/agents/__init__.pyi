"""The names of `fairtrial.study.agents`; `_facade.attach` reads them from here."""

from fairtrial.study.agents import answer_reading as answer_reading
from fairtrial.study.agents.hooks import (
    AgentHooks as AgentHooks,
)
from fairtrial.study.agents.journal import (
    Journal as Journal,
    JournalEntry as JournalEntry,
)
from fairtrial.study.agents.prompt_templates import (
    fill as fill,
    template_values as template_values,
)
from fairtrial.study.agents.transcript import (
    TRANSCRIPT_TYPES as TRANSCRIPT_TYPES,
    TranscriptRecord as TranscriptRecord,
    message_event as message_event,
    model_call_event as model_call_event,
    read_transcript as read_transcript,
    tool_call_event as tool_call_event,
    tool_result_event as tool_result_event,
)
from fairtrial.study.model.expenses import (
    NO_EXPENSE as NO_EXPENSE,
    Expense as Expense,
)
from fairtrial.study.protocols import (
    Agent as Agent,
)
