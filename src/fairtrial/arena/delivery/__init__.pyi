"""The names of `fairtrial.arena.delivery`; `_facade.attach` reads them from here."""

from fairtrial.arena.delivery.delivery import (
    Delivery as Delivery,
)
from fairtrial.arena.delivery.edits import (
    FileEdits as FileEdits,
)
from fairtrial.arena.delivery.markdown_quoting import (
    ASSUMES as ASSUMES,
)
from fairtrial.arena.delivery.minimization import (
    CheckedChange as CheckedChange,
    minimize_changes as minimize_changes,
)
from fairtrial.arena.delivery.recheck import (
    check_again as check_again,
)
from fairtrial.arena.delivery.winner import (
    gather_evidence as gather_evidence,
)
