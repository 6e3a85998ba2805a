"""The names of `fairtrial.optimize`; `_facade.attach` reads them from here."""

from fairtrial.optimize import (
    events as events,
    replies as replies,
)
from fairtrial.optimize.optimization import (
    optimize_code as optimize_code,
    optimize_code_sync as optimize_code_sync,
)
from fairtrial.optimize.optimizer import (
    Optimizer as Optimizer,
)
from fairtrial.optimize.option_flags import (
    OptionFlag as OptionFlag,
)
from fairtrial.optimize.proposals import (
    Brief as Brief,
    Reply as Reply,
    Request as Request,
    RequestKind as RequestKind,
    Tried as Tried,
    Usage as Usage,
)
from fairtrial.optimize.proposer import (
    PreflightContext as PreflightContext,
    Proposer as Proposer,
)
from fairtrial.optimize.requests import (
    UsageTotal as UsageTotal,
)
from fairtrial.optimize.result import (
    OptimizationResult as OptimizationResult,
)
