"""A slot's folder is restored exactly, whatever was done in it."""

import os
import shutil
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from pool_kit import (
    as_ordinary_user,
    make_mixed_repository,
    memory_folder,
    read_contents,
    read_target,
    stage,
)
from repository_kit import write_files

from fairtrial.arena.slots import copying, removal, staging, tree
from fairtrial.core import LabError


@pytest.fixture
def base(tmp_path):
    top = tmp_path / "base"
    write_files(top, {"a.py": "one\n", "b/c.py": "two\n", "b/d/e.py": "three\n", "f/g": "four\n"})
    (top / "run").write_text("#!")
    (top / "run").chmod(0o755)
    (top / "link").symlink_to("b/c.py")
    return top


@pytest.fixture
def slot(tmp_path, base):
    return stage(tmp_path, base)


def let_clock_tick(slot):
    """Until what is changed gets another time than all that is there; a tick may take 10 ms."""
    before = tree.read_clock_ns(slot.store / "clock")
    while tree.read_clock_ns(slot.store / "clock") == before:
        pass


def restored(slot, base):
    changed = slot.restore()
    assert read_contents(slot.folder) == read_contents(base)
    return sorted(changed)


# --- a random sequence of edits ----------------------------------------------------------------

NAMES = ["a.py", "b", "b/c.py", "b/d", "b/d/e.py", "f", "f/g", "link", "run", "new", "new/x", "b/y"]


def write(place):
    place.write_text("other")


def append(place):
    with place.open("a") as file:
        file.write("more")


def same_size(place):
    """An edit in place that leaves size and time of modification as they were."""
    before = place.stat()
    with place.open("r+b") as file:
        file.write(b"X" * before.st_size)
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove(place):
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def make_pipe(place):
    os.mkfifo(place)


def make_socket(place):
    here = Path.cwd()
    os.chdir(place.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(place.name)
    finally:
        os.chdir(here)


def nest_repository(place):
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place / ".git" / "HEAD").chmod(0o444)


EDITS = {
    "write": write,
    "append": append,
    "same size": same_size,
    "remove": remove,
    "make folder": lambda place: place.mkdir(),
    "link inside": lambda place: place.symlink_to("run"),
    "link outside": lambda place: place.symlink_to("/"),
    "hard link": lambda place: (place.parent / "linked").hardlink_to(place),
    "pipe": make_pipe,
    "socket": make_socket,
    "executable": lambda place: place.chmod(0o777),
    "read-only": lambda place: place.chmod(0o400),
    "no rights": lambda place: place.chmod(0),
    "nested repository": nest_repository,
    "touch": lambda place: os.utime(place),
    "rename": lambda place: place.rename(place.with_name("renamed")),
}


@given(
    edits=st.lists(
        st.tuples(st.sampled_from(sorted(EDITS)), st.sampled_from(NAMES)), min_size=1, max_size=12
    ),
    rounds=st.integers(1, 2),
)
@settings(max_examples=60)
def test_after_any_edits_a_reset_gives_the_base_exactly(edits, rounds):
    # As an ordinary user: root could look into folders without permissions.
    with as_ordinary_user(), memory_folder() as folder:
        top = folder / "base"
        write_files(top, {"a.py": "one\n", "b/c.py": "two\n", "b/d/e.py": "3\n", "f/g": "4\n"})
        (top / "run").write_text("#!")
        (top / "run").chmod(0o755)
        (top / "link").symlink_to("b/c.py")
        slot = stage(folder, top)
        for _ in range(rounds):
            for edit, path in edits:
                place = slot.folder / path
                try:
                    if not place.is_fifo():  # opening one would block
                        EDITS[edit](place)
                except OSError:
                    continue  # nothing there, or something in the way
            slot.restore()
            assert read_contents(slot.folder) == read_contents(top)


# --- single things ------------------------------------------------------------------------------


def test_what_was_changed_or_missing_is_reported_and_what_was_added_is_not(slot, base):
    same_size(slot.folder / "a.py")
    (slot.folder / "b/c.py").unlink()
    (slot.folder / "run").chmod(0o700)
    (slot.folder / "new").write_text("")
    assert restored(slot, base) == ["a.py", "b/c.py", "run"]
    assert restored(slot, base) == []


