"""The command that makes a slot ready before its checks, for projects that are compiled."""

from __future__ import annotations

from fairtrial.arena.stage import Stage
from fairtrial.arena.worktrees import WorktreeSlot
from fairtrial.errors import Mistake, StudyError
from fairtrial.model.commands import Completed, Ending
from fairtrial.model.verdicts import Failure, Reason, Rejection

TAIL_CHARS = 2_000


async def run_build(stage: Stage, slot: WorktreeSlot) -> Rejection | None:
    """Build what is in the slot; what that makes belongs to the slot until it is reset."""
    problem = stage.problem
    if not problem.build:
        return None
    done = await stage.run(stage.command(problem.build, timeout_s=problem.build_timeout_s))
    if done.ending == Ending.EXITED and done.exit_code == 0:
        await slot.keep()
        return None
    failure = Failure("build", " ".join(problem.build), tell_output(done))
    return Rejection(Reason.BUILD, f"the build {tell_end(done)}", (failure,))


async def build_base(stage: Stage, slot: WorktreeSlot) -> None:
    """The same for the base, which must be buildable."""
    rejection = await run_build(stage, slot)
    if rejection is not None:
        output = rejection.failures[0].message
        raise StudyError(
            Mistake(
                ("build",),
                f"the unchanged base can't be built: {rejection.message}: {output}",
                "the command runs in a copy of your tree without network and .git; see to it "
                "that it needs neither, or name what it needs in include:",
            )
        )


def tell_end(done: Completed) -> str:
    """How a command ended, as the end of a sentence."""
    if done.ending == Ending.EXITED:
        return f"ended with exit code {done.exit_code}"
    if done.ending == Ending.SIGNALLED:
        return f"died of signal {done.signal}"
    limits = {
        Ending.TIMEOUT: "took too long",
        Ending.MEMORY: "took more memory than it may",
        Ending.PROCESSES: "started more processes than it may",
    }
    return limits[done.ending]


def tell_output(done: Completed) -> str:
    """The end of what a command said."""
    said = "\n".join(part for part in (done.stdout.text.strip(), done.stderr.text.strip()) if part)
    return said[-TAIL_CHARS:] or "it said nothing"
