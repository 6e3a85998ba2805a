"""Paths that users give as options of proposers."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core import Mistake, StudyError


def resolve_option_path(path: Path, folder: Path, *field_path: str) -> Path:
    """Resolve a path given as an option: expand `~`, and take it relative to a folder.

    The path need not exist. Raises `StudyError` if it can't be a path.

    field_path: the option's name, for the message
    """
    try:
        resolved = folder / path.expanduser()
        resolved.stat(follow_symlinks=False)
    except OSError:
        return resolved  # missing files are reported by the code that reads them
    except (RuntimeError, ValueError) as error:  # `~unknown_user`, or a null character
        message = f"{str(path)!a} is no path: {error}"
        raise StudyError(Mistake(field_path, message)) from None
    return resolved
