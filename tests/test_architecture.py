"""The layers of ARCHITECTURE.md, enforced: imports point downwards, at the top of files."""

import ast
import gc
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "fairtrial"
# The lowest layer first; a module imports from its own folder and from lower rows only.
LAYERS = [
    {"errors"},
    {"model"},
    {"protocols"},
    {"files", "guest", "plugins"},
    {"design", "sandbox", "stats"},
    {"ledger", "prospect", "validation"},
    {"loading", "recipes"},
    {"tables"},
    {"arena"},
    {"agents", "problems"},
    {"engine", "report"},
    {"cli", "testing"},
    {"__main__"},
]
HEAVY = {
    "msgspec", "yaml", "rich", "anyio", "httpx", "numpy", "scipy", "libcst", "matplotlib",
}  # fmt: skip
# Where a first-party import may stand inside a function: the lazy tables, and methods that hand
# their file over to `loading`.
LAZY = {"__init__.py", "cli/main.py", "model/study.py"}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer_of(part):
    return next(index for index, layer in enumerate(LAYERS) if part in layer)


def room_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


@cache
def imports(path):
    """(node, dotted module) for each import in a file."""
    return list(find_imports(parse(path)))


def statements(tree):
    """All of them, however deep; expressions, most of a tree, are passed over."""
    rest = [tree]
    while rest:
        node = rest.pop()
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, block, None)
            if isinstance(inner, list):  # a conditional expression has such names, too
                yield from inner
                rest += inner


def find_imports(tree):
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "fairtrial":
                yield from ((node, f"fairtrial.{alias.name}") for alias in node.names)
            else:
                yield node, node.module
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)


@cache
def parse(path):
    gc.disable()  # or looking for circles, of which there are none, takes longer than the rest
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def wrong_imports(is_wrong, *, but=()):
    """Where those stand that are wrong, and what they import: a line for each."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} imports {module}"
        for path in FILES
        if str(path.relative_to(PACKAGE)) not in but
        for node, module in imports(path)
        if is_wrong(path, node, module)
    ]


def points_elsewhere(path, node, module):
    """Whether an import leads to a room that isn't below that of the file."""
    parts = module.split(".")
    if parts[0] != "fairtrial":
        return False
    other = parts[1] if len(parts) > 1 else "__init__"
    if other in ("__version__", "__init__") or other == room_of(path):
        return False
    lazy_hand_over = str(path.relative_to(PACKAGE)) == "model/study.py" and other == "loading"
    return not (lazy_hand_over or layer_of(other) < layer_of(room_of(path)))


def test_imports_point_downwards():
    assert wrong_imports(points_elsewhere, but=["__init__.py"]) == []


def top_level(tree):
    return [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]


def for_types_alone(tree):
    """Imports that only type checkers see."""
    for node in tree.body:
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            yield from node.body


def test_first_party_imports_stand_at_the_top():
    def is_inside(path, node, module):
        tree = parse(path)
        top = {node.lineno for node in [*top_level(tree), *for_types_alone(tree)]}
        return module.split(".")[0] == "fairtrial" and node.lineno not in top

    assert wrong_imports(is_inside, but=LAZY) == []


def test_heavy_libraries_are_imported_only_where_they_are_used():
    def is_heavy(path, node, module):
        return module.split(".")[0] in HEAVY and node in top_level(parse(path))

    assert wrong_imports(is_heavy) == []


def test_modules_do_not_import_each_other_in_circles():
    graph = {}
    for path in FILES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(("fairtrial", *parts)).removesuffix(".__init__")
        tree = ast.Module(top_level(parse(path)), [])
        graph[name] = {
            module for _, module in find_imports(tree) if module.startswith("fairtrial.")
        }
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name in done or name not in graph:
            return
        path.append(name)
        for other in sorted(graph[name]):
            visit(other)
        path.pop()
        done.add(name)

    for name in graph:
        visit(name)


def test_every_room_is_in_a_layer_and_in_the_document():
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms == set().union(*LAYERS)
    document = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for room in rooms:
        assert re.search(rf"`{room}[`/.]", document), f"ARCHITECTURE.md doesn't mention {room}"


def test_the_layers_are_those_of_the_document():
    document = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", document, re.MULTILINE)
    told = {int(number): set(re.findall(r"`(\w+)`", rooms)) for number, rooms in rows}
    assert [told[number] for number in sorted(told)] == LAYERS


def test_protocols_stay_small_enough_to_read_at_a_glance():
    assert len((PACKAGE / "protocols.py").read_text("utf-8").splitlines()) < 150
