"""Command-line flags of the optimizer's options, written at the fields that they set."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any

_METADATA_KEY = "flag"


@dataclass(frozen=True, slots=True)
class OptionFlag:
    """How `fairtrial optimize` takes an option.

    name: the flag; one that begins with ``--no-`` turns its option off
    metavar: what stands for its value in the help; empty for a switch
    help: its help, if that isn't the option's description
    least, most: the range of its value
    """

    name: str
    metavar: str = ""
    help: str = ""
    least: int | None = None
    most: int | None = None


def flag(default: Any, name: str, metavar: str = "", **more: Any) -> Any:
    """Return a dataclass field whose option has a command-line flag."""
    return field(default=default, metadata={_METADATA_KEY: OptionFlag(name, metavar, **more)})


def list_flags(options: type[Any]) -> dict[str, tuple[Field[Any], OptionFlag]]:
    """Return the options of a dataclass that have a flag, by name."""
    return {
        option.name: (option, option.metadata[_METADATA_KEY])
        for option in fields(options)
        if _METADATA_KEY in option.metadata
    }