def test_a_file_that_was_changed_and_changed_back_is_reported_all_the_same(slot, base):
    place = slot.folder / "a.py"
    before = place.read_bytes()
    let_clock_tick(slot)
    place.write_text("for the time of the test")
    place.write_bytes(before)
    assert restored(slot, base) == ["a.py"]


def test_unchanged_files_are_left_alone(slot, base):
    paths = ("a.py", "run", "b/c.py")  # beside the one that is changed, and elsewhere
    before = {path: (slot.folder / path).stat().st_ctime_ns for path in paths}
    let_clock_tick(slot)
    write(slot.folder / "a.py")
    assert restored(slot, base) == ["a.py"]
    after = {path: (slot.folder / path).stat().st_ctime_ns for path in paths}
    assert after.pop("a.py") > before.pop("a.py")
    assert after == before


@pytest.fixture
def coarse_clock(monkeypatch):
    """A file system whose clock ticks so slowly that it never does during a test."""

    def coarse(entry):
        mode, inode, size, modified, changed = exact(entry)
        return mode, inode, size, modified // 10**15, changed // 10**15

    exact = tree.sign
    exact_clock = tree.read_clock_ns
    monkeypatch.setattr(tree, "sign", coarse)
    monkeypatch.setattr(copying, "sign", coarse)
    monkeypatch.setattr(
        "fairtrial.arena.slots.staging.read_clock_ns", lambda path: exact_clock(path) // 10**15
    )


@pytest.mark.usefixtures("coarse_clock")
def test_a_change_in_the_tick_of_the_last_look_is_noticed(tmp_path, base):
    slot = stage(tmp_path, base)
    for _ in range(2):
        same_size(slot.folder / "b/d/e.py")
        assert restored(slot, base) == ["b/d/e.py"]
    slot.keep()
    same_size(slot.folder / "a.py")
    assert restored(slot, base) == ["a.py"]


def test_old_entries_are_not_doubted(tmp_path, base, monkeypatch):
    slot = stage(tmp_path, base)
    let_clock_tick(slot)
    slot.restore()  # by now everything is older than the look that this takes

    def refuse(*_):
        raise AssertionError("was read although nothing says that it changed")

    monkeypatch.setattr("fairtrial.arena.slots.staging.is_copy", refuse)
    assert slot.restore() == []


def test_contents_are_compared_if_change_times_are_useless(tmp_path, base, monkeypatch):
    """A file system on which writes through mapped memory leave no trace."""
    exact = tree.sign
    monkeypatch.setattr(tree, "sign", lambda entry: (*exact(entry)[:3], 0, 0))
    monkeypatch.setattr(copying, "sign", lambda entry: (*exact(entry)[:3], 0, 0))
    slot = stage(tmp_path, base, trusts_times=False)
    same_size(slot.folder / "a.py")
    assert restored(slot, base) == ["a.py"]


def test_this_file_system_shows_writes_through_mapped_memory(tmp_path, base):
    import mmap

    if not tree.shows_mapped_writes(tmp_path / "probe"):
        pytest.skip("it doesn't; pools compare contents here")
    slot = stage(tmp_path, base)
    slot.restore()
    with (slot.folder / "a.py").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"X"
    assert restored(slot, base) == ["a.py"]


def test_a_folder_swapped_for_a_link_leads_nowhere(tmp_path, slot, base):
    outside = tmp_path / "outside"
    write_files(outside, {"c.py": "mine", "d/e.py": "mine", "other": "mine"})
    before = read_contents(outside)
    shutil.rmtree(slot.folder / "b")
    (slot.folder / "b").symlink_to(outside)
    (slot.folder / "f" / "way-out").symlink_to(outside)
    restored(slot, base)
    assert read_contents(outside) == before


def test_the_slot_itself_swapped_for_a_link_leads_nowhere(tmp_path, slot, base):
    outside = tmp_path / "outside"
    write_files(outside, {"a.py": "mine", "other": "mine"})
    before = read_contents(outside)
    slot.folder.rename(tmp_path / "moved")
    slot.folder.symlink_to(outside)
    restored(slot, base)
    assert read_contents(outside) == before


