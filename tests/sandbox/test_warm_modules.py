"""The warm server never imports modules of the project, not even through other packages."""

import json
import socket
import subprocess
import sys

import pytest

from fairtrial.sandbox.system import HARNESS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="warm starts are Linux's")


def prepare(site, **orders):
    """Return the server's report after its imports."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [sys.executable, str(HARNESS / "warm_server.py"), str(theirs.fileno())]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": f"{site / 'packages'}:{site / 'project'}"},
        )
        theirs.close()
        defaults = {
            "files": [str(site / "packages" / "outer.py")],
            "folders": [sys.base_prefix, str(site / "packages"), str(site / "project")],
            "never": [],
        }
        process.stdin.write(json.dumps({**defaults, **orders}).encode())
        process.stdin.close()
        try:
            return json.loads(ours.recv(1 << 16))
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def site(tmp_path):
    """A package that imports the project's module, as pytest does pluggy."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "inner.py").write_text("")
    (tmp_path / "packages" / "outer.py").write_text("import inner\n")
    return tmp_path


def test_what_imports_only_third_party_modules_is_imported(site):
    assert prepare(site) == {"imported": 1, "hindrance": None}


def test_what_imports_a_module_of_the_project_is_named(site):
    assert prepare(site, never=["inner"])["hindrance"] == "outer"


def test_it_is_named_even_if_its_own_import_fails_afterwards(site):
    (site / "packages" / "outer.py").write_text("import inner\n1 / 0\n")
    assert prepare(site, never=["inner"]) == {"imported": 0, "hindrance": "outer"}


def test_what_comes_from_where_commands_do_not_look_is_named(site):
    folders = [sys.base_prefix, str(site / "packages")]
    assert prepare(site, folders=folders)["hindrance"] == "outer"
