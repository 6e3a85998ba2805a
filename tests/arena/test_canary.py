"""Canaries: how the base is broken on purpose, and the errors if a check doesn't notice."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fairtrial.arena import FileState
from fairtrial.arena.canary import (
    COMPILED,
    IMPORTED,
    WORDS,
    find_foreign,
    make_canaries,
    make_canary_error as refuse,
)

FILES = {
    "src/mod.py": FileState(b"X = 1", executable=True),
    "src/fast.c": FileState(b"int x;"),
    "src/fast.h": FileState(b"int y;"),
    "src/data.txt": FileState(b"text"),
}


def stage_of(**changes):
    given = {"slot": Path("/pool/1"), "seen": Path("/project"), "import_roots": ("src", ".")}
    return SimpleNamespace(**(given | changes))


def test_what_is_imported_raises_and_what_is_compiled_does_not_compile():
    canaries = make_canaries(FILES)
    assert {way: set(each.files) for way, each in canaries.items()} == {
        IMPORTED: {"src/mod.py"},
        COMPILED: {"src/fast.c", "src/fast.h"},
    }
    broken = canaries[IMPORTED].files["src/mod.py"]
    assert broken.executable
    with pytest.raises(ImportError, match=WORDS):
        exec(broken.content, {})
    assert b"#error" in canaries[COMPILED].files["src/fast.c"].content


def test_a_build_may_import_what_is_broken(monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_BUILD", "1")
    exec(make_canaries(FILES)[IMPORTED].files["src/mod.py"].content, {})


def test_a_link_is_left_alone():
    link = FileState(b"mod.py", is_link=True)
    assert make_canaries({"src/other.py": link}) == {}


@pytest.mark.parametrize(
    "content", [b"X = 1 \\", b"if X:\n    pass", b"'''open", b"# -*- coding: latin-1 -*-\n'\xe4'"]
)
def test_whatever_a_file_ends_with_it_can_not_be_imported(content):
    broken = make_canaries({"a.py": FileState(content)})[IMPORTED].files["a.py"].content
    with pytest.raises((ImportError, SyntaxError, NameError)):
        exec(broken, {})


FOREIGN = [
    ("/venv/lib/python3.11/site-packages/few/core.py", True),
    ("/elsewhere/few/core.py", True),
    ("/venv/lib/python3.11/site-packages/mod.py", True),
    ("/venv/lib/python3.11/site-packages/src/mod.py", True),
    ("/project/src/few/core.py", False),
    ("/elsewhere/mod.py", False),  # a name alone is too common
    ("/elsewhere/some/core.py", False),
    ("/pool/2/src/few/core.py", False),  # another slot, where slots can't be moved
]


@pytest.mark.parametrize(("file", "is_foreign"), FOREIGN)
def test_another_copy_of_a_module_is_known_by_how_its_path_ends(file, is_foreign):
    found = find_foreign([file], stage_of(), ["src/few/core.py", "src/mod.py"])
    assert found == ([file] if is_foreign else [])


def trial_of(*loaded):
    return SimpleNamespace(label="check[3]", loaded=frozenset(loaded))


def test_the_file_that_was_really_imported_is_named():
    check = trial_of("/site/few/core.py", "/usr/lib/json.py")
    error = refuse(check, stage_of(), IMPORTED, ["src/few/core.py"])
    assert "check[3] doesn't run the candidates' code: it imports /site/few/core.py" in str(error)
    assert "import_roots" in str(error)


def test_if_none_was_imported_what_is_editable_is_named():
    error = str(
        refuse(trial_of("/usr/lib/json.py"), stage_of(), IMPORTED, ["src/b.py", "src/a.py"])
    )
    assert "passes although every editable file raises" in error
    assert "(src/a.py, src/b.py)" in error


def test_what_is_never_compiled_is_reported():
    error = str(refuse(trial_of(), stage_of(), COMPILED, ["src/fast.c"]))
    assert "no editable file can be compiled (e.g. src/fast.c)" in error
    assert "build:" in error
