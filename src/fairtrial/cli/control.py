"""`fairtrial pause` and `fairtrial cancel`: control a study that runs in another process."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

import click

from fairtrial.cli.output import folder_argument, json_option, note, print_json, shown_path
from fairtrial.core import LedgerError
from fairtrial.study import runner


@click.command(
    epilog="Example: fairtrial pause artifacts/my-study",
    short_help="Pause a running study.",
)
@folder_argument
@json_option
def pause(folder: Path, as_json: bool) -> None:
    """Pause a running study: it starts no new runs until `fairtrial resume DIR`."""
    _send(folder, "pause", "paused: runs under way are finished; continue with", as_json)


@click.command(
    epilog="Example: fairtrial cancel artifacts/my-study",
    short_help="Stop a running study; finished runs are kept.",
)
@folder_argument
@json_option
def cancel(folder: Path, as_json: bool) -> None:
    """Stop a running study: runs under way are cancelled, finished runs are kept."""
    _send(folder, "cancel", "cancelled; to continue later:", as_json)


def _send(folder: Path, action: Literal["pause", "cancel"], message: str, as_json: bool) -> None:
    shown = shlex.quote(shown_path(folder))
    if not runner.control_study(folder, action):
        raise LedgerError(f"nothing runs in {folder}; see `fairtrial status {shown}`")
    if as_json:
        print_json({"ok": True, "asked": action, "output_dir": str(folder)})
    else:
        note(f"{message} `fairtrial resume {shown}`")
