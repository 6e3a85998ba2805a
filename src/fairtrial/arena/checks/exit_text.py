"""Describe how a command ended, for rejections and error messages."""

from __future__ import annotations

from signal import Signals

from fairtrial.arena.model.verdicts import Reason
from fairtrial.sandbox import Command, Completed, Ending

TAIL_LINES, TAIL_CHARS = 20, 1_500
_FATAL_ERROR = "Fatal Python error: "
"""The start of the traceback that Python prints when a signal kills it."""


def stop_reason(done: Completed) -> Reason | None:
    """Return why a process was stopped or died; None if it exited by itself."""
    return {
        Ending.EXITED: None,
        Ending.SIGNALLED: Reason.CRASH,
        Ending.TIMEOUT: Reason.TIMEOUT,
        Ending.MEMORY: Reason.MEMORY,
        Ending.PROCESSES: Reason.PROCESSES,
    }[done.ending]


def tell_ending(done: Completed, command: Command) -> str:
    """Describe how a process ended, as the end of a sentence: ``exited with 1``."""
    limits = command.limits
    match done.ending:
        case Ending.EXITED:
            return f"exited with {done.exit_code}"
        case Ending.SIGNALLED:
            return f"died of {name_signal(done.signal)}"
        case Ending.TIMEOUT:
            return f"was stopped: it took longer than {command.timeout_s:g} s"
        case Ending.MEMORY:
            return f"was stopped: it took more memory than {limits.memory_mb} MB"
        case Ending.PROCESSES:
            return f"was stopped: it had more than {limits.processes} processes"


def tell_raising(label: str, ending: Ending) -> str:
    """Return a hint for a base that exceeds a limit: which limit to raise."""
    return {
        Ending.TIMEOUT: f"raise {label}.timeout_s, or leave slow parts out of the command",
        Ending.MEMORY: "raise limits.memory_mb",
        Ending.PROCESSES: "raise limits.processes",
    }.get(ending, "the unchanged base must do it without a crash; try the command in your tree")


def name_signal(number: int | None) -> str:
    """Return a signal's name (``SIGSEGV``), or its number if it has none."""
    try:
        return Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def tail_of(done: Completed) -> str:
    """Return the last lines of a process's standard output and standard error."""
    tails = [_tail(stream.text.strip()) for stream in (done.stdout, done.stderr)]
    return "\n".join(tail for tail in tails if tail)


def _tail(text: str) -> str:
    start = text.rfind(_FATAL_ERROR)
    if start >= 0:  # the innermost frame comes first
        return "\n".join(text[start:].splitlines()[:TAIL_LINES])[:TAIL_CHARS]
    return "\n".join(text.splitlines()[-TAIL_LINES:])[-TAIL_CHARS:]


def in_one_line(text: str, longest: int = 800) -> str:
    """Join lines by ``|``, for messages of one line; of a long text, keep the end."""
    line = " | ".join(" ".join(part.split()) for part in text.splitlines() if part.strip())
    return line if len(line) <= longest else f"... {line[-longest:]}"
