"""What checks expect of the unchanged base: some name tests or commands that fail there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fairtrial.arena.checks.command_check import PreparedCommandCheck
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck


def keep_what_base_passes(prepared: PreparedCheck) -> PreparedCheck | None:
    """Return a check without what fails on the base on purpose; None if nothing is left."""
    match prepared:
        case PreparedPytestCheck(baseline=baseline) if baseline.required:
            if not baseline.counted:
                return None
            return replace(prepared, baseline=replace(baseline, required=()))
        case PreparedCommandCheck(check=check) if check.fails_on_base:
            return None
    return prepared


def keep_all_that_base_passes(checks: Iterable[PreparedCheck]) -> list[PreparedCheck]:
    """Return what is left of checks without what fails on the base on purpose."""
    kept = (keep_what_base_passes(check) for check in checks)
    return [check for check in kept if check is not None]


def find_failing_on_purpose(checks: Iterable[PreparedCheck]) -> str:
    """Return the first check that the base fails on purpose; empty if there is none."""
    failing = (check.label for check in checks if keep_what_base_passes(check) is not check)
    return next(failing, "")
