"""A candidate as a patch: it applies, and comes back as the same candidate."""

import anyio
import pytest
from candidate_kit import FILES, contents, encode, git_diff, make_snapshot, resolve_candidate
from hypothesis import given, settings, strategies as st
from repository_kit import run_git

from fairtrial.arena import Changes, FileState
from fairtrial.arena.candidates.patches import render_patch


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_snapshot(tmp_path_factory.mktemp("base"))


CONTENT = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(
            (
                "",
                "x",
                "line 4",
                "--- a/x",
                "+++ b/x",
                "@@ -1 +1 @@",
                "```",
                "-- ",
                "2.39",
                "\r",
                "é",
            )
        ),
        max_size=8,
    ).map(lambda lines: "\n".join(lines).encode()),
    st.sampled_from([encode(content) for content in FILES.values()]),
    st.sampled_from([encode(content).replace(b"line 4", b"LINE") for content in FILES.values()]),
)
STATE = st.one_of(
    st.none(),
    st.builds(FileState, CONTENT, st.booleans()),
    st.just(FileState(b"src/pkg", False, is_link=True)),
)
PATH = st.sampled_from(
    (
        *FILES,
        *("link", "new.py", "src/new/deep.py", "with space/ä.txt", 'quo"ted', "back\\slash", "a b"),
        *("tab\there", "\udcff.bin", "b/new.txt", "a/b/c.txt", " leading", "trailing "),
    )
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(PATH, STATE, max_size=4))
def test_a_patch_comes_back_as_the_candidate(base, wanted):
    changes = Changes(drop_same(base, wanted))
    result = resolve_candidate(base, anyio.run(render_patch, changes, base))
    assert not hasattr(result, "reason"), result
    assert dict(result.files) == changes.files


def drop_same(base, wanted):
    """What differs from the base: neither the same again, nor gone without having been."""
    kept = {}
    for path, state in wanted.items():
        place = base.source / path
        before = None
        if place.is_symlink():
            before = FileState(b"src/pkg", False, is_link=True)
        elif place.exists():
            before = FileState(place.read_bytes(), bool(place.stat().st_mode & 0o100))
        if state != before:
            kept[path] = state
    return kept


def test_a_patch_applies_to_the_users_tree(base, tmp_path):
    files = {
        "src/pkg/core.py": FileState(b"new = 1\n", False),
        "data.bin": FileState(b"\0new", False),
        "src/pkg/ten.txt": None,
        "tool": FileState(b"#!/bin/sh\n", True),
    }
    patch = anyio.run(render_patch, Changes(files), base)
    run_git(tmp_path, "clone", "--quiet", str(base.source), "copy")
    run_git(tmp_path / "copy", "apply", "-", stdin=patch)
    copy = tmp_path / "copy"
    assert (copy / "src/pkg/core.py").read_bytes() == b"new = 1\n"
    assert (copy / "data.bin").read_bytes() == b"\0new"
    assert not (copy / "src/pkg/ten.txt").exists()
    assert (copy / "tool").stat().st_mode & 0o100


def test_a_folder_where_a_file_was(base):
    files = {"run.sh": None, "run.sh/inner.txt": FileState(b"x\n", False)}
    result = resolve_candidate(base, anyio.run(render_patch, Changes(files), base))
    assert contents(result) == {"run.sh": None, "run.sh/inner.txt": b"x\n"}


def test_no_changes_are_an_empty_patch(base):
    assert anyio.run(render_patch, Changes(), base) == b""


def test_the_output_of_git_diff_is_the_same_candidate_as_the_tree(base):
    def change(folder):
        (folder / "src/pkg/core.py").write_text("x = 1\n")
        (folder / "run.sh").unlink()

    result = resolve_candidate(base, git_diff(base, change, "--binary"))
    assert resolve_candidate(base, anyio.run(render_patch, result, base)) == result
