"""Paths of candidates: which are refused, and where the others are written."""

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given, strategies as st
from pool_kit import memory_folder, read_contents, read_target, stage
from repository_kit import write_files

from fairtrial.arena import FileState
from fairtrial.arena.slots.placement import overlay, refuse_misplaced
from fairtrial.core import StudyError

FILE = FileState(b"new")


def link(target):
    return FileState(os.fsencode(target), is_link=True)


@pytest.fixture
def base(tmp_path):
    top = tmp_path / "base"
    write_files(top, {"a.py": "1", "pkg/b.py": "2", "pkg/sub/c.py": "3"})
    (top / "out").symlink_to("/etc")
    (top / "up").symlink_to("..")
    (top / "in").symlink_to("pkg")
    (top / "loop").symlink_to("loop")
    return top


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "pkg/../../x",
        "pkg/../x",
        "./x",
        "pkg//x",
        "pkg/",
        "/",
        "nul\0",
        ".git/config",
        "pkg/.git/hooks/pre-commit",
        ".GIT/config",
        "pkg/.Git",
        "n" * 256,
        "d/" * 1600 + "x",
        "half\ud800",
        "out/passwd",
        "up/x",
        "in/b.py",
    ],
)
@pytest.mark.parametrize("state", [FILE, None])
def test_paths_that_are_refused(base, path, state):
    with pytest.raises(StudyError) as refusal:
        refuse_misplaced({"fine.py": FILE, path: state}, read_target(base))
    assert len(refusal.value.mistakes) == 1


@pytest.mark.parametrize(
    "target",
    ["/etc", "", "nul\0", "..", "pkg/../..", "out", "out/passwd", "up", "in/../..", "up/x"],
)
def test_links_that_lead_out_are_refused(base, target):
    with pytest.raises(StudyError, match="symbolic link"):
        refuse_misplaced({"new": link(target)}, read_target(base))


def test_links_that_lead_out_through_another_new_one_are_refused(base):
    with pytest.raises(StudyError, match="out of the tree"):
        refuse_misplaced(
            {"deep/one": link("../pkg"), "two": link("deep/one/../..")}, read_target(base)
        )


def test_a_link_in_circles_is_refused(base):
    with pytest.raises(StudyError, match="circle of links"):
        refuse_misplaced({"new": link("loop/x")}, read_target(base))


@pytest.mark.parametrize("target", ["a.py", "pkg/sub/../b.py", "in/b.py", "nowhere", "./a.py"])
def test_links_that_stay_inside_are_fine(base, target):
    refuse_misplaced({"new": link(target)}, read_target(base))


def test_writing_through_a_link_that_the_candidate_itself_makes_is_refused(base):
    with pytest.raises(StudyError, match="a file and a folder"):
        refuse_misplaced({"way": link("pkg"), "way/b.py": FILE}, read_target(base))


def test_every_refusal_is_reported(base):
    with pytest.raises(StudyError) as refusal:
        refuse_misplaced({"../a": FILE, "/b": FILE, "out/c": None}, read_target(base))
    assert len(refusal.value.mistakes) == 3


def test_bytecode_of_a_file_goes_with_it(tmp_path, base):
    write_files(base, {"solo/m.py": "", "solo/__pycache__/m.cpython-311.pyc": ""})
    write_files(
        base, {"pkg/__pycache__/b.cpython-311.pyc": "", "pkg/__pycache__/c.cpython-311.pyc": ""}
    )
    slot = stage(tmp_path, base)
    slot.stage(overlay(slot.target, {"solo/m.py": None, "pkg/b.py": None}, slot.store_original))
    contents = read_contents(slot.folder)
    assert "solo" not in contents  # else it would be a package without a source
    assert "pkg/__pycache__/b.cpython-311.pyc" not in contents
    assert "pkg/__pycache__/c.cpython-311.pyc" in contents


def test_bytecode_of_a_file_that_changes_is_not_the_bases_any_more(tmp_path, base):
    """Otherwise Python would write it again, which would look like tampering."""
    write_files(base, {"solo/m.py": "", "solo/__pycache__/m.cpython-311.pyc": ""})
    slot = stage(tmp_path, base)
    slot.stage(overlay(slot.target, {"solo/m.py": FILE}, slot.store_original))
    assert "solo/__pycache__/m.cpython-311.pyc" not in read_contents(slot.folder)


NAMES = st.sampled_from(["a.py", "pkg", "b.py", "sub", "c.py", "new", "in", "out", "..", ".", ""])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
STATES = st.one_of(
    st.none(), st.just(FILE), PATHS.map(link), st.just(FileState(b"#!", executable=True))
)


@given(files=st.dictionaries(PATHS, STATES, max_size=5))
def test_a_candidate_is_refused_or_written_exactly_and_only_there(files):
    with memory_folder() as folder:
        write_and_check(folder, files)


def write_and_check(folder, files):
    base = folder / "base"
    write_files(base, {"a.py": "1", "pkg/b.py": "2", "pkg/sub/c.py": "3"})
    (base / "out").symlink_to("/etc")
    (base / "in").symlink_to("pkg")
    slot = stage(folder, base)
    try:
        refuse_misplaced(files, slot.target)
    except StudyError:
        return
    slot.stage(overlay(slot.target, files, slot.store_original))
    contents = read_contents(slot.folder)
    for path, state in files.items():
        if state is None:
            assert path not in contents or contents[path][0].startswith("0o4")
            continue
        expected = os.fsdecode(state.content) if state.is_link else state.content
        assert contents[path][1] == expected
        if state.is_link:
            assert (slot.folder / path).resolve().is_relative_to(slot.folder.resolve())
    untouched = {
        path: value
        for path, value in read_contents(base).items()
        if path not in files
        and not any(str(up) in files for up in PurePosixPath(path).parents)
        and not value[0].startswith("0o4")
        and not any(str(up) == path for file in files for up in PurePosixPath(file).parents)
    }
    assert untouched.items() <= contents.items()
    assert slot.restore() == []
    slot.stage(read_target(base))
    assert read_contents(slot.folder) == read_contents(base)
