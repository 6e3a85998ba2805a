"""The command that makes a slot ready before its checks, for projects that are compiled."""

from __future__ import annotations

from fairtrial.arena.endings import in_one_line, tail_of, tell_ending
from fairtrial.arena.stage import Stage
from fairtrial.arena.worktrees import WorktreeSlot
from fairtrial.errors import Mistake, StudyError
from fairtrial.model.commands import Ending
from fairtrial.model.verdicts import Failure, Reason, Rejection


async def run_build(stage: Stage, slot: WorktreeSlot) -> Rejection | None:
    """Build what is in the slot; what that makes belongs to the slot until it is reset."""
    problem = stage.problem
    if not problem.build:
        return None
    command = stage.command(problem.build, timeout_s=problem.build_timeout_s)
    done = await stage.run(command)
    if done.ending == Ending.EXITED and done.exit_code == 0:
        await slot.keep()
        return None
    failure = Failure("build", " ".join(problem.build), tail_of(done) or "it said nothing")
    return Rejection(Reason.BUILD, f"the build {tell_ending(done, command)}", (failure,))


async def build_base(stage: Stage, slot: WorktreeSlot) -> None:
    """The same for the base, which must be buildable."""
    rejection = await run_build(stage, slot)
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
