"""The winner, checked once more by itself: cold, in a slot of its own, with inputs it never saw.

All candidates of an arena get the same inputs, and rejections quote them. Who is repaired again and
again may have learned them; so what wins has to hold for others, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairtrial.arena.arena import Arena
from fairtrial.arena.checks.function_check import FunctionTrial, prepare_calls
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.verdicts import Reason, Rejection
from fairtrial.arena.resources import Ground
from fairtrial.arena.task_groups import run_all
from fairtrial.core import FairtrialError


async def recheck(arena: Arena, changes: Changes) -> Rejection | None:
    """Why the winner is out after all; None if every check holds again.

    A reason of ours (`Reason.EVALUATOR`) says nothing against it: it could not be checked again.
    """
    ground, trials, rules = arena.parts()
    cold = replace(ground, sandbox=ground.cold or ground.sandbox, cold=None)
    try:
        fresh = await run_all([partial(_renew, trial, cold) for trial in trials])
    except FairtrialError as error:
        message = f"it could not be checked again with other inputs: {error}"
        return Rejection(Reason.EVALUATOR, message).cleaned()
    # An arena of its own remembers no verdict of the first one.
    again = Arena(cold, fresh, rules, ())
    return (await again.judge(Candidate("winner", files={}), changes)).rejection


async def _renew(trial: Trial, ground: Ground) -> Trial:
    """The same check with inputs that nobody has seen; as it is if its calls were recorded."""
    if not isinstance(trial, FunctionTrial) or trial.seed is None:
        return trial
    return await prepare_calls(trial.label, trial.wanted.check, ground)
