"""What was seen of the winner, in words: changed lines that checks run, where the time goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.arena.delivery.coverage import Coverage, Span
from fairtrial.arena.delivery.edits import Edits
from fairtrial.arena.delivery.markdown_quoting import cells, code, plain, quote
from fairtrial.arena.delivery.profile import HotLine, Part, Profile, Side

MOST_SPANS, MOST_QUOTED, MOST_LINES = 20, 5, 5
LARGEST_SLOWDOWN = 50.0
"""Beyond that, most of a line's time is that of looking on, and shares say little."""
SMALLEST_SHARE = 0.005
"""What is less is told as 0 %."""


def tell_coverage(found: Coverage | None, edits: Edits) -> list[str]:
    """How much of the change the checks run; lines that none runs are quoted."""
    if found is None:
        return ["Which of the changed lines the checks run was not looked at."]
    lines = []
    if found.share is None:
        lines.append(
            "No changed line could be followed, so which of them the checks run isn't known."
        )
        if not found.notes and not found.unfollowed:
            lines = ["The change adds no line with code of its own: there is none to be run."]
    else:
        count = f"{found.executed} of {found.changed}"
        lines.append(f"The checks run {count} changed lines that have code ({found.share:.0%}).")
    if found.missed:
        lines += _tell_missed(found.missed, edits)
    more = []
    if found.unfollowed:
        names = ", ".join(map(code, found.unfollowed[:MOST_SPANS]))
        more.append(f"Not Python, and not followed: {names}.")
    more += (f"- {plain(note)}" for note in found.notes)
    return [*lines, "", *more] if more and found.missed else [*lines, *more]


def _tell_missed(missed: Sequence[Span], edits: Edits) -> Iterator[str]:
    shown = ", ".join(code(str(span)) for span in missed[:MOST_SPANS])
    more = len(missed) - MOST_SPANS
    shown += f" and {more} places more" if more > 0 else ""
    quoted = [line for span in missed for line in _quote_span(span, edits)]
    if not quoted:
        yield f"**No check runs** {shown} (lines of the changed file)."
        return
    left = len(quoted) - MOST_QUOTED
    rest = f"; the first {MOST_QUOTED} of {len(quoted)}" if left > 0 else ""
    yield f"**No check runs** {shown} (lines of the changed file{rest}):"
    yield from ("", *quote("\n".join(quoted[:MOST_QUOTED])))


def _quote_span(span: Span, edits: Edits) -> Iterator[str]:
    edit = edits.files.get(span.path)
    if edit is None or edit.after is None:
        return
    rows = edit.after.content.splitlines()
    for number in range(span.first, min(span.last, len(rows)) + 1):
        text = rows[number - 1].decode("utf-8", "replace")
        if text.strip():
            yield f"{number}: {text}"


def tell_profile(profile: Profile | None) -> list[str]:
    """Line by line, where looking on didn't change too much."""
    if profile is None:
        return []
    lines = ["## Where the time goes"]
    sides = [side for part in profile.parts for side in (part.base, part.winner) if side]
    if not all(map(_is_slowed, sides)):
        lines += [
            "",
            "By line, while somebody looked on, which slows code down, short lines most; that is "
            "taken off where it is known, and shares are rough. A line's time is that of all it "
            "runs but for lines of the editable files.",
        ]
    for part in profile.parts:
        lines += ["", f"### {code(part.what)}", "", *_tell_part(part)]
    lines += [f"\nNot profiled: {plain(failure)}" for failure in profile.failures]
    return lines


def _is_slowed(side: Side) -> bool:
    return side.slowdown is not None and side.slowdown > LARGEST_SLOWDOWN


def _tell_part(part: Part) -> Iterator[str]:
    for title, side in (("Before", part.base), ("With it", part.winner)):
        if side is None:
            continue
        if _is_slowed(side):
            yield (
                f"{title}: left out. Looking on made it {side.slowdown:.0f} times as slow, and "
                "shares of that time would say little of the time that it takes by itself."
            )
            yield ""
            continue
        yield from (f"{title}{_tell_slowdown(side)}:", "")
        shown = [line for line in side.lines[:MOST_LINES] if line.share >= SMALLEST_SHARE]
        if shown:
            yield from ("| share | hits | where | line |", "|---|---|---|---|")
            yield from map(_hot, shown)
        yield from (f"- {plain(note)}" for note in side.notes)
        yield ""


def _tell_slowdown(side: Side) -> str:
    told = [f"{side.calls} calls"] if side.calls else []
    if side.slowdown is not None:
        told.append(f"{side.slowdown:.1f} times as slow as when nobody looks on")
    return f" ({', '.join(told)})" if told else ""


def _hot(line: HotLine) -> str:
    where = code(f"{line.path}:{line.line}")
    return cells(f"{line.share:.0%}", f"{line.hits:,}", where, code(line.text))
