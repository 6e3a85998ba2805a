"""What went wrong with an optimisation, in the words of the command that asked for it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from fairtrial.core import FairtrialError, LabError, MisfitError, Mistake, PluginError, StudyError

_PLACE = re.compile(r"[a-z_]+(?:[.\[][\w\]]+)*")


def explain(told: str, problem: Path, proposer: str) -> FairtrialError:
    """A run that failed as the error that it was: whose fault it is, and what to do."""
    kind, _, message = told.partition(": ")
    if kind in {each.__name__ for each in (StudyError, PluginError, MisfitError)}:
        mistakes = [as_given(_read_mistake(line), proposer) for line in message.splitlines()]
        is_given = any(str(each).startswith("--") for each in mistakes)
        return StudyError(mistakes, source="" if is_given else str(problem))
    ours = {LabError.__name__, *(each.__name__ for each in LabError.__subclasses__())}
    text = message if kind in ours else told
    return LabError(f"{text}; the same command goes on where it was")


def as_given(mistake: Mistake, proposer: str) -> Mistake:
    """A mistake in what the command line gives, in its own words; others as they are."""
    first, *rest = mistake.path or ("",)
    if first == "proposer_options" and rest:
        return replace(mistake, path=(f"--agent {proposer} --option {rest[0]}", *rest[1:]))
    named = {
        "proposer_options": f"--agent {proposer}",
        "proposer": "--agent",
        "max_cost_usd": "--max-cost",
    }
    return replace(mistake, path=(named[first],)) if first in named else mistake


def _read_mistake(told: str) -> Mistake:
    """One that was written down: `proposer_options.argv: there is no ...`."""
    place, colon, message = told.partition(": ")
    if not colon or not _PLACE.fullmatch(place):
        return Mistake((), told)
    return Mistake(tuple(place.split(".")), message)
