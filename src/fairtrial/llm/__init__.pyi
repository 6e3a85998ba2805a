"""The names of `fairtrial.llm`; `_facade.attach` reads them from here."""

from fairtrial.llm.client import (
    RequestLog as RequestLog,
    RequestRefused as RequestRefused,
    read_logged_answer as read_logged_answer,
    send_chat_request as send_chat_request,
)
from fairtrial.llm.dialect import (
    TOKEN_LIMIT_FIELDS as TOKEN_LIMIT_FIELDS,
    Dialect as Dialect,
    TokensField as TokensField,
)
from fairtrial.llm.endpoint import (
    Endpoint as Endpoint,
)
from fairtrial.llm.prices import (
    PRICES as PRICES,
    PRICES_DATE as PRICES_DATE,
    Price as Price,
    cost_usd as cost_usd,
    find_price as find_price,
    price_mistakes as price_mistakes,
)
from fairtrial.llm.responses import (
    ChatAnswer as ChatAnswer,
)
from fairtrial.llm.secret import (
    MIN_SECRET_CHARS as MIN_SECRET_CHARS,
    REDACTED as REDACTED,
    Secret as Secret,
    redact_all as redact_all,
)
