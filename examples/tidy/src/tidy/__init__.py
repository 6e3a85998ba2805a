"""Tidies up what a shop has sold: each customer once, each row once, and a summary."""

from tidy.cleaning import squeeze, unique, unique_rows
from tidy.summary import count_each, summarise

__all__ = ["count_each", "squeeze", "summarise", "unique", "unique_rows"]
