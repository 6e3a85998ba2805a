"""The command that resumes a study."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairtrial.cli.output import shown_path
from fairtrial.study import RunSettings, Study, Summary

OPTIMISATION = "optimize-"
"""The prefix of the ids of studies that `fairtrial optimize` makes."""
OPTIMIZE_OPTIONS = {
    "proposer": "--agent",
    "lines": "--lines",
    "max_candidates": "--max-candidates",
    "slots": "--parallel-candidates",
    "max_cost_usd": "--max-cost",
    "max_seconds": "--max-seconds",
}
"""Options of the optimizer, with the command-line options that set them."""
OMITTED_IF_0 = ("lines", "slots")


def executor_options(settings: RunSettings) -> list[str]:
    """Return executor and parallelism as command-line options, where the settings have them."""
    given = {"--executor": settings.executor, "--parallel": settings.parallelism}
    return [f"{name} {value}" for name, value in given.items() if value is not None]


def resume_command(
    folder: Path, study: Study, summary: Summary, settings: RunSettings | None = None
) -> str:
    """Return the command that resumes an unfinished study.

    settings: settings whose executor and parallelism the command repeats
    """
    agents, problems = [*study.agents.values()], [*study.problems.values()]
    bound = [*(agent.use for agent in agents), *(problem.use for problem in problems)]
    if study.study_id.startswith(OPTIMISATION) and bound == ["optimise", "code"]:
        path = shown_path(Path(str(problems[0].options.get("path"))))
        given = _optimize_options(agents[0].options, study.seed_policy.base_seed)
        return shlex.join(["fairtrial", "optimize", path, *given, "--output", shown_path(folder)])
    ended = (summary.last_session or {}).get("ended_how")
    options = executor_options(settings) if settings is not None else []
    if ended == "budget":
        limit = study.run_budget.max_tokens
        is_tokens = limit is not None and summary.tokens >= limit
        options.append(f"--set run_budget.{'max_tokens' if is_tokens else 'max_cost_usd'}=...")
    return " ".join(["fairtrial resume", shlex.quote(shown_path(folder)), *options])


def _optimize_options(given: Mapping[str, Any], seed: int) -> Iterator[str]:
    """Yield the arguments of `fairtrial optimize` that its result depends on."""
    for name, option in OPTIMIZE_OPTIONS.items():
        value = given.get(name)
        if value is not None and (value or name not in OMITTED_IF_0):
            yield from (option, str(value))
    for name, value in (given.get("proposer_options") or {}).items():
        yield from ("--option", f"{name}={_format_value(value)}")
    if not given.get("repair", True):
        yield "--no-repair"
    if given.get("unsandboxed"):
        yield "--unsandboxed"
    if seed:
        yield from ("--seed", str(seed))


def _format_value(value: Any) -> str:
    """Return a value as JSON, or as it is if it is a text that JSON can't be read from."""
    try:
        json.loads(value)
    except (ValueError, TypeError):
        if isinstance(value, str):
            return value
    return json.dumps(value)
