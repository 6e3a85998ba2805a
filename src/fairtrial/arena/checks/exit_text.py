"""How a command ended, in the words of a verdict."""

from __future__ import annotations

from signal import Signals

from fairtrial.arena.model.verdicts import Reason
from fairtrial.sandbox import Command, Completed, Ending

TAIL_LINES, TAIL_CHARS = 20, 1_500
_DYING_WORDS = "Fatal Python error: "
"""What Python begins with when it says where a signal hit it."""


def stop_reason(done: Completed) -> Reason | None:
    """Why it was stopped or died; None if it left by itself."""
    return {
        Ending.EXITED: None,
        Ending.SIGNALLED: Reason.CRASH,
        Ending.TIMEOUT: Reason.TIMEOUT,
        Ending.MEMORY: Reason.MEMORY,
        Ending.PROCESSES: Reason.PROCESSES,
    }[done.ending]


def tell_ending(done: Completed, command: Command) -> str:
    """How it ended, as the end of a sentence: ``was stopped: more than 5 s``."""
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
    """What to do when the base itself runs into a limit."""
    return {
        Ending.TIMEOUT: f"raise {label}.timeout_s, or leave slow parts out of the command",
        Ending.MEMORY: "raise limits.memory_mb",
        Ending.PROCESSES: "raise limits.processes",
    }.get(ending, "the unchanged base must do it without a crash; try the command in your tree")


def name_signal(number: int | None) -> str:
    """``SIGSEGV``; its number if it has no name."""
    try:
        return Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def tail_of(done: Completed) -> str:
    """What it said last: of its output, and of its error output."""
    tails = [_tail(stream.text.strip()) for stream in (done.stdout, done.stderr)]
    return "\n".join(tail for tail in tails if tail)


def _tail(text: str) -> str:
    died = text.rfind(_DYING_WORDS)
    if died >= 0:  # the innermost frame comes first
        return "\n".join(text[died:].splitlines()[:TAIL_LINES])[:TAIL_CHARS]
    return "\n".join(text.splitlines()[-TAIL_LINES:])[-TAIL_CHARS:]


def in_one_line(text: str, longest: int = 800) -> str:
    """The last of it, for messages that hold one line."""
    line = " | ".join(" ".join(part.split()) for part in text.splitlines() if part.strip())
    return line if len(line) <= longest else f"... {line[-longest:]}"
