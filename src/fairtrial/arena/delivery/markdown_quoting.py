"""Others' words in Markdown, such that they mean nothing there: no link, no mention, no tag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

LONGEST_CODE = 120
ASSUMES = "assumes: "
"""How a line of a note begins that says what a change takes for granted."""
_NOTHING = "\N{ZERO WIDTH SPACE}"
_MARKS = r"\\`*_<>\[\]!|~"
_CODE = "(?P<fence>`+)(?!`).+?(?<!`)(?P=fence)(?!`)"
_COMMANDS = re.compile("(`fairtrial [a-z]+`)")
"""What a text of ours may hold as code: nobody else can do anything by it."""
_ESCAPED = re.compile(rf"(?P<code>{_CODE})|\\(?P<escaped>[{_MARKS}])")


def spell_time(seconds: float) -> str:
    """With three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def cells(*texts: str) -> str:
    """A row of a table."""
    apart = (text.replace("\\|", "\\ |").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(apart)} |"


def code(text: str) -> str:
    """A text as code in a line, whatever is in it."""
    text = "".join(char if char.isprintable() else " " for char in text)
    text = text if len(text) <= LONGEST_CODE else f"{text[: LONGEST_CODE - 3]}..."
    fence = "`" * (_longest_run(text) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}"


def plain(text: str) -> str:
    """A text of ours that may quote a candidate's, in one line."""
    text = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    parts = _COMMANDS.split(text)  # theirs at even places, ours between them
    parts[::2] = [re.sub(f"([{_MARKS}])", r"\\\1", part) for part in parts[::2]]
    text = "".join(parts)
    # Sites make links of these after all else is done, so escaping them is not enough.
    return re.sub(r"(@|#|://|www\.)", lambda found: found[0][0] + _NOTHING + found[0][1:], text)


def quote(text: str, language: str = "") -> list[str]:
    """Lines of a text as a block of code that nothing in them can end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    lines = [
        "".join(c if c.isprintable() or c == "\t" else " " for c in line)
        for line in text.splitlines()
    ]
    return [f"{fence}{language or 'text'}", *lines, fence]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def word(name: str) -> str:
    """A name as a shell takes it."""
    return name if re.fullmatch(r"[\w./+-]+", name) else "'" + name.replace("'", "'\\''") + "'"


def spell_command(command: Sequence[str]) -> str:
    """A command of a problem as people write it: our placeholder means nothing to them."""
    return " ".join(command).replace("{python}", "python")


def as_message(explanation: str) -> str:
    """Markdown as the body of a commit's message, without its title.

    Git takes lines that begin with # for comments as soon as somebody edits the message: headings
    are underlined, and code is indented.
    """
    return "\n".join(_plain_lines(explanation)).strip("\n") + "\n"


def _plain_lines(explanation: str) -> Iterator[str]:
    fence = ""
    for line in explanation.splitlines():
        opened = re.match("`{3,}", line)
        heading = re.fullmatch("(#+) (.*)", line)
        if fence:
            if line == fence:
                fence = ""
            else:
                yield f"    {line}".rstrip()
        elif opened:
            fence = opened[0]
        elif heading:
            level, text = heading[1], _unescape(heading[2])
            yield from () if level == "#" else (text, ("-" if level == "##" else ".") * len(text))
        else:
            yield _unescape(line)


def _unescape(line: str) -> str:
    """A line as it is read, not as Markdown has it; never a comment of git's."""
    text = _ESCAPED.sub(lambda found: found["code"] or found["escaped"], line)
    return f" {text}" if text.startswith("#") else text
