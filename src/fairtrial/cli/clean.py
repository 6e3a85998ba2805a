"""`fairtrial clean`: show and remove working copies that earlier runs left on disk."""

from __future__ import annotations

import shlex

import click

from fairtrial.arena import housekeeping
from fairtrial.cli.output import count, json_option, print_json, warn
from fairtrial.core import LabError

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SPANS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


@click.command(
    name="clean",
    epilog="Example: fairtrial clean --dry-run",
    short_help="Show and remove what killed runs left on disk.",
)
@click.option("--dry-run", is_flag=True, help="Only show them; remove nothing.")
@json_option
def command(dry_run: bool, as_json: bool) -> int:
    """Show the working copies that are on disk, and remove those that no process uses any more.

    Working copies of runs that are under way are shown and left alone. Those that were kept on
    purpose (--keep-slots) are removed, too, and recorded runs of checks on unchanged code.
    """
    leftovers = housekeeping.clean_up(is_dry_run=dry_run)
    if as_json:
        print_json(
            {
                "ok": not leftovers.failures,
                "pools": [
                    {**folder.as_dict(), "removed": folder.path in leftovers.removed}
                    for folder in leftovers.folders
                ],
                "freed_bytes": leftovers.freed_bytes,
                "failures": list(leftovers.failures),
            }
        )
    else:
        for folder in leftovers.folders:
            size, age = _size(folder.size_bytes), _age(folder.age_s)
            about = f", of {folder.repository}" if folder.repository else ""
            removed = ", now removed" if folder.path in leftovers.removed else ""
            path = shlex.quote(str(folder.path))
            click.echo(f"{path}: {size}, {age} old{about}; {folder.state}{removed}")
        click.echo(_summarize(leftovers, is_dry_run=dry_run))
        warn(f"can't be removed: {failure}" for failure in leftovers.failures)
    return LabError.exit_code if leftovers.failures else 0


def _summarize(leftovers: housekeeping.Leftovers, *, is_dry_run: bool) -> str:
    if not leftovers.folders:
        return "nothing is left on disk"
    if is_dry_run:
        idle = [folder for folder in leftovers.folders if not folder.is_alive]
        size = sum(folder.size_bytes for folder in idle)
        return f"{count(len(idle), 'folder')} can be removed, which would free {_size(size)}"
    removed = count(len(leftovers.removed), "folder")
    return f"{removed} removed, which freed {_size(leftovers.freed_bytes)}"


def _size(number: int) -> str:
    for unit, name in _UNITS:
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return count(number, "byte")


def _age(seconds: float) -> str:
    for span, name in _SPANS:
        if seconds >= 2 * span:
            return f"{seconds / span:.0f} {name}"
    return f"{seconds:.0f} s"
