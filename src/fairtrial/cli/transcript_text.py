"""A run's transcript as people read a conversation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import click

from fairtrial.cli.output import harmless, style
from fairtrial.study import agents, spell_cost

COLORS = {"system": "magenta", "user": "cyan", "assistant": "green", "tool": "yellow"}


class TranscriptPrinter:
    """Prints messages, tool calls and model calls in order, as they come.

    A tool's result is printed once, although the message that passes it on follows it.
    """

    def __init__(self) -> None:
        self._results: set[object] = set()

    def print(self, records: Iterable[agents.TranscriptRecord]) -> None:
        """Print further records."""
        for item in records:
            if item.kind == "tool_result":
                self._results.add(item.facts.get("call_id"))
            elif item.role == "tool" and item.facts.get("tool_call_id") in self._results:
                continue
            title, text = describe_record(item)
            if item.kind == "model_call":
                click.echo(style(harmless(f"  {title}"), dim=True))
            elif item.kind == "tool_call":
                click.echo(harmless(f"  {style('calls', fg='yellow')} {item.tool_name} {text}"))
            else:
                color = COLORS.get(item.role or "tool")
                click.echo(f"  {style(harmless(title), fg=color, bold=True)}")
                if text:
                    click.echo(textwrap.indent(harmless(text.rstrip("\n")), "    "))


def print_transcript(records: Sequence[agents.TranscriptRecord]) -> None:
    """Print a whole transcript."""
    TranscriptPrinter().print(records)


def describe_record(item: agents.TranscriptRecord) -> tuple[str, str]:
    """Return the title of a record, and its text."""
    if item.kind == "message":
        return item.role, item.text
    if item.kind == "tool_call":
        return f"calls {item.tool_name}", item.text
    if item.kind == "tool_result":
        failed = " (error)" if item.facts.get("is_error") else ""
        return f"{item.tool_name} returns{failed}", item.text
    return f"[{_describe_call(item)}]", ""


def _describe_call(item: agents.TranscriptRecord) -> str:
    """Return the model, and what its answer took: tokens, cost, seconds."""
    facts, parts = item.facts, [item.text]
    for name, label in (("input_tokens", "in"), ("output_tokens", "out")):
        if facts.get(name) is not None:
            parts.append(f"{facts[name]:,} tokens {label}")
    if facts.get("cached"):
        parts.append("recorded")
    elif facts.get("cost_usd"):
        parts.append(spell_cost(facts["cost_usd"]))
    if facts.get("seconds") is not None and not facts.get("cached"):
        parts.append(f"{facts['seconds']:.1f} s")
    if (facts.get("attempts") or 1) > 1:
        parts.append(f"{facts['attempts']} attempts")
    return ", ".join(parts)
