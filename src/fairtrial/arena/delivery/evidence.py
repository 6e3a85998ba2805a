"""Coverage and profile of the winner as Markdown, for its explanation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.arena.delivery.coverage import Coverage, LineSpan
from fairtrial.arena.delivery.edits import FileEdits
from fairtrial.arena.delivery.markdown_quoting import cells, code, plain, quote
from fairtrial.arena.delivery.profile import HotLine, Profile, ProfileEntry, ProfileSide

MOST_SPANS, MOST_QUOTED, MOST_LINES = 20, 5, 5
LARGEST_SLOWDOWN = 50.0
"""Beyond that, most of a line's time is spent in the tracer, and shares mean little."""
SMALLEST_SHARE = 0.005
"""Shares below this are left out: they would be shown as 0 %."""


def describe_coverage(coverage: Coverage | None, edits: FileEdits) -> list[str]:
    """Say how much of the change the checks run; quote lines that none runs."""
    if coverage is None:
        return ["Which of the changed lines the checks run was not examined."]
    lines = []
    if coverage.share is None:
        lines.append(
            "No changed line could be traced, so which of them the checks run isn't known."
        )
        if not coverage.notes and not coverage.unfollowed:
            lines = ["The change adds no line with code of its own: there is none to be run."]
    else:
        count = f"{coverage.executed} of {coverage.changed}"
        lines.append(f"The checks run {count} changed lines that have code ({coverage.share:.0%}).")
    if coverage.missed:
        lines += _describe_missed(coverage.missed, edits)
    more = []
    if coverage.unfollowed:
        names = ", ".join(map(code, coverage.unfollowed[:MOST_SPANS]))
        more.append(f"Not Python, and not traced: {names}.")
    more += (f"- {plain(note)}" for note in coverage.notes)
    return [*lines, "", *more] if more and coverage.missed else [*lines, *more]


def _describe_missed(missed: Sequence[LineSpan], edits: FileEdits) -> Iterator[str]:
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


def _quote_span(span: LineSpan, edits: FileEdits) -> Iterator[str]:
    edit = edits.files.get(span.path)
    if edit is None or edit.after is None:
        return
    rows = edit.after.content.splitlines()
    for number in range(span.first, min(span.last, len(rows)) + 1):
        text = rows[number - 1].decode("utf-8", "replace")
        if text.strip():
            yield f"{number}: {text}"


def describe_profile(profile: Profile | None) -> list[str]:
    """Return tables of the slowest lines, where tracing didn't slow them down too much."""
    if profile is None:
        return []
    lines = ["## Where the time goes"]
    sides = [side for entry in profile.parts for side in (entry.base, entry.winner) if side]
    if not all(map(_is_slowed, sides)):
        lines += [
            "",
            "By line, traced. Tracing slows code down, short lines most; that is subtracted where "
            "it is known, and shares are rough. A line's time includes all that it runs except for "
            "lines of the editable files.",
        ]
    for entry in profile.parts:
        lines += ["", f"### {code(entry.what)}", "", *_describe_entry(entry)]
    lines += [f"\nNot profiled: {plain(failure)}" for failure in profile.failures]
    return lines


def _is_slowed(side: ProfileSide) -> bool:
    return side.slowdown is not None and side.slowdown > LARGEST_SLOWDOWN


def _describe_entry(entry: ProfileEntry) -> Iterator[str]:
    for title, side in (("Before", entry.base), ("With it", entry.winner)):
        if side is None:
            continue
        if _is_slowed(side):
            yield (
                f"{title}: left out. Tracing made it {side.slowdown:.0f} times as slow, and "
                "shares of that time would say little about the time that it takes otherwise."
            )
            yield ""
            continue
        yield from (f"{title}{_describe_slowdown(side)}:", "")
        shown = [line for line in side.lines[:MOST_LINES] if line.share >= SMALLEST_SHARE]
        if shown:
            yield from ("| share | hits | where | line |", "|---|---|---|---|")
            yield from map(_format_row, shown)
        yield from (f"- {plain(note)}" for note in side.notes)
        yield ""


def _describe_slowdown(side: ProfileSide) -> str:
    details = [f"{side.calls} calls"] if side.calls else []
    if side.slowdown is not None:
        details.append(f"{side.slowdown:.1f} times as slow as without tracing")
    return f" ({', '.join(details)})" if details else ""


def _format_row(line: HotLine) -> str:
    where = code(f"{line.path}:{line.line}")
    return cells(f"{line.share:.0%}", f"{line.hits:,}", where, code(line.text))
