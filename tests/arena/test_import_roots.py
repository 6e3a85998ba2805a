"""Import roots in the usual layouts of projects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fairtrial.arena.import_roots import find_import_roots


def make(top: Path, *files: str, **texts: str) -> Path:
    """A tree with these files; texts by a name whose last underscore is a dot."""
    named = {".".join(name.rsplit("_", 1)): text for name, text in texts.items()}
    for name in (*files, *named):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(named.get(name, ""), "utf-8")
    return top


LAYOUTS: dict[str, tuple[list[str], list[str]]] = {
    "nothing at all": ([], ["."]),
    "a package": (["pkg/__init__.py", "tests/test_a.py"], ["."]),
    "a module": (["six.py", "test_six.py", "setup.py"], ["."]),
    "packages in src": (["src/pkg/__init__.py", "tests/__init__.py", "docs/conf.py"], ["src"]),
    "a module in src": (["src/mod.py", "conftest.py"], ["src"]),
    "a package without __init__ in src": (["src/company/part/thing.py"], ["src"]),
    "a compiled module in src": (["src/fast.pyx"], ["src"]),
    "src for another language": (["src/main.c", "src/deep/x.h", "pkg/__init__.py"], ["."]),
    "src that is itself a package": (["src/__init__.py", "src/mod.py"], ["."]),
    "packages in lib": (["lib/pkg/__init__.py"], ["lib"]),
    "lib that is itself a package": (["lib/__init__.py", "main.py"], ["."]),
    "packages in python, beside Rust": (["python/pkg/__init__.py", "src/lib.rs"], ["python"]),
    "two roots": (["lib/a/__init__.py", "python/b/__init__.py"], ["lib", "python"]),
    "src comes before lib": (["src/a/__init__.py", "lib/vendored.py"], ["src"]),
    "src and a helper beside it": (["src/a/__init__.py", "helper/__init__.py"], ["src", "."]),
    "src and packages that are no code": (
        ["src/a/__init__.py", "tests/__init__.py", "benchmarks/__init__.py", "Docs/__init__.py"],
        ["src"],
    ),
    "folders that can't be imported": (["src/a/__init__.py", "my-tool/__init__.py"], ["src"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders_show_where_imports_start(tmp_path: Path, layout: str) -> None:
    files, roots = LAYOUTS[layout]
    assert find_import_roots(make(tmp_path, *files)) == tuple(roots)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_project_in_a_part_of_a_repository_is_found_from_the_top(
    tmp_path: Path, layout: str
) -> None:
    """The rest of the repository has no say."""
    files, roots = LAYOUTS[layout]
    make(tmp_path, "src/other/__init__.py", "pkg/__init__.py", pyproject_toml="[tool.x]\n")
    make(tmp_path / "packages/one", *files).mkdir(parents=True, exist_ok=True)
    expected = tuple(os.path.normpath(f"packages/one/{root}") for root in roots)
    assert find_import_roots(tmp_path, "packages/one") == expected


PYPROJECTS: dict[str, tuple[str, list[str]]] = {
    "setuptools, found": ('[tool.setuptools.packages.find]\nwhere = ["code"]\n', ["code"]),
    "setuptools, root": ('[tool.setuptools]\npackage-dir = {"" = "code"}\n', ["code"]),
    "setuptools, package": ('[tool.setuptools.package-dir]\n"a.b" = "code/a/b"\n', ["code"]),
    "setuptools, renamed": ('[tool.setuptools.package-dir]\nx = "code/a"\n', ["."]),
    "setuptools, list": ('[tool.setuptools]\npackages = ["a", "a.b"]\n', ["."]),
    "hatch": ('[tool.hatch.build.targets.wheel]\npackages = ["code/a"]\n', ["code"]),
    "hatch, several": (
        '[tool.hatch.build.targets.wheel]\npackages = ["code/a", "more/b", "c"]\n',
        ["code", "more", "."],
    ),
    "hatch, all targets": ('[tool.hatch.build]\npackages = ["code/a"]\n', ["code"]),
    "hatch, sources": ('[tool.hatch.build]\nsources = ["code"]\n', ["code"]),
    "hatch, mapped": ('[tool.hatch.build]\nsources = {"code/a" = "a"}\n', ["code"]),
    "poetry": ('[tool.poetry]\npackages = [{include = "a", from = "code"}]\n', ["code"]),
    "poetry, flat": ('[tool.poetry]\npackages = [{include = "a"}]\n', ["."]),
    "pdm": ('[tool.pdm.build]\npackage-dir = "code"\n', ["code"]),
    "uv": ('[tool.uv.build-backend]\nmodule-root = "code"\n', ["code"]),
    "maturin": ('[tool.maturin]\npython-source = "code"\n', ["code"]),
    "pytest": ('[tool.pytest.ini_options]\npythonpath = ["code", "more"]\n', ["code", "more"]),
    "pytest, as a text": ('[tool.pytest.ini_options]\npythonpath = "code"\n', ["code"]),
    "a folder that isn't there": ('[tool.pdm.build]\npackage-dir = "gone"\n', ["."]),
    "a path that leads out": ('[tool.pdm.build]\npackage-dir = "../code"\n', ["."]),
    "an absolute path": ('[tool.pdm.build]\npackage-dir = "/usr"\n', ["."]),
    "a name that is too long": (f'[tool.pdm.build]\npackage-dir = "{"x" * 300}"\n', ["."]),
    "a null": ('[tool.pdm.build]\npackage-dir = "a\\u0000b"\n', ["."]),
    "damaged": ("[tool.pdm.build\n", ["."]),
    "not what it should be": ("tool = 5\n", ["."]),
}


@pytest.mark.parametrize("case", PYPROJECTS)
def test_pyproject_says_where_imports_start(tmp_path: Path, case: str) -> None:
    text, roots = PYPROJECTS[case]
    make(tmp_path, "code/outside.py")
    top = tmp_path / "project"
    make(top, "code/a/b/x.txt", "more/b/x.txt", "c/x.txt", pyproject_toml=text)
    assert find_import_roots(top) == tuple(roots)


SETUPS: dict[str, tuple[str, str, list[str]]] = {
    "package_dir": ("cfg", "[options]\npackage_dir =\n    = code\n", ["code"]),
    "package_dir, in a line": (
        "cfg",
        "[options]\npackage_dir = a=code/a, b=more/b\n",
        ["code", "more"],
    ),
    "find": ("cfg", "[options.packages.find]\nwhere = code\n", ["code"]),
    "damaged cfg": ("cfg", "what = 1\n[options\n", ["."]),
    "percent": ("cfg", "[options]\npackage_dir = %(x)s=code\n", ["."]),
    "setup.py": ("py", "setup(package_dir={'': 'code'})", ["code"]),
    "setup.py, found": ("py", "s.setup(packages=setuptools.find_packages('code'))", ["code"]),
    "setup.py, where": ("py", "setup(packages=find_namespace_packages(where='code'))", ["code"]),
    "setup.py, computed": ("py", "setup(package_dir={'': HERE}, packages=find_packages(x))", ["."]),
    "damaged setup.py": ("py", "setup(", ["."]),
    "old setup.py": ("py", "print 'x'\nx = '\\d'", ["."]),
}


@pytest.mark.parametrize("case", SETUPS)
def test_older_packaging_says_where_imports_start(tmp_path: Path, case: str) -> None:
    ending, text, roots = SETUPS[case]
    make(tmp_path, "code/a/x.txt", "more/b/x.txt", **{f"setup_{ending}": text})
    assert find_import_roots(tmp_path) == tuple(roots)


def test_what_packaging_says_comes_before_what_folders_show(tmp_path: Path) -> None:
    text = '[tool.setuptools.packages.find]\nwhere = ["code"]\n'
    make(tmp_path, "code/a/x.py", "src/b.py", "lib/c.py", "d/__init__.py", pyproject_toml=text)
    assert find_import_roots(tmp_path) == ("code", "src", ".")


def test_this_project_and_its_example() -> None:
    top = Path(__file__).parents[2]
    assert find_import_roots(top)[0] == "src"
    assert find_import_roots(top, "examples/toposort") == ("examples/toposort/src",)


def test_links_that_go_in_circles_and_pipes_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/again").symlink_to(tmp_path / "src")
    (tmp_path / "src/self").symlink_to("self")
    os.mkfifo(tmp_path / "setup.py")
    (tmp_path / "setup.cfg").mkdir()
    assert find_import_roots(tmp_path) == (".",)


SAFE = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["src", "lib", "code", "a", "__init__.py", "b.py", "x y", "pyproject.toml"])
TOML_WORDS = st.sampled_from(
    [
        *(
            "[tool.setuptools]\n",
            "[tool.hatch.build]\n",
            "[tool.poetry]\n",
            "[tool]\n",
            "[",
            "]",
            "=",
        ),
        *(
            "packages",
            "package-dir",
            "sources",
            "where",
            "find",
            '"src/a"',
            '""',
            "{",
            "}",
            ",",
            "5",
        ),
        *(
            "\n",
            '"\\u0000"',
            '"../x"',
            '"/"',
            "[options]\n",
            "package_dir",
            "[[tool.poetry.packages]]\n",
        ),
        *(
            "include",
            "from",
            "setup(",
            "find_packages(",
            ")",
            ":",
            '"' + "n" * 300 + '"',
            "%(",
            "\ufeff",
        ),
    ]
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(
    files=st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=6),
    texts=st.lists(st.lists(TOML_WORDS, max_size=20).map("".join) | SAFE, min_size=3, max_size=3),
)
def test_no_tree_and_no_packaging_makes_it_fail(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], texts: list[str]
) -> None:
    top = tmp_path_factory.mktemp("tree")
    for parts in files:
        path = top.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (FileExistsError, NotADirectoryError):
            continue  # a file is where a folder should be
    for name, text in zip(("pyproject.toml", "setup.cfg", "setup.py"), texts, strict=True):
        if not (top / name).exists():
            (top / name).write_bytes(text.encode("utf-8"))
    roots = find_import_roots(top)
    assert roots
    assert len(set(roots)) == len(roots)
    for root in roots:
        assert (top / root).resolve().is_relative_to(top.resolve())
        assert (top / root).is_dir()
