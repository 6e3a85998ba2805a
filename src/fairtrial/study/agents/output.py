"""Read what an agent returned, in any of the accepted forms.

Unreadable values raise TypeError or ValueError; nothing is dropped or converted by `str`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.agents.events import read_event
from fairtrial.study.ledger.packing import EventData
from fairtrial.study.model.expenses import MAX_TOKENS
from fairtrial.study.model.object_fields import get_fields
from fairtrial.study.model.runs import RunOutput, quick_maker

_OUTPUT_KEYS = ("output", "outputs")
_PART_KEYS = ("metrics", "events", "metadata", "trace_refs")
_REPORT_KEYS = ("success", "error")
_KNOWN_KEYS = frozenset((*_OUTPUT_KEYS, *_PART_KEYS, *_REPORT_KEYS))
BUDGETED_METRICS = ("cost_usd", "input_tokens", "output_tokens", "total_tokens")
"""The metrics that budgets add up."""


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """An agent's output together with metrics, events and metadata.

    output: the output itself
    metrics: measurements: `cost_usd`, `input_tokens`, `output_tokens`, or any others
    events: events that were not emitted during the run: mappings with `event_type`, `text`, ...
    trace_refs: paths or URLs of traces
    metadata: facts about the agent: `model_name`, `model_provider`, `agent_kind`,
        `pattern_name`, ...
    success: False if the agent reports that it failed
    error: why it failed
    """

    output: Mapping[str, Any] | str | None = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = ()
    trace_refs: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    success: bool = True
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """An agent's output with every part checked and converted; fields as in `AgentOutput`."""

    output: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    events: list[EventData] = field(default_factory=list)
    trace_refs: list[str] = field(default_factory=list)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    success: bool = True
    error: str | None = None


_make_output = quick_maker(ReadOutput)


