"""The exceptions of fairtrial, with their exit codes, and helpers to phrase messages.

That an agent or a candidate fails is data, not an exception. Exceptions are for the rest::

    FairtrialError
    ├ StudyError       a definition is wrong: file, line, field, what was expected   exit 2
    │  ├ PluginError   no plug-in of that name: group, name, known names             exit 2
    │  └ MisfitError   a definition doesn't fit this machine in its present state; also
    │                  a `LabError`, so a run that raises it is broken, not failed   exit 2
    ├ LedgerError      the ledger is another study's, damaged, locked, or can't grow exit 3
    └ LabError         infrastructure broke: workers, the sandbox, the host          exit 4
       └ AccessError   an endpoint refuses the key, or a quota is used up            exit 4

A `StudyError` carries all mistakes of a definition, not only the first. `Broken` is not part of the
tree: agents and problems raise it to mark a run as broken rather than failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

MAX_NAME_CHARS, MAX_PATH_CHARS, MAX_MESSAGE_CHARS = 100, 300, 2_000
"""How many characters of a name, a field path and a message are shown."""
MAX_NAMES = 30
"""How many known names a hint lists."""
FieldPath = tuple[str | int, ...]
"""Where a value stands in a definition: ``("factors", 0, "levels")``."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the known name most like it, or the list of known names.

    word: the unknown name
    known: the names that would be accepted
    """
    import difflib  # slow to import, and only needed once something is wrong

    names = list(dict.fromkeys(known))
    # Comparing long texts is slow, and a long text is not a typing error.
    short = [name for name in names if len(name) <= MAX_NAME_CHARS]
    close = difflib.get_close_matches(word[: MAX_NAME_CHARS + 1], short, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return "there are none"
    more = len(names) - MAX_NAMES
    shown = ", ".join(_shorten(name, MAX_NAME_CHARS) for name in names[:MAX_NAMES])
    return f"known: {shown}" + (f" and {more:,} more" if more > 0 else "")


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def on_one_line(text: str, longest: int) -> str:
    """Shorten a text and escape its control characters, so that a terminal shows one line."""
    text = _shorten(text, longest)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with a definition.

    path: the field that is wrong
    message: what was expected, and what was given instead
    hint: how to mend it
    line: the line in the file, counted from 1; None if the definition is not from a file
    """

    path: FieldPath
    message: str
    hint: str = ""
    line: int | None = None

    @property
    def field(self) -> str:
        """The path as text, such as ``factors[0].levels``; empty if it is about no one field."""
        text = ""
        for step in self.path:
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                text += f".{step}" if text else step
        return text

    def under(self, prefix: FieldPath) -> Mistake:
        """Return the mistake with `prefix` in front of its path."""
        return replace(self, path=prefix + self.path)

    def __str__(self) -> str:
        path = on_one_line(self.field, MAX_PATH_CHARS)
        message = on_one_line(self.message, MAX_MESSAGE_CHARS)
        text = f"{path}: {message}" if path else message
        return f"{text}; {on_one_line(self.hint, MAX_MESSAGE_CHARS)}" if self.hint else text


class FairtrialError(Exception):
    """Base class of the errors that fairtrial raises.

    exit_code: the exit code of the command line
    """

    exit_code = 1


class StudyError(FairtrialError, ValueError):
    """A definition is wrong.

    mistakes: every mistake, in order
    source: the file's name, or the record's
    """

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
        """Return one line per mistake: ``study.yaml:12: factors[0].name: expected ...``."""
        lines = []
        for mistake in self.mistakes:
            location = self.source
            if location and mistake.line is not None:
                location += f":{mistake.line}"
            lines.append(f"{location}: {mistake}" if location else str(mistake))
        return "\n".join(lines)


def _rebuild(kind: type[StudyError], mistakes: tuple[Mistake, ...], source: str) -> StudyError:
    return kind(mistakes, source=source)


class PluginError(StudyError):
    """A plug-in does not exist or can't be loaded."""


class LedgerError(FairtrialError):
    """A ledger can't be used: it is another study's, damaged or in use, or the disk is full."""

    exit_code = 3


class LabError(FairtrialError):
    """Infrastructure that runs need broke: workers don't start, the host is out of resources."""

    exit_code = 4


class AccessError(LabError):
    """An endpoint refuses the key, the key is missing, or a quota is used up.

    Every other request with that key would end like this, so a study stops at once.
    """


class MisfitError(StudyError, LabError):
    """A definition doesn't fit this machine in its present state; say, the base's tests fail.

    The user has to change the definition or the machine. A run that raises it is broken rather
    than failed, since its agent is not the cause.
    """

    @classmethod
    @contextmanager
    def instead_of_study_errors(cls) -> Iterator[None]:
        """Turn a `StudyError` of the block into a `MisfitError`.

        For code that prepares a run: its errors make the run broken, and are no failures of the
        run's agent.
        """
        try:
            yield
        except LabError:
            raise
        except StudyError as error:
            raise cls(error.mistakes, source=error.source) from error


class Broken(Exception):  # noqa: N818 - the status of a run, not an error in the code
    """Raised by an agent or a problem to end a run without counting it as the agent's failure.

    For causes outside the agent, such as a rate limit or a network failure. The run is retried.
    """
