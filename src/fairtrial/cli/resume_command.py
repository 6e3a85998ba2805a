"""Going on with a study: as it was run before, and the command that does it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial.cli.optimize_study import find_problem, spell_flags
from fairtrial.cli.output import shown_path
from fairtrial.core import LedgerError, plugins
from fairtrial.study import LEDGER_NAME, LedgerReader, RunSettings, Study, Summary, choose_executor


def options_of(settings: RunSettings) -> list[str]:
    """What else than the study says where runs happen, and how many at once, as options."""
    given = {"--executor": settings.executor, "--parallel": settings.parallelism}
    return [f"{name} {value}" for name, value in given.items() if value is not None]


def as_before(study: Study, settings: RunSettings) -> RunSettings:
    """The settings with the last session's executor and parallelism, unless they name their own.

    What the study itself said then is not repeated: it may say something else now.
    """
    folder = Path(settings.apply(study).output_dir or ".")
    if not (folder / LEDGER_NAME).exists():
        return settings
    try:
        reader = LedgerReader.open(folder)
        try:
            last = next(reversed(reader.sessions.values()), None)
            executor, parallel = (None, None) if last is None else _told(reader.study, last)
        finally:
            reader.close()
    except LedgerError:
        return settings  # whoever writes to it says what is wrong
    if settings.executor == "serial" or settings.parallelism is not None:
        parallel = settings.parallelism
    return replace(settings, executor=settings.executor or executor, parallelism=parallel)


def _told(study: Study, session: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """What a session must have been told, since the study alone would have come to another."""
    name, slots = session["executor"], session["slots"]
    if name not in plugins.names("executors"):
        return None, None  # an object that Python gave
    usual, _ = choose_executor(study, RunSettings(parallelism=slots), [])
    return (
        None if usual is not None and usual.name == name else name,
        None if slots == study.run_budget.parallelism else slots,
    )


def resume_command(
    folder: Path, study: Study, summary: Summary, settings: RunSettings | None = None
) -> str:
    """The command that goes on with a study which isn't done."""
    optimized = find_problem(study)
    if optimized is not None:
        path = shown_path(Path(str(optimized[1].options.get("path"))))
        flags = spell_flags(study)
        return shlex.join(["fairtrial", "optimize", path, *flags, "--output", shown_path(folder)])
    ended = (summary.last_session or {}).get("ended_how")
    options = options_of(settings) if settings is not None else []
    if ended == "budget":
        most = study.run_budget.max_tokens
        is_tokens = most is not None and summary.tokens >= most
        options.append(f"--set run_budget.{'max_tokens' if is_tokens else 'max_cost_usd'}=...")
    return " ".join(["fairtrial resume", shlex.quote(shown_path(folder)), *options])
