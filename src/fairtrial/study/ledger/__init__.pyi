"""The names of `fairtrial.study.ledger`; `_facade.attach` reads them from here."""

from fairtrial.study.ledger.fingerprint import (
    differences as differences,
    study_fingerprint as study_fingerprint,
)
from fairtrial.study.ledger.ledger_summary import (
    Attempt as Attempt,
    Summary as Summary,
)
from fairtrial.study.ledger.reader import (
    LedgerReader as LedgerReader,
)
from fairtrial.study.ledger.schema import (
    LEDGER_NAME as LEDGER_NAME,
)
from fairtrial.study.ledger.study_lock import (
    StudyLock as StudyLock,
    read_lock as read_lock,
)
