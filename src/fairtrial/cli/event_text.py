"""Progress events as text for people."""

from __future__ import annotations

from fairtrial.arena import events as arena_events
from fairtrial.cli.output import note
from fairtrial.core import events

_PHASES = {
    events.Phase.SNAPSHOT: "taking a snapshot of the tree",
    events.Phase.BASE_CHECKS: "running the checks on the unchanged base",
    events.Phase.CANARY: "making sure that it is the candidates' code that runs",
    events.Phase.AUDIT: "auditing the checks with candidates that are wrong on purpose",
    events.Phase.BASE_TIMING: "timing the unchanged base",
    events.Phase.PAIR_CHECKS: "checking both",
    events.Phase.PAIR_TIMING: "timing one against the other",
    events.Phase.SELF_TIMING: "timing the base against itself",
    events.Phase.WHOLE_PROCESSES: "running {} in whole processes, where everything counts",
    events.Phase.INSTRUCTION_COUNTS: "counting instructions",
    events.Phase.PROPOSALS: "asking for candidates",
    events.Phase.CONFIRMATION: "measuring {} again",
    events.Phase.MINIMIZATION: "looking for changes in {} that carry no part of its gain",
    events.Phase.RECHECK: "checking the best on inputs that nobody has seen",
    events.Phase.PROFILE: "looking at where the time goes",
}
_WITH_TEXT = (
    events.HostWaitStarted,
    events.Remark,
    arena_events.TimingProgress,
    arena_events.SelfComparisonDone,
)


def describe_event(event: events.Event) -> str:
    """Return the text of a phase, a wait, a remark or progress of timing; empty for others."""
    if isinstance(event, events.PhaseStarted):
        return _PHASES[event.phase].format(event.candidate_id)
    if isinstance(event, events.HostWaitEnded):
        return "going on: the machine is free"
    if isinstance(event, _WITH_TEXT):
        return event.text
    return ""


def print_event(event: events.Event) -> None:
    """Print an event's text on standard error, for commands without a display of their own."""
    text = describe_event(event)
    if text:
        note(f"{text} ...")
