"""Errors of an optimization in the words of `fairtrial optimize`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from fairtrial.core import FairtrialError, LabError, MisfitError, Mistake, PluginError, StudyError
from fairtrial.optimize import Optimizer

_PLACE = re.compile(r"[a-z_]+(?:[.\[][\w\]]+)*")


def explain_failure(error_info: str, problem: Path, proposer: str) -> FairtrialError:
    """Return the error of a failed run, given its stored text: `StudyError: ...`."""
    kind, _, message = error_info.partition(": ")
    if kind in {error.__name__ for error in (StudyError, PluginError, MisfitError)}:
        mistakes = [refer_to_flags(_read_mistake(line), proposer) for line in message.splitlines()]
        is_flag = any(str(mistake).startswith("--") for mistake in mistakes)
        return StudyError(mistakes, source="" if is_flag else str(problem))
    lab_errors = {LabError.__name__, *(error.__name__ for error in LabError.__subclasses__())}
    text = message if kind in lab_errors else error_info
    return LabError(f"{text}; the same command continues where it stopped")


def refer_to_flags(mistake: Mistake, proposer: str) -> Mistake:
    """Return a mistake in an option with the flag that gives it; others unchanged."""
    first, *rest = mistake.path or ("",)
    if first == "proposer_options" and rest:
        return replace(mistake, path=(f"--agent {proposer} --option {rest[0]}", *rest[1:]))
    if first == "proposer_options":
        return replace(mistake, path=(f"--agent {proposer}",))
    flags = Optimizer.list_flags()
    return replace(mistake, path=(flags[first][1].name,)) if first in flags else mistake


def _read_mistake(text: str) -> Mistake:
    """Return the mistake of a line such as `proposer_options.argv: there is no ...`."""
    place, colon, message = text.partition(": ")
    if not colon or not _PLACE.fullmatch(place):
        return Mistake((), text)
    return Mistake(tuple(place.split(".")), message)