def agent_result(
    output: Mapping[str, Any] | str | None = None,
    *,
    metrics: Mapping[str, Any] | None = None,
    events: Sequence[Mapping[str, Any]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    trace_refs: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return a mapping that an agent can return: its output, metrics, events and metadata.

    Equivalent to `AgentOutput`, which can also report that the agent failed.
    """
    return {
        "output": dict(_wrap(output)),
        "metrics": dict(metrics or {}),
        "events": [dict(event) for event in events or ()],
        "metadata": dict(metadata or {}),
        "trace_refs": [str(reference) for reference in trace_refs or ()],
    }


def read_output(raw: Any) -> ReadOutput:
    """Read what an agent returned; raises TypeError or ValueError if that isn't possible.

    - a mapping with `output` (or `outputs`) and, optionally, `metrics`, `events`, `metadata`,
      `trace_refs`, `success` and `error`
    - any other mapping is the output; `metrics`, `events`, `metadata` and `trace_refs` are taken
      out of it
    - text is ``{"text": ...}``; a number, a list or an array is ``{"answer": ...}``; None is ``{}``
    - an `AgentOutput`, a `RunOutput`, or an object with `success`, `output` and `metadata`
    - a dataclass or an object with `to_dict()` is the mapping of its fields
    """
    if type(raw) is dict and _KNOWN_KEYS.isdisjoint(raw):
        return _make_output(raw, {}, [], [], {}, True, None)
    if isinstance(raw, AgentOutput):
        return _check_parts(raw.output, raw.metrics, raw.events, raw.trace_refs, raw.metadata,
                      success=raw.success, error=raw.error)  # fmt: skip
    if isinstance(raw, RunOutput):
        return _check_parts(raw.outputs, raw.metrics)
    if isinstance(raw, Mapping):
        return _read_mapping(raw)
    if all(hasattr(raw, name) for name in ("success", "output", "metadata")):
        return _read_execution(raw)
    return _read_mapping(_wrap(raw))


def _read_mapping(raw: Mapping[Any, Any]) -> ReadOutput:
    if _KNOWN_KEYS.isdisjoint(raw):
        return _make_output(raw, {}, [], [], {}, True, None)
    parts = {name: raw[name] for name in _PART_KEYS if raw.get(name) is not None}
    report = {"success": raw.get("success"), "error": raw.get("error")}
    named = [name for name in _OUTPUT_KEYS if name in raw]
    if not named:
        rest = {key: value for key, value in raw.items() if key not in _PART_KEYS}
        return _check_parts(rest, **parts, **report)
    unknown = [str(key) for key in raw if key not in _KNOWN_KEYS]
    if unknown or len(named) > 1:
        beside = ", ".join(unknown) or named[1]
        raise TypeError(
            f"the agent returned a mapping with '{named[0]}' and, beside it, {beside}; "
            f"put everything that is output inside '{named[0]}'"
        )
    return _check_parts(raw[named[0]], **parts, **report)


def _check_parts(
    output: Any,
    metrics: Any = None,
    events: Any = (),
    trace_refs: Any = (),
    metadata: Any = None,
    *,
    success: Any = True,
    error: Any = None,
) -> ReadOutput:
    """Return the parts of an output, checked; raises TypeError or ValueError for wrong types."""
    if isinstance(events, Mapping) or not _is_list(events):
        raise TypeError(f"events must be a list of mappings, not {type(events).__name__}")
    if not _is_list(trace_refs):
        raise TypeError(f"trace_refs must be a list of texts, not {type(trace_refs).__name__}")
    return ReadOutput(
        _wrap(output),
        _check_metrics(metrics),
        [read_event(event, f"events[{index}]") for index, event in enumerate(events)],
        [str(reference) for reference in trace_refs],
        _check_mapping(metadata, "metadata"),
        not _is_false(success),
        None if error is None else str(error),
    )


def _check_metrics(metrics: Any) -> Mapping[str, Any]:
    checked = _check_mapping(metrics, "metrics")
    for name in BUDGETED_METRICS:
        value = checked.get(name)
        if value is None:
            continue
        number = plain_number(value)
        if number is None or not 0 <= number <= MAX_TOKENS:  # NaN is not, either
            raise ValueError(f"metrics.{name} must be a number of 0 or more, not {value!r:.100}")
        if number is not value:
            checked = {**checked, name: number}
    return checked


def _check_mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{name} must have texts as keys, not {key!r:.100}")
    return value


def _wrap(output: Any) -> Mapping[str, Any]:
    """Return an output as a mapping; raises TypeError for a type that has no such form."""
    if isinstance(output, Mapping):
        return output
    if output is None:
        return {}
    if isinstance(output, str):
        return {"text": output}
    if plain_number(output) is not None or getattr(output, "ndim", None):
        return {"answer": output}
    if callable(output) or callable(getattr(output, "run", None)):
        raise TypeError(
            f"the agent returned a value of type {type(output).__qualname__}, which seems to be an "
            "agent itself; a function that makes agents is bound as for_condition(function)"
        )
    fields = get_fields(output)
    if fields is not None:
        return fields
    if isinstance(output, (list, tuple)):
        return {"answer": output}
    raise TypeError(
        f"the agent returned a value of type {type(output).__qualname__}, which can't be read; "
        "return a mapping, text, a number, a list or an AgentOutput"
    )


def _read_execution(raw: Any) -> ReadOutput:
    """Read the result object of an agent framework.

    It has `success`, `output` and `metadata`, and may have `model_response`.
    """
    framework_output = raw.output
    output = framework_output
    metrics: dict[str, Any] = {}
    events: Any = ()
    metadata = dict(_check_mapping(raw.metadata, "metadata"))
    error = getattr(raw, "error", None)
    if isinstance(framework_output, Mapping):
        output = _final_output(framework_output)
        metrics |= _check_mapping(framework_output.get("metrics"), "metrics")
        events = framework_output.get("events") or ()
        error = error or framework_output.get("error")
    response = getattr(raw, "model_response", None)
    for name, attribute in (("model_name", "model"), ("model_provider", "provider")):
        value = getattr(response, attribute, None)
        if isinstance(value, str) and value.strip():
            metadata[name] = value
    traces = [metadata.get("trace_path"), *(metadata.get("trace_refs") or ())]
    return _check_parts(
        output,
        {**_usage(response), **metrics},
        events,
        list(dict.fromkeys(str(trace) for trace in traces if trace)),
        metadata,
        success=raw.success,
        error=error,
    )


def _final_output(output: Mapping[str, Any]) -> Any:
    """Return the final output, which frameworks store under one of several names."""
    final = output.get("final_output")
    if final is not None:
        return final if isinstance(final, (Mapping, str)) else {"final_output": final}
    for name in ("text", "model_text"):
        if name in output:
            return {"text": str(output[name])}
    return {key: value for key, value in output.items() if key not in ("metrics", "events")}


def _usage(response: Any) -> dict[str, Any]:
    """Return the token counts of a model's response, as far as they are there."""
    usage = getattr(response, "usage", None)
    names = {
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "total_tokens": "total_tokens",
    }
    counts = {
        name: usage.get(key) if isinstance(usage, Mapping) else getattr(usage, key, None)
        for name, key in names.items()
    }
    return {name: value for name, value in counts.items() if value is not None}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_false(value: Any) -> bool:
    number = plain_number(value)
    return isinstance(number, bool) and not number
