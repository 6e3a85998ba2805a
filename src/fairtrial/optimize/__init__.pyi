"""The names of `fairtrial.optimize`; `_facade.attach` reads them from here."""

from fairtrial.optimize.confirmation import (
    CONTENDERS as CONTENDERS,
    edits_of as edits_of,
)
from fairtrial.optimize.journal import (
    problem_print as problem_print,
)
from fairtrial.optimize.lineage import (
    Entry as Entry,
)
from fairtrial.optimize.optimizer import (
    Optimise as Optimise,
)
from fairtrial.optimize.preparation import (
    make_proposer as make_proposer,
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
    Proposer as Proposer,
)
from fairtrial.optimize.requests import (
    Spent as Spent,
)
from fairtrial.optimize.watching import (
    Watcher as Watcher,
    watched_by as watched_by,
)
