"""The rules of ARCHITECTURE.md: packages, facades, the direction of imports."""

import ast
import gc
import importlib
import importlib.util
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from fairtrial._facade import read_stub

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
# What each package may import: facades of these packages, and no others.
ALLOWED = {
    "core": set(),
    "llm": {"core"},
    "sandbox": {"core"},
    "study": {"core", "llm", "sandbox"},
    "arena": {"core", "sandbox"},
    "optimize": {"core", "llm", "sandbox", "study", "arena"},
    "compat": {"fairtrial", "core", "study"},
    "testing": {"fairtrial", "core", "sandbox", "study", "arena", "optimize"},
    "view": {"core", "sandbox", "study"},
    "cli": {"core", "llm", "sandbox", "study", "arena", "optimize", "compat", "testing", "view"},
    "fairtrial_codemod": {"fairtrial", "core", "sandbox", "arena", "optimize"},
}
FACADES = ("core", "llm", "sandbox", "study", "arena", "optimize", "compat", "view")
HEAVY = {
    "ray",
    "msgspec", "yaml", "rich", "anyio", "httpx", "numpy", "scipy", "matplotlib",
    "starlette", "uvicorn",
}  # fmt: skip
# Where a first-party import may stand inside a function: the lazy tables, and methods of `Study`
# that read and write files, and of `Results` that make pages.
LAZY = {
    "fairtrial/_facade.py",
    "fairtrial/cli/main.py",
    "fairtrial/study/model/study.py",
    "fairtrial/study/tables/results.py",
}
# What runs inside the sandbox is run by path, and shares its wire formats with the conformance
# suites, which run beside it. `testing` has no facade, since its suites need pytest.
PAST_FACADES = {
    ("testing", "fairtrial.sandbox.harness"),
    ("cli", "fairtrial.testing"),
}
FILES = sorted(SOURCE.rglob("*.py"))
# How many names and namespaces each facade may list, and how many names may cross packages in all
# (`tools/import_graph.py`). Lower a number when it can be lowered; to raise one is a decision.
MOST_NAMES = {
    "core": 35, "llm": 10, "sandbox": 24, "study": 81, "arena": 68, "optimize": 16, "compat": 61,
    "view": 1,
}  # fmt: skip
MOST_CROSSING_NAMES = 170
# Functions that a facade lists although no package uses them and no guide mentions them.
UNDOCUMENTED: dict[str, set[str]] = {}


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
    imported = []
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.append((node, node.module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            imported += [(node, alias.name, []) for alias in node.names]
    return [
        entry
        for entry in imported
        if entry[1].partition(".")[0] in ("fairtrial", "fairtrial_codemod")
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


def bound_names(statement):
    """(name in the importing module, imported name) of each name of an import statement."""
    return [(alias.asname or alias.name, alias.name) for alias in statement.names]


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


def documented_names():
    """Names of the root and of `compat`, and words in code of the guides; not generated tables."""
    guides = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    text = "".join(guide.read_text("utf-8") for guide in guides)
    text = re.sub(r"<!-- names: .*?<!-- end -->", "", text, flags=re.S)
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, flags=re.S))
    roots = (importlib.import_module(name).__all__ for name in ("fairtrial", "fairtrial.compat"))
    return set(re.findall(r"\w+", code)).union(*roots)


@pytest.mark.parametrize("package", FACADES)
def test_every_name_of_a_facade_is_used_outside_or_documented(package):
    """Classes may also be listed for annotations; functions and constants may not."""
    used = {
        name
        for _, _, _, module, names in crossing_imports()
        if module == f"fairtrial.{package}"
        for name in names
    }
    facade = importlib.import_module(f"fairtrial.{package}")
    unused = set(facade.__all__) - used - documented_names()
    unused -= {name for name in unused if inspect.isclass(getattr(facade, name))}
    assert unused - UNDOCUMENTED.get(package, set()) == set()


def test_fairtrial_itself_does_not_grow_unnoticed():
    assert len(importlib.import_module("fairtrial").__all__) <= 68


@pytest.mark.parametrize("package", FACADES)
def test_facades_do_not_grow_unnoticed(package):
    names = importlib.import_module(f"fairtrial.{package}").__all__
    assert len(names) <= MOST_NAMES[package]


def test_names_that_cross_packages_do_not_grow_unnoticed():
    spec = importlib.util.spec_from_file_location("graph", ROOT / "tools" / "import_graph.py")
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    crossing = graph.crossing_imports(graph.read_tree(SOURCE))
    assert len({(module, name) for _, module, name in crossing}) <= MOST_CROSSING_NAMES


def namespaces():
    """(full name, path) of each module or sub-package that a facade lists."""
    for package in FACADES:
        facade = importlib.import_module(f"fairtrial.{package}")
        for name in facade.__all__:
            value = getattr(facade, name)
            if inspect.ismodule(value):
                yield value.__name__, Path(value.__file__)


def public_names(path):
    """The names that a namespace's stub or `__all__` lists; else those that its module defines."""
    if path.name == "__init__.py" and path.with_suffix(".pyi").exists():
        return set(read_stub(path.with_suffix(".pyi")))
    names = set()
    for node in parse(path).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if targets == ["__all__"]:
                return set(ast.literal_eval(node.value))
            names.update(targets)
    return {name for name in names if not name.startswith("_")}


def test_namespaces_say_what_they_are_for():
    undocumented = [name for name, path in namespaces() if not ast.get_docstring(parse(path))]
    assert undocumented == []


def test_other_packages_use_only_public_names_of_namespaces():
    public = {name: public_names(path) for name, path in namespaces()}
    wrong = []
    for path, _, statement, module, _ in crossing_imports():
        known = {alias: public.get(f"{module}.{name}") for alias, name in bound_names(statement)}
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                namespace = known.get(node.value.id)
                if namespace is not None and node.attr not in {*namespace, "__all__"}:
                    wrong.append(where(path, node, f"{module}: {node.value.id}.{node.attr}"))
    assert wrong == []


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
        if node.lineno not in {top.lineno for top in top_level(parse(path))}
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
        "tests/test_architecture.py",
        "tools/import_graph.py",
    }:
        assert [path for path in paths if f"/{path}".endswith(f"/{mentioned}")], mentioned
    for name, mentioned in re.findall(r"`([\w.]+)` in `((?:\w+/)+\w+\.py)`", document):
        (path,) = [paths[path] for path in paths if f"/{path}".endswith(f"/{mentioned}")]
        text = path.read_text("utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(async )?(def|class) {part}\b", text, re.M), (name, mentioned)
