"""`Candidate` and `FileState` accept text and bytes, and refuse other types at once."""

import pickle
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from fairtrial.arena import ArenaSettings, Candidate, FileState
from fairtrial.core import StudyError

ODD = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"


def test_candidates_do_not_share_their_default_files():
    one, other = Candidate("a", diff="x"), Candidate("b", diff="x")
    assert (dict(one.files), one.files is other.files) == ({}, False)


def test_text_is_encoded_as_utf8():
    assert Candidate("d", diff=ODD) == Candidate("d", diff=ODD.encode())
    assert FileState(ODD) == FileState(ODD.encode())
    assert FileState("\udcff").content == b"\xff", "surrogateescape is undone"
    files = {"a.py": ODD, PurePosixPath("b/c.py"): b"1", "d": FileState("x", True)}
    assert Candidate("f", files=files).files == {
        "a.py": FileState(ODD.encode()),
        "b/c.py": FileState(b"1"),
        "d": FileState(b"x", executable=True),
    }


def test_valid_files_are_not_copied():
    files = {"a.py": FileState(b"1")}
    candidate = Candidate("f", files=files)
    assert candidate.files is files
    assert replace(candidate, note="n").files is files
    assert pickle.loads(pickle.dumps(Candidate("f", diff="x"))) == Candidate("f", diff=b"x")
    assert Candidate("base", files={}).files == {}, "an explicit empty mapping proposes the base"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Candidate("x"), "has neither a diff nor files; give one of them"),
        (lambda: Candidate(3, diff="x"), "name: expected text, got the number 3"),
        (lambda: Candidate("x", diff=3), "diff: expected text or bytes, got the number 3"),
        (lambda: Candidate("x", diff="\ud800"), "diff: is text that UTF-8 can't hold"),
        (lambda: Candidate("x", files=["a"]), "files: expected a mapping of paths to contents"),
        (lambda: Candidate("x", files={3: "a"}), "files: expected paths as keys, got the number"),
        (lambda: Candidate("x", files={"p": None}), "files.p: expected text, bytes or a FileSt"),
        (lambda: Candidate("x", diff="", note=None), "note: expected text, got nothing"),
        (lambda: Candidate("x", diff="", parent=b"1"), "parent: expected a digest, got a bytes"),
        (lambda: FileState(None), "content: expected text or bytes, got nothing (null)"),
        (lambda: FileState(b"", "yes"), "executable: expected true or false, got the text 'yes'"),
        (lambda: FileState(b"", is_link=None), "is_link: expected true or false, got nothing"),
        (lambda: ArenaSettings(timing="sometimes"), "timing: expected 'race' or 'each' or 'none'"),
        (lambda: ArenaSettings(warm="no"), "warm: expected true or false, got the text 'no'"),
        (lambda: ArenaSettings(lock_folder=3), "lock_folder: expected a path, got the number 3"),
        (lambda: ArenaSettings(emit="hello"), "emit: expected a function, got the text 'hello'"),
    ],
)
def test_values_of_a_wrong_type_are_refused_on_construction(make, message):
    with pytest.raises(StudyError) as stop:
        make()
    assert message in str(stop.value)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(StudyError) as stop:
        Candidate(None, diff=1, files={"p": 2}, note=3)
    assert [mistake.path for mistake in stop.value.mistakes] == [
        ("name",),
        ("note",),
        ("diff",),
        ("files", "p"),
    ]
