"""The command that makes a slot ready before its checks, for projects that are compiled."""

from __future__ import annotations

from fairtrial.arena.checks.exit_text import in_one_line, tell_ending
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Captured, Ending

BUILD_VARIABLE = "FAIRTRIAL_BUILD"
"""A variable that builds have in their environment, and checks don't."""
SHOWN_CHARS = 1_500


async def run_build(stage: Stage, slot: WorktreeSlot) -> tuple[Rejection | None, tuple[str, ...]]:
    """Build what is in the slot; what that makes belongs to the slot until it is reset.

    Returns why it failed, if it did, and the files that were there before and were written to.
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
    said = "\n".join(filter(None, map(_ends_of, (done.stdout, done.stderr))))
    failure = Failure("build", " ".join(problem.build), said or "it said nothing")
    return Rejection(Reason.BUILD, f"the build {tell_ending(done, command)}", (failure,)), ()


async def build_base(stage: Stage, slot: WorktreeSlot) -> tuple[str, ...]:
    """The same for the base, which must be buildable: returns the files that it wrote to."""
    rejection, touched = await run_build(stage, slot)
    if rejection is not None:
        output = in_one_line(rejection.failures[0].message)
        raise StudyError(
            Mistake(
                ("build",),
                f"the unchanged base can't be built: {rejection.message}: {output}",
                "the command runs in a copy of your tree without network and .git; see to it "
                "that it needs neither, or name what it needs in include:",
            )
        )
    return touched


def _ends_of(output: Captured) -> str:
    """Head and tail, and what is called an error between them.

    A compiler is neither the first nor the last who has something to say.
    """
    text = output.text.strip()
    if len(text) <= 3 * SHOWN_CHARS:
        return text
    head, tail = text[:SHOWN_CHARS], text[-SHOWN_CHARS:]
    rest = text[SHOWN_CHARS:-SHOWN_CHARS].splitlines()
    errors = "\n".join(line for line in rest if "error" in line.lower())
    return "\n[...]\n".join(filter(None, (head, errors[:SHOWN_CHARS], tail)))
