"""Which rows of a dataset are used: a condition, a part of a split, a sample.

Split and sample depend on the rows' names alone: rows that are added later move no other row to
another part.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, StudyError, did_you_mean, is_scalar
from fairtrial.study.datasets.rows import Row, Rows
from fairtrial.study.design.expressions import Expression

if TYPE_CHECKING:
    from fairtrial.study.model.problems import RowSample

SEED = "seed"
MOST_VALUES = 5


class RowFilter:
    """The rows that fulfill an expression; all without one.

    kept: how many rows fulfilled it so far
    """

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self.kept = 0
        self._columns = columns
        self._expression = _parse(text, columns) if text else None
        self._seen: dict[str, dict[str, None]] = {}

    def holds(self, row: Row, number: int, rows: Rows) -> bool:
        """Return whether a row fulfills it; raises `StudyError` if that can't be told."""
        if self._expression is None:
            self.kept += 1
            return True
        values = {name: row.get(name) for name in self._expression.names}
        try:
            is_kept = self._expression.holds(values, {})
        except StudyError as error:
            mistakes = [
                Mistake(
                    ("where",),
                    f"{rows.place(number)}: {mistake.message}",
                    "an empty cell is None: write `x is not None and x > 3`"
                    if None in values.values()
                    else "",
                )
                for mistake in error.mistakes
            ]
            raise StudyError(mistakes) from None
        self.kept += is_kept
        if not self.kept:
            for name, value in values.items():
                seen = self._seen.setdefault(name, {})
                if is_scalar(value) and len(seen) <= MOST_VALUES:
                    seen[repr(value)] = None
        return is_kept

    def describe_values(self) -> str:
        """Return what the columns of the expression hold, for a message."""
        parts = []
        for name, seen in self._seen.items():
            more = ", ..." if len(seen) > MOST_VALUES else ""
            parts.append(f"{name} is {', '.join(list(seen)[:MOST_VALUES])}{more}")
        return "; ".join(parts)


def _parse(text: str, columns: Sequence[str]) -> Expression:
    try:
        expression = Expression(text)
    except StudyError as error:
        raise StudyError([mistake.under(("where",)) for mistake in error.mistakes]) from None
    unknown = sorted(expression.names - set(columns))
    if unknown:
        raise StudyError(
            [
                Mistake(("where",), f"there is no column '{name}'", did_you_mean(name, columns))
                for name in unknown
            ]
        )
    return expression


def _fraction(seed: Any, name: str) -> float:
    """Return a number from 0 to 1 that seed and name determine."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def share_of(split: Mapping[str, float], part: str, name: str) -> bool:
    """Return whether a row of this name is in a part of a split."""
    seed = split.get(SEED, 0)
    position, start = _fraction(f"split:{seed}", name), 0.0
    for other, share in split.items():
        if other == SEED:
            continue
        if start <= position < start + share:
            return other == part
        start += share
    return False


def draw_sample(sample: RowSample, keys: Sequence[str], strata: Sequence[str]) -> list[int]:
    """Return the positions of a random sample of rows, in order.

    keys: the rows' names
    strata: the value that the sample is stratified by, for each row; empty without one
    """
    if sample.n > len(keys):
        message = f"asks for {sample.n:,} of {len(keys):,} rows"
        raise StudyError(Mistake(("sample", "n"), message))
    groups: dict[str, list[int]] = {}
    for position in range(len(keys)):
        groups.setdefault(strata[position] if strata else "", []).append(position)
    sizes = _shares(sample.n, {name: len(group) for name, group in groups.items()})
    kept: list[int] = []
    for name, group in groups.items():
        ranked = ((_fraction(f"sample:{sample.seed}", keys[i]), i) for i in group)
        kept += [i for _, i in heapq.nsmallest(sizes[name], ranked)]
    return sorted(kept)


def _shares(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return each group's share of a total, by largest remainders."""
    rows = sum(sizes.values())
    exact = {name: total * size / rows for name, size in sizes.items()}
    shares = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in by_remainder[: total - sum(shares.values())]:
        shares[name] += 1
    return shares
