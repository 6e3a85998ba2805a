"""Progress events: what happens while an arena is opened, candidates are judged, code is optimized.

Every event is a frozen dataclass that derives from `Event`. Code that makes progress is given one
function, `emit`, and calls it with each event. Terminals, ledgers and users' callbacks read the
same events. Events about candidates are in `fairtrial.arena.events` and
`fairtrial.optimize.events`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Event:
    """The base class of all progress events."""

    __slots__ = ()


Emit = Callable[[Event], None]
"""Takes each event as it happens."""


def ignore_event(event: Event) -> None:
    """Drop an event: the default where progress isn't observed."""


class Phase(StrEnum):
    """A stage of the work that isn't about a single candidate, or that follows the search."""

    SNAPSHOT = "snapshot"
    """a snapshot of the project is taken"""
    BASE_CHECKS = "base_checks"
    """the checks run on the unchanged base"""
    CANARY = "canary"
    """a changed copy shows that the checks run the candidates' code"""
    AUDIT = "audit"
    """candidates that are wrong on purpose show what the checks reject"""
    BASE_TIMING = "base_timing"
    """the unchanged base is timed"""
    PAIR_CHECKS = "pair_checks"
    """both candidates of a comparison are checked"""
    PAIR_TIMING = "pair_timing"
    """one candidate is timed against the other"""
    SELF_TIMING = "self_timing"
    """the base is timed against itself"""
    WHOLE_PROCESSES = "whole_processes"
    """a candidate that is to be adopted runs in whole processes, whose total must show its gain"""
    INSTRUCTION_COUNTS = "instruction_counts"
    """instructions are counted"""
    PROPOSALS = "proposals"
    """candidates are requested"""
    MINIMIZATION = "minimization"
    """changes that carry no part of the best candidate's gain are looked for"""
    CONFIRMATION = "confirmation"
    """a candidate is measured again in fresh sessions"""
    RECHECK = "recheck"
    """the best candidate is checked on fresh inputs"""
    PROFILE = "profile"
    """the best candidate is profiled"""


@dataclass(frozen=True, slots=True)
class PhaseStarted(Event):
    """A phase begins, and the one before it is over.

    phase: which one
    candidate_id: the candidate that it is about, if it is about one
    """

    phase: Phase
    candidate_id: str = ""


@dataclass(frozen=True, slots=True)
class Remark(Event):
    """Something that people should know, and that is no state.

    text: one or more sentences
    """

    text: str


@dataclass(frozen=True, slots=True)
class HostWaitStarted(Event):
    """The work waits for another process, which times on this machine; may be repeated.

    pid: that process
    """

    pid: int

    @property
    def text(self) -> str:
        """`waiting: another fairtrial is timing (process 7)`."""
        return f"waiting: another fairtrial is timing (process {self.pid})"


@dataclass(frozen=True, slots=True)
class HostWaitEnded(Event):
    """The machine is free again, and the work continues."""


def emit_to_all(*receivers: Emit) -> Emit:
    """Return a function that passes each event to all receivers, in their order."""

    def emit(event: Event) -> None:
        for receive in receivers:
            receive(event)

    return emit
