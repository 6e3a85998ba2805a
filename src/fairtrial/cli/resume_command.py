"""Going on with a study: as it was run before, and the command that does it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial.cli.output import shown_path
from fairtrial.core import LedgerError, plugins
from fairtrial.study import LEDGER_NAME, LedgerReader, RunSettings, Study, Summary, choose_executor

OPTIMISATION = "optimize-"
"""How the id of a study begins that `fairtrial optimize` made, which hands over what is found."""
OPTIMISE_OPTIONS = {
    "proposer": "--agent",
    "lines": "--lines",
    "max_candidates": "--max-candidates",
    "slots": "--parallel-candidates",
    "max_cost_usd": "--max-cost",
    "max_seconds": "--max-seconds",
}
"""Options of the agent, and those of the command that they were given by."""
UNSAID_AS_0 = ("lines", "slots")


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
    agents, problems = [*study.agents.values()], [*study.problems.values()]
    bound = [*(each.use for each in agents), *(each.use for each in problems)]
    if study.study_id.startswith(OPTIMISATION) and bound == ["optimise", "code"]:
        path = shown_path(Path(str(problems[0].options.get("path"))))
        told = _optimise_options(agents[0].options, study.seed_policy.base_seed)
        return shlex.join(["fairtrial", "optimize", path, *told, "--output", shown_path(folder)])
    ended = (summary.last_session or {}).get("ended_how")
    options = options_of(settings) if settings is not None else []
    if ended == "budget":
        most = study.run_budget.max_tokens
        is_tokens = most is not None and summary.tokens >= most
        options.append(f"--set run_budget.{'max_tokens' if is_tokens else 'max_cost_usd'}=...")
    return " ".join(["fairtrial resume", shlex.quote(shown_path(folder)), *options])


def _optimise_options(given: Mapping[str, Any], seed: int) -> Iterator[str]:
    """What `fairtrial optimize` was told, as far as what it finds depends on it."""
    for name, option in OPTIMISE_OPTIONS.items():
        value = given.get(name)
        if value is not None and (value or name not in UNSAID_AS_0):
            yield from (option, str(value))
    for name, value in (given.get("proposer_options") or {}).items():
        yield from ("--option", f"{name}={_as_typed(value)}")
    if not given.get("repair", True):
        yield "--no-repair"
    if given.get("unsandboxed"):
        yield "--unsandboxed"
    if seed:
        yield from ("--seed", str(seed))


def _as_typed(value: Any) -> str:
    """A value as it is read back: as JSON, but for a text that isn't any."""
    try:
        json.loads(value)
    except (ValueError, TypeError):
        if isinstance(value, str):
            return value
    return json.dumps(value)
