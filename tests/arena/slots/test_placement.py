"""Which of a candidate's paths are refused (spec 4)."""

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given, strategies as st
from pool_kit import contents, quick_folder, stage, wanted_of, write_files

from fairtrial.arena import FileState
from fairtrial.arena.slots.placement import lay_over, refuse_misplaced
from fairtrial.core import StudyError

FILE = FileState(b"new")


def link(leads_to):
    return FileState(os.fsencode(leads_to), is_link=True)


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
        refuse_misplaced({"fine.py": FILE, path: state}, wanted_of(base))
    assert len(refusal.value.mistakes) == 1


@pytest.mark.parametrize(
    "leads_to",
    ["/etc", "", "nul\0", "..", "pkg/../..", "out", "out/passwd", "up", "in/../..", "up/x"],
)
def test_links_that_lead_out_are_refused(base, leads_to):
    with pytest.raises(StudyError, match="symbolic link"):
        refuse_misplaced({"new": link(leads_to)}, wanted_of(base))


def test_links_that_lead_out_through_another_new_one_are_refused(base):
    with pytest.raises(StudyError, match="out of the tree"):
        refuse_misplaced(
            {"deep/one": link("../pkg"), "two": link("deep/one/../..")}, wanted_of(base)
        )


def test_a_link_in_circles_is_refused(base):
    with pytest.raises(StudyError, match="circles"):
        refuse_misplaced({"new": link("loop/x")}, wanted_of(base))


@pytest.mark.parametrize("leads_to", ["a.py", "pkg/sub/../b.py", "in/b.py", "nowhere", "./a.py"])
def test_links_that_stay_inside_are_fine(base, leads_to):
    refuse_misplaced({"new": link(leads_to)}, wanted_of(base))


def test_writing_through_a_link_that_the_candidate_itself_makes_is_refused(base):
    with pytest.raises(StudyError, match="a file and a folder"):
        refuse_misplaced({"way": link("pkg"), "way/b.py": FILE}, wanted_of(base))


def test_every_refusal_is_told(base):
    with pytest.raises(StudyError) as refusal:
        refuse_misplaced({"../a": FILE, "/b": FILE, "out/c": None}, wanted_of(base))
    assert len(refusal.value.mistakes) == 3


def test_bytecode_of_a_file_goes_with_it(tmp_path, base):
    write_files(base, {"solo/m.py": "", "solo/__pycache__/m.cpython-311.pyc": ""})
    write_files(
        base, {"pkg/__pycache__/b.cpython-311.pyc": "", "pkg/__pycache__/c.cpython-311.pyc": ""}
    )
    slot = stage(tmp_path, base)
    slot.become(lay_over(slot.wanted, {"solo/m.py": None, "pkg/b.py": None}, slot.store_original))
    found = contents(slot.folder)
    assert "solo" not in found  # else it would be a package without a source
    assert "pkg/__pycache__/b.cpython-311.pyc" not in found
    assert "pkg/__pycache__/c.cpython-311.pyc" in found


def test_bytecode_of_a_file_that_changes_is_not_the_bases_any_more(tmp_path, base):
    """A process that writes bytecode would write it anew, and look as if it tampered with it."""
    write_files(base, {"solo/m.py": "", "solo/__pycache__/m.cpython-311.pyc": ""})
    slot = stage(tmp_path, base)
    slot.become(lay_over(slot.wanted, {"solo/m.py": FILE}, slot.store_original))
    assert "solo/__pycache__/m.cpython-311.pyc" not in contents(slot.folder)


NAMES = st.sampled_from(["a.py", "pkg", "b.py", "sub", "c.py", "new", "in", "out", "..", ".", ""])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
STATES = st.one_of(
    st.none(), st.just(FILE), PATHS.map(link), st.just(FileState(b"#!", executable=True))
)


@given(files=st.dictionaries(PATHS, STATES, max_size=5))
def test_a_candidate_is_refused_or_written_exactly_and_only_there(files):
    with quick_folder() as folder:
        write_and_check(folder, files)


def write_and_check(folder, files):
    base = folder / "base"
    write_files(base, {"a.py": "1", "pkg/b.py": "2", "pkg/sub/c.py": "3"})
    (base / "out").symlink_to("/etc")
    (base / "in").symlink_to("pkg")
    slot = stage(folder, base)
    try:
        refuse_misplaced(files, slot.wanted)
    except StudyError:
        return
    slot.become(lay_over(slot.wanted, files, slot.store_original))
    found = contents(slot.folder)
    for path, state in files.items():
        if state is None:
            assert path not in found or found[path][0].startswith("0o4")
            continue
        expected = os.fsdecode(state.content) if state.is_link else state.content
        assert found[path][1] == expected
        if state.is_link:
            assert (slot.folder / path).resolve().is_relative_to(slot.folder.resolve())
    untouched = {
        path: value
        for path, value in contents(base).items()
        if path not in files
        and not any(str(up) in files for up in PurePosixPath(path).parents)
        and not value[0].startswith("0o4")
        and not any(str(up) == path for each in files for up in PurePosixPath(each).parents)
    }
    assert untouched.items() <= found.items()
    assert slot.mend() == []
    slot.become(wanted_of(base))
    assert contents(slot.folder) == contents(base)
