"""A survey of this machine: what sandboxes can enforce, and what disturbs or limits timing."""

from __future__ import annotations

import subprocess
import sys

from fairtrial.arena.slots.pool_folders import HOME_VARIABLE, list_places
from fairtrial.arena.timing.valgrind import MACOS, find_valgrind
from fairtrial.core import StudyError
from fairtrial.sandbox import Fact, Survey, install, survey, survey_clock

COUNTS, TRIAL_S = "instruction counts", 20.0


def survey_machine() -> tuple[Survey, tuple[Fact, ...]]:
    """Try the kinds of sandbox; return what they enforce, and facts about timing here."""
    return survey(list_places(), HOME_VARIABLE), (*survey_clock(), survey_valgrind())


def survey_valgrind() -> Fact:
    """Return whether instructions can be counted here."""
    if sys.platform == "darwin":
        return Fact(COUNTS, "no", f"{MACOS}; nothing but --instructions needs it")
    try:
        program = find_valgrind().program
    except StudyError:
        remedy = f"For a second opinion (--instructions):\n{install('valgrind')}"
        return Fact(COUNTS, "no", "no valgrind; nothing but --instructions needs it", remedy)
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=TRIAL_S
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Fact(COUNTS, "no", f"{program} can't be used: {error}")
    return Fact(COUNTS, "yes", f"{done.stdout.strip()[:80]}, for --instructions")
