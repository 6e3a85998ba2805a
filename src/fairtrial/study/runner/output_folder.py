"""The output directory of a study: created and locked before anything is written."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core import LedgerError, keep_out_of_git
from fairtrial.study.ledger.lock import OwnerLock


def lock_output_folder(folder: Path, *, needs_own: bool) -> OwnerLock:
    """Create the output directory and return its lock; raises `LedgerError` if that fails.

    needs_own: whether it must hold nothing else, since a problem's code may be around it
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if needs_own and not keep_out_of_git(folder):
            raise LedgerError(
                f"{folder} holds something else: results of code problems need a folder of their "
                "own, or they would count as a part of the code; choose another --output"
            )
    except OSError as error:
        raise LedgerError(
            f"{folder} can't be made: {error.strerror}; choose another --output"
        ) from error
    return OwnerLock(folder)
