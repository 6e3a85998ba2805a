"""Recorded runs of the base's checks, so that an arena for an unchanged base opens at once.

A recording is a file in the user's cache folder. Its name is the digest of what the runs depend on;
it also holds the state of all files that the runs imported. It is made before any candidate is
seen, and only in a full sandbox, so that no candidate can change one. Recordings that are stale or
damaged are ignored.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.slots.pool_folders import BASE_RUNS, make_cache_folder
from fairtrial.core import atomic_write
from fairtrial.sandbox import Captured, Command, Completed, Ending, Mount, Sandbox

NO_CACHE_VARIABLE = "FAIRTRIAL_NO_CACHE"
MAX_AGE_S = 7 * 86_400.0
"""Tests may depend on the date, so recordings expire."""
MAX_FILES, MAX_BYTES = 64, 256 << 20
"""How many recordings are kept, and how large all of them may be."""
MAX_RECORDING_BYTES = 32 << 20
MAX_STATES = 50_000
"""How many files are looked at; if there are more, nothing is recorded."""
_VERSION = 1
_FAIRTRIAL = Path(__file__).resolve().parent.parent


@dataclass(slots=True)
class BaseRuns:
    """Runs of commands on the base: of an earlier arena, or of this one to be recorded.

    file: where they are recorded; None if they can't be
    is_replayed: whether they were recorded by an earlier arena
    facts: what else was found out about the base: `disturbed`, `warm`
    """

    file: Path | None = None
    is_replayed: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    _runs: dict[str, list[Completed]] = field(default_factory=dict)
    _taken: Counter[str] = field(default_factory=Counter)

    async def run(self, sandbox: Sandbox, command: Command) -> Completed:
        """Return the result of a command's next recorded run on the base, or else run it."""
        digest = _digest_command(sandbox, command)
        if self.is_replayed:
            number = self._taken[digest]
            self._taken[digest] += 1
            recorded = self._runs.get(digest, [])
            if number < len(recorded):
                return recorded[number]
        completed = await sandbox.run(command)
        if not self.is_replayed and self.file is not None:
            self._runs.setdefault(digest, []).append(completed)
        return completed

    def save(self, loaded: Iterable[str]) -> None:
        """Record the runs for later arenas, unless they were replayed; never raises `OSError`.

        loaded: files that the runs imported, by their paths in the sandbox
        """
        if self.file is None or self.is_replayed:
            return
        states = {path: state for path in loaded if (state := _get_state(Path(path))) is not None}
        content = {
            "facts": self.facts,
            "files": states,
            "runs": {digest: [*map(_dump_run, runs)] for digest, runs in self._runs.items()},
        }
        text = json.dumps(content)
        if len(text) > MAX_RECORDING_BYTES:
            return
        with suppress(OSError):
            _remove_oldest(self.file.parent, keep_bytes=MAX_BYTES - len(text))
            with atomic_write(self.file) as file:
                file.write(f"{sha256(text.encode()).hexdigest()}\n{text}")


@dataclass(frozen=True, slots=True)
class RecordedSandbox:
    """A sandbox whose commands run on the base, so that recorded runs stand for them."""

    inner: Sandbox
    runs: BaseRuns

    @property
    def name(self) -> str:
        """The name of the sandbox."""
        return self.inner.name

    @property
    def relocates(self) -> bool:
        """Whether a command may see a folder at another path than its own."""
        return self.inner.relocates

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the sandbox can't enforce."""
        return self.inner.shortfalls

    async def run(self, command: Command) -> Completed:
        """Run a command, or return its recorded result."""
        return await self.runs.run(self.inner, command)


def find_base_runs(
    problem: CodeProblem,
    interpreter: Interpreter,
    sandbox: Sandbox,
    *,
    top: Path,
    tree: str,
    included: Iterable[Mount],
    hidden: Iterable[str],
    is_warm: bool,
) -> BaseRuns:
    """Return the recorded runs for this base, or an empty object that records new ones.

    top: the user's tree
    tree: the digest of its files
    included: ignored files that commands see
    hidden: files of the tree that only input makers see
    is_warm: whether checks are to start warm
    """
    is_repeatable = sandbox.relocates and not problem.limits.network
    folder = None if os.environ.get(NO_CACHE_VARIABLE) else make_cache_folder(BASE_RUNS)
    if folder is None or not is_repeatable:
        return BaseRuns()
    states = [
        *_list_states(path for mount in included for path in _walk(mount.source)),
        *_list_states(_list_packages(interpreter)),
        *_list_states(top / path for path in hidden),
        *_list_states(_list_own_files()),
    ]
    if len(states) > MAX_STATES:
        return BaseRuns()
    system = os.uname()
    depends_on = [
        _VERSION,
        version("fairtrial"),
        sys.version,
        [*system],
        platform.libc_ver(),
        os.cpu_count(),
        [sandbox.name, *sandbox.shortfalls],
        str(top),
        tree,
        repr(problem),
        repr(interpreter),
        is_warm,
        sorted(states),
    ]
    file = folder / f"{sha256(json.dumps(depends_on).encode()).hexdigest()}.json"
    return _read(file) or BaseRuns(file)


