"""Which paths candidates may touch (spec 4, 24)."""

import subprocess

import pytest
from hypothesis import example, given, settings, strategies as st
from tree_kit import run_git

from fairtrial.arena import Check, CodeProblem
from fairtrial.arena.candidates.paths import Change, PathRules, leads_out, unsafe_path
from fairtrial.arena.candidates.pathspecs import Pathspecs
from fairtrial.core import StudyError

PATHS = (
    *(
        "a",
        "b",
        "ab",
        "a.py",
        "b.py",
        "a/a",
        "a/b.py",
        "a/b/c.py",
        "a/b/a/b",
        "b/a/c.py",
        "src/a.py",
    ),
    *(
        "src/a/b.py",
        "src/a/b/c.py",
        "src/tests/x.py",
        "a*",
        "[ab]",
        "a?b",
        "A.py",
        "ä.py",
        "a b.py",
    ),
    *(".a", ".a/b", "a-b", "a]b", "a\\b", "!a", "a1", "a/-"),
)


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """What `git ls-files` lists of PATHS for a list of patterns."""
    folder = tmp_path_factory.mktemp("listed")
    run_git(folder, "init", "--quiet")
    blob = run_git(folder, "hash-object", "-w", "--stdin").decode().strip()
    # A name can't be a file and a folder in one index.
    sets = [[path for path in PATHS if path not in ("a", "b", ".a")], ["a", "b", ".a"]]

    def ask(patterns):
        found = set()
        for number, paths in enumerate(sets):
            index = folder / f"index-{number}"
            if not index.exists():
                lines = "".join(f"100644 {blob}\t{path}\0" for path in paths)
                run_git(
                    *(folder, "update-index", "--add", "-z", "--index-info"),
                    stdin=lines.encode(),
                    GIT_INDEX_FILE=str(index),
                )
            told = run_git(
                *(folder, "--glob-pathspecs", "ls-files", "-z", "--", *patterns),
                GIT_INDEX_FILE=str(index),
            )
            found.update(told.decode().split("\0")[:-1])
        return found

    return ask


PIECES = st.sampled_from(
    (
        *(
            "a",
            "b",
            "src",
            "/",
            "/",
            "*",
            "?",
            "**/",
            "/**/",
            "/**",
            "[ab]",
            "[!a]",
            "[^b]",
            "[a-c]",
        ),
        *("\\*", "[", "]", "\\", "[[:alpha:]]", "[]a]", "[\\]a]", "[z-a]", "[a-]", ".", "-", "[/]"),
        *("[[:digit:][:upper:]]", "[!/]", "[[:nope:]]", "tests", "[a", "c.py", "*.py", "[-a]", "ä"),
        *("[a-\\b]", ".py"),
    )
)
PATTERN = st.lists(PIECES, min_size=1, max_size=5).map("".join)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["", "", ":!", ":^", ":(exclude)"]), PATTERN), max_size=3)
)
@example([("", "src/**/*.py")])
@example([("", "**/*.py"), (":!", "**/tests/**")])
@example([("", "src")])
@example([("", "src/")])
@example([("", ".")])
@example([("", "a[/]a")])
@example([("", "a[+-9]a")])
@example([("", "a[!b]a")])
@example([("", "a/.")])
@example([("", "a*")])
@example([("", "[ab]")])
@example([(":!", "src")])
@example([("", "./src/./a.py")])
def test_patterns_match_as_in_git(listed, marked):
    patterns = [mark + pattern for mark, pattern in marked]
    if not patterns or any(_is_foreign(pattern) for _, pattern in marked):
        return
    try:
        ours = Pathspecs(patterns)
    except StudyError:
        assert any("**" in pattern for pattern in patterns)
        return
    try:
        theirs = listed(patterns)
    except subprocess.CalledProcessError:
        return  # a path that git itself refuses
    assert {path for path in PATHS if ours.fit(path)} == theirs


def _is_foreign(pattern):
    """What a problem refuses before it gets here."""
    return pattern.startswith(("/", ":")) or ".." in pattern.split("/") or not pattern.strip()


def test_double_stars_inside_a_name_are_refused():
    for pattern in ("src**/x.py", "a/**.py", "***"):
        with pytest.raises(StudyError, match="whole folders"):
            Pathspecs([pattern])


RULES = PathRules(
    ("**/*.py", "**/*.PY", "**/*.toml", "**/*.cfg", "**/*.pth", "Makefile", ".github/**")
)


@pytest.mark.parametrize(
    "path",
    [
        *("test_x.py", "src/pkg/x_test.py", "tests/x.py", "src/pkg/tests/data/x.py", "Tests/x.py"),
        *("test/x.py", "pkg/testing/x.py", "conftest.py", "src/conftest.py", "pkg/tests.py"),
        *("pyproject.toml", "sub/setup.cfg", "setup.py", "noxfile.py", "Makefile", "CONFTEST.PY"),
        *("sitecustomize.py", "src/usercustomize.py", "x.pth", ".github/x.py", "x.egg-info/a.py"),
        *("src/x.dist-info/entry.py", "src/__pycache__/x.py"),
    ],
)
@pytest.mark.parametrize("change", Change)
def test_tests_and_configuration_are_protected_where_editable_matches(path, change):
    assert "protected" in RULES.mistake(path, change)
    freed = PathRules(RULES.editable, unprotect=(path,))
    assert freed.mistake(path, change) is None


