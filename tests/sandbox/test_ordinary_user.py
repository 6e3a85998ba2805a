"""Full sandboxes isolate an ordinary user's commands as well as root's."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fairtrial
from fairtrial.sandbox import system
from fairtrial.testing.isolation import FullSandboxConformance

OPTIONS = ("-q", "-rs", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".")
HERE = Path(__file__).parent
NOBODY = 65534
NEEDED = ("anyio", "idna", "typing_extensions", "pytest", "_pytest", "pluggy", "iniconfig")
NEEDED += ("packaging", "pygments", "py")
ALSO = (
    "exit_code",
    "what_outlives",
    "memory_together",
    "too_many",
    "cancelled_means",
    "short_peak",
)


def find_python():
    """Return a copy of the running Python that every user may run."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (system.own_python(), f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        tried = [path, "-I", "-c", "import ctypes"]
        try:
            subprocess.run(tried, user=NOBODY, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return path
    return None


@pytest.fixture
def stage():
    """Return a folder for every user, with fairtrial, its dependencies and these tests."""
    folder = Path(tempfile.mkdtemp(prefix="fairtrial-nobody-"))
    try:
        folder.chmod(0o755)
        library = folder / "library"
        shutil.copytree(Path(fairtrial.__file__).parent, library / "fairtrial")
        for name in NEEDED:
            origin = Path(importlib.util.find_spec(name).origin)
            if origin.name == "__init__.py":
                shutil.copytree(origin.parent, library / name)
            else:
                shutil.copy(origin, library)
        tests = folder / "tests"
        tests.mkdir()
        for name in ("conftest.py", "test_conformance.py"):
            shutil.copy(HERE / name, tests)
        (folder / "temp").mkdir()
        os.chown(folder / "temp", NOBODY, NOBODY)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_full_sandboxes_hold_for_an_ordinary_user(stage):
    python = find_python()
    if python is None:
        pytest.skip("there is no Python like ours that an ordinary user may run")
    own = [name for name in vars(FullSandboxConformance) if name.startswith("test_")]
    full = f"(Bubblewrap or Namespaces) and ({' or '.join([*own, *ALSO])})"
    wanted = f"({full}) or (Plain and home_and_temp)"
    done = subprocess.run(
        [python, "-m", "pytest", *OPTIONS, "-k", wanted, "tests"],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=stage,
        env={
            "PATH": os.defpath,
            "PYTHONPATH": str(stage / "library"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(stage / "temp"),
            "TMPDIR": str(stage / "temp"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    if "passed" not in done.stdout or "skipped" in done.stdout:
        pytest.skip(f"some could not be tried: {done.stdout[-1500:]}")
