"""The names of `fairtrial.llm`; `_facade.attach` reads them from here."""

from fairtrial.llm import service as service
from fairtrial.llm.client import (
    ChatClient as ChatClient,
    RequestLog as RequestLog,
    RequestRefused as RequestRefused,
)
from fairtrial.llm.options import (
    ChatOptions as ChatOptions,
)
from fairtrial.llm.prices import (
    describe_price_date as describe_price_date,
)
from fairtrial.llm.responses import (
    ChatAnswer as ChatAnswer,
    ToolCall as ToolCall,
)
from fairtrial.llm.secret import (
    Secret as Secret,
    redact_all as redact_all,
)
