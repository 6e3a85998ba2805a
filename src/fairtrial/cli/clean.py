"""`fairtrial clean`: show and remove working copies that earlier runs left on disk."""

from __future__ import annotations

import shlex

import click

from fairtrial.arena import PoolFolderInfo, find_pool_folders, remove_orphaned_pools
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
@click.option("--dry-run", is_flag=True, help="Only show them; remove nothing.")
@json_option
def command(dry_run: bool, as_json: bool) -> int:
    """Show the working copies that are on disk, and remove those that no process uses any more.

    Working copies of runs that are under way are shown and left alone. Those that were kept on
    purpose (--keep-slots) are removed, too.
    """
    folders = find_pool_folders()
    removed, failures = ([], []) if dry_run else remove_orphaned_pools(with_kept=True)
    if not dry_run:
        remove_orphaned_groups()  # empty control groups of killed runs: not worth a line
    removed_paths = set(removed)
    freed = sum(folder.size_bytes for folder in folders if folder.path in removed_paths)
    if as_json:
        print_json(
            {
                "ok": not failures,
                "pools": [
                    {**_as_dict(folder), "removed": folder.path in removed_paths}
                    for folder in folders
                ],
                "freed_bytes": freed,
                "failures": failures,
            }
        )
    else:
        for folder in folders:
            click.echo(_describe_folder(folder, is_removed=folder.path in removed_paths))
        click.echo(_summarize(folders, len(removed), freed, is_dry_run=dry_run))
        warn(f"can't be removed: {failure}" for failure in failures)
    return LabError.exit_code if failures else 0


def _as_dict(folder: PoolFolderInfo) -> dict[str, object]:
    return {
        "path": str(folder.path),
        "repository": folder.repository,
        "pid": folder.pid,
        "size_bytes": folder.size_bytes,
        "age_s": round(folder.age_s),
        "alive": folder.is_alive,
        "kept": folder.is_kept,
    }


def _describe_folder(folder: PoolFolderInfo, *, is_removed: bool) -> str:
    state = "left by a run that has ended"
    if folder.is_alive:
        state = f"in use by process {folder.pid}" if folder.pid else "in use"
    elif folder.is_kept:
        state = "kept on purpose"
    about = f", of {folder.repository}" if folder.repository else ""
    text = f"{shlex.quote(str(folder.path))}: {_size(folder.size_bytes)}, {_age(folder.age_s)} old"
    return f"{text}{about}; {state}{', now removed' if is_removed else ''}"


def _summarize(folders: list[PoolFolderInfo], removed: int, freed: int, *, is_dry_run: bool) -> str:
    if not folders:
        return "nothing is left on disk"
    if is_dry_run:
        idle = [folder for folder in folders if not folder.is_alive]
        size = sum(folder.size_bytes for folder in idle)
        return f"{count(len(idle), 'folder')} can be removed, which would free {_size(size)}"
    return f"{count(removed, 'folder')} removed, which freed {_size(freed)}"


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
