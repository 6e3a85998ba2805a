"""`fairtrial pause` and `cancel`: a word with a study that runs elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import note
from fairtrial.engine.control import Request, request
from fairtrial.errors import LedgerError
from fairtrial.ledger.lock import owner_of
from fairtrial.ledger.reading import LedgerReader

_folder = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")


@click.command(
    epilog="Example: fairtrial pause artifacts/my-study",
    short_help="Let a running study start nothing new for a while.",
)
@_folder
def pause(folder: Path) -> None:
    """Let a running study start nothing new; `fairtrial resume DIR` lets it go on."""
    _ask(folder, "pause")
    note(f"paused: what runs is finished; go on with `fairtrial resume {folder}`")


@click.command(
    epilog="Example: fairtrial cancel artifacts/my-study",
    short_help="Stop a running study; what is done is kept.",
)
@_folder
def cancel(folder: Path) -> None:
    """Stop a running study: what runs is cancelled, what is done is kept."""
    _ask(folder, "cancel")
    note(f"cancelled: later on, `fairtrial resume {folder}`")


def _ask(folder: Path, what: Request) -> None:
    LedgerReader.open(folder).close()  # says what is wrong if there is no study here
    if owner_of(folder) is None:
        raise LedgerError(f"nothing runs in {folder}; see `fairtrial status {folder}`")
    request(folder, what)
