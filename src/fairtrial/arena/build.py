"""The build command, which prepares a slot before its checks, for projects that are compiled."""

from __future__ import annotations

from fairtrial.arena.checks.exit_text import in_one_line, tell_ending
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Captured, Ending

BUILD_VARIABLE = "FAIRTRIAL_BUILD"
"""An environment variable that is set in builds and not in checks."""
SHOWN_CHARS = 1_500


async def run_build(stage: Stage, slot: WorktreeSlot) -> tuple[Rejection | None, tuple[str, ...]]:
    """Run the problem's build in a slot, and keep the files it makes until the slot is reset.

    Returns a rejection if it failed, and the existing files that it wrote to.
    """
    problem = stage.problem
    if not problem.build:
        return None, ()
    command = stage.command(
        problem.build, timeout_s=problem.build_timeout_s, env={BUILD_VARIABLE: "1"}
    )
    done = await stage.run(command)
    if done.ending == Ending.EXITED and done.exit_code == 0:
        return None, await slot.keep()
    output = "\n".join(filter(None, map(_shorten, (done.stdout, done.stderr))))
    failure = Failure("build", " ".join(problem.build), output or "it printed nothing")
    return Rejection(Reason.BUILD, f"the build {tell_ending(done, command)}", (failure,)), ()


async def build_base(stage: Stage, slot: WorktreeSlot) -> tuple[str, ...]:
    """Build the base in a slot; return the existing files that the build wrote to.

    Raises `StudyError` if the build fails.
    """
    rejection, touched = await run_build(stage, slot)
    if rejection is not None:
        output = in_one_line(rejection.failures[0].message)
        raise StudyError(
            Mistake(
                ("build",),
                f"the unchanged base can't be built: {rejection.message}: {output}",
                "the command runs in a copy of your tree without network and .git; make sure "
                "that it needs neither, or name what it needs in include:",
            )
        )
    return touched


def _shorten(output: Captured) -> str:
    """Return head and tail of an output, and the lines between them that mention an error.

    Other tools often print something before and after the compiler.
    """
    text = output.text.strip()
    if len(text) <= 3 * SHOWN_CHARS:
        return text
    head, tail = text[:SHOWN_CHARS], text[-SHOWN_CHARS:]
    rest = text[SHOWN_CHARS:-SHOWN_CHARS].splitlines()
    errors = "\n".join(line for line in rest if "error" in line.lower())
    return "\n[...]\n".join(filter(None, (head, errors[:SHOWN_CHARS], tail)))
