"""The part of this machine that every sandbox shows: its programs and libraries, no one's data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HARNESS = Path(__file__).resolve().parent / "harness"
"""Our own files that run where commands run."""
_OWN_ETC = Path(__file__).resolve().parent / "etc"
_FOLDERS = ("/usr", "/opt", "/nix/store", "/gnu/store")
_OFTEN_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Nothing secret, nothing about the user or the network; /etc/ssl also holds private keys.
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "debian_version",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
_ETC_WITH_NETWORK = ("resolv.conf", "gai.conf", "host.conf")


@cache
def system_mounts(network: bool) -> tuple[tuple[str, str], ...]:
    """(source, target) of all that is shown, read-only."""
    return tuple(_mounts(network))


def _mounts(network: bool) -> Iterator[tuple[str, str]]:
    shown = [Path(name) for name in (*_FOLDERS, *_OFTEN_LINKS)]
    yield from ((str(path.resolve()), str(path)) for path in shown if _is_real_folder(path))
    for name in (*_ETC, *(_ETC_WITH_NETWORK if network else ())):
        path = Path("/etc", name)
        if os.access(path, os.R_OK):
            yield str(path.resolve()), str(path)
    for own in sorted(_OWN_ETC.iterdir()):
        yield str(own), f"/etc/{own.name}"


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and str(path) not in system_links()


@cache
def system_links() -> dict[str, str]:
    """Where the system's own folders are links into others."""
    links = [path for path in map(Path, _OFTEN_LINKS) if path.is_symlink()]
    return {str(path): str(path.readlink()) for path in links}


@cache
def own_python() -> str:
    """The interpreter that runs us, without its virtual environment."""
    executable = getattr(sys, "_base_executable", None) or sys.executable
    return str(Path(executable).resolve())


@cache
def own_python_mounts() -> tuple[tuple[str, str], ...]:
    """What our interpreter needs beside the system's folders, each where it is."""
    library = Path(os.__file__).parent
    paths = (sys.base_prefix, sys.base_exec_prefix, own_python(), str(library))
    home = Path.home()
    wanted: list[Path] = []
    for path in map(Path, paths):
        # An interpreter installed right into somebody's home would take all of it along.
        is_strange = home.is_relative_to(path)
        is_shown = any(path.is_relative_to(other) for other in (*map(Path, _FOLDERS), *wanted))
        if not is_strange and not is_shown:
            wanted.append(path)
    return tuple((str(path.resolve()), str(path)) for path in wanted)