@pytest.mark.parametrize("opener", [tree, removal, staging], ids=lambda module: module.__name__)
def test_a_folder_swapped_for_a_link_in_the_last_moment_is_not_entered(
    tmp_path, slot, base, monkeypatch, opener
):
    outside = tmp_path / "outside"
    write_files(outside, {"c.py": "mine", "d/e.py": "mine"})
    before = read_contents(outside)
    write_files(slot.folder, {"b/c.py": "changed", "b/d/e.py": "changed", "new/deep/x": ""})
    enter = removal.enter_folder

    def swap_and_enter(name, parent=None):
        if parent is not None:  # not for the slot and the store themselves
            os.rename(name, f"{name}-moved", src_dir_fd=parent, dst_dir_fd=parent)
            os.symlink(outside, name, dir_fd=parent)
        return enter(name, parent)

    monkeypatch.setattr(opener, "enter_folder", swap_and_enter)
    with suppress(OSError):
        slot.restore()
    monkeypatch.undo()
    assert read_contents(outside) == before
    restored(slot, base)
    assert read_contents(outside) == before


def test_folders_that_are_swapped_for_links_all_the_time_are_never_followed(tmp_path, slot, base):
    outside = tmp_path / "outside"
    write_files(outside, {"c.py": "mine", "d/e.py": "mine", "other": "mine"})
    before = read_contents(outside)
    place, link, real = slot.folder / "b", tmp_path / "link", tmp_path / "real"
    link.symlink_to(outside)
    done = threading.Event()

    def swap():
        while not done.is_set():
            try:
                place.rename(real)
                link.rename(place)
                place.rename(link)
                real.rename(place)
            except OSError:
                shutil.rmtree(real, ignore_errors=True)
                shutil.rmtree(link, ignore_errors=True)  # a folder that was mended meanwhile
                with suppress(FileExistsError):
                    link.symlink_to(outside)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(150):
            try:
                (slot.folder / "b/c.py").unlink()
                slot.restore()
            except OSError:  # swapped under our hands: no harm, and no success either
                continue
            finally:
                if not (outside / "c.py").exists():  # by our own unlink above, through the link
                    (outside / "c.py").write_text("mine")
    finally:
        done.set()
        swapping.join()
    assert read_contents(outside) == before
    restored(slot, base)


def test_a_tree_of_any_depth_is_removed(base):
    with memory_folder() as folder:
        slot = stage(folder, base)
        make_deep(slot.folder)
        restored(slot, base)


def make_deep(folder):
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deep", dir_fd=here)
        inner = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_folders_without_permissions_are_unlocked_and_restored():
    with as_ordinary_user(), memory_folder() as folder:
        top = folder / "base"
        write_files(top, {"b/c": "1", "b/d/e": "2"})
        slot = stage(folder, top)
        write_files(slot.folder, {"b/d/locked/in": "x"})
        for path, mode in (("b/d/locked", 0), ("b/d", 0o100), ("b", 0), (".", 0)):
            (slot.folder / path).chmod(mode)
        slot.restore()
        assert read_contents(slot.folder) == read_contents(top)
        assert stat.S_IMODE(slot.folder.stat().st_mode) == 0o755


def test_kept_files_in_read_only_folders_are_put_back():
    with as_ordinary_user(), memory_folder() as folder:
        top = folder / "base"
        write_files(top, {"a": "1"})
        slot = stage(folder, top)
        write_files(slot.folder, {"built/out": "made"})
        (slot.folder / "built").chmod(0o555)
        slot.keep()
        before = read_contents(slot.folder)
        (slot.folder / "built").chmod(0o755)
        (slot.folder / "built/out").unlink()
        (slot.folder / "built").chmod(0o555)
        assert slot.restore() == ["built/out"]
        assert read_contents(slot.folder) == before
        (slot.folder / "built").chmod(0o755)


def test_attributes_of_folders_do_not_outlive_a_reset(slot, base):
    try:
        os.setxattr(slot.folder / "b", "user.message", b"to the next one")
    except (OSError, AttributeError):
        pytest.skip("this file system has no extended attributes")
    os.setxattr(slot.folder, "user.message", b"to the next one")
    restored(slot, base)
    assert "user.message" not in os.listxattr(slot.folder / "b") + os.listxattr(slot.folder)


def test_a_hard_link_to_a_file_of_the_user_is_cut_and_never_written_through(tmp_path, slot, base):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (slot.folder / "a.py").unlink()
    (slot.folder / "a.py").hardlink_to(mine)
    restored(slot, base)
    assert mine.read_text() == "mine"


