"""What a command-line agent printed and left behind, as the output of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Broken
from fairtrial.optimize.command_agent.files import collect_files
from fairtrial.optimize.proposers.command.secrets import AgentSecrets
from fairtrial.sandbox import Completed, Ending
from fairtrial.study import AgentOutput, Task, agents

ENTRY = "command_result"
NOT_FOUND = 127
LONGEST_STDERR = 20_000
_BUDGETED = ("cost_usd", "input_tokens", "output_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """How the result of a run is read; fields as in `CommandAgent`.

    name: the program's name
    """

    name: str
    model: str
    answer_path: str
    answer: str
    metrics: Mapping[str, str]
    cost_usd: float | None
    exit_codes: tuple[int, ...]
    collect: tuple[str, ...]
    timeout_s: float
    network: bool

    @property
    def has_answer(self) -> bool:
        """Whether the output has an `answer`, which evaluators then get in place of all of it.

        Files that are collected are the output, unless the options say where the answer is.
        """
        return bool(self.answer_path or self.answer or not self.collect)


def read_result(
    task: Task, done: Completed, options: ResultOptions, secrets: AgentSecrets, sandbox: str
) -> AgentOutput:
    """Return the output of a run; its cost is in the journal, its answer in the transcript.

    Raises `Broken` if the program can't be run at all, or was killed from outside.
    """
    stdout = secrets.redact_output(done.stdout)
    documents = agents.answer_reading.read_documents(stdout)
    figures = agents.answer_reading.read_metrics(documents, options.metrics)
    if done.ending == Ending.EXITED and done.exit_code == NOT_FOUND and not stdout:
        said = secrets.redact_output(done.stderr).strip()[-500:]
        raise Broken(f"{options.name} can't be run: {said} (`readable` names the folders it needs)")
    if done.ending == Ending.SIGNALLED and done.signal == 9:
        raise Broken(f"{options.name} was killed from outside (signal 9)")
    output: dict[str, Any] = {
        "exit_code": done.exit_code,
        "ending": done.ending.value,
        "stdout": stdout,
        "stderr": secrets.redact_output(done.stderr)[-LONGEST_STDERR:],
        "files": collect_files(task.workspace, options.collect, secrets),
    }
    error = _failure(done, options)
    if not error:
        try:
            answer = agents.answer_reading.read_answer(
                stdout, documents, options.answer_path, options.answer
            )
            if options.has_answer:
                output = {"answer": answer, **output}
        except ValueError as reason:
            error = f"what {options.name} printed has no answer: {reason}"
    model = options.model or str(figures.pop("model_name", "") or "")
    own = {name: value for name, value in figures.items() if name not in _BUDGETED}
    facts: dict[str, Any] = {
        "output": output,
        "metrics": {**own, "cpu_s": done.cpu_s, "peak_rss_mb": done.peak_rss_mb},
        "metadata": {"agent_kind": "command", "model_name": model or None, "sandbox": sandbox},
    }
    _pay(task, figures, options, facts, model, done.wall_s, is_kept=not error)
    answer = output.get("answer", stdout)
    text = answer if isinstance(answer, str) else agents.fill("{x}", {"x": answer})
    task.record(agents.message_event("assistant", text, model=model or None))
    return AgentOutput(**facts, success=not error, error=error or None)


def _pay(
    task: Task,
    figures: Mapping[str, Any],
    options: ResultOptions,
    facts: Mapping[str, Any],
    model: str,
    seconds: float,
    *,
    is_kept: bool,
) -> None:
    """Record what a run cost; its result beside it, if another attempt may take it from there."""
    cost = _amount(figures.get("cost_usd", options.cost_usd))
    tokens = {name: _amount(figures.get(name)) for name in ("input_tokens", "output_tokens")}
    task.journal.append(
        ENTRY if is_kept else f"failed_{ENTRY}",
        {"output": facts} if is_kept else {},
        cost_usd=cost,
        input_tokens=int(tokens["input_tokens"] or 0),
        output_tokens=int(tokens["output_tokens"] or 0),
    )
    whole = {name: None if value is None else int(value) for name, value in tokens.items()}
    task.record(
        agents.model_call_event(
            model or options.name,
            input_tokens=whole["input_tokens"],
            output_tokens=whole["output_tokens"],
            cost_usd=cost,
            seconds=seconds,
        )
    )


def _failure(done: Completed, options: ResultOptions) -> str:
    """Return why a run failed; empty if it didn't."""
    name = options.name
    if done.ending == Ending.TIMEOUT:
        # Many agents retry silently when they can't reach their endpoint.
        cut_off = "" if options.network else ", without a network"
        return f"{name} took longer than {options.timeout_s:g} s{cut_off}"
    if done.ending in (Ending.MEMORY, Ending.PROCESSES):
        return f"{name} used too much: {done.ending.value} (see `limits`)"
    if done.ending == Ending.SIGNALLED:
        return f"{name} died of signal {done.signal}"
    if done.exit_code not in options.exit_codes:
        return f"{name} ended with status {done.exit_code}"
    return ""


def _amount(value: Any) -> float | None:
    """Return a number of 0 or more; None for anything else a program may print."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e12 else None
