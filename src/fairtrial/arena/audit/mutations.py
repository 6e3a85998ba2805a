"""Mutations of Python source: one small change of the syntax tree each, as a splice of the text."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REMOVABLE = (ast.Expr, ast.AugAssign, ast.Continue, ast.Break, ast.Raise, ast.Delete)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One small change of a source file.

    path: the file
    line: the line that is changed
    function: the function that it is in, by its qualified name
    change: the kind of change
    start, end: the bytes of the source that are replaced
    text: the text that replaces them
    """

    path: str
    line: int
    function: str
    change: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with this change."""
        return source[: self.start] + self.text.encode("utf-8") + source[self.end :]

    def render_diff(self, source: bytes) -> str:
        """Return the change as a unified diff."""
        before, after = (
            text.decode("utf-8").splitlines(keepends=True) for text in (source, self.apply(source))
        )
        names = f"a/{self.path}", f"b/{self.path}"
        return "".join(difflib.unified_diff(before, after, *names, n=1))


def find_mutations(path: str, source: bytes, lines: Collection[int]) -> list[Mutation]:
    """Return the mutations of a file inside of functions, in statements that these lines reach.

    They may not all be valid: see `is_valid`. Returns none for source that isn't Python in UTF-8.
    """
    try:
        source.decode("utf-8")
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    if source.startswith(b"\xef\xbb\xbf"):  # positions of nodes don't count this mark
        return []
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    mutations = []
    for function, node in _walk(tree.body, lines, ""):
        for change, target, text in _mutate(node):
            start = starts[target.lineno - 1] + target.col_offset
            end = starts[(target.end_lineno or 0) - 1] + (target.end_col_offset or 0)
            mutations.append(Mutation(path, target.lineno, function, change, start, end, text))
    return mutations


def is_valid(source: bytes) -> bool:
    """Return whether a source is Python."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _walk(
    nodes: Iterable[ast.AST], lines: Collection[int], function: str, prefix: str = ""
) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes in the bodies of functions that are evaluated when they are called.

    lines: the lines that were run; of statements on other lines nothing is yielded
    function: the function that the nodes are in; empty at the top level
    prefix: what precedes the names of functions that the nodes define
    """
    for node in nodes:
        if isinstance(node, _FUNCTIONS):
            name = prefix + node.name
            yield from _walk(node.body, lines, name, f"{name}.")
            continue
        if isinstance(node, ast.ClassDef):
            yield from _walk(node.body, lines, function, f"{prefix}{node.name}.")
            continue
        if isinstance(node, ast.stmt) and function and not _is_reached(node, lines):
            continue
        if function and not _is_docstring(node):
            yield function, node
        fields = (value for name, value in ast.iter_fields(node) if name != "annotation")
        parts = (part for value in fields for part in _as_list(value) if isinstance(part, ast.AST))
        yield from _walk(parts, lines, function, prefix)


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _is_reached(node: ast.stmt, lines: Collection[int]) -> bool:
    """Return whether a statement was run; of one with a body, whether its head was."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno
    return any(line in lines for line in range(node.lineno, max(last or 0, node.lineno) + 1))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


_Change = tuple[str, ast.expr | ast.stmt, str]
"""The kind of a change, the node whose text is replaced, and the new text."""


def _mutate(node: ast.AST) -> Iterator[_Change]:
    """Yield the changes of one node, without those of the nodes in it."""
    if isinstance(node, ast.expr):
        yield from _mutate_expression(node)
    elif isinstance(node, ast.stmt):
        yield from _mutate_statement(node)


def _mutate_expression(node: ast.expr) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[operator]):
            yield "comparison", node, _with(node, ops=[_COMPARISONS[type(operator)]()])
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            yield "arithmetic", node, _with(node, op=_OPERATORS[type(operator)]())
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield "boolean operator", node, _with(node, op=other)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation removed", node, f"({ast.unparse(operand)})"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "sign", node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield "constant", node, repr(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, repr(value + 1)
            yield "constant", node, repr(value - 1) if value >= 1 else f"({value - 1!r})"
        case ast.Call(args=[first, second, *rest]) if _can_swap(first, second):
            yield "swapped arguments", node, _with(node, args=[second, first, *rest])
        case ast.Subscript(slice=ast.Slice() as bounds):
            yield from _mutate_slice(node, bounds)
        case ast.IfExp(test=test):
            yield "negated condition", test, f"(not ({ast.unparse(test)}))"


def _mutate_slice(node: ast.Subscript, bounds: ast.Slice) -> Iterator[_Change]:
    lower = "1" if bounds.lower is None else f"({ast.unparse(bounds.lower)}) + 1"
    upper = "-1" if bounds.upper is None else f"({ast.unparse(bounds.upper)}) - 1"
    for name, text in (("lower", lower), ("upper", upper)):
        bound = ast.parse(text, mode="eval").body
        yield "slice boundary", node, _with(node, slice=_changed(bounds, **{name: bound}))


def _mutate_statement(node: ast.stmt) -> Iterator[_Change]:
    match node:
        case ast.If(test=test, orelse=[]):
            yield "negated condition", test, f"not ({ast.unparse(test)})"
            yield "condition never holds", test, "False"
        case ast.If(test=test):
            yield "negated condition", test, f"not ({ast.unparse(test)})"
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "returns None", node, "return None"
            if empty := _empty_of(value):
                yield "returns an empty value", node, f"return {empty}"
        case ast.AugAssign(op=operator, value=value) if type(operator) in _OPERATORS:
            yield "arithmetic", node, _with(node, op=_OPERATORS[type(operator)]())
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "removed statement", node, "pass"
    if isinstance(node, _REMOVABLE):
        yield "removed statement", node, "pass"


def _empty_of(value: ast.expr) -> str:
    """Return the empty value of the type that an expression obviously has; else nothing."""
    match value:
        case ast.List(elts=[_, *_]) | ast.ListComp():
            return "[]"
        case ast.Dict(keys=[_, *_]) | ast.DictComp():
            return "{}"
        case ast.Tuple(elts=[_, *_]):
            return "()"
        case ast.JoinedStr():
            return "''"
    return ""


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _can_swap(first: ast.expr, second: ast.expr) -> bool:
    is_starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
    return not is_starred and ast.dump(first) != ast.dump(second)


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _with(node: ast.AST, **fields: object) -> str:
    """Return the text of a node with other fields, in parentheses if it is an operator."""
    text = ast.unparse(_changed(node, **fields))
    return f"({text})" if isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare)) else text
