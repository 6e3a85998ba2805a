"""After any edits of a tree, its snapshot equals the files that git lists, byte by byte."""

import os
import shutil
from pathlib import Path

import anyio
from hypothesis import given, settings, strategies as st
from pool_kit import memory_folder
from repository_kit import fingerprint, make_repository, read_disk, read_tree, run_git, write_files

from fairtrial.arena.snapshot.snapshot import take_snapshot

NAMES = ["a", "b.o", "c d", "é", 'q"', "n\nl", "\udcff", "A", "sub", "x.log"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
CONTENTS = st.binary(max_size=6) | st.sampled_from([b"one\r\ntwo\n", b"$Id$", b"\0" * 5000])
RULES = st.lists(st.sampled_from(["*.o", "x.log", "sub/", "!b.o", "/a", "**/A"]), max_size=3)
ACTIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, CONTENTS),
    st.tuples(st.just("write"), PATHS, CONTENTS),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["a", "..", "/nowhere", "sub/a", "./a//b"])),
    st.tuples(st.just("remove"), PATHS),
    st.tuples(st.just("chmod"), PATHS, st.sampled_from([0o644, 0o755, 0o600, 0o711])),
    st.tuples(st.just("ignore"), st.sampled_from([".", "sub", "a"]), RULES),
    st.tuples(st.just("stage"), PATHS),
    st.tuples(st.just("commit")),
    st.tuples(st.just("embed"), PATHS, st.booleans()),
    st.tuples(st.just("assume"), PATHS),
)


def clear(top, path):
    """Remove everything at a path or in its way, and return the path."""
    place = top / path
    for parent in reversed(place.relative_to(top).parents):
        if parent != Path() and ((top / parent).is_symlink() or (top / parent).is_file()):
            (top / parent).unlink()
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def try_git(top, *arguments):
    """Run a git command; some fail in the current state of the tree, and change nothing."""
    run_git(top, "-c", "advice.addEmbeddedRepo=false", *arguments, check=False)


def do(top, action, *details):
    if action == "write":
        clear(top, details[0]).write_bytes(details[1])
    elif action == "link":
        os.symlink(details[1], clear(top, details[0]))  # noqa: PTH211 - the target as it is
    elif action == "remove":
        clear(top, details[0])
    elif action == "chmod":
        place = top / details[0]
        if place.is_file() and not place.is_symlink():
            place.chmod(details[1])
    elif action == "ignore":
        clear(top, f"{details[0]}/.gitignore").write_text("\n".join(details[1]))
    elif action == "stage":
        try_git(top, "add", "--force", "--", f":(literal){details[0]}")
    elif action == "commit":
        try_git(top, "add", "--all")
        try_git(top, "commit", "--quiet", "--message", "more")
    elif action == "embed":
        place = clear(top, details[0])
        make_repository(place, {"in.py": "1", ".gitignore": "*.o\n"}, commit=details[1])
        write_files(place, {"new": "2", "x.o": ""})
    else:
        try_git(top, "update-index", "--assume-unchanged", details[0])


def expect(top, prefix=b""):
    """Return the paths that git lists in a copy of the repository, with its user's rules."""
    paths = []
    for path in run_git(top, "ls-files", "-coz", "--exclude-standard", "--deduplicate").split(
        b"\0"
    ):
        place = top / os.fsdecode(path)
        parents = [top / parent for parent in Path(os.fsdecode(path)).parents]
        if not path or any(parent.is_symlink() and parent != top for parent in parents):
            continue
        if (place / ".git").exists() and not place.is_symlink():
            paths += expect(place, prefix + path.rstrip(b"/") + b"/")
        else:
            paths.append(prefix + path)
    return paths


@settings(max_examples=12)
@given(actions=st.lists(ACTIONS, min_size=3, max_size=14))
def test_a_snapshot_is_what_is_on_disk_and_not_ignored(actions):
    with memory_folder() as folder:
        top, copy, home = (folder / name for name in ("top", "copy", "home"))
        make_repository(top, {"a": "1", "sub/b.o": "1"}, commit=False)
        for action in actions:
            do(top, *action)
        shutil.copytree(top, copy, symlinks=True)
        expected = read_disk(copy, expect(copy))
        home.mkdir()
        before = fingerprint(top)
        snapshot = anyio.run(take_snapshot, top, home)
        assert fingerprint(top) == before
        assert read_tree(snapshot.repo, snapshot.tree) == expected