def test_names_that_are_no_text_are_names_like_others(tmp_path, base):
    strange = os.fsdecode(b"\xff\n")
    (base / strange).write_text("x")
    slot = stage(tmp_path, base)
    (slot.folder / strange).unlink()
    assert restored(slot, base) == [strange]
    slot.fingerprint()


def test_an_original_that_was_changed_is_noticed(slot, base):
    (base / "a.py").write_text("forged\n")
    (slot.folder / "a.py").unlink()
    with pytest.raises(LabError, match=r"a\.py"):
        slot.restore()


# --- what is kept ------------------------------------------------------------------------------


def test_build_output_is_kept_restored_and_reported_if_changed(slot, base):
    write_files(slot.folder, {"build/lib.so": "binary", "b/gen.py": "generated"})
    (slot.folder / "build/alias").symlink_to("lib.so")
    slot.keep()
    before = read_contents(slot.folder)
    write_files(slot.folder, {"build/lib.so": "forged", "junk/x": ""})
    (slot.folder / "build/alias").unlink()
    same_size(slot.folder / "a.py")
    assert sorted(slot.restore()) == ["a.py", "build/alias", "build/lib.so"]
    assert read_contents(slot.folder) == before
    slot.stage(read_target(base))
    slot.clear_store()
    assert read_contents(slot.folder) == read_contents(base)
    assert sorted(path.name for path in slot.store.iterdir()) == ["clock", "trash"]


def test_pipes_are_never_kept_or_read(slot, base):
    make_pipe(slot.folder / "pipe")
    slot.fingerprint()
    slot.keep()
    restored(slot, base)


# --- fingerprints ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        lambda top: same_size(top / "a.py"),
        lambda top: (top / "a.py").chmod(0o755),
        lambda top: (top / "a.py").rename(top / "z.py"),
        lambda top: (top / "empty").mkdir(),
        lambda top: (remove(top / "link"), (top / "link").symlink_to("a.py")),
    ],
)
def test_every_change_shows_in_the_fingerprint(slot, base, edit):
    before = slot.fingerprint()
    edit(slot.folder)
    assert slot.fingerprint() != before
    restored(slot, base)
    assert slot.fingerprint() == before


def test_empty_folders_do_not_show_in_the_fingerprint_while_versions_are_timed(slot):
    before = slot.fingerprint(has_empty=False)
    (slot.folder / ".venv").mkdir()
    assert slot.fingerprint(has_empty=False) == before
    (slot.folder / ".venv" / "mod.py").write_text("")
    assert slot.fingerprint(has_empty=False) != before


def test_equal_slots_have_equal_fingerprints(tmp_path, slot, base):
    (tmp_path / "two").mkdir()
    other = stage(tmp_path / "two", base)
    assert other.fingerprint() == slot.fingerprint()


# --- removal ------------------------------------------------------------------------------------


def test_one_that_can_not_be_removed_does_not_stop_the_rest(tmp_path, monkeypatch):
    write_files(tmp_path, {"a/x": "", "b/x": "", "c": ""})
    remove_for_real = os.rmdir

    def stubborn(name, **options):
        if name == "b":
            raise PermissionError(1, "no", name)
        remove_for_real(name, **options)

    monkeypatch.setattr(os, "rmdir", stubborn)
    handle = os.open(tmp_path, os.O_RDONLY)
    errors = removal.empty_folder(handle)
    os.close(handle)
    assert [error.filename for error in errors] == ["b"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["b"]


def test_a_folder_that_another_process_still_writes_to_is_tried_again(tmp_path, monkeypatch):
    write_files(tmp_path, {"a/x": ""})
    remove_for_real, late = os.rmdir, ["one", "two"]

    def busy(name, **options):
        if late:
            (tmp_path / name / late.pop()).write_text("")
        remove_for_real(name, **options)

    monkeypatch.setattr(os, "rmdir", busy)
    handle = os.open(tmp_path, os.O_RDONLY)
    assert removal.empty_folder(handle) == []
    os.close(handle)
    assert list(tmp_path.iterdir()) == []


def test_a_repository_is_staged_like_any_other_tree(tmp_path):
    top = make_mixed_repository(tmp_path / "repo")
    assert read_contents(stage(tmp_path, top).folder) == read_contents(top)
