"""Parser of models' answers: from prose with blocks to files.

It is strict where a lenient parser would have to guess: a path that isn't in the brief, a text that
occurs twice. Problems are worded so that a model can correct them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairtrial.optimize.proposers.chat.edits import EditBlock, apply_edits, restore_endings
from fairtrial.optimize.proposers.chat.paths import (
    explain_unknown,
    find_path,
    path_in,
    path_mentioned,
    path_of_info,
)
from fairtrial.optimize.proposers.chat.prompts import NO_CHANGE, Form

LONGEST_NOTE = 2_000
_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEAD = re.compile(r"^[\s#*=\-_>]*CANDIDATE\s+#?(\d{1,4})\b[\s#*=\-_:.]*$", re.IGNORECASE)
_SEARCH, _DIVIDER, _REPLACE = (
    re.compile(pattern) for pattern in (r"<{5,9} ?SEARCH\b.*", r"={5,9}\s*", r">{5,9} ?REPLACE\b.*")
)


@dataclass(frozen=True, slots=True)
class Draft:
    """One candidate in an answer.

    files: new texts by path, of files that differ from the base
    note: the model's explanation
    problems: what is wrong with it, a sentence each; then it has no files
    is_declined: whether the model has nothing to propose
    """

    files: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    problems: tuple[str, ...] = ()
    is_declined: bool = False


def read_answer(
    text: str, files: Mapping[str, str], form: Form, wanted: int = 1, *, is_cut: bool = False
) -> list[Draft]:
    """Return as many drafts as are wanted, in their order.

    files: the files of the base
    is_cut: whether the answer was cut off: then its last draft isn't used
    """
    sections = _split(_strip_reasoning(text))
    if wanted == 1:
        own = [lines for number, lines in sections if number == 1] or [sections[0][1]]
        return [_cut() if is_cut else _read_draft(own[-1], files, form)]
    if len(sections) == 1 and sections[0][0] is None:
        draft = _cut() if is_cut else _read_draft(sections[0][1], files, form)
        if is_cut or draft.is_declined:
            return [draft] * wanted
        missing = f"there is no line CANDIDATE 1 to CANDIDATE {wanted} before each answer"
        return [Draft(problems=(missing,))] * wanted
    if is_cut:
        del sections[-1]
    return [_read_numbered(number, sections, files, form) for number in range(1, wanted + 1)]


def _cut() -> Draft:
    why = "the answer was cut off because it is too long (finish_reason: length)"
    return Draft(problems=(f"{why}; write less, and nothing but what is asked for",))


def _read_numbered(
    number: int,
    sections: Sequence[tuple[int | None, list[str]]],
    files: Mapping[str, str],
    form: Form,
) -> Draft:
    own = [lines for head, lines in sections if head == number]
    if len(own) == 1:
        return _read_draft(own[0], files, form)
    count = "no answer" if not own else f"{len(own)} answers"
    return Draft(problems=(f"there is {count} under CANDIDATE {number}",))


def _strip_reasoning(text: str) -> str:
    """Return the answer without the reasoning that some servers put in front of it."""
    text = text.replace("\r\n", "\n")
    return re.sub(r"\A\s*<think(ing)?>.*?</think(ing)?>", "", text, count=1, flags=re.DOTALL)


# -- blocks: lines between fences or markers are no headings --


@dataclass(slots=True)
class _BlockTracker:
    """Tracks, line by line, whether an answer is inside a block.

    fence: the open fence, if any
    is_edit: whether a search/replace block is open
    """

    fence: str = ""
    is_edit: bool = False

    def is_prose(self, line: str) -> bool:
        """Return whether the next line is outside of all blocks; markers are part of theirs."""
        if self.is_edit:
            self.is_edit = not _REPLACE.fullmatch(line.strip())
            return False
        if _SEARCH.fullmatch(line.strip()):
            self.is_edit = True
            return False
        fence = _FENCE.match(line)
        if self.fence:
            if _closes(line, self.fence):
                self.fence = ""
            return False
        if fence:
            self.fence = fence["fence"]
            return False
        return True


def _closes(line: str, fence: str) -> bool:
    """Return whether a line ends the block that a fence began."""
    text = line.strip()
    return len(text) >= len(fence) and text == fence[0] * len(text) and line[:4].strip() != ""


def _split(text: str) -> list[tuple[int | None, list[str]]]:
    """Return (number, lines) for each CANDIDATE heading; lines before them have no number."""
    tracker = _BlockTracker()
    sections: list[tuple[int | None, list[str]]] = [(None, [])]
    for line in text.split("\n"):
        head = _HEAD.match(line) if tracker.is_prose(line) else None
        if head:
            sections.append((int(head[1]), []))
        else:
            sections[-1][1].append(line)
    if len(sections) > 1:
        del sections[0]
    return sections


def _read_draft(lines: Sequence[str], files: Mapping[str, str], form: Form) -> Draft:
    note = _read_note(lines)
    read = _whole_files if form == "whole_file" else _edited_files
    texts, problems = read(lines, files)
    if not texts and not problems:
        if any(line.strip(" *#_.!:-").upper().startswith(NO_CHANGE) for line in lines):
            return Draft(note=note, is_declined=True)
        what = "fenced block" if form == "whole_file" else "SEARCH/REPLACE block"
        return Draft(note=note, problems=(f"there is no {what} in it",))
    if problems:
        return Draft(note=note, problems=tuple(problems))
    changed = {
        path: restored
        for path, text in texts.items()
        if (restored := restore_endings(text, files[path])) != files[path]
    }
    return Draft(changed, note, is_declined=not changed)


def _read_note(lines: Sequence[str]) -> str:
    """Return the prose before the first block."""
    tracker = _BlockTracker()
    prose: list[str] = []
    for line in lines:
        if not tracker.is_prose(line):
            break
        prose.append(line)
    if prose and len(prose) < len(lines):
        while prose and not prose[-1].strip():
            prose.pop()
        if prose and re.match(r"^[\s#*>`\-]*(FILE|PATH)", prose[-1], re.IGNORECASE):
            prose.pop()
    return "\n".join(prose).strip()[:LONGEST_NOTE]


# -- whole files --


def _whole_files(
    lines: Sequence[str], files: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the texts of the files in fenced blocks, and what is wrong with the blocks."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    nameless: list[tuple[int, str]] = []
    for number, (before, info, content) in enumerate(_blocks(lines), 1):
        path, named = _find_block_path(before, info, files)
        if content is None:
            problems.append(f"block {number} has no end: the fence is never closed")
        elif path is None and named:
            problems.append(explain_unknown(named, files))
        elif path is None:
            nameless.append((number, content))
        elif texts.get(path, content) != content:
            problems.append(f"{path} is given twice, with different texts")
        else:
            texts[path] = content
    if texts or problems or not nameless:
        return texts, problems  # beside named files, unnamed blocks only illustrate the prose
    if len(files) == len(nameless) == 1:
        return {next(iter(files)): nameless[0][1]}, []
    number = nameless[0][0]
    return {}, [f"block {number} doesn't say which file it is (FILE: path, right before it)"]


def _find_block_path(before: str, info: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the file of a block, by the line before it or by the text after its fence."""
    path, named = path_in(before, files)
    if path is None and not named:
        path, named = path_of_info(info, files)
    if path is None and not named:
        path = path_mentioned(before, files)
    return path, named


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, str, str | None]]:
    """Yield (the line before, the text after the fence, the content) of each fenced block."""
    before, fence, info = "", "", ""
    content: list[str] = []
    for line in lines:
        if fence:
            if _closes(line, fence):
                yield before, info, "".join(f"{text}\n" for text in content)
                before, fence = "", ""
            else:
                content.append(line)
        elif opening := _FENCE.match(line):
            fence, info, content = opening["fence"], opening["info"].strip(), []
        elif line.strip():
            before = line
    if fence:
        yield before, info, None


