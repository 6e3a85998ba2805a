"""The seam of executors: what one is given, what it reports, and the format of events and journals.

An `Executor` takes one `Assignment` after another, has `Work` attempt it, and reports what was
`Emitted`, what was `Noted` in the run's journal, and the `Outcome` with which it `Finished`.
Executors are plug-ins; `fairtrial.testing.executors` has a suite of tests for them.
"""

from fairtrial.study.ledger.packing import EventData, pack, unpack
from fairtrial.study.model.runs import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    Noted,
    NotedTogether,
    Outcome,
    Report,
)
from fairtrial.study.protocols import Executor, Send, Work
from fairtrial.study.runner.executors.study_files import FilesPacked

__all__ = [
    "Assignment",
    "Emitted",
    "EventData",
    "Executor",
    "FailureKind",
    "FilesPacked",
    "Finished",
    "Noted",
    "NotedTogether",
    "Outcome",
    "Report",
    "Send",
    "Work",
    "pack",
    "unpack",
]
