"""Progress events as text for people."""

from __future__ import annotations

from fairtrial.cli.output import note
from fairtrial.core import Event, HostWaitEnded, HostWaitStarted, Phase, PhaseStarted, Remark
from fairtrial.sandbox import WAITING

_PHASES = {
    Phase.SNAPSHOT: "taking a snapshot of the tree",
    Phase.BASE_CHECKS: "running the checks on the unchanged base",
    Phase.CANARY: "making sure that it is the candidates' code that runs",
    Phase.AUDIT: "auditing the checks with candidates that are wrong on purpose",
    Phase.BASE_TIMING: "timing the unchanged base",
    Phase.PAIR_CHECKS: "checking both",
    Phase.PAIR_TIMING: "timing one against the other",
    Phase.SELF_TIMING: "timing the base against itself",
    Phase.INSTRUCTION_COUNTS: "counting instructions",
    Phase.PROPOSALS: "asking for candidates",
    Phase.CONFIRMATION: "measuring {} again",
    Phase.RECHECK: "checking the best on inputs that nobody has seen",
    Phase.PROFILE: "looking at where the time goes",
}


def describe_event(event: Event) -> str:
    """Return the text of a phase, a wait or a remark; empty for events about candidates."""
    if isinstance(event, PhaseStarted):
        return _PHASES[event.phase].format(event.candidate_id)
    if isinstance(event, HostWaitStarted):
        return WAITING.format(event.pid)
    if isinstance(event, HostWaitEnded):
        return "going on: the machine is free"
    return event.text if isinstance(event, Remark) else ""


def print_event(event: Event) -> None:
    """Print a phase or a wait on standard error, for commands without a display of their own."""
    text = describe_event(event)
    if text:
        note(f"{text} ...")
