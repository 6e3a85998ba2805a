"""Quoting untrusted text in Markdown, so that it makes no link, no mention and no tag."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_CODE = 120
ASSUMES = "assumes: "
"""The prefix of a note's line that states an assumption of a change."""
_NOTHING = "\N{ZERO WIDTH SPACE}"
_MARKS = r"\\`*_<>\[\]!|~"
_CODE = "(?P<fence>`+)(?!`).+?(?<!`)(?P=fence)(?!`)"
_COMMANDS = re.compile("(`fairtrial [a-z]+`)")
"""The code that trusted text may contain; in untrusted text it has no effect."""
_ESCAPED = re.compile(rf"(?P<code>{_CODE})|\\(?P<escaped>[{_MARKS}])")


def cells(*texts: str) -> str:
    """Return a row of a table."""
    apart = (text.replace("\\|", "\\ |").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(apart)} |"


def code(text: str) -> str:
    """Quote any text as inline code."""
    text = "".join(char if char.isprintable() else " " for char in text)
    text = text if len(text) <= LONGEST_CODE else f"{text[: LONGEST_CODE - 3]}..."
    fence = "`" * (_longest_run(text) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}"


def plain(text: str) -> str:
    """Escape a message that may contain a candidate's text, on one line."""
    text = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    parts = _COMMANDS.split(text)  # even elements are text, odd ones commands
    parts[::2] = [re.sub(f"([{_MARKS}])", r"\\\1", part) for part in parts[::2]]
    text = "".join(parts)
    # Sites turn these into links after Markdown is processed, so escaping them is not enough.
    return re.sub(r"(@|#|://|www\.)", lambda match: match[0][0] + _NOTHING + match[0][1:], text)


def quote(text: str, language: str = "") -> list[str]:
    """Quote a text as a code block that no line of it can end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    lines = [
        "".join(char if char.isprintable() or char == "\t" else " " for char in line)
        for line in text.splitlines()
    ]
    return [f"{fence}{language or 'text'}", *lines, fence]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def word(name: str) -> str:
    """Quote a name for a shell."""
    return name if re.fullmatch(r"[\w./+-]+", name) else "'" + name.replace("'", "'\\''") + "'"


def as_message(explanation: str) -> str:
    """Return Markdown as the body of a commit message, without its title.

    When a message is edited, git takes lines that begin with # for comments. So headings are
    underlined, and code is indented.
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
    """Return a line without Markdown's escapes, and never as a comment for git."""
    text = _ESCAPED.sub(lambda match: match["code"] or match["escaped"], line)
    return f" {text}" if text.startswith("#") else text
