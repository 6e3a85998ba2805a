"""The parts of this machine that every sandbox shows: programs and libraries, no user's data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["own_python", "own_python_mounts", "system_mounts"]
HARNESS = Path(__file__).resolve().parent / "harness"
"""The folder of the code that runs inside the sandbox."""
_OWN_ETC = Path(__file__).resolve().parent / "etc"
_SYSTEM_FOLDERS = ("/usr", "/opt", "/nix/store", "/gnu/store")
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
_SMALL_BYTES = 1 << 20
_ETC_WITH_NETWORK = ("resolv.conf", "gai.conf", "host.conf")


@cache
def system_mounts(network: bool) -> tuple[tuple[str, str], ...]:
    """Return (source, target) of all system files that are mounted, read-only."""
    return tuple(_mounts(network))


def _mounts(network: bool) -> Iterator[tuple[str, str]]:
    folders = [Path(name) for name in (*_SYSTEM_FOLDERS, *_OFTEN_LINKS)]
    yield from ((str(path.resolve()), str(path)) for path in folders if _is_real_folder(path))
    for name in (*_ETC, *(_ETC_WITH_NETWORK if network else ())):
        path = Path("/etc", name)
        if os.access(path, os.R_OK):
            yield str(path.resolve()), str(path)
    for own in sorted(_OWN_ETC.iterdir()):
        yield str(own), f"/etc/{own.name}"


@cache
def is_small_system_file(source: str, target: str) -> bool:
    """Return whether a mount shows one small file in /etc, which may as well be copied."""
    is_system = any((source, target) in system_mounts(network) for network in (False, True))
    is_in_etc = target.startswith("/etc/") and Path(source).is_file()
    return is_system and is_in_etc and Path(source).stat().st_size <= _SMALL_BYTES


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and str(path) not in system_links()


@cache
def system_links() -> dict[str, str]:
    """Return the system's folders that are symbolic links, with their targets."""
    links = [path for path in map(Path, _OFTEN_LINKS) if path.is_symlink()]
    return {str(path): str(path.readlink()) for path in links}


@cache
def own_python() -> str:
    """Return the path of the running interpreter, outside of its virtual environment."""
    executable = getattr(sys, "_base_executable", None) or sys.executable
    return str(Path(executable).resolve())


@cache
def own_python_mounts() -> tuple[tuple[str, str], ...]:
    """Return mounts for the running interpreter's files outside the system's folders."""
    library = Path(os.__file__).parent
    paths = (sys.base_prefix, sys.base_exec_prefix, own_python(), str(library))
    home = Path.home()
    mounted = list(map(Path, _SYSTEM_FOLDERS))
    for path in map(Path, paths):
        # A prefix that contains the home folder would show all of it.
        contains_home = home.is_relative_to(path)
        if not contains_home and not any(path.is_relative_to(folder) for folder in mounted):
            mounted.append(path)
    return tuple((str(path.resolve()), str(path)) for path in mounted[len(_SYSTEM_FOLDERS) :])
