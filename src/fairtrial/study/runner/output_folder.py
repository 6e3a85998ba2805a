"""The output directory of a study: created and locked before anything is written."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core import LedgerError
from fairtrial.study.ledger.lock import OwnerLock

IGNORE_ALL = b"*\n"


def lock_output_folder(folder: Path, *, needs_own: bool) -> OwnerLock:
    """Create the output directory and return its lock; raises `LedgerError` if that fails.

    needs_own: whether it must hold nothing else, since a problem's code may be around it
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if needs_own and not _keep_out_of_git(folder):
            raise LedgerError(
                f"{folder} holds something else: results of code problems need a folder of their "
                "own, or they would count as a part of the code; choose another --output"
            )
    except OSError as error:
        raise LedgerError(
            f"{folder} can't be made: {error.strerror}; choose another --output"
        ) from error
    return OwnerLock(folder)


def _keep_out_of_git(folder: Path) -> bool:
    """Write a .gitignore that ignores all of a folder, if the folder is empty.

    Returns whether git ignores the folder's content now; raises `OSError` if it can't be written.
    """
    ignore_file = folder / ".gitignore"
    if ignore_file.is_file():
        return ignore_file.read_bytes() == IGNORE_ALL
    if any(folder.iterdir()):
        return False
    ignore_file.write_bytes(IGNORE_ALL)
    return True
