"""`fairtrial compare` without a problem: two commands, or one command in two revisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import ArenaSettings, Comparison, Measurement, commands, suites
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import print_json, print_wrapped
from fairtrial.cli.problem_commands import print_notes
from fairtrial.core import Mistake, StudyError


@dataclass(frozen=True, slots=True)
class CommandChoice:
    """What was asked of a comparison of commands.

    lines: the command lines of ``--command``
    prepare: the command that runs before each timed run
    shell: whether they are lines for a shell
    ignore_failure: whether they may fail
    budget_s: how long a comparison may take; None for the default
    """

    lines: tuple[str, ...]
    prepare: str
    shell: bool
    ignore_failure: bool
    budget_s: float | None

    @property
    def min_effect(self) -> float:
        """The smallest difference of interest, as a share."""
        return commands.CommandOptions().min_effect

    def options(self, max_regression: float) -> commands.CommandOptions:
        """Return the options of a comparison of commands."""
        given = {} if self.budget_s is None else {"budget_s": self.budget_s}
        return commands.CommandOptions(
            prepare=self.prepare,
            shell=self.shell,
            ignore_failure=self.ignore_failure,
            max_regression=max_regression,
            **given,
        )

    def refuse_without_command(self) -> None:
        """Raise `StudyError` if there is an option that only commands have."""
        given = {
            "--prepare": self.prepare,
            "--shell": self.shell,
            "--ignore-failure": self.ignore_failure,
        }
        for name, value in given.items():
            if value:
                hint = "write compare A B -- COMMAND, or --command COMMAND twice"
                raise StudyError(Mistake((), f"{name} is for a comparison of commands", hint))


def command_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a comparison of commands to a command, which gets `CommandChoice`."""
    options = [
        click.option(
            "--command",
            "lines",
            multiple=True,
            metavar="LINE",
            help="A command to time; name two, or more, which are timed against the first.",
        ),
        click.option(
            "--prepare",
            default="",
            metavar="LINE",
            help="Run this command before each run of a command, untimed.",
        ),
        click.option("--shell", is_flag=True, help="Run commands by /bin/sh."),
        click.option(
            "--ignore-failure", is_flag=True, help="Time commands that don't exit with 0, too."
        ),
        click.option(
            "--budget",
            "budget_s",
            type=float,
            default=None,
            metavar="SECONDS",
            help="How long each comparison may take.",
        ),
    ]

    @wraps(command)
    def with_choice(
        *args: Any,
        lines: tuple[str, ...],
        prepare: str,
        shell: bool,
        ignore_failure: bool,
        budget_s: float | None,
        **kwargs: Any,
    ) -> Any:
        choice = CommandChoice(lines, prepare, shell, ignore_failure, budget_s)
        return command(*args, choice=choice, **kwargs)

    wrapped: Callable[..., Any] = with_choice
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def compare_by_command(
    choice: CommandChoice,
    words: Sequence[str],
    argv: Sequence[str],
    settings: ArenaSettings,
) -> list[Comparison]:
    """Compare commands, or a command in two revisions.

    words: the arguments before ``--``: the revisions
    argv: the words after it: the command
    """
    options = choice.options(settings.max_regression)
    if choice.lines:
        extra = [*words, *argv]
        if extra:
            message = f"--command can't be combined with {' '.join(extra)}"
            hint = "for one command in two revisions: compare A B -- COMMAND"
            raise StudyError(Mistake((), message, hint))
        work = partial(commands.compare_commands, choice.lines, options=options, settings=settings)
        return list(run_interruptible(work))
    if len(words) not in (1, 2):
        given = " ".join(words) or "nothing"
        message = f"expected two revisions before --, got {given}"
        raise StudyError(Mistake((), message, "write compare A B -- COMMAND"))
    first, second = (*words, None)[:2]
    assert first is not None
    one = partial(commands.compare_revisions, argv, first, second)
    return [run_interruptible(partial(one, options=options, settings=settings))]


def describe_clocks(measured: Measurement) -> list[str]:
    """Return how long runs of commands took: wall time of the first, and CPU time compared."""
    texts = []
    for timing in measured.timings:
        wall = timing.estimate.text() if timing.estimate else "too few sessions"
        texts.append(f"wall time: {wall}; a run of the first takes {timing.base_text}")
        if timing.cpu is not None:
            texts.append(f"CPU time: {timing.cpu.text()}")
    return texts


def print_files(words: Sequence[str], *, as_json: bool) -> None:
    """Print the figures of two files of pytest-benchmark side by side."""
    compared = suites.compare_files(Path(words[0]), Path(words[1]))
    if as_json:
        print_json(compared.as_dict())
        return
    for line in compared.lines():
        print_wrapped(line, "", "  ")
    print_notes(compared.notes)
