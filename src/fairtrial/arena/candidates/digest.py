"""Compute a digest of changes that is equal for equivalent candidates.

Python files are compared by their syntax trees: formatting, comments, docstrings and names of local
variables don't count, unless the program may read them. If any changed file may read the source,
line numbers or frames (see `introspection`), or can't be parsed, all changed files are compared by
bytes, as other files are. A file that is equivalent to the base's isn't part of the digest.
"""

from __future__ import annotations

import ast
import hashlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping

from fairtrial.arena.candidates.introspection import may_see_source
from fairtrial.arena.candidates.scopes import Variable, find_locals
from fairtrial.arena.model.candidates import FileState

SCHEME = b"fairtrial-digest-2"
"""Part of every digest, so that digests of different versions of this module always differ."""
LENGTH = 32
_SUFFIXES = (".py", ".pyi", ".pyw")
_MAX_SOURCE_BYTES = 1_000_000
# `ctx` follows from the position of a node; the others concern spelling only.
_IGNORED_FIELDS = {"ctx", "kind", "type_comment", "type_ignores"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_READ_DOCS = {"__doc__", "getdoc", "docopt"}
_EXAMPLE = ">>>"
_GRAMMAR = ("p_", "t_")  # functions whose docstrings are rules, for parser generators
# Warning filters are global to the process.
_parse_lock = threading.Lock()


def normalized_digest(
    files: Mapping[str, FileState | None], base: Callable[[str], FileState | None]
) -> str:
    """Return the digest of changed files; empty if all are equivalent to the base's.

    files: the new state of each changed path; None for a deleted file
    base: returns the base's state of a path
    """
    digest = hashlib.sha256(SCHEME)
    is_empty = True
    by_bytes = _may_see_source(files)
    for path in sorted(files):
        before = base(path)
        state = _normalize(path, files[path], before, by_bytes=by_bytes)
        if state == _normalize(path, before, before, by_bytes=by_bytes):
            continue
        is_empty = False
        _add(digest, path.encode("utf-8", "surrogateescape"))
        _add(digest, state)
    return "" if is_empty else digest.hexdigest()[:LENGTH]


def _add(digest: hashlib._Hash, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "big") + data)


def _may_see_source(files: Mapping[str, FileState | None]) -> bool:
    """Return whether a changed Python file may read the source of any, or can't be analyzed."""
    packages = {part.removesuffix(".py") for path in files for part in path.split("/")}
    for path, state in files.items():
        if state is None or state.is_link or not path.endswith(_SUFFIXES):
            continue
        tree = _parse(state.content) if len(state.content) <= _MAX_SOURCE_BYTES else None
        if tree is None or may_see_source(tree, packages):
            return True
    return False


def _normalize(
    path: str, state: FileState | None, before: FileState | None, *, by_bytes: bool
) -> bytes:
    """Return a value that is equal for equivalent states of a file."""
    if state is None:
        return b"gone"
    if state.is_link:
        return b"link " + state.content
    executable = state.executable
    if executable is None:
        executable = before is not None and before.executable is True
    kind = b"executable " if executable else b"plain "
    if path.endswith(_SUFFIXES) and not by_bytes:
        return kind + _normalize_python(state.content)
    return kind + b"bytes " + hashlib.sha256(state.content).digest()


def _normalize_python(source: bytes) -> bytes:
    shebang = source.partition(b"\n")[0].strip() if source.startswith(b"#!") else b""
    tree = _parse(source) if len(source) <= _MAX_SOURCE_BYTES else None
    if tree is None:
        return b"bytes " + hashlib.sha256(source).digest()
    digest = hashlib.sha256()
    _add(digest, shebang)
    for token in write_tokens(tree):
        _add(digest, token)
    return b"python " + digest.digest()


def _parse(source: bytes) -> ast.Module | None:
    with _parse_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def write_tokens(tree: ast.Module) -> Iterator[bytes]:
    """Yield a syntax tree as tokens, which are equal for equivalent programs only.

    A local variable is written as its number in the order of appearance. Empty fields are left out,
    so that a newer Python with further fields gives the same tokens. There is no recursion, since
    sources may be deep.
    """
    variables = find_locals(tree)
    numbers: dict[Variable, int] = {}
    keeps_docs = bool(_collect_names(tree) & _READ_DOCS)
    pending: list[object] = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, bytes):
            yield item
        elif isinstance(item, list):
            pending.append(b"]")
            pending.extend(reversed(item))
            pending.append(b"[")
        elif isinstance(item, ast.AST):
            yield b"(" + type(item).__name__.encode()
            pending.append(b")")
            pending.extend(reversed(_list_fields(item, keeps_docs, variables, numbers)))
        else:
            yield _write_constant(item)


def _collect_names(tree: ast.Module) -> set[str]:
    """Return all names that a file uses: variables, attributes and imports."""
    names = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                names.add(name)
    return names


def _list_fields(
    node: ast.AST,
    keeps_docs: bool,
    variables: Mapping[tuple[int, str, int], Variable],
    numbers: dict[Variable, int],
) -> list[object]:
    """Return a node's relevant fields, with names of local variables replaced by numbers."""
    fields: list[object] = []
    for name, value in ast.iter_fields(node):
        if name in _IGNORED_FIELDS or value is None or value == []:
            continue
        if name == "body" and isinstance(node, _DOCUMENTED) and not keeps_docs:
            value = _remove_docstring(node, value)
        if isinstance(value, str | list) and not isinstance(node, ast.Constant):
            value = _replace_names(node, name, value, variables, numbers)
        fields.extend((b"." + name.encode(), value))
    return fields


def _replace_names(
    node: ast.AST,
    field: str,
    value: str | list[object],
    variables: Mapping[tuple[int, str, int], Variable],
    numbers: dict[Variable, int],
) -> object:
    def replace_name(name: object, index: int) -> object:
        variable = variables.get((id(node), field, index))
        if variable is None:
            return name
        return b"$%d" % numbers.setdefault(variable, len(numbers))

    if isinstance(value, list):
        return [
            replace_name(item, index) if isinstance(item, str) else item
            for index, item in enumerate(value)
        ]
    return replace_name(value, 0)


def _remove_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a body without its docstring, unless the docstring may have an effect.

    Examples in a docstring are tests, and decorators (of command-line interfaces, say) may read it.
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
    """Return a constant with its type: 1, 1.0 and True differ."""
    if isinstance(value, bool) or value is None or value is Ellipsis:
        return b"c" + repr(value).encode()
    if isinstance(value, int):
        return b"i" + hex(value).encode()  # unlike repr, without a limit of digits
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    return b"v" + type(value).__name__.encode() + b" " + repr(value).encode()