def _read(file: Path) -> BaseRuns | None:
    """Return what a file holds; None if there is none, or it is damaged or stale."""
    try:
        age_s = time.time() - file.stat().st_mtime
        digest, _, text = file.read_text("utf-8").partition("\n")
        if not 0 <= age_s <= MAX_AGE_S or sha256(text.encode()).hexdigest() != digest:
            return None
        content = json.loads(text)
        if any(_get_state(Path(path)) != state for path, state in content["files"].items()):
            return None
        runs = {digest: [*map(_load_run, runs)] for digest, runs in content["runs"].items()}
        return BaseRuns(file, True, dict(content["facts"]), runs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest_command(sandbox: Sandbox, command: Command) -> str:
    """Return a digest of all that a run depends on beside the files that it sees."""
    seen = [
        [str(mount.target) for mount in mounts]
        for mounts in (command.view.readable, command.view.writable, command.view.over)
    ]
    parts = [
        sandbox.name,
        [*command.argv],
        str(command.cwd),
        sorted(command.env.items()),
        seen,
        repr(command.limits),
        command.timeout_s,
        sha256(command.stdin).hexdigest(),
        [command.channel_bytes, command.output_bytes, command.channel_fd, [*command.cores]],
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _get_state(path: Path) -> list[int] | None:
    """Return the size and the times of a file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    # The time of the last change can't be set, unlike that of the last modification.
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _list_states(paths: Iterable[Path]) -> Iterator[tuple[str, list[int] | None]]:
    return ((str(path), _get_state(path)) for path in islice(paths, MAX_STATES + 1))


def _walk(path: Path) -> Iterator[Path]:
    """Yield a file, or all files below a folder."""
    if not path.is_dir():
        yield path
        return
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name != "__pycache__")
        yield from (Path(folder, name) for name in sorted(files))


def _list_packages(interpreter: Interpreter) -> Iterator[Path]:
    """Yield what changes when the interpreter or its packages do.

    Of installations these are the entries of site-packages; of other folders on its path, such as
    projects that are installed in place, all files.
    """
    yield interpreter.executable
    yield interpreter.executable.resolve()
    for folder in interpreter.folders:
        yield folder / "pyvenv.cfg"
        patterns = ("lib*/python*/*-packages", "*-packages", "lib*/python*/sitecustomize.py")
        packages = {path for pattern in patterns for path in folder.glob(pattern)}
        if folder.name.endswith("-packages"):
            packages.add(folder)
        is_installation = bool(packages) or (folder / "os.py").exists() or folder.name == "bin"
        for path in sorted(packages) if is_installation else ():
            yield path
            if path.is_dir():
                yield from sorted(entry for entry in path.iterdir() if entry.name != "__pycache__")
        if not is_installation:
            yield from _walk(folder)


def _list_own_files() -> Iterator[Path]:
    """Yield the files of ours that take part in the runs, and those of the system's libraries."""
    for folder in ("arena", "sandbox"):
        yield from (path for path in _walk(_FAIRTRIAL / folder) if path.suffix == ".py")
    yield Path("/etc/ld.so.cache")


def _dump_run(run: Completed) -> dict[str, Any]:
    def dump(output: Captured) -> list[Any]:
        return [output.head.decode("latin-1"), output.tail.decode("latin-1"), output.dropped]

    return {
        "ending": str(run.ending),
        "exit_code": run.exit_code,
        "signal": run.signal,
        "stdout": dump(run.stdout),
        "stderr": dump(run.stderr),
        "channel": run.channel.decode("latin-1"),
        "channel_overflowed": run.channel_overflowed,
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "peak_rss_mb": run.peak_rss_mb,
        "counts_all_cpu": run.counts_all_cpu,
    }


def _load_run(data: Mapping[str, Any]) -> Completed:
    def load(output: list[Any]) -> Captured:
        return Captured(output[0].encode("latin-1"), output[1].encode("latin-1"), output[2])

    return Completed(
        **{
            **data,
            "ending": Ending(data["ending"]),
            "stdout": load(data["stdout"]),
            "stderr": load(data["stderr"]),
            "channel": data["channel"].encode("latin-1"),
        }
    )


def _remove_oldest(folder: Path, keep_bytes: int) -> None:
    """Remove the oldest recordings until few enough are left."""
    recordings = []
    for path in folder.iterdir():
        with suppress(OSError):  # removed by another process
            status = path.stat()
            recordings.append((status.st_mtime, status.st_size, path))
    kept = 0
    for number, (made, size, path) in enumerate(sorted(recordings, reverse=True)):
        is_old = time.time() - made > MAX_AGE_S
        if is_old or number >= MAX_FILES or kept + size > keep_bytes:
            with suppress(OSError):
                path.unlink()
        else:
            kept += size
