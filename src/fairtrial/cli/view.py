"""`fairtrial view`: show a study, or a folder of studies, in the browser while they run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from fairtrial.cli.output import folder_argument, json_option, note, print_json
from fairtrial.view import Viewer

HIGHEST_PORT = 65_535


@click.command(
    name="view",
    epilog="Example: fairtrial view artifacts/my-study",
    short_help="Show studies in the browser while they run.",
)
@folder_argument
@click.option(
    "--port",
    type=click.IntRange(0, HIGHEST_PORT),
    default=0,
    metavar="N",
    help="Port on this machine; default: any free one.",
)
@click.option("--no-open", is_flag=True, help="Print the address, and don't open a browser.")
@click.option("--control", is_flag=True, help="Let the page pause, resume and cancel studies.")
@json_option
def command(folder: Path, port: int, no_open: bool, control: bool, as_json: bool) -> None:
    """Show the page of the study in a folder, live, or a list of the studies below it.

    Serves this machine only. The address has a token: whoever knows it can read the studies. The
    page reads little while something is timed. Until all runs are done it shows progress, runs and
    failures; verdicts only if you ask for them, which is recorded as an interim look. Ends with
    Ctrl-C.
    """

    def announce(address: str) -> None:
        if as_json:
            print_json({"ok": True, "address": address})
        else:
            click.echo(address)
        sys.stdout.flush()
        if not folder.exists():
            note(f"there is no folder {folder} yet: the page waits for a study to begin there")
        note("Ctrl-C ends it")
        if not no_open and _has_desktop():
            import webbrowser

            webbrowser.open(address)

    try:
        Viewer(folder, port, control).serve(announce)
    except KeyboardInterrupt:
        return


def _has_desktop() -> bool:
    """Return whether a browser with windows can be opened, not one that takes the terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in names)
