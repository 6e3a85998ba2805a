"""Control groups: limits of a process tree that the kernel enforces."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from fault_stage_kit import is_gone, wait_until

from fairtrial.sandbox import Ending, Limits, Plain, cgroup
from fairtrial.sandbox.cgroup import find_usable_parents, limited_group
from fairtrial.sandbox.hierarchy import GroupParent, find_group_parents
from fairtrial.testing.sandbox_commands import CommandRunner

needs_groups = pytest.mark.skipif(
    sum(len(place.controllers) for place in find_usable_parents()[0]) < 2,
    reason="this machine has no control groups to be had",
)
JOINED = """
import sys
import tempfile
for path in sys.argv[1:]:
    with open(path, "w") as file:
        file.write("0")
"""
# As the sandboxes do: first the group, then a user namespace of one's own.
UNSHARE = """
import ctypes
assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0, ctypes.get_errno()
"""
HOG = "held = [bytearray(1 << 20) for _ in range(400)]"
# Two that hold memory at the same time; when one is killed, the other leaves.
PAIR = """
import os
(here, there), (back, forth) = os.pipe(), os.pipe()
is_parent = os.fork() != 0
os.close(there if is_parent else forth)
os.close(back if is_parent else here)
held = bytearray(each_mb << 20)
if is_parent:
    os.read(here, 1)
else:
    os.write(there, b"x")
    os.read(back, 1)
"""
BOMB = """
import os
children = []
try:
    for _ in range(500):
        child = os.fork()
        if child == 0:
            import signal
            signal.pause()
        children.append(child)
except BlockingIOError:
    print(len(children))
    code = 7
else:
    code = 0
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
os._exit(code)
"""


def run_in(group, *code):
    return subprocess.run(
        [sys.executable, "-c", "\n".join([JOINED, *code]), *map(str, group.joins)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def groups_on_disk():
    return [
        Path(folder) / name
        for place in find_group_parents()[0]
        for folder, names, _ in os.walk(place.mount)
        for name in names
        if name.startswith(f"fairtrial-{cgroup._format_owner(os.getpid())}-")
    ]


def all_are_removed():
    """Return whether all groups are removed, once the last killed process has left."""
    until = time.monotonic() + 60
    while groups_on_disk() and time.monotonic() < until:
        time.sleep(0.001)
        cgroup._remove_busy()
    return not groups_on_disk()


@needs_groups
@pytest.mark.parametrize("how", ["", UNSHARE], ids=["plainly", "in a user namespace"])
def test_the_kernel_ends_a_tree_that_takes_too_much_memory(how):
    with limited_group(Limits(memory_mb=100)) as group:
        done = run_in(group, how, HOG)
        assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
        assert group.exceeded() is Ending.MEMORY
        assert group.peak_rss_mb() == 100.0
    assert all_are_removed()


@needs_groups
@pytest.mark.parametrize(("each_mb", "ending"), [(30, None), (60, Ending.MEMORY)])
def test_memory_of_several_processes_is_summed(each_mb, ending):
    with limited_group(Limits(memory_mb=100)) as group:
        run_in(group, f"each_mb = {each_mb}", PAIR)
        assert group.exceeded() is ending
    assert all_are_removed()


@needs_groups
@pytest.mark.parametrize("how", ["", UNSHARE], ids=["plainly", "in a user namespace"])
def test_a_fork_bomb_is_bounded(how):
    with limited_group(Limits(processes=2)) as group:
        done = run_in(group, how, BOMB)
        assert (done.returncode, done.stderr) == (7, "")
        assert int(done.stdout) < cgroup.count_tasks(2)
        assert group.exceeded() is Ending.PROCESSES
        assert group.peak_rss_mb() == 0.0
    assert all_are_removed()


@pytest.fixture
def on_disk():
    """Return a folder on disk; those of other tests may be in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@needs_groups
def test_page_cache_counts_neither_as_a_peak_nor_as_too_much(on_disk):
    big = on_disk / "big"
    read = f"file = open({str(big)!r}, 'rb')\nwhile file.read(1 << 20): pass"
    write = f"file = open({str(big)!r}, 'wb')\nfor _ in range(150): file.write(bytes(1 << 20))"
    with limited_group(Limits(memory_mb=64)) as group:
        done = run_in(group, write, "file.close()", read)
        assert (done.returncode, done.stderr) == (0, "")
        assert group.exceeded() is None
        assert group.peak_rss_mb() == 0.0


