"""The rules of ARCHITECTURE.md: packages, facades, the direction of imports."""

import ast
import gc
import importlib
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
# What each package may import: facades of these packages, and no others.
ALLOWED = {
    "core": set(),
    "llm": {"core"},
    "sandbox": {"core"},
    "study": {"core", "llm"},
    "arena": {"core", "sandbox"},
    "optimize": {"core", "llm", "sandbox", "study", "arena"},
    "compat": {"core", "study"},
    "testing": {"core", "sandbox", "study", "arena", "optimize"},
    "cli": {"core", "llm", "sandbox", "study", "arena", "optimize", "compat", "testing"},
    "fairtrial_codemod": {"fairtrial", "core", "sandbox", "arena", "optimize"},
}
FACADES = ("core", "llm", "sandbox", "study", "arena", "optimize", "compat")
HEAVY = {
    "msgspec", "yaml", "rich", "anyio", "httpx", "numpy", "scipy", "libcst", "matplotlib",
}  # fmt: skip
# Where a first-party import may stand inside a function: the lazy tables, and methods of `Study`
# that read and write files.
LAZY = {"fairtrial/_facade.py", "fairtrial/cli/main.py", "fairtrial/study/model/study.py"}
# What runs inside the sandbox is run by path, and shares its wire formats with the conformance
# suites, which run beside it. `testing` has no facade, since its suites need pytest.
PAST_FACADES = {
    ("testing", "fairtrial.sandbox.harness"),
    ("cli", "fairtrial.testing.cheats"),
}
FILES = sorted(SOURCE.rglob("*.py"))


def package_of(path):
    """The package that a file belongs to: `arena`, `fairtrial_codemod`, or `fairtrial` itself."""
    parts = path.relative_to(SOURCE).parts
    if parts[0] != "fairtrial":
        return parts[0]
    return parts[1] if len(parts) > 2 else "fairtrial"


def name_of(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def parse(path):
    gc.disable()  # or looking for circles, of which there are none, takes longer than the rest
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


@cache
def imports(path):
    """(node, module, names) of each first-party import; no names for `import x`."""
    found = []
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node, node.module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            found += [(node, alias.name, []) for alias in node.names]
    return [
        each for each in found if each[1].partition(".")[0] in ("fairtrial", "fairtrial_codemod")
    ]


def crossing_imports():
    """(path, package, node, module, names) of each import from another package."""
    for path in FILES:
        for node, module, names in imports(path):
            parts = module.split(".")
            if parts[0] != "fairtrial":
                other = parts[0]
            else:
                other = parts[1] if len(parts) > 1 else "fairtrial"
            if other != package_of(path) and other != "_facade":
                yield path, other, node, module, names


def where(path, node, module):
    return f"{path.relative_to(ROOT)}:{node.lineno} imports {module}"


def test_packages_import_only_those_below_them():
    wrong = [
        where(path, node, module)
        for path, other, node, module, names in crossing_imports()
        if package_of(path) in ALLOWED
        and other not in ALLOWED[package_of(path)]
        and (module, names) != ("fairtrial", ["__version__"])
    ]
    assert wrong == []


def test_packages_import_each_other_through_facades_only():
    wrong = [
        where(path, node, module)
        for path, other, node, module, _ in crossing_imports()
        if module not in ("fairtrial", f"fairtrial.{other}")
        and (package_of(path), module) not in PAST_FACADES
        and path.name != "__main__.py"
    ]
    assert wrong == []


@pytest.mark.parametrize("package", FACADES)
def test_every_name_of_a_facade_can_be_imported(package):
    facade = importlib.import_module(f"fairtrial.{package}")
    for name in facade.__all__:
        assert getattr(facade, name) is not None


def test_every_name_of_a_facade_is_used_outside_or_documented():
    used = defaultdict(set)
    for _, other, _, module, names in crossing_imports():
        if module == f"fairtrial.{other}":
            used[other] |= set(names)
    root = set(importlib.import_module("fairtrial").__all__)
    guide = (ROOT / "docs" / "api.md").read_text("utf-8")
    documented = set(re.findall(r"`(\w+)`", guide)) | root
    for package in FACADES:
        names = set(importlib.import_module(f"fairtrial.{package}").__all__)
        assert names - used[package] - documented - {"__version__"} == set(), package


def top_level(tree):
    """Imports at the top of a file, and those that only type checkers see."""
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            yield from node.body


def test_first_party_imports_stand_at_the_top():
    wrong = [
        where(path, node, module)
        for path in FILES
        if str(path.relative_to(SOURCE)) not in LAZY
        for node, module, _ in imports(path)
        if node.lineno not in {each.lineno for each in top_level(parse(path))}
    ]
    assert wrong == []


def test_heavy_libraries_are_imported_only_where_they_are_used():
    wrong = []
    for path in FILES:
        for node in parse(path).body:
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            wrong += [where(path, node, name) for name in names if name.split(".")[0] in HEAVY]
    assert wrong == []


def test_modules_do_not_import_each_other_in_circles():
    graph = {}
    for path in FILES:
        top = {node for node in parse(path).body if isinstance(node, (ast.Import, ast.ImportFrom))}
        graph[name_of(path)] = {
            target
            for node, module, names in imports(path)
            if node in top
            for target in (module, *(f"{module}.{name}" for name in names))
        }
    done, visiting = set(), []

    def visit(name):
        assert name not in visiting, " -> ".join([*visiting[visiting.index(name) :], name])
        if name in done or name not in graph:
            return
        visiting.append(name)
        for other in sorted(graph[name]):
            visit(other)
        visiting.pop()
        done.add(name)

    for name in graph:
        visit(name)


def test_class_names_have_one_meaning():
    homes = defaultdict(list)
    for path in FILES:
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name_of(path))
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_every_package_is_in_the_document():
    document = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    packages = {package_of(path) for path in FILES} - {"fairtrial"}
    assert packages == ALLOWED.keys()
    for package in packages:
        assert re.search(rf"\b{package}/", document), f"ARCHITECTURE.md doesn't mention {package}"


def test_files_and_names_of_the_document_exist():
    document = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    paths = {
        str(path.relative_to(SOURCE / "fairtrial")): path
        for path in FILES
        if "fairtrial/" in str(path)
    }
    for mentioned in set(re.findall(r"`((?:\w+/)+\w+\.py)`", document)) - {
        "tests/test_architecture.py"
    }:
        assert [path for path in paths if f"/{path}".endswith(f"/{mentioned}")], mentioned
    for name, mentioned in re.findall(r"`([\w.]+)` in `((?:\w+/)+\w+\.py)`", document):
        (path,) = [paths[path] for path in paths if f"/{path}".endswith(f"/{mentioned}")]
        text = path.read_text("utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(async )?(def|class) {part}\b", text, re.M), (name, mentioned)
