"""Tasks of Inspect (inspect_ai) as rows, and their scorers on outputs of agents."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import FairtrialError, Mistake, StudyError, canonical_json, plugins

MODEL_GRADED = "model_graded"
_CHOSEN = re.compile(r"(?i)answer\s*:\s*([a-z](?:\s*,\s*[a-z])*)\b")


def load_task(reference: str, options: Mapping[str, Any], folder: Path | None) -> Any:
    """Return a task, made once in a process; see `_make_task`."""
    return _load_once(reference, canonical_json(options), folder)


@functools.lru_cache(maxsize=16)
def _load_once(reference: str, options: str, folder: Path | None) -> Any:
    return _make_task(reference, json.loads(options), folder)


def _make_task(reference: str, options: Mapping[str, Any], folder: Path | None) -> Any:
    """Return the task that a function makes; raises `StudyError` if it makes none.

    reference: `module:function`, looked for in the study's folder first
    options: the function's arguments
    """
    try:
        from inspect_ai import Task
    except ImportError:
        hint = 'pip install "fairtrial[inspect]"'
        raise StudyError(Mistake((), "tasks of Inspect need `inspect_ai`", hint)) from None
    try:
        task = plugins.load_reference(reference, folder)(**options)
    except FairtrialError:
        raise
    except Exception as error:  # whatever the user's function raises
        message = f"{reference} made no task: {type(error).__name__}: {error}"
        raise StudyError(Mistake((), message)) from error
    if not isinstance(task, Task):
        raise StudyError(Mistake((), f"{reference} made a {type(task).__name__}, not a Task"))
    return task


def task_rows(task: Any) -> list[dict[str, Any]]:
    """Return the samples of a task as rows.

    A row has `input` (text; of a conversation the last message), `target`, and where there are any
    `id`, `system`, `choices`, `lettered_choices` and the entries of the sample's metadata.
    """
    return [_make_row(sample) for sample in task.dataset]


def _make_row(sample: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict(sample.metadata or {}) if isinstance(sample.metadata, dict) else {}
    if isinstance(sample.input, str):
        row["input"] = sample.input
    else:
        row["input"] = sample.input[-1].text
        system = [message.text for message in sample.input if message.role == "system"]
        if system:
            row["system"] = "\n".join(system)
    row["target"] = sample.target
    if sample.id is not None:
        row["id"] = sample.id
    if sample.choices:
        row["choices"] = list(sample.choices)
        row["lettered_choices"] = "\n".join(
            f"{chr(65 + index)}) {choice}" for index, choice in enumerate(sample.choices)
        )
    return row


def list_scorers(task: Any) -> dict[str, Any]:
    """Return the scorers of a task by name.

    Raises `StudyError` if it has none, or one that asks a model: Inspect's models are outside of a
    study's ceilings.
    """
    from inspect_ai.util import registry_info

    scorers = {registry_info(item).name.rpartition("/")[2]: item for item in task.scorer or []}
    if not scorers:
        raise StudyError(Mistake(("task",), "the task has no scorer", "name another evaluator"))
    graded = [name for name in scorers if name.startswith(MODEL_GRADED)]
    if graded:
        hint = "use the evaluator `judge`, whose cost counts against the study's ceilings"
        raise StudyError(Mistake(("task",), f"its scorer '{graded[0]}' asks a model", hint))
    return scorers


async def score_text(
    scorer: Any, text: str, row: Mapping[str, Any], target: Any
) -> tuple[Any, Mapping[str, Any]]:
    """Return the value that a scorer gives a text, as a number or numbers by name, and notes."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput
    from inspect_ai.scorer import Target, value_to_float
    from inspect_ai.solver import TaskState

    question = str(row.get("input", ""))
    wanted = Target([str(item) for item in target] if isinstance(target, list) else str(target))
    state = TaskState(
        model=ModelName("fairtrial/agent"),
        sample_id=str(row.get("id", "")),
        epoch=1,
        input=question,
        messages=[ChatMessageUser(content=question), ChatMessageAssistant(content=text)],
        target=wanted,
        choices=row.get("choices"),
        output=ModelOutput.from_content("fairtrial/agent", text),
        metadata=dict(row),
        completed=True,
    )
    chosen = list(_CHOSEN.finditer(text))
    letters = re.findall("[A-Z]", chosen[-1][1].upper()) if chosen else []
    for index in range(len(state.choices)):
        state.choices.mark_choice(index, chr(65 + index) in letters)
    score = await scorer(state, wanted)
    to_number = value_to_float()
    value = score.value
    notes = {"answer": score.answer, "explanation": score.explanation}
    if isinstance(value, Mapping):
        return {name: to_number(item) for name, item in value.items()}, notes
    return to_number(value), notes