@needs_groups
def test_threads_are_not_taken_for_processes():
    threads = (
        "import threading; go = threading.Event()\n"
        "crowd = [threading.Thread(target=go.wait) for _ in range(8)]\n"
        "[each.start() for each in crowd]; go.set()"
    )
    with limited_group(Limits(processes=1)) as group:
        done = run_in(group, threads)
        assert (done.returncode, done.stderr) == (0, "")
        assert group.exceeded() is None


@needs_groups
def test_we_ourselves_are_never_moved():
    before = Path("/proc/self/cgroup").read_text()
    with limited_group(Limits()) as group:
        assert Path("/proc/self/cgroup").read_text() == before
        assert all(join.read_text() == "" for join in group.joins)


@needs_groups
def test_a_group_that_is_still_busy_is_removed_later(monkeypatch):
    with limited_group(Limits()) as group:
        child = subprocess.Popen(
            [sys.executable, "-c", JOINED + "print(flush=True); input()", *map(str, group.joins)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        child.stdout.readline()
    remove_no_others(monkeypatch, group.joins, leave_s=0.0)
    cgroup.remove_orphaned_groups()
    assert all(join.exists() for join in group.joins), "its owner is alive"
    child.communicate(b"\n")

    def is_removed_by_the_next():
        with limited_group(Limits()):
            return not any(join.exists() for join in group.joins)

    wait_until(is_removed_by_the_next, "the last process to have left the group")


def start_owner(deed):
    """Start a process with two groups, and a child that joins one of them and runs some code."""
    code = (
        "import subprocess, sys, time\n"
        "from fairtrial.sandbox.commands import Limits\n"
        "from fairtrial.sandbox.cgroup import limited_group\n"
        "with limited_group(Limits()) as group, limited_group(Limits()) as empty:\n"
        f"    code = {JOINED + 'import time; print(flush=True); ' + deed!r}\n"
        "    argv = [sys.executable, '-c', code, *map(str, group.joins)]\n"
        "    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "    child.stdout.readline()\n"
        "    print(child.pid, *group.joins, *empty.joins, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def remove_no_others(monkeypatch, joins, leave_s):
    """Let only these groups count as orphaned, since other tests kill owners, too."""
    names, is_orphaned = {Path(join).parent.name for join in joins}, cgroup._is_orphaned
    monkeypatch.setattr(cgroup, "_is_orphaned", lambda name: name in names and is_orphaned(name))
    monkeypatch.setattr(cgroup, "ORPHAN_GRACE_S", leave_s)
    monkeypatch.setattr(cgroup, "TRIES", 10_000)  # on a busy machine even a kill takes a while


@needs_groups
def test_what_clears_up_after_a_killed_owner_is_left_to_do_so(tmp_path, monkeypatch):
    cleared = tmp_path / "cleared"
    deed = f"sys.stdin.read(); time.sleep(0.2); open({str(cleared)!r}, 'w')"
    owner = start_owner(deed)
    _, *joins = owner.stdout.readline().split()
    remove_no_others(monkeypatch, joins, leave_s=60.0)
    owner.kill()
    owner.communicate()
    cgroup.remove_orphaned_groups()
    assert cleared.exists()
    assert not any(Path(join).exists() for join in joins)


@needs_groups
def test_groups_of_a_killed_owner_are_removed_with_what_runs_in_them(monkeypatch):
    owner = start_owner("time.sleep(1000)")
    with limited_group(Limits()) as live:
        child, *joins = owner.stdout.readline().split()
        remove_no_others(monkeypatch, joins, leave_s=0.1)
        cgroup.remove_orphaned_groups()
        assert all(Path(join).exists() for join in joins)
        owner.kill()
        owner.communicate()
        cgroup.remove_orphaned_groups()
        assert not any(Path(join).exists() for join in joins)
        wait_until(lambda: is_gone(int(child)), "what ran in them to end")
        assert all(join.exists() for join in live.joins)


def test_only_groups_of_fairtrial_whose_owner_is_gone_are_orphans():
    ours = cgroup._format_owner(os.getpid())
    space, pid, start = ours.split("-")
    gone = f"{space}-{pid}-{int(start) + 1}"
    assert cgroup._is_orphaned(f"fairtrial-{gone}-0")
    assert cgroup._is_orphaned(f"fairtrial-{space}-{2**22 + 1}-{start}-0")
    assert not cgroup._is_orphaned(f"fairtrial-{ours}-0")
    assert not cgroup._is_orphaned(f"fairtrial-{int(space) + 1}-{pid}-{start}-0")
    assert not cgroup._is_orphaned(f"other-{gone}-0")
    assert not cgroup._is_orphaned("fairtrial-tools")
    assert not cgroup._is_orphaned("fairtrial-a-b-c-d")


@needs_groups
def test_groups_of_many_threads_are_each_their_own():
    seen, faults = [], []

    def make_some():
        for _ in range(20):
            with limited_group(Limits()) as group:
                seen.append(group.joins)
                faults.extend(join for join in group.joins if not join.exists())

    threads = [threading.Thread(target=make_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(set(seen)) == 80
    assert all_are_removed()


@pytest.fixture
def untried(monkeypatch):
    monkeypatch.setattr(cgroup, "_usable", None)


def test_where_none_can_be_made_there_is_none_and_it_is_reported(tmp_path, untried, monkeypatch):
    place = GroupParent(1, tmp_path, tmp_path / "missing", ("memory",))
    monkeypatch.setattr(cgroup, "find_group_parents", lambda: ((place,), ""))
    with limited_group(Limits()) as group:
        assert group is None
    assert find_usable_parents() == ((), f"{tmp_path / 'missing'} can't be written to")


@needs_groups
def test_a_place_whose_groups_nobody_can_join_is_no_place(untried, monkeypatch):
    monkeypatch.setattr(cgroup, "JOIN_SCRIPT", "exit 1")
    with limited_group(Limits()) as group:
        assert group is None
    assert "can't be moved" in find_usable_parents()[1]
    assert all_are_removed()


@needs_groups
def test_a_trial_that_leaves_a_process_behind_is_cleaned_up_like_any_command(untried, monkeypatch):
    monkeypatch.setattr(
        cgroup, "JOIN_SCRIPT", f"{cgroup.JOIN_SCRIPT}; sleep 1000 > /dev/null 2>&1 &"
    )
    try:
        assert find_usable_parents()[1] == ""
        assert groups_on_disk()
    finally:
        for folder in groups_on_disk():
            cgroup._kill_all(folder)
    assert all_are_removed()


@pytest.mark.parametrize(("peak_mb", "ending"), [(99, Ending.MEMORY), (50, None)])
def test_a_kill_counts_only_if_the_group_itself_was_at_its_limit(tmp_path, peak_mb, ending):
    for name, text in {
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
        "memory.limit_in_bytes": f"{100 << 20}\n",
        "memory.max_usage_in_bytes": f"{peak_mb << 20}\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert cgroup.ControlGroup((tmp_path / "cgroup.procs",)).exceeded() is ending


# Version 2 is tried on folders that look like it: the machine that these tests were written on has
# version 1 only. What they show is which files are read and written, not what a kernel does then.
MOUNTS_V2 = "30 23 0:26 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture
def version_2(tmp_path, monkeypatch):
    """Make a slice of the user's, with a scope of this process in it."""
    mount = tmp_path / "cgroup v2"
    own = mount / "user.slice" / "app.slice" / "shell.scope"
    own.mkdir(parents=True)
    for folder in (mount, mount / "user.slice", own.parent):
        (folder / "cgroup.subtree_control").write_text("cpu memory pids\n")
        (folder / "memory.max").write_text("max\n")
    (own / "cgroup.subtree_control").write_text("\n")
    (own / "memory.max").write_text("max\n")
    make = Path.mkdir

    def make_with_files(self, *arguments, **options):
        make(self, *arguments, **options)
        for name in ("memory.max", "memory.swap.max", "pids.max", "cgroup.procs"):
            (self / name).touch()

    def remove_with_files(self):
        for file in self.iterdir():
            file.unlink()
        os.rmdir(self)  # noqa: PTH106 - it stands in for Path.rmdir

    monkeypatch.setattr(Path, "mkdir", make_with_files)
    monkeypatch.setattr(Path, "rmdir", remove_with_files)
    return mount, own


def look(mount, group="/user.slice/app.slice/shell.scope"):
    mounts = MOUNTS_V2.format(mount=str(mount).replace(" ", "\\040"))
    return find_group_parents(mounts, f"0::{group}\n")


def test_version_2_makes_groups_beside_ours(version_2):
    mount, own = version_2
    assert look(mount) == ((GroupParent(2, mount, own.parent, ("memory", "pids")),), "")


def test_version_2_never_leaves_a_memory_limit_behind(version_2):
    mount, own = version_2
    (own / "memory.max").write_text("1073741824\n")
    places, reason = look(mount)
    assert places == ()
    assert "shell.scope has a memory limit" in reason


def test_version_2_without_controllers_has_no_place_and_says_so(version_2):
    mount, own = version_2
    for folder in (mount, *own.parents[:2]):
        (folder / "cgroup.subtree_control").write_text("cpu\n")
    places, reason = look(mount)
    assert places == ()
    assert "may make limited groups in no group around its own" in reason


def test_version_2_sets_limits_reads_events_and_cleans_up(version_2, untried, monkeypatch):
    mount, own = version_2
    places = look(mount)
    monkeypatch.setattr(cgroup, "find_group_parents", lambda: places)
    with limited_group(Limits(memory_mb=64, processes=3)) as group:
        (join,) = group.joins
        assert join.parent.parent == own.parent
        values = {
            name: (join.parent / name).read_text()
            for name in ("memory.max", "memory.swap.max", "pids.max")
        }
        most = cgroup.count_tasks(3)
        assert values == {
            "memory.max": str(64 << 20),
            "memory.swap.max": "0",
            "pids.max": str(most),
        }
        assert group.exceeded() is None
        events = join.parent / "memory.events"
        events.write_text("low 0\nhigh 0\nmax 9\noom 0\noom_kill 1\n")
        assert group.exceeded() is None, "a group around it, or the host, had no memory left"
        events.write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n")
        assert group.exceeded() is Ending.MEMORY
        assert group.peak_rss_mb() == 64.0
        (join.parent / "pids.events").write_text("max 2\n")
        assert group.exceeded() is Ending.PROCESSES, "so many have no memory left, either"
        events.write_text("low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n")
        assert group.exceeded() is Ending.PROCESSES
    assert list(own.parent.glob("fairtrial-*")) == []


@pytest.mark.parametrize(
    ("mounted", "group", "found"),
    [
        ("/", "/a/b", "a/b"),
        ("/", "/", ""),
        ("/docker/1", "/docker/1", ""),
        ("/docker/1", "/docker/1/c", "c"),
        ("/docker/1", "/docker/12", None),
        ("/docker/1", "/", None),
        ("/", "/../b", None),
        ("/..", "/b", None),
    ],
)
def test_our_group_is_found_below_whatever_part_is_mounted(tmp_path, mounted, group, found):
    mounts = f"40 30 0:33 {mounted} {tmp_path} rw - cgroup cgroup rw,memory\n"
    places, _ = find_group_parents(mounts, f"4:memory:{group}\n1:cpu,pids:/x\n0::/\n")
    expected = [] if found is None else [GroupParent(1, tmp_path, tmp_path / found, ("memory",))]
    assert list(places) == expected


UNWAITED = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ready, done = os.pipe()
if os.fork() == 0:
    burn(0.2)
    os._exit(0)
os.close(done)
os.read(ready, 1)
time.sleep(0.05)
"""


@needs_groups
def test_cpu_time_of_processes_that_nobody_waits_for_counts(tmp_path):
    with limited_group(Limits()) as group:
        if group.cpu_s() is None:
            pytest.skip("no control group counts CPU time here")
    done = CommandRunner(Plain(), tmp_path).run(UNWAITED)
    assert done.cpu_s > 0.2
    assert done.counts_all_cpu
    assert CommandRunner(Plain(), tmp_path).run("burn(0.1)").cpu_s < 0.2
