"""A survey of this machine: what sandboxes can enforce, and what disturbs or limits timing."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

from fairtrial.arena.model.figures import percent_text
from fairtrial.arena.self_test import builtin_problem, check_clock
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.pool_folders import HOME_VARIABLE, list_pool_locations
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.arena.timing.valgrind import MACOS, find_valgrind
from fairtrial.core import FairtrialError, StudyError
from fairtrial.sandbox import capabilities, install_hint, survey_timing

COUNTS, TRIAL_S = "instruction counts", 20.0
GOOD_EFFECT = 0.05
"""A machine that detects an effect of this size in the given time is quiet enough."""


def survey_machine() -> tuple[capabilities.HostSurvey, tuple[capabilities.HostFact, ...]]:
    """Try the kinds of sandbox; return what they enforce, and facts about timing here."""
    return capabilities.survey_host(list_pool_locations(), HOME_VARIABLE), (
        *survey_timing(),
        survey_valgrind(),
    )


async def survey_detectable_effect(seconds: float) -> capabilities.HostFact:
    """Time a built-in function against itself; return the effect that is detectable in that time.

    seconds: how long it is timed
    """
    name = "visible effect"
    settings = ArenaSettings(unsandboxed=True)
    try:
        with builtin_problem("words") as problem:
            self_test = await check_clock(
                problem, comparisons=99, most_s=seconds, settings=settings
            )
    except FairtrialError as error:
        return capabilities.HostFact(name, "no", f"nothing could be timed: {error}")
    sessions = f"{len(self_test.statistics)} sessions of {self_test.session_s:.2f} s"
    if not self_test.has_enough_sessions:
        detail = f"only {sessions} fit into {seconds:g} s, and it takes {LOOKS[0]}"
        return capabilities.HostFact(name, "no", detail)
    effect = self_test.visible_effect(seconds)
    sessions += f" spread by {percent_text(self_test.spread)}"
    if effect is None:
        return capabilities.HostFact(name, "no", f"{sessions}: none in {seconds:g} s")
    status: Literal["yes", "partly"] = "yes" if effect <= GOOD_EFFECT else "partly"
    remedy = "" if status == "yes" else "Let nothing else run while candidates are timed."
    return capabilities.HostFact(
        name, status, f"{percent_text(effect)} in {seconds:g} s ({sessions})", remedy
    )


def survey_valgrind() -> capabilities.HostFact:
    """Return whether instructions can be counted here."""
    if sys.platform == "darwin":
        return capabilities.HostFact(COUNTS, "no", f"{MACOS}; nothing but --instructions needs it")
    try:
        program = find_valgrind().program
    except StudyError:
        remedy = f"For a second opinion (--instructions):\n{install_hint('valgrind')}"
        return capabilities.HostFact(
            COUNTS, "no", "no valgrind; nothing but --instructions needs it", remedy
        )
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=TRIAL_S
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return capabilities.HostFact(COUNTS, "no", f"{program} can't be used: {error}")
    return capabilities.HostFact(COUNTS, "yes", f"{done.stdout.strip()[:80]}, for --instructions")
