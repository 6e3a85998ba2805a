"""Reproducible archives (bundles) of a study's results, and their verification.

The same content gives the same bytes: names are sorted, and times, owners and modes are fixed.
`CHECKSUMS.sha256` lists every file in the format of ``sha256sum -c``.
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
from fairtrial.study.ledger.study_lock import find_lock_problems
from fairtrial.study.tables.canonical import MANIFEST_FILE
from fairtrial.study.tables.generation import (
    file_sha256,
    locate_file,
    lock_folder,
    read_manifest,
)
from fairtrial.study.tables.integrity import validate_artifacts

CHECKSUMS = "CHECKSUMS.sha256"
WORKSPACES = "workspaces"
COMPRESSION = 6
MAX_LIST_BYTES = 256 * 1024**2
_NOT_RESULTS = (LOCK_NAME, "control", CHECKSUMS)
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def bundle_results(
    output_dir: str | Path,
    bundle_path: str | Path | None = None,
    *,
    with_ledger: bool = False,
    with_workspaces: bool = False,
) -> Path:
    """Write one archive of an output directory; returns its path.

    bundle_path: path of the archive; by default `<directory>.tar.gz`
    with_ledger: include the ledger: all attempts, tracebacks, output of the runs
    with_workspaces: include the working folders of the runs

    Raises `StudyError` if the tables are not valid, and `LabError` if the archive can't be written.
    """
    folder = Path(output_dir).absolute()
    target = Path(bundle_path or folder.with_name(f"{folder.name}.tar.gz")).absolute()
    if not folder.is_dir():
        raise StudyError(Mistake((), f"{output_dir} is not a folder"))
    if target.resolve().is_relative_to(folder.resolve()):
        hint = "put it beside the folder, not into it"
        raise StudyError(Mistake((), f"{target} would become part of the next bundle", hint))
    with lock_folder(folder), tempfile.TemporaryDirectory() as temporary:
        problems = validate_artifacts(folder)
        if problems:
            hint = f"`fairtrial export {output_dir}` writes them anew"
            raise StudyError([Mistake((), f"{output_dir}: {text}", hint) for text in problems])
        files = _collect_files(folder, with_workspaces=with_workspaces)
        if with_ledger:
            files[LEDGER_NAME] = _copy_ledger(folder, Path(temporary) / LEDGER_NAME)
        manifest = read_manifest(locate_file(folder, MANIFEST_FILE).parent) or {}
        root = re.sub(r"[^\w.-]+", "_", str(manifest.get("study_id", folder.name))).lstrip(".")
        _write(target, root or "study", files)
    return target


def _collect_files(folder: Path, *, with_workspaces: bool) -> dict[str, Path]:
    """Return the files of a bundle by their names in it; links out of the folder are left out."""
    files = {}
    root = folder.resolve()
    for directory, subfolders, names in os.walk(folder):
        base = Path(directory)
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        if base == folder and not with_workspaces and WORKSPACES in subfolders:
            subfolders.remove(WORKSPACES)
        for name in names:
            path = base / name
            is_internal = base == folder and (name in _NOT_RESULTS or name.startswith(LEDGER_NAME))
            if is_internal or name.startswith(".") or name.endswith(".part"):
                continue
            if path.is_file() and path.resolve().is_relative_to(root):
                files[path.relative_to(folder).as_posix()] = path.resolve()
    invalid = [name for name in files if "\n" in name or "\\" in name]
    if invalid:
        raise StudyError(
            [Mistake((), f"{name!r} is not a valid name in a bundle") for name in invalid]
        )
    return files


def _copy_ledger(folder: Path, copy: Path) -> Path:
    """Copy the ledger consistently, even while it is written; equal content gives equal bytes."""
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
    checksums = "".join(f"{file_sha256(path)}  {name}\n" for name, path in sorted(files.items()))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            with _archive(file) as archive:
                _add(archive, f"{root}/{CHECKSUMS}", io.BytesIO(checksums.encode("utf-8")))
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
    """Return the problems of a bundle; an empty list if it is valid. Nothing is unpacked."""
    try:
        with gzip.open(path) as packed:
            with tarfile.open(fileobj=packed, mode="r|") as archive:
                problems = _BundleInspection(archive).problems()
            while rest := packed.read(1 << 20):  # to the end, where gzip checks its checksum
                if rest.strip(b"\0"):
                    return [*problems, "something follows the end of the archive"]
            return problems
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        return [f"the archive is damaged or cut off: {error}"]
    except OSError as error:
        return [f"can't be read: {error.strerror or error}"]


class _BundleInspection:
    """Checks an archive in one pass and constant memory."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._checksums: dict[str, str] = {}
        self._lists: dict[str, bytes] = {}
        self._problems: list[str] = []
        self._roots: set[str] = set()

    def problems(self) -> list[str]:
        """Return all problems of the archive."""
        for member in self._archive:
            self._read_member(member)
        if len(self._roots) > 1:
            self._problems.append(f"expected one folder, found {', '.join(sorted(self._roots))}")
        if CHECKSUMS not in self._lists:
            return [*self._problems, f"{CHECKSUMS} is missing"]
        self._compare_checksums(_parse_checksums(self._lists[CHECKSUMS]))
        if MANIFEST_FILE not in self._lists:
            return [*self._problems, f"{MANIFEST_FILE} is missing"]
        self._compare_manifest()
        return self._problems

    def _read_member(self, member: tarfile.TarInfo) -> None:
        quoted = repr(member.name)
        parts = PurePosixPath(member.name).parts
        is_inside = len(parts) > 1 and not member.name.startswith("/") and ".." not in parts
        if not is_inside or "\\" in member.name or "\0" in member.name:
            self._problems.append(f"{quoted}: is not a valid name in a bundle")
            return
        if not member.isreg():
            self._problems.append(f"{quoted}: is not a plain file")
            return
        name = "/".join(parts[1:])
        self._roots.add(parts[0])
        if name in self._checksums:
            self._problems.append(f"{quoted}: occurs twice")
            return
        content = self._archive.extractfile(member)
        assert content is not None
        if name in (CHECKSUMS, MANIFEST_FILE) and member.size <= MAX_LIST_BYTES:
            self._lists[name] = content.read()
            self._checksums[name] = hashlib.sha256(self._lists[name]).hexdigest()
        else:
            self._checksums[name] = _sha256(content)

    def _compare_checksums(self, expected: dict[str, str]) -> None:
        actual = {name: digest for name, digest in self._checksums.items() if name != CHECKSUMS}
        for name in sorted({*expected, *actual}):
            if name not in actual:
                self._problems.append(f"{name}: is missing")
            elif name not in expected:
                self._problems.append(f"{name}: is not in {CHECKSUMS}")
            elif expected[name] != actual[name]:
                self._problems.append(f"{name}: differs from its checksum")

    def _compare_manifest(self) -> None:
        manifest: Any = json.loads(self._lists[MANIFEST_FILE])
        for name, facts in manifest["files"].items() if isinstance(manifest, dict) else ():
            if self._checksums.get(name, facts["sha256"]) != facts["sha256"]:
                self._problems.append(f"{name}: differs from what {MANIFEST_FILE} says")
        self._check_lock(manifest)

    def _check_lock(self, manifest: Any) -> None:
        """Check that the lock of the study agrees with itself and with the study's id."""
        lock = manifest.get("lock") if isinstance(manifest, dict) else None
        if lock is None:
            return
        problems = find_lock_problems(lock)
        if not problems and lock["study"].get("study_id") != manifest["study_id"]:
            problems = ["the lock is that of another study"]
        self._problems += [f"{MANIFEST_FILE}: {problem}" for problem in problems]


def _parse_checksums(content: bytes) -> dict[str, str]:
    checksums = {}
    for line in content.decode("utf-8").split("\n")[:-1]:
        match = _CHECKSUM_LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{CHECKSUMS} has the invalid line {line[:80]!r}")
        checksums[match[2]] = match[1]
    return checksums


def _sha256(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := content.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()
