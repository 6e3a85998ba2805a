"""A run's transcript as people read a conversation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import click

from fairtrial.cli.output import harmless, style
from fairtrial.study import agents, spell_cost

COLORS = {"system": "magenta", "user": "cyan", "assistant": "green", "tool": "yellow"}


def print_transcript(records: Sequence[agents.TranscriptRecord]) -> None:
    """Print messages, tool calls and model calls in order.

    A tool's result is printed once, although the message that passes it on follows it.
    """
    results = {item.facts.get("call_id") for item in records if item.kind == "tool_result"}
    for item in records:
        if item.kind == "message":
            if item.role != "tool" or item.facts.get("tool_call_id") not in results:
                _print_part(item.role, item.text, COLORS.get(item.role))
        elif item.kind == "tool_call":
            click.echo(harmless(f"  {style('calls', fg='yellow')} {item.tool_name} {item.text}"))
        elif item.kind == "tool_result":
            failed = " (error)" if item.facts.get("is_error") else ""
            _print_part(f"{item.tool_name} returns{failed}", item.text, COLORS["tool"])
        else:
            click.echo(style(harmless(f"  [{_describe_call(item)}]"), dim=True))


def _print_part(title: str, text: str, color: str | None) -> None:
    click.echo(f"  {style(harmless(title), fg=color, bold=True)}")
    if text:
        click.echo(textwrap.indent(harmless(text.rstrip("\n")), "    "))


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
