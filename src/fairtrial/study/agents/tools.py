"""Python functions as tools of a model: described by their signatures, called by name."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.llm import ToolCall
from fairtrial.study.agents.task import Task
from fairtrial.study.agents.transcript import tool_call_event, tool_result_event

_JSON_TYPES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    function: the function; a parameter named `task` gets the run's task
    description: what the model is told: `name`, `description`, `parameters`
    """

    function: Callable[..., Any]
    description: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return str(self.description["name"])

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Tool:
        """Describe a function by its name, docstring and annotations.

        Raises `StudyError` for one whose parameters can't be passed by name.
        """
        name = getattr(function, "__name__", type(function).__name__)
        try:
            parameters = inspect.signature(function).parameters
            hints = typing.get_type_hints(function)
        except (TypeError, ValueError, NameError) as error:
            raise StudyError(Mistake((), f"{name} can't be a tool: {error}")) from None
        properties, required = {}, []
        for key, parameter in parameters.items():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                message = f"{name} can't be a tool: {parameter} can't be passed by name"
                raise StudyError(Mistake((), message))
            if key == "task":
                continue
            properties[key] = _schema_of(hints.get(key))
            if parameter.default is parameter.empty:
                required.append(key)
        schema = {"type": "object", "properties": properties, "required": required}
        text = inspect.getdoc(function) or ""
        return cls(function, {"name": name, "description": text, "parameters": schema})


def _schema_of(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; an empty one, which allows all, for others."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema_of(argument) for argument in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if hint is type(None):
        return {"type": "null"}
    if origin is list and arguments:
        return {"type": "array", "items": _schema_of(arguments[0])}
    known = _JSON_TYPES.get(origin or hint)
    return {"type": known} if known else {}


async def call_tool(tools: Mapping[str, Tool], call: ToolCall, task: Task) -> dict[str, Any]:
    """Call the tool that a model asks for, and return the message with its result.

    What goes wrong is told to the model, which may do better. Call and result are recorded.
    """
    task.record(tool_call_event(call.name, call.arguments, call.id))
    result, is_error = await _result_of(tools, call, task)
    text = result if isinstance(result, str) else json.dumps(result, default=str)
    task.record(tool_result_event(call.name, text, call.id, is_error=is_error))
    return {"role": "tool", "tool_call_id": call.id, "content": text}


async def _result_of(tools: Mapping[str, Tool], call: ToolCall, task: Task) -> tuple[Any, bool]:
    if call.name not in tools:
        return f"there is no tool {call.name!r}; there are: {', '.join(tools)}", True
    tool = tools[call.name]
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError as error:
        return f"the arguments are not JSON: {error}", True
    if not isinstance(arguments, dict):
        return "the arguments are not a JSON object", True
    if "task" in inspect.signature(tool.function).parameters:
        arguments["task"] = task
    try:
        result = tool.function(**arguments)
        return (await result if inspect.isawaitable(result) else result), False
    except Exception as error:  # the subject's own code: its model gets to know
        return f"{type(error).__name__}: {error}", True
