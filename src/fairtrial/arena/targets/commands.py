"""Commands that people give to be recorded or profiled."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.arena.targets.suites import TestCommand

_SHOWN = 70


def as_test_command(command: Sequence[str]) -> TestCommand:
    """Return a command that the user gave; `python` stands for the project's Python."""
    words = list(command)
    if words[0] in ("python", "python3"):
        words[0] = "{python}"
    elif words[0].endswith(".py"):
        words.insert(0, "{python}")
    is_pytest = words[0] in ("pytest", "py.test") or words[:3] == ["{python}", "-m", "pytest"]
    return TestCommand(tuple(words), "the given command", is_pytest, is_script=not is_pytest)


def shorten(command: TestCommand) -> str:
    """Return a command as text of bounded length."""
    text = " ".join(command.words).replace("{python}", "python")
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
