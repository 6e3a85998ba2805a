"""The command that resumes a study."""

from __future__ import annotations

import shlex
from pathlib import Path

from fairtrial.cli.optimize_study import find_problem, spell_flags
from fairtrial.cli.output import shown_path
from fairtrial.study import Study, design, ledger, runner


def needs_python(study: Study) -> bool:
    """Return whether agents of a study were bound in Python, so that no command can resume it."""
    names: set[str] = set(study.agent_specs)
    for factor in study.factors:
        if factor.name in design.AGENT_FACTORS:
            names.update(str(level.value) for level in factor.levels)
    if not study.agents and study.condition_runner is None:
        return True
    return bool(names - study.agents.keys()) and study.condition_runner is None


def executor_options(settings: runner.RunSettings) -> list[str]:
    """Return executor and parallelism as command-line options, where the settings have them."""
    executor = settings.executor
    given = {
        "--executor": getattr(executor, "name", executor),
        "--address": getattr(executor, "address", None),
        "--requirements": getattr(executor, "requirements", None),
        "--parallel": settings.parallelism,
    }
    options = [f"{name} {value}" for name, value in given.items() if value is not None]
    return [*options, *(["--shared-files"] if getattr(executor, "shared_files", False) else [])]


def resume_command(
    folder: Path, study: Study, summary: ledger.Summary, settings: runner.RunSettings | None = None
) -> str:
    """Return the command that resumes an unfinished study.

    settings: settings whose executor and parallelism the command repeats
    """
    optimized = find_problem(study)
    if optimized is not None:
        path = shown_path(Path(str(optimized[1].options.get("path"))))
        flags = spell_flags(study)
        return shlex.join(["fairtrial", "optimize", path, *flags, "--output", shown_path(folder)])
    ended = (summary.last_session or {}).get("ended_how")
    options = executor_options(settings) if settings is not None else []
    if ended == "budget":
        budget = study.run_budget
        of_tokens = summary.tokens / budget.max_tokens if budget.max_tokens else 0.0
        of_cost = summary.cost_usd / budget.max_cost_usd if budget.max_cost_usd else 0.0
        is_tokens = budget.max_cost_usd is None or of_tokens > of_cost
        options.append(f"--set run_budget.{'max_tokens' if is_tokens else 'max_cost_usd'}=...")
    return " ".join(["fairtrial resume", shlex.quote(shown_path(folder)), *options])
