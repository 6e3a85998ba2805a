"""`fairtrial doctor` (arena, 11): what this machine can enforce, tried and not guessed."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections import namedtuple

import pytest

from fairtrial.sandbox import HostLock, capabilities as facts, remedies
from fairtrial.sandbox.hierarchy import GroupParent
from fairtrial.sandbox.selection import FULL_SANDBOXES

DOCTOR = [sys.executable, "-m", "fairtrial", "doctor", "--quick"]
# A machine that lets nobody make a user namespace, root neither: inside of one of our own.
FORBIDDING = """
import ctypes, os, sys
from pathlib import Path
user, group = os.geteuid(), os.getegid()
if ctypes.CDLL(None).unshare(0x10000000):
    raise SystemExit(77)
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"0 {user} 1")
Path("/proc/self/gid_map").write_text(f"0 {group} 1")
Path("/proc/sys/user/max_user_namespaces").write_text("0")
os.execv(sys.argv[1], sys.argv[1:])
"""


def run_doctor(*arguments, before=(), **variables):
    return subprocess.run(
        [*before, *DOCTOR, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **variables},
    )


def by_name(told):
    return {fact["name"]: fact for fact in told["facts"]}


def put_program(folder, name, text):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return folder


def test_the_survey_agrees_with_the_machine():
    done = run_doctor("--json")
    told = json.loads(done.stdout)
    found = by_name(told)
    assert list(found) == [
        "git",
        "user namespaces",
        "bubblewrap",
        "namespaces",
        "control groups",
        "host lock",
        "cores",
        "slots",
        "temp folder",
        "user",
    ]
    assert done.returncode == (0 if told["is_full"] else 4)
    assert told["ok"] == told["is_full"] == (told["sandbox"] in ("bubblewrap", "namespaces"))
    for status in ("yes", "partly"):
        best = [each.name for each in FULL_SANDBOXES if found[each.name]["status"] == status]
        if best:
            assert told["sandbox"] == best[0]
            assert bool(told["shortfalls"]) == (status == "partly")
            break
    else:
        assert told["sandbox"] == "plain"
    assert {fact["status"] for fact in told["facts"]} <= {"yes", "partly", "no"}
    assert all(fact["detail"] for fact in told["facts"])


def test_a_machine_without_namespaces_has_no_full_sandbox_and_gets_advice():
    forbidding = (sys.executable, "-c", FORBIDDING)
    done = run_doctor("--json", before=forbidding)
    if done.returncode == 77:
        pytest.skip("no user namespace to be had for the trial")
    told = json.loads(done.stdout)
    found = by_name(told)
    assert done.returncode == 4
    assert (told["ok"], told["sandbox"]) == (False, "plain")
    assert "commands can use the network" in told["shortfalls"]
    assert "user.max_user_namespaces is 0" in found["user namespaces"]["detail"]
    assert "sysctl -w user.max_user_namespaces=15000" in found["user namespaces"]["remedy"]
    assert found["namespaces"]["status"] == "no"
    assert "Traceback" not in done.stdout + done.stderr
    text = run_doctor(before=forbidding, COLUMNS="50")
    assert text.returncode == 4
    assert "No full sandbox works here." in text.stdout
    assert "--unsandboxed" in text.stdout
    assert "  - commands can use the network" in text.stdout.splitlines()
    command = "echo user.max_user_namespaces=15000 | tee -a /etc/sysctl.d/60-namespaces.conf"
    assert any(line.strip() == f"$ {command}" for line in text.stdout.splitlines()), "folded"
    assert "\x1b" not in text.stdout


def test_programs_that_are_not_there_are_named_with_how_to_install_them(tmp_path):
    told = json.loads(run_doctor("--json", PATH=str(tmp_path)).stdout)
    found = by_name(told)
    assert found["git"] == {
        "name": "git",
        "status": "no",
        "detail": "not on the path",
        "remedy": remedies.install_hint("git"),
    }
    assert found["bubblewrap"]["remedy"] == remedies.install_hint("bubblewrap")
    assert told["sandbox"] != "bubblewrap"


def test_a_bubblewrap_that_is_there_but_does_not_work_is_not_taken(tmp_path):
    folder = put_program(tmp_path / "bin", "bwrap", 'test "$1" = --version && echo bubblewrap 9.9')
    done = run_doctor("--json", PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    told = json.loads(done.stdout)
    assert by_name(told)["bubblewrap"]["status"] == "no"
    assert by_name(told)["bubblewrap"]["detail"].startswith("9.9: a trial failed: ")
    assert told["sandbox"] != "bubblewrap"


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("git version 2.31.0", "yes"),
        ("git version 2.39.5 (Apple Git-154)", "yes"),
        ("git version 10.0", "yes"),
        ("git version 2.30.9", "no"),
        ("git version 1.99.0", "no"),
        ("no idea", "no"),
    ],
)
def test_git_is_judged_by_its_version(tmp_path, monkeypatch, says, status):
    monkeypatch.setenv("PATH", str(put_program(tmp_path, "git", f"echo '{says}'")))
    fact = facts.check_git()
    assert fact.status == status
    assert bool(fact.remedy) == (status == "no")


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=debian\n", "apt install bubblewrap"),
        ('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n', "apt install bubblewrap"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "apt install bubblewrap"),
        ("ID=fedora\n", "dnf install bubblewrap"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install bubblewrap"),
        ("ID=arch\n", "pacman -S bubblewrap"),
        ("ID=manjaro\nID_LIKE=arch\n", "pacman -S bubblewrap"),
    ],
)
@pytest.mark.parametrize("is_root", [True, False])
def test_packages_are_installed_as_the_system_does_it(release, command, is_root, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    assert (
        remedies.install_hint("bubblewrap", release) == f"$ {'' if is_root else 'sudo '}{command}"
    )


@pytest.mark.parametrize("release", ["", "ID=plan9\n", "nonsense"])
def test_on_an_unknown_system_all_ways_are_named(release):
    lines = remedies.install_hint("git", release).splitlines()
    assert [line.split("#")[1].strip() for line in lines] == ["Debian, Ubuntu", "Fedora", "Arch"]


def test_settings_that_forbid_namespaces_are_found_and_undone(tmp_path, monkeypatch):
    for name, value in [
        ("kernel/unprivileged_userns_clone", "0\n"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1\n"),
        ("user/max_user_namespaces", "0\n"),
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(value)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    closed = remedies.find_blocking_settings(tmp_path)
    assert sorted(closed) == sorted(remedies.NAMESPACE_SETTINGS)
    told = remedies.settings_hint(closed)
    for name in closed:
        assert f"$ sudo sysctl -w {name}={remedies.NAMESPACE_SETTINGS[name][1]}\n" in told
    assert "for all programs" in told
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert remedies.find_blocking_settings(tmp_path) == ["user.max_user_namespaces"]
    assert remedies.find_blocking_settings(tmp_path / "elsewhere") == []


def test_a_lock_that_can_not_be_had_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "HostLock", lambda: HostLock(tmp_path / "missing"))
    fact = facts.check_host_lock()
    assert fact.status == "no"
    assert str(tmp_path / "missing") in fact.detail


def test_free_space_is_checked_where_it_will_be_needed(tmp_path, monkeypatch):
    deep = tmp_path / "not" / "yet" / "there"
    assert facts.check_free_space("slots", [deep], "SLOTS").detail.endswith(f"GB free in {deep}")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path and allowed(path, mode))
    assert facts.check_free_space("slots", [deep, tmp_path.parent], "SLOTS").status == "yes"
    refused = facts.check_free_space("slots", [deep], "SLOTS")
    assert (refused.status, refused.remedy) == ("no", "Set SLOTS to a folder.")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**8))
    assert facts.check_free_space("slots", [tmp_path.parent], "SLOTS").status == "partly"


@pytest.mark.parametrize(
    ("controllers", "status"),
    [
        (["memory", "pids"], "yes"),
        (["memory", "pids", "cpuacct"], "yes"),
        (["pids", "cpuacct"], "partly"),
        (["pids"], "partly"),
        ([], "no"),
    ],
)
def test_control_groups_are_described_by_what_they_limit(
    controllers, status, tmp_path, monkeypatch
):
    place = GroupParent(2, tmp_path, tmp_path, tuple(controllers))
    found = ((place,) if controllers else (), "" if status == "yes" else "somebody else's")
    monkeypatch.setattr(facts, "find_usable_parents", lambda: found)
    fact = facts.check_control_groups()
    assert fact.status == status
    assert ("somebody else's" in fact.detail) == (status != "yes")
