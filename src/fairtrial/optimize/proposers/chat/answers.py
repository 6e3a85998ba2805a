"""Models' answers, read: from prose with blocks in it to files.

Strict where being lenient would mean guessing: a path that isn't in the brief, a text that is found
twice. What is wrong is said so that a model can mend it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairtrial.optimize.proposers.chat.edits import Edit, apply_edits, restore_endings
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
    note: what the model says of it
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
    """As many drafts as are wanted, in their order.

    files: the base's
    is_cut: whether the answer was cut off: its last draft is not to be trusted then
    """
    sections = _split(_without_thoughts(text))
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


def _without_thoughts(text: str) -> str:
    """The answer alone, where a server leaves a model's thoughts in front of it."""
    text = text.replace("\r\n", "\n")
    return re.sub(r"\A\s*<think(ing)?>.*?</think(ing)?>", "", text, count=1, flags=re.DOTALL)


# -- blocks: what stands between fences or markers is nobody's headline --


@dataclass(slots=True)
class _Reader:
    """Follows an answer line by line, and knows what a line belongs to.

    fence: the fence that is open, if any
    is_edit: whether it is within a search/replace block
    """

    fence: str = ""
    is_edit: bool = False

    def is_prose(self, line: str) -> bool:
        """Whether a line stands outside of all blocks; the markers themselves don't."""
        if self.is_edit:
            self.is_edit = not _REPLACE.fullmatch(line.strip())
            return False
        if _SEARCH.fullmatch(line.strip()):
            self.is_edit = True
            return False
        found = _FENCE.match(line)
        if self.fence:
            if closes(line, self.fence):
                self.fence = ""
            return False
        if found:
            self.fence = found["fence"]
            return False
        return True


def closes(line: str, fence: str) -> bool:
    """Whether a line ends the block that a fence began."""
    text = line.strip()
    return len(text) >= len(fence) and text == fence[0] * len(text) and line[:4].strip() != ""


def _split(text: str) -> list[tuple[int | None, list[str]]]:
    """The answer by its CANDIDATE lines: (number, lines); what stands before them has no number."""
    reader = _Reader()
    sections: list[tuple[int | None, list[str]]] = [(None, [])]
    for line in text.split("\n"):
        head = _HEAD.match(line) if reader.is_prose(line) else None
        if head:
            sections.append((int(head[1]), []))
        else:
            sections[-1][1].append(line)
    if len(sections) > 1:
        del sections[0]
    return sections


def _read_draft(lines: Sequence[str], files: Mapping[str, str], form: Form) -> Draft:
    note = _note_of(lines)
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


def _note_of(lines: Sequence[str]) -> str:
    """The prose before the first block, which says what was done."""
    reader = _Reader()
    prose: list[str] = []
    for line in lines:
        if not reader.is_prose(line):
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
    """The text of each file that the blocks give, and what is wrong with them."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    nameless: list[tuple[int, str]] = []
    for number, (before, info, content) in enumerate(_blocks(lines), 1):
        path, named = _path_of_block(before, info, files)
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
        return texts, problems  # beside files, blocks without a name illustrate what is said
    if len(files) == len(nameless) == 1:
        return {next(iter(files)): nameless[0][1]}, []
    number = nameless[0][0]
    return {}, [f"block {number} doesn't say which file it is (FILE: path, right before it)"]


def _path_of_block(before: str, info: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """The file that a block is: by the line before it, or by what stands behind its fence."""
    path, named = path_in(before, files)
    if path is None and not named:
        path, named = path_of_info(info, files)
    if path is None and not named:
        path = path_mentioned(before, files)
    return path, named


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, str, str | None]]:
    """(the line before, what stands behind the fence, the content) of each fenced block."""
    before, fence, info = "", "", ""
    content: list[str] = []
    for line in lines:
        if fence:
            if closes(line, fence):
                yield before, info, "".join(f"{each}\n" for each in content)
                before, fence = "", ""
            else:
                content.append(line)
        elif found := _FENCE.match(line):
            fence, info, content = found["fence"], found["info"].strip(), []
        elif line.strip():
            before = line
    if fence:
        yield before, info, None


# -- search and replace --


def _edited_files(
    lines: Sequence[str], files: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The text of each file that blocks change, and what is wrong with them."""
    edits: dict[str, list[Edit]] = {}
    problems: list[str] = []
    for number, (written, body) in enumerate(_edit_blocks(lines, files), 1):
        path = find_path(written, files)
        if body is None:
            problems.append(f"block {number} has no end: there is no line >>>>>>> REPLACE")
        elif not written:
            problems.append(f"block {number} doesn't say which file it is about (FILE: path)")
        elif path is None:
            problems.append(explain_unknown(written, files))
        elif not (dividers := _dividers(body)):
            problems.append(f"block {number} has no line ======= between SEARCH and REPLACE")
        else:
            edits.setdefault(path, []).append(Edit(number, tuple(body), dividers))
    texts: dict[str, str] = {}
    for path, own in edits.items():
        text, wrong = apply_edits(path, files[path], own)
        problems.extend(wrong)
        texts[path] = text
    return texts, problems


def _dividers(body: Sequence[str]) -> tuple[int, ...]:
    return tuple(place for place, line in enumerate(body) if _DIVIDER.fullmatch(line.strip()))


def _edit_blocks(
    lines: Sequence[str], files: Mapping[str, str]
) -> Iterator[tuple[str, list[str] | None]]:
    """(the path as written, the lines between the markers) of each block.

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
            known, named = path_of_info(fence["info"], files) if fence else path_in(line, files)
            path = known or named or path
    if body is not None:
        yield path, None
