"""Finding what to attack in a problem: the benchmarked functions and commands, and their files."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from fairtrial.arena import CodeProblem
from fairtrial.core import Mistake, StudyError


@dataclass(frozen=True, slots=True)
class AttackTarget:
    """A function or a command of a problem that can be attacked.

    label: `module:function`, or the name of the command's benchmark
    path: the file that is changed, relative to the top of the repository
    source: the text of that file
    attribute: the function's dotted name in its module; empty for a command
    command: the command; empty for a function
    """

    label: str
    path: str
    source: str
    attribute: str = ""
    command: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The folder of the file, with a slash at its end; empty for the top."""
        return _as_folder(PurePosixPath(self.path).parent)

    def place(self, path: str) -> str:
        """Return the path of a further file: `{folder}` and `{root}` are folders of this target."""
        module = self.label.partition(":")[0].replace(".", "/")
        whole = self.path.removesuffix(".py").removesuffix("/__init__")
        root = whole.removesuffix(module) if self.attribute else self.folder
        return path.replace("{folder}", self.folder).replace("{root}", root)


def _as_folder(path: PurePosixPath) -> str:
    return "" if str(path) == "." else f"{path}/"


def find_targets(problem: CodeProblem, sources: Mapping[str, str]) -> list[AttackTarget]:
    """Return the targets of a problem: benchmarked functions and commands, else checked ones.

    sources: the text of each editable file, by path

    Raises `StudyError` if there is none that candidates may change.
    """
    functions = [benchmark.call for benchmark in problem.bench if benchmark.call]
    commands = {b.name: b.command for b in problem.bench if b.command}
    if not functions and not commands:
        functions = [check.function for check in problem.check if check.function]
        plain = [check for check in problem.check if check.command and not check.is_pytest]
        commands = {f"check[{index}]": check.command for index, check in enumerate(plain)}
    targets = [_find_function(name, sources) for name in dict.fromkeys(functions)]
    targets += [_find_command(name, argv, sources) for name, argv in commands.items()]
    known = [target for target in targets if target is not None]
    if not known:
        message = "no benchmarked or checked function or command lies in an editable Python file"
        hint = "name one under bench:, with a file that `editable` matches"
        raise StudyError(Mistake(("bench",), message, hint))
    return known


def _find_function(name: str, sources: Mapping[str, str]) -> AttackTarget | None:
    module, _, attribute = name.partition(":")
    path = _find_module(module, sources) or _find_definition(attribute, sources)
    return AttackTarget(name, path, sources[path], attribute) if path else None


def _find_module(module: str, sources: Mapping[str, str]) -> str:
    """Return the file of a module; empty if no editable file can be it."""
    stem = module.replace(".", "/")
    paths = [
        path
        for path in sources
        if any(f"/{path}".endswith(f"/{stem}{end}") for end in (".py", "/__init__.py"))
    ]
    return min(paths, key=len, default="")


def _find_definition(attribute: str, sources: Mapping[str, str]) -> str:
    """Return the only editable file that defines a function or class of this name, if there is."""
    first = attribute.partition(".")[0]
    paths = [path for path, text in sources.items() if first in _list_definitions(text)]
    return paths[0] if len(paths) == 1 else ""


def _list_definitions(text: str) -> list[str]:
    return [node.name for node in _iterate_definitions(text)]


def _iterate_definitions(
    text: str,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def _find_command(
    name: str, argv: tuple[str, ...], sources: Mapping[str, str]
) -> AttackTarget | None:
    """Return the target of a command: the editable file that it runs."""
    path = ""
    if "-m" in argv[:-1]:
        module = argv[argv.index("-m") + 1]
        path = _find_module(f"{module}.__main__", sources) or _find_module(module, sources)
    named = [key for word in argv for key in sources if f"/{key}".endswith(f"/{word}")]
    path = path or next(iter(named), "") or next(iter(sorted(sources, key=len)), "")
    return AttackTarget(name, path, sources[path], command=argv) if path else None


def rename_function(text: str, name: str, new: str) -> str | None:
    """Rename a top-level function in a source, with its calls of itself; None if there is none."""
    nodes = [
        node
        for node in _iterate_definitions(text)
        if node.name == name and not isinstance(node, ast.ClassDef)
    ]
    if len(nodes) != 1:
        return None
    first, last = nodes[0].lineno, nodes[0].end_lineno or nodes[0].lineno
    lines = text.splitlines(keepends=True)
    before = ""
    places: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if first <= token.start[0] <= last and token.string == name and before != ".":
            places.append(token.start)
        before = token.string
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(name) :]
    return "".join(lines)


def find_first_statement(text: str) -> int:
    """Return the number of lines before the first statement that may be preceded by code.

    The docstring of a module and imports from `__future__` must stay first.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return 0
    end = 0
    for index, node in enumerate(body):
        is_doc = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_doc and not is_future:
            break
        end = node.end_lineno or node.lineno
    return end
