"""Rechecking the winner: alone, without warm starts, with inputs that no candidate has seen.

All candidates of an arena get the same inputs, and rejections quote them. A candidate that was
repaired several times may be fitted to them, so the winner must pass with other inputs, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairtrial.arena.arena import Arena
from fairtrial.arena.checks.function_check import PreparedFunctionCheck, prepare_calls
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.verdicts import Reason, Rejection
from fairtrial.arena.resources import ArenaResources
from fairtrial.core import FairtrialError, run_all


async def check_again(arena: Arena, changes: Changes) -> Rejection | None:
    """Check the winner again; return a rejection if it fails, None if every check passes.

    A rejection for `Reason.EVALUATOR` means that it could not be checked again.
    """
    resources = arena.resources
    cold = replace(resources, sandbox=resources.cold or resources.sandbox, cold=None)
    try:
        fresh = await run_all([partial(_renew, check, cold) for check in arena.checks])
    except FairtrialError as error:
        message = f"it could not be checked again with other inputs: {error}"
        return Rejection(Reason.EVALUATOR, message).cleaned()
    # A new arena has no verdicts from the first one.
    again = Arena(cold, fresh, arena.path_rules, ())
    return (await again.judge(Candidate("winner", files={}), changes)).rejection


async def _renew(check: PreparedCheck, resources: ArenaResources) -> PreparedCheck:
    """Prepare a check with new inputs; one with recorded calls is returned as it is."""
    if not isinstance(check, PreparedFunctionCheck) or check.seed is None:
        return check
    stage = check.acceptor.stage if check.acceptor else None
    return await prepare_calls(check.label, check.expectation.check, resources, accept_stage=stage)
