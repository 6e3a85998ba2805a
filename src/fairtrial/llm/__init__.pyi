"""The names of `fairtrial.llm`; `_facade.attach` reads them from here."""

from fairtrial.llm.client import (
    Log as Log,
    Refused as Refused,
    answer_in as answer_in,
    ask as ask,
)
from fairtrial.llm.dialect import (
    NEW as NEW,
    OLD as OLD,
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
from fairtrial.llm.secret import (
    REMOVED as REMOVED,
    SHORTEST_SECRET as SHORTEST_SECRET,
    Secret as Secret,
    redact_all as redact_all,
)
from fairtrial.llm.wire import (
    Answer as Answer,
)
