"""One archive of a study's results, the same bytes for the same content, and how to check one.

Names are sorted; times, owners and modes say nothing. `CHECKSUMS.sha256` lists every file in the
way that ``sha256sum -c`` reads.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import secrets
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fairtrial.core import LabError, LedgerError, Mistake, StudyError
from fairtrial.study.ledger.lock import LOCK_NAME
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.tables.canonical import MANIFEST_FILE
from fairtrial.study.tables.generation import exclusive, locate, read_manifest, sha256_of
from fairtrial.study.tables.integrity import validate_artifacts

CHECKSUMS = "CHECKSUMS.sha256"
WORKSPACES = "workspaces"
COMPRESSION = 6
LONGEST_LIST_BYTES = 256 * 1024**2
_NOT_RESULTS = (LOCK_NAME, "control", CHECKSUMS)
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def bundle_results(
    output_dir: str | Path,
    bundle_path: str | Path | None = None,
    *,
    with_ledger: bool = False,
    with_workspaces: bool = False,
) -> Path:
    """Make one archive of an output directory; returns where it is.

    bundle_path: by default beside the directory, `<its name>.tar.gz`
    with_ledger: also what the tables are made of: all attempts, tracebacks, what runs printed
    with_workspaces: also the folders that runs worked in
    """
    folder = Path(output_dir).absolute()
    target = Path(bundle_path or folder.with_name(f"{folder.name}.tar.gz")).absolute()
    if not folder.is_dir():
        raise StudyError(Mistake((), f"{output_dir} is not a folder"))
    if target.resolve().is_relative_to(folder.resolve()):
        hint = "put it beside the folder, not into it"
        raise StudyError(Mistake((), f"{target} would become part of the next bundle", hint))
    with exclusive(folder), tempfile.TemporaryDirectory() as spare:
        problems = validate_artifacts(folder)
        if problems:
            hint = f"`fairtrial export {output_dir}` writes them anew"
            raise StudyError([Mistake((), f"{output_dir}: {each}", hint) for each in problems])
        files = _collect(folder, with_workspaces=with_workspaces)
        if with_ledger:
            files[LEDGER_NAME] = _copy_ledger(folder, Path(spare) / LEDGER_NAME)
        manifest = read_manifest(locate(folder, MANIFEST_FILE).parent) or {}
        root = re.sub(r"[^\w.-]+", "_", str(manifest.get("study_id", folder.name))).lstrip(".")
        _write(target, root or "study", files)
    return target


def _collect(folder: Path, *, with_workspaces: bool) -> dict[str, Path]:
    """The files that a bundle holds, by their names in it; links only to what lies inside."""
    files = {}
    inside = folder.resolve()
    for where, folders, names in os.walk(folder):
        base = Path(where)
        folders[:] = [name for name in folders if not name.startswith(".")]
        if base == folder and not with_workspaces and WORKSPACES in folders:
            folders.remove(WORKSPACES)
        for name in names:
            path = base / name
            is_ours = base == folder and (name in _NOT_RESULTS or name.startswith(LEDGER_NAME))
            if is_ours or name.startswith(".") or name.endswith(".part"):
                continue
            if path.is_file() and path.resolve().is_relative_to(inside):
                files[path.relative_to(folder).as_posix()] = path.resolve()
    odd = [name for name in files if "\n" in name or "\\" in name]
    if odd:
        raise StudyError([Mistake((), f"{name!r} is no name for a bundle") for name in odd])
    return files


def _copy_ledger(folder: Path, copy: Path) -> Path:
    """A copy that is whole even while the ledger is written, and the same for the same content."""
    source = folder / LEDGER_NAME
    if not source.is_file():
        raise LedgerError(f"{folder} has no ledger to put into the bundle")
    try:
        with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as ledger:
            ledger.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        raise LedgerError(f"{source}: {error}") from error
    return copy


def _write(target: Path, root: str, files: dict[str, Path]) -> None:
    sums = "".join(f"{sha256_of(path)}  {name}\n" for name, path in sorted(files.items()))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            with _archive(file) as archive:
                _add(archive, f"{root}/{CHECKSUMS}", io.BytesIO(sums.encode("utf-8")))
                for name in sorted(files):
                    with files[name].open("rb") as content:
                        _add(archive, f"{root}/{name}", content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise LabError(f"{target}: can't be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def _archive(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    with (
        gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        yield archive


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = content.seek(0, io.SEEK_END)
    member.mode = 0o644
    content.seek(0)
    archive.addfile(member, content)


def verify_bundle(path: str | Path) -> list[str]:
    """What is wrong with a bundle: nothing, if the list is empty. Nothing of it is unpacked."""
    try:
        with gzip.open(path) as packed:
            with tarfile.open(fileobj=packed, mode="r|") as archive:
                problems = _Inspection(archive).problems()
            while rest := packed.read(1 << 20):  # to the end, where its own checksum stands
                if rest.strip(b"\0"):
                    return [*problems, "something follows the end of the archive"]
            return problems
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        return [f"the archive is damaged or cut off: {error}"]
    except OSError as error:
        return [f"can't be read: {error.strerror or error}"]


class _Inspection:
    """One pass over an archive, in little memory."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._sums: dict[str, str] = {}
        self._kept: dict[str, bytes] = {}
        self._problems: list[str] = []
        self._roots: set[str] = set()

    def problems(self) -> list[str]:
        for member in self._archive:
            self._take(member)
        if len(self._roots) > 1:
            self._problems.append(f"expected one folder, found {', '.join(sorted(self._roots))}")
        if CHECKSUMS not in self._kept:
            return [*self._problems, f"{CHECKSUMS} is missing"]
        self._compare(_read_sums(self._kept[CHECKSUMS]), "its checksum")
        if MANIFEST_FILE not in self._kept:
            return [*self._problems, f"{MANIFEST_FILE} is missing"]
        self._compare_manifest()
        return self._problems

    def _take(self, member: tarfile.TarInfo) -> None:
        shown = repr(member.name)
        parts = PurePosixPath(member.name).parts
        is_inside = len(parts) > 1 and not member.name.startswith("/") and ".." not in parts
        if not is_inside or "\\" in member.name or "\0" in member.name:
            self._problems.append(f"{shown}: is no name that a bundle may hold")
            return
        if not member.isreg():
            self._problems.append(f"{shown}: is no plain file")
            return
        name = "/".join(parts[1:])
        self._roots.add(parts[0])
        if name in self._sums:
            self._problems.append(f"{shown}: is there twice")
            return
        content = self._archive.extractfile(member)
        assert content is not None
        if name in (CHECKSUMS, MANIFEST_FILE) and member.size <= LONGEST_LIST_BYTES:
            self._kept[name] = content.read()
            self._sums[name] = hashlib.sha256(self._kept[name]).hexdigest()
        else:
            self._sums[name] = _digest(content)

    def _compare(self, told: dict[str, str], what: str) -> None:
        found = {name: digest for name, digest in self._sums.items() if name != CHECKSUMS}
        for name in sorted({*told, *found}):
            if name not in found:
                self._problems.append(f"{name}: is missing")
            elif name not in told:
                self._problems.append(f"{name}: is not in {CHECKSUMS}")
            elif told[name] != found[name]:
                self._problems.append(f"{name}: differs from {what}")

    def _compare_manifest(self) -> None:
        told: Any = json.loads(self._kept[MANIFEST_FILE])
        for name, facts in told["files"].items() if isinstance(told, dict) else ():
            if self._sums.get(name, facts["sha256"]) != facts["sha256"]:
                self._problems.append(f"{name}: differs from what {MANIFEST_FILE} says")


def _read_sums(content: bytes) -> dict[str, str]:
    sums = {}
    for line in content.decode("utf-8").split("\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{CHECKSUMS} holds the line {line[:80]!r}")
        sums[match[2]] = match[1]
    return sums


def _digest(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := content.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()