@pytest.mark.parametrize(
    "path", ["src/pkg/core.py", "latest.py", "contest.py", "pkg/tester.py", "pkg/attest/x.py"]
)
def test_other_files_are_not_protected(path):
    assert RULES.mistake(path, Change.ADDED) is None


def test_a_path_outside_names_itself_and_the_patterns():
    mistake = PathRules(("src/**/*.py", ":!src/gen/**")).mistake("docs/x.py", Change.CHANGED)
    assert "docs/x.py" in mistake
    assert "src/**/*.py, :!src/gen/**" in mistake
    # Not protected any more is not yet editable.
    assert PathRules(("src/**",), ("pyproject.toml",)).mistake("pyproject.toml", Change.CHANGED)


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("random.py", "random"),
        ("json/__init__.py", "json"),
        ("src/pytest.py", "pytest"),
        ("src/_pytest/__init__.py", "_pytest"),
        ("src/_pytest/main.py", None),
        ("src/json", "json"),
        ("hypothesis.cpython-311-x86_64-linux-gnu.so", "hypothesis"),
        ("lib/numpy/__init__.abi3.so", "numpy"),
        ("src/fairtrial_pytest.py", "fairtrial_pytest"),
        ("src/pkg/random.py", None),
        ("src/pkg/json/x.py", None),
        ("src/newmodule.py", None),
    ],
)
def test_new_modules_must_not_hide_those_that_checks_use(path, hidden):
    rules = PathRules(("**",))
    mistake = rules.mistake(path, Change.ADDED)
    assert (f"hide the module {hidden} " in mistake) if hidden else mistake is None
    assert rules.mistake(path, Change.CHANGED) is None


def test_a_project_may_add_to_a_module_that_it_has_already():
    rules = PathRules(("**",))
    inside = {"src/json", "src/json/__init__.py"}
    assert rules.mistake("src/json.py", Change.ADDED, inside) is None
    assert rules.mistake("src/json/__init__.py", Change.ADDED, {"src/json.py"}) is None
    assert rules.mistake("src/json/__init__.py", Change.ADDED, {"src/json", "json.py"}) is not None


def test_rules_of_a_problem():
    problem = CodeProblem(
        "p",
        cwd="one",
        editable=("one/**",),
        check=(
            Check(function="m:f", inputs="one/makers.py:make"),
            Check(function="m:f", calls="one/calls.json"),
        ),
    )
    rules = PathRules.of(problem)
    assert "inputs or results" in rules.mistake("one/makers.py", Change.CHANGED)
    assert "inputs or results" in rules.mistake("one/calls.json", Change.REMOVED)
    assert "json" in rules.mistake("one/json.py", Change.ADDED)
    assert "json" in rules.mistake("one/src/json.py", Change.ADDED)
    assert rules.mistake("one/parts/json.py", Change.ADDED) is None
    assert PathRules.of(problem, ["one/parts"]).mistake("one/parts/json.py", Change.ADDED)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/x", "../x", "a/../x", "a/..", "..", ".", "a//b", "a/./b", "a/", "x\0y", "x\ny"),
        *(".git", ".git/config", "a/.git", ".GIT/x", ".Git", ".git ", ".git.", "git~1/x"),
        *("a" * 300, "/".join(["abc"] * 2000), "\ud800"),
    ],
)
def test_unsafe_paths(path):
    assert unsafe_path(path)


@pytest.mark.parametrize("path", ["a", "a/b", ".gitignore", "a..b", "...", "a\\b", "ä", "\udcff"])
def test_safe_paths(path):
    assert unsafe_path(path) is None


LINKS = {"up": "..", "deep/here": "../other", "loop": "loop", "away": "/etc", "deep/er/x": "../.."}


@pytest.mark.parametrize(
    ("path", "target", "stays"),
    [
        ("a/l", "b", True),
        ("a/l", "../b", True),
        ("a/l", "..", True),
        ("a/l", "../..", False),
        ("l", "..", False),
        ("l", "/etc", False),
        ("l", "", False),
        ("l", "a/../../x", False),
        ("l", "deep/here/../x", True),
        # Two steps down by name, but the link has led up before.
        ("l", "deep/er/x/../y", False),
        ("l", "up", False),
        ("l", "loop", False),
        ("l", "away/x", False),
        ("l", "x/.git/config", False),
        ("a/l", "./../a/././b", True),
    ],
)
def test_links_that_lead_out(path, target, stays):
    assert (leads_out(path, target, LINKS.get) is None) == stays
