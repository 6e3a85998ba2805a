"""`fairtrial clean`: what runs that were killed, or told to keep it, have left on disk."""

from __future__ import annotations

import shlex

import click

from fairtrial.arena import Found, find_homes, remove_orphans
from fairtrial.cli.output import count, json_option, print_json, warn
from fairtrial.core import LabError
from fairtrial.sandbox import remove_orphaned_groups

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SPANS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


@click.command(
    name="clean",
    epilog="Example: fairtrial clean --dry-run",
    short_help="Show and remove what killed runs left on disk.",
)
@click.option("--dry-run", is_flag=True, help="Show it, and remove nothing.")
@json_option
def command(dry_run: bool, as_json: bool) -> int:
    """Show the working copies that are on disk, and remove those that no process uses any more.

    Working copies of runs that are under way are shown and left alone. Those that were kept on
    purpose (--keep-slots) are removed, too.
    """
    found = find_homes()
    removed, failures = ([], []) if dry_run else remove_orphans(with_kept=True)
    if not dry_run:
        remove_orphaned_groups()  # nothing to look at: a killed run's bounds for what it ran
    gone = set(removed)
    freed = sum(each.size_bytes for each in found if each.path in gone)
    if as_json:
        print_json(
            {
                "ok": not failures,
                "pools": [{**_plain(each), "removed": each.path in gone} for each in found],
                "freed_bytes": freed,
                "failures": failures,
            }
        )
    else:
        for each in found:
            click.echo(_spell(each, is_gone=each.path in gone))
        click.echo(_sum_up(found, len(removed), freed, is_dry=dry_run))
        warn(f"can't be removed: {each}" for each in failures)
    return LabError.exit_code if failures else 0


def _plain(each: Found) -> dict[str, object]:
    return {
        "path": str(each.path),
        "repository": each.repository,
        "pid": each.pid,
        "size_bytes": each.size_bytes,
        "age_s": round(each.age_s),
        "alive": each.is_alive,
        "kept": each.is_kept,
    }


def _spell(each: Found, *, is_gone: bool) -> str:
    state = "left by a run that is gone"
    if each.is_alive:
        state = f"in use by process {each.pid}" if each.pid else "in use"
    elif each.is_kept:
        state = "kept on purpose"
    about = f", of {each.repository}" if each.repository else ""
    text = f"{shlex.quote(str(each.path))}: {_size(each.size_bytes)}, {_age(each.age_s)} old"
    return f"{text}{about}; {state}{', now removed' if is_gone else ''}"


def _sum_up(found: list[Found], removed: int, freed: int, *, is_dry: bool) -> str:
    if not found:
        return "nothing is left on disk"
    if is_dry:
        idle = [each for each in found if not each.is_alive]
        size = sum(each.size_bytes for each in idle)
        return (
            f"{count(len(idle), 'folder')} can be removed, which would give {_size(size)} of room"
        )
    return f"{count(removed, 'folder')} removed, which gave {_size(freed)} of room"


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
