"""Well-known projects, fetched from the package registry by name, version and digest, and kept.

`pip download` does the fetching, so that whatever is configured for pip (an index, a proxy, a
certificate) holds here as well.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE_S = 120
UNREACHED = ("No matching distribution", "ConnectionError", "NewConnectionError", "ReadTimeout",
             "Max retries exceeded", "ProxyError", "SSLError", "HTTP error")  # fmt: skip
"""What pip says where it didn't get to the registry, or the registry hasn't got the file."""
# The first versions of 3.11 have no filters yet; the digest vouches for the archive.
FILTERED = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
refusals = []
"""Why the registry was given up, for all tests that come after."""


@dataclass(frozen=True)
class Sdist:
    """A source distribution: what it is called, and what it must be to the byte."""

    name: str
    version: str
    sha256: str

    def __str__(self):
        return f"{self.name} {self.version}"


def unpack(sdist, folder):
    """Its files in a new folder of this name; the test is skipped if they are not to be had."""
    archive = fetch(sdist)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, **FILTERED)
        (top,) = Path(scratch).iterdir()
        top.rename(folder)
    return folder


def fetch(sdist):
    """The archive, from the cache or the registry."""
    kept = cache_folder() / f"{sdist.name}-{sdist.version}.tar.gz"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            download(sdist, scratch)
            (found,) = Path(scratch).iterdir()
            found.rename(kept)
    told = hashlib.sha256(kept.read_bytes()).hexdigest()
    if told != sdist.sha256:
        kept.unlink()
        pytest.fail(f"{sdist} is not what it was: its sha256 is {told}, not {sdist.sha256}")
    return kept


def cache_folder():
    given = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) / "fairtrial-real"


def download(sdist, folder):
    wanted = ["--no-deps", "--no-binary", sdist.name, "--dest", folder]
    pip("download", *wanted, f"{sdist.name}=={sdist.version}", what=str(sdist))


def install(python, *arguments):
    """Install packages into the environment of a Python, which needs no pip of its own."""
    what = " ".join(map(str, arguments))
    pip("--python", python, "install", *arguments, what=what)


def pip(*words, what):
    """Run pip; where it is the registry that is missing, the test is skipped."""
    if refusals:
        pytest.skip(refusals[0])
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    impatient = ["--retries", "1", "--timeout", "15"]
    command = [sys.executable, "-m", "pip", *map(str, words), *quiet, *impatient]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        refusals.append(f"the package registry can't be reached: no {what} within {PATIENCE_S} s")
        pytest.skip(refusals[0])
    if done.returncode == 0:
        return
    if any(words in done.stderr for words in UNREACHED):
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        refusals.append(f"the package registry can't be reached: no {what}: {errors[-1:]}")
        pytest.skip(refusals[0])
    pytest.fail(f"pip fails for {what}:\n{done.stderr}")
