"""`fairtrial pause` and `cancel`: a word with a study that runs elsewhere."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.cli.output import folder_argument, json_option, note, print_json, shown_path
from fairtrial.core import LedgerError
from fairtrial.study import LedgerReader, Request, owner_of, request


@click.command(
    epilog="Example: fairtrial pause artifacts/my-study",
    short_help="Let a running study start nothing new for a while.",
)
@folder_argument
@json_option
def pause(folder: Path, as_json: bool) -> None:
    """Let a running study start nothing new; `fairtrial resume DIR` lets it go on."""
    _ask(folder, "pause", "paused: what runs is finished; go on with", as_json)


@click.command(
    epilog="Example: fairtrial cancel artifacts/my-study",
    short_help="Stop a running study; what is done is kept.",
)
@folder_argument
@json_option
def cancel(folder: Path, as_json: bool) -> None:
    """Stop a running study: what runs is cancelled, what is done is kept."""
    _ask(folder, "cancel", "cancelled; later on:", as_json)


def _ask(folder: Path, what: Request, said: str, as_json: bool) -> None:
    LedgerReader.open(folder).close()  # says what is wrong if there is no study here
    shown = shlex.quote(shown_path(folder))
    if owner_of(folder) is None:
        raise LedgerError(f"nothing runs in {folder}; see `fairtrial status {shown}`")
    request(folder, what)
    if as_json:
        print_json({"ok": True, "asked": what, "output_dir": str(folder)})
    else:
        note(f"{said} `fairtrial resume {shown}`")
