"""What is compared: command lines, and how they are run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from fairtrial.core import Mistake, StudyError

SHELL = "/bin/sh"
_OPERATORS = set("|&;<>()")
MIN_BUDGET_S = 0.1


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How commands are run and compared.

    Raises `StudyError` if a value can't be used.

    prepare: a command that runs before each timed run, untimed; empty for none
    shell: whether commands are lines for /bin/sh, whose start is then part of each run
    ignore_failure: whether commands may fail; otherwise each run must exit with 0
    budget_s: how long a comparison may take
    min_effect: the smallest difference of interest, as a share
    alpha: the accepted probability of claiming a difference where there is none
    max_regression: if above 0, timing goes on until it is decided, too, whether the second takes
        longer by more than this share
    """

    prepare: str = ""
    shell: bool = False
    ignore_failure: bool = False
    budget_s: float = 20.0
    min_effect: float = 0.02
    alpha: float = 0.05
    max_regression: float = 0.0

    def __post_init__(self) -> None:
        if not self.budget_s >= MIN_BUDGET_S:
            message = f"must be {MIN_BUDGET_S:g} or more, got {self.budget_s:g}"
            raise StudyError(Mistake(("budget_s",), message, "the default is 20"))

    def split(self, line: str, name: str = "--command") -> tuple[str, ...]:
        """Return the words of a command line; with `shell`, the shell that runs it.

        name: the option that it is from, for messages

        Raises `StudyError` if it is empty, not closed, or needs a shell.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise StudyError(Mistake((), f"{name} '{line}': {error}".lower())) from None
        if not words:
            raise StudyError(Mistake((), f"{name}: the command is empty"))
        if "\0" in line:
            raise StudyError(Mistake((), f"{name}: a command can't hold a null character"))
        if self.shell:
            return (SHELL, "-c", line)
        operator = next((word for word in _unquoted_words(line) if set(word) <= _OPERATORS), "")
        if operator:
            message = f"{name} '{line}': {operator} means something to a shell only"
            raise StudyError(Mistake((), message, "add --shell, or quote it"))
        return tuple(words)

    def preparing(self) -> tuple[str, ...] | None:
        """Return the command that prepares each run; None if there is none."""
        return self.split(self.prepare, "--prepare") if self.prepare else None


def _unquoted_words(line: str) -> list[str]:
    """Return the words of a line with operators of the shell as words of their own.

    Quotes are kept, so that quoted operators are no words.
    """
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return []
