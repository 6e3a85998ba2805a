"""A line of the text of a plan."""

from __future__ import annotations

from dataclasses import dataclass

LABEL_WIDTH = 9
"""The width of the labels that lines about balance, tests and power begin with."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A line of text that may be wrapped.

    text: the text, with its label; empty for a blank line
    indent: how many columns to indent the first line
    hanging_indent: how many columns to indent the lines after it
    """

    text: str = ""
    indent: int = 0
    hanging_indent: int = 0
