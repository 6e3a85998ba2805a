"""One name for candidates that come to the same.

Python files count by what they mean: formatting, comments, docstrings and names of local variables
don't, unless something may read them. Other files, and Python that can't be parsed or that reads
its own source, count by their bytes. A file that comes to the
same as the base's isn't part of the digest.
"""

from __future__ import annotations

import ast
import hashlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping

from fairtrial.arena.candidates.scopes import Variable, find_locals
from fairtrial.arena.model.candidates import FileState

SCHEME = b"fairtrial-digest-1"
"""Part of every digest: another way to make them must not give the same by accident."""
LENGTH = 32
_SUFFIXES = (".py", ".pyi", ".pyw")
_LARGEST_SOURCE = 1_000_000
_BLANKS = re.compile(rb"[ \t\r\f]+$", re.MULTILINE)
# What a node is in for is told by where it stands; the others are about spelling.
_UNUSED = {"ctx", "kind", "type_comment", "type_ignores"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_READ_DOCS = {"__doc__", "getdoc", "docopt"}
_READ_SOURCE = {"getsource", "getsourcelines", "getcomments", "linecache", "co_firstlineno"}
_EXAMPLE = ">>>"
_GRAMMAR = ("p_", "t_")  # functions whose docstrings are rules, for parser generators
# Ignoring warnings is a matter of the whole process, not of one thread.
_parsing = threading.Lock()


def normalised_digest(
    files: Mapping[str, FileState | None], base: Callable[[str], FileState | None]
) -> str:
    """The digest of changed files; empty text if they come to what the base has.

    files: every changed path as it should be; None for one that goes
    base: a file as the base has it
    """
    total = hashlib.sha256(SCHEME)
    is_empty = True
    for path in sorted(files):
        before = base(path)
        state = _essence(path, files[path], before)
        if state == _essence(path, before, before):
            continue
        is_empty = False
        _add(total, path.encode("utf-8", "surrogateescape"))
        _add(total, state)
    return "" if is_empty else total.hexdigest()[:LENGTH]


def _add(total: hashlib._Hash, data: bytes) -> None:
    total.update(len(data).to_bytes(8, "big") + data)


def _essence(path: str, state: FileState | None, before: FileState | None) -> bytes:
    """What counts of a file."""
    if state is None:
        return b"gone"
    if state.is_link:
        return b"link " + state.content
    executable = state.executable
    if executable is None:
        executable = before is not None and before.executable is True
    kind = b"executable " if executable else b"plain "
    if path.endswith(_SUFFIXES):
        return kind + _python_essence(state.content)
    return kind + b"bytes " + hashlib.sha256(state.content).digest()


def _python_essence(source: bytes) -> bytes:
    shebang = source.partition(b"\n")[0].strip() if source.startswith(b"#!") else b""
    tree = _parse(source) if len(source) <= _LARGEST_SOURCE else None
    if tree is None or _names(tree) & _READ_SOURCE:
        text = _BLANKS.sub(b"", source.replace(b"\r\n", b"\n")).rstrip(b"\n")
        return b"text " + hashlib.sha256(text).digest()
    total = hashlib.sha256()
    _add(total, shebang)
    for part in write_meaning(tree):
        _add(total, part)
    return b"python " + total.digest()


def _parse(source: bytes) -> ast.Module | None:
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def write_meaning(tree: ast.Module) -> Iterator[bytes]:
    """A file's meaning as a row of tokens: equal rows come from equal programs only.

    A local variable is written as its number in the order of appearance. Empty fields are left out,
    so that a newer Python with more of them gives the same. Without recursion: sources may be deep.
    """
    variables = find_locals(tree)
    numbers: dict[Variable, int] = {}
    keeps_docs = bool(_names(tree) & _READ_DOCS)
    left: list[object] = [tree]
    while left:
        item = left.pop()
        if isinstance(item, bytes):
            yield item
        elif isinstance(item, list):
            left.append(b"]")
            left.extend(reversed(item))
            left.append(b"[")
        elif isinstance(item, ast.AST):
            yield b"(" + type(item).__name__.encode()
            left.append(b")")
            left.extend(reversed(_fields(item, keeps_docs, variables, numbers)))
        else:
            yield _write_constant(item)


def _names(tree: ast.Module) -> set[str]:
    """All names that a file uses: variables, attributes, what it imports."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name)
    return found


def _fields(
    node: ast.AST,
    keeps_docs: bool,
    variables: Mapping[tuple[int, str, int], Variable],
    numbers: dict[Variable, int],
) -> list[object]:
    """A node's fields that say something, names of local variables replaced by numbers."""
    found: list[object] = []
    for name, value in ast.iter_fields(node):
        if name in _UNUSED or value is None or value == []:
            continue
        if name == "body" and isinstance(node, _DOCUMENTED) and not keeps_docs:
            value = _undocumented(node, value)
        if isinstance(value, str | list) and not isinstance(node, ast.Constant):
            value = _renamed(node, name, value, variables, numbers)
        found.extend((b"." + name.encode(), value))
    return found


def _renamed(
    node: ast.AST,
    field: str,
    value: str | list[object],
    variables: Mapping[tuple[int, str, int], Variable],
    numbers: dict[Variable, int],
) -> object:
    def one(name: object, place: int) -> object:
        variable = variables.get((id(node), field, place))
        if variable is None:
            return name
        return b"$%d" % numbers.setdefault(variable, len(numbers))

    if isinstance(value, list):
        return [
            one(each, place) if isinstance(each, str) else each for place, each in enumerate(value)
        ]
    return one(value, 0)


def _undocumented(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    """A body without its docstring; one that has nothing else does nothing.

    Examples in it are tests, and decorators (of command lines, say) read it.
    """
    first = body[0] if body else None
    constant = first.value if isinstance(first, ast.Expr) else None
    if not (isinstance(constant, ast.Constant) and isinstance(constant.value, str)):
        return body
    is_rule = getattr(node, "name", "").startswith(_GRAMMAR)
    if is_rule or getattr(node, "decorator_list", None) or _EXAMPLE in constant.value:
        return body
    return body[1:] or [ast.Pass()]


def _write_constant(value: object) -> bytes:
    """A constant with its type: 1, 1.0 and True are different."""
    if isinstance(value, bool) or value is None or value is Ellipsis:
        return b"c" + repr(value).encode()
    if isinstance(value, int):
        return b"i" + hex(value).encode()  # not limited in length, other than repr
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    return b"v" + type(value).__name__.encode() + b" " + repr(value).encode()