# -- search and replace --


def _edited_files(
    lines: Sequence[str], files: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the texts of the files that blocks edit, and what is wrong with the blocks."""
    blocks: dict[str, list[EditBlock]] = {}
    problems: list[str] = []
    for number, (written, body) in enumerate(_edit_blocks(lines, files), 1):
        path = find_path(written, files)
        if body is None:
            problems.append(f"block {number} has no end: there is no line >>>>>>> REPLACE")
        elif not written:
            problems.append(f"block {number} doesn't say which file it is about (FILE: path)")
        elif path is None:
            problems.append(explain_unknown(written, files))
        elif not (dividers := _find_dividers(body)):
            problems.append(f"block {number} has no line ======= between SEARCH and REPLACE")
        else:
            blocks.setdefault(path, []).append(EditBlock(number, tuple(body), dividers))
    texts: dict[str, str] = {}
    for path, own_blocks in blocks.items():
        text, own_problems = apply_edits(path, files[path], own_blocks)
        problems.extend(own_problems)
        texts[path] = text
    return texts, problems


def _find_dividers(body: Sequence[str]) -> tuple[int, ...]:
    return tuple(place for place, line in enumerate(body) if _DIVIDER.fullmatch(line.strip()))


def _edit_blocks(
    lines: Sequence[str], files: Mapping[str, str]
) -> Iterator[tuple[str, list[str] | None]]:
    """Yield (the path as written, the lines between the markers) of each block.

    A block without a path is about the file of the block before.
    """
    path = ""
    body: list[str] | None = None
    for line in lines:
        if body is not None:
            if _REPLACE.fullmatch(line.strip()):
                yield path, body
                body = None
            else:
                body.append(line)
        elif _SEARCH.fullmatch(line.strip()):
            body = []
        elif line.strip():
            fence = _FENCE.match(line)
            own_path, named = path_of_info(fence["info"], files) if fence else path_in(line, files)
            path = own_path or named or path
    if body is not None:
        yield path, None
