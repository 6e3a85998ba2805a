"""A survey of this machine: what sandboxes can enforce, and what disturbs or limits timing."""

from __future__ import annotations

import subprocess
import sys

from fairtrial.arena.slots.pool_folders import HOME_VARIABLE, list_pool_locations
from fairtrial.arena.timing.valgrind import MACOS, find_valgrind
from fairtrial.core import StudyError
from fairtrial.sandbox import HostFact, HostSurvey, install_hint, survey_host, survey_timing

COUNTS, TRIAL_S = "instruction counts", 20.0


def survey_machine() -> tuple[HostSurvey, tuple[HostFact, ...]]:
    """Try the kinds of sandbox; return what they enforce, and facts about timing here."""
    return survey_host(list_pool_locations(), HOME_VARIABLE), (*survey_timing(), survey_valgrind())


def survey_valgrind() -> HostFact:
    """Return whether instructions can be counted here."""
    if sys.platform == "darwin":
        return HostFact(COUNTS, "no", f"{MACOS}; nothing but --instructions needs it")
    try:
        program = find_valgrind().program
    except StudyError:
        remedy = f"For a second opinion (--instructions):\n{install_hint('valgrind')}"
        return HostFact(COUNTS, "no", "no valgrind; nothing but --instructions needs it", remedy)
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=TRIAL_S
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return HostFact(COUNTS, "no", f"{program} can't be used: {error}")
    return HostFact(COUNTS, "yes", f"{done.stdout.strip()[:80]}, for --instructions")
