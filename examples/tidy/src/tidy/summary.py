"""What a shop has sold, and what came back, as a text."""

from __future__ import annotations

from operator import itemgetter

from tidy.cleaning import squeeze, unique, unique_rows


def count_each(items: list[str]) -> list[int]:
    """How often each item is there, an entry for each item."""
    return [items.count(item) for item in items]


def summarise(buyers: list[str], returns: list[str]) -> str:
    """A text with a line for each customer, and one for what came back most often.

    buyers: a name for each sale, as somebody typed it
    returns: the items that came back
    """
    customers = unique([squeeze(name) for name in buyers])
    lines = [f"{number}. {customer}" for number, customer in enumerate(customers, 1)]
    if returns:
        counted = unique_rows(list(zip(returns, count_each(returns), strict=True)))
        item, most = max(counted, key=itemgetter(1))
        lines.append(f"back most often: {item} ({most})")
    return "\n".join(lines)
