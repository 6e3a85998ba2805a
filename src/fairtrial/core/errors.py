"""What can go wrong, and whose fault it is.

"The subject failed" is data; "we failed" is an exception::

    FairtrialError
    ├ StudyError       a definition is wrong: file, line, field, what was expected   exit 2
    │  ├ PluginError   no plug-in of that name: group, name, known names             exit 2
    │  └ MisfitError   a definition doesn't hold on this machine, now: exit 2 where it
    │                  is asked for, and in a run a `LabError`: nobody's fault
    ├ LedgerError      another study's ledger, a damaged one, or no room to write    exit 3
    └ LabError         what runs need (workers, a sandbox, the host) broke           exit 4

A `StudyError` carries all the mistakes that were found, not only the first. `Broken` stands beside
the tree: agents and problems raise it to say that a run came to nothing through no fault of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

LONGEST_NAME, LONGEST_PLACE, LONGEST_MESSAGE = 100, 300, 2_000
"""How many characters of each a report shows."""
MOST_NAMES = 30
Place = tuple[str | int, ...]
"""Where a value sits in a study: ``("factors", 0, "levels")``."""


def spell_path(path: Place) -> str:
    """``("factors", 0, "levels")`` as a person writes it: ``factors[0].levels``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that ends a message about an unknown name; always says what is known."""
    import difflib  # only needed once something is wrong, and not free

    names = list(dict.fromkeys(known))
    # Comparing long texts takes long, and nobody mistypes a page by a letter.
    short = [name for name in names if len(name) <= LONGEST_NAME]
    close = difflib.get_close_matches(word[: LONGEST_NAME + 1], short, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return "there are none"
    more = len(names) - MOST_NAMES
    shown = ", ".join(_shorten(name, LONGEST_NAME) for name in names[:MOST_NAMES])
    return f"known: {shown}" + (f" and {more:,} more" if more > 0 else "")


def spell_count(number: int) -> str:
    """A number as people read it; one that nobody would read by its size alone."""
    if number < 10**15:
        return f"{number:,}"
    return f"some 10^{math.floor(math.log10(number))}"


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def on_one_line(text: str, longest: int) -> str:
    """What a terminal can be given: short enough, control characters as their codes."""
    text = _shorten(text, longest)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with a definition.

    path: where it is, in the study's own terms
    message: what was expected, and what stands there
    hint: what to do about it
    line: the line in the file, counted from 1, where the study came from a file
    """

    path: Place
    message: str
    hint: str = ""
    line: int | None = None

    def under(self, prefix: Place) -> Mistake:
        """The same mistake seen from the record that holds this one."""
        return replace(self, path=prefix + self.path)

    def __str__(self) -> str:
        place = on_one_line(spell_path(self.path), LONGEST_PLACE)
        message = on_one_line(self.message, LONGEST_MESSAGE)
        text = f"{place}: {message}" if place else message
        return f"{text}; {on_one_line(self.hint, LONGEST_MESSAGE)}" if self.hint else text


class FairtrialError(Exception):
    """Anything that fairtrial raises on purpose."""

    exit_code = 1


class StudyError(FairtrialError, ValueError):
    """A definition is wrong; holds every mistake that was found, and the file's name."""

    exit_code = 2

    def __init__(self, mistakes: str | Mistake | Sequence[Mistake], *, source: str = "") -> None:
        if isinstance(mistakes, str):
            mistakes = Mistake((), mistakes)
        if isinstance(mistakes, Mistake):
            mistakes = (mistakes,)
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        self.source = source
        super().__init__(self.render())

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.mistakes, self.source))

    def render(self) -> str:
        """One line for each mistake: ``study.yaml:12: factors[0].name: expected ...``."""
        lines = []
        for mistake in self.mistakes:
            where = self.source
            if where and mistake.line is not None:
                where += f":{mistake.line}"
            lines.append(f"{where}: {mistake}" if where else str(mistake))
        return "\n".join(lines)


def _rebuild(kind: type[StudyError], mistakes: tuple[Mistake, ...], source: str) -> StudyError:
    return kind(mistakes, source=source)


class PluginError(StudyError):
    """No plug-in of that name, or one that can't be loaded."""


class LedgerError(FairtrialError):
    """The ledger can't be used: another study's, damaged, in use by somebody else, or no room."""

    exit_code = 3


class LabError(FairtrialError):
    """What runs need broke: workers that don't start, a host that ran out of something."""

    exit_code = 4


class MisfitError(StudyError, LabError):
    """A definition doesn't hold on this machine, as it is now: tests of the base that fail, say.

    Whoever asks has to change the definition or the machine; but a run that comes to that is broken
    and not failed, since its agent has no part in it.
    """


@contextmanager
def blaming_nobody() -> Iterator[None]:
    """Around what a run needs beside its agent: what is wrong with that is no failure of his."""
    try:
        yield
    except LabError:
        raise
    except StudyError as error:
        raise MisfitError(error.mistakes, source=error.source) from error


class Broken(Exception):  # noqa: N818 - said of a run, not of the code
    """Raised by an agent or a problem: the run came to nothing, and not through the subject.

    A rate limit, a network that is down. The run is tried again, and is never counted as a failure
    of the agent.
    """
