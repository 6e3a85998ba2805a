"""Write changes into a source with libcst, which keeps comments, blank lines and style."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit
from fairtrial_codemod.imports import add_imports

if TYPE_CHECKING:
    from libcst import CSTNode, Module

Span = tuple[int, int, int, int]
_NODE_NAMES = {
    "BinOp": ("BinaryOperation",),
    "BoolOp": ("BooleanOperation",),
    "Compare": ("Comparison",),
    "Constant": ("Integer", "Float", "Imaginary", "SimpleString", "ConcatenatedString", "Name"),
    "JoinedStr": ("FormattedString", "ConcatenatedString"),
    "UnaryOp": ("UnaryOperation",),
}
"""libcst's names of nodes that have other names in `ast`."""


def write_changes(
    source: SourceFile, changes: Iterable[CodeChange]
) -> tuple[str, list[CodeChange]]:
    """Return the source with all changes that don't overlap, and the list of them.

    Nothing is changed if libcst can't parse the source, which it reports in many ways.
    """
    try:
        tree = _ConcreteTree(source)
        done = [change for change in changes if tree.take(change)]
        if not done:
            return source.text, []
        text = tree.write(sorted({name for change in done for name in change.imports}))
    except Exception:
        return source.text, []
    return text, done


def can_write(text: str) -> bool:
    """Return whether libcst parses a source and reproduces it."""
    import libcst as cst

    try:
        return bool(cst.parse_module(text).code == text)
    except Exception:  # it reports errors in many ways
        return False


@dataclass(slots=True)
class _NodeEdits:
    """The edits at one node.

    before: statements to write before it
    replace: code in its place
    after: statements to write after it
    """

    before: list[str] = field(default_factory=list)
    replace: str | None = None
    after: list[str] = field(default_factory=list)


class _ConcreteTree:
    """The source as a libcst tree, with the edits of its nodes."""

    def __init__(self, source: SourceFile) -> None:
        import libcst as cst
        from libcst.metadata import MetadataWrapper, PositionProvider

        self.source = source
        # A tree that was just parsed has no node twice, so it needn't be copied.
        wrapper = MetadataWrapper(cst.parse_module(source.text), unsafe_skip_copy=True)
        self.module: Module = wrapper.module
        self.expressions: dict[Span, CSTNode] = {}
        self.statements: dict[tuple[int, int], CSTNode] = {}
        self.edits: dict[CSTNode, _NodeEdits] = {}
        self.claimed: list[Span] = []
        for node, place in wrapper.resolve(PositionProvider).items():
            span = (place.start.line, place.start.column, place.end.line, place.end.column)
            if isinstance(node, cst.BaseExpression):
                self.expressions.setdefault(span, node)
            elif isinstance(node, cst.BaseStatement) and _is_single(node):
                self.statements[span[:2]] = node

    def take(self, change: CodeChange) -> bool:
        """Record the edits of a change if all their places exist and are free."""
        targets: list[tuple[CSTNode, TextEdit]] = []
        spans: list[Span] = []
        for edit in change.edits:
            kind, node, _ = edit
            target = self._find(node)
            if target is None or (kind != "replace" and not self._has_room(node)):
                return False
            targets.append((target, edit))
            if kind == "replace":
                spans.append(self._get_span(node))
        if any(_overlap(mine, other) for mine in spans for other in self.claimed):
            return False
        self.claimed += spans
        for target, (kind, _, code) in targets:
            edits = self.edits.setdefault(target, _NodeEdits())
            match kind:
                case "before":
                    edits.before.append(code)
                case "after":
                    edits.after.append(code)
                case _:
                    edits.replace = code
        return True

    def write(self, imports: Sequence[str]) -> str:
        """Return the source with all recorded edits and imports."""
        return add_imports(_rewrite(self.module, self.edits), imports).code

    def _find(self, node: ast.AST) -> CSTNode | None:
        span = self._get_span(node)
        if isinstance(node, ast.stmt):
            return self.statements.get(span[:2])
        # libcst has parentheses around, `ast` inside of tuples and generators.
        inner = (span[0], span[1] + 1, span[2], span[3] - 1)
        found = self.expressions.get(span) or self.expressions.get(inner)
        return found if found is not None and _is_same(node, found) else None

    def _get_span(self, node: ast.AST) -> Span:
        """Return the place of a node in characters; `ast` counts bytes."""
        assert isinstance(node, ast.expr | ast.stmt)
        last = node.end_lineno or node.lineno
        start = self._get_column(node.lineno, node.col_offset)
        return node.lineno, start, last, self._get_column(last, node.end_col_offset or 0)

    def _get_column(self, line: int, offset: int) -> int:
        return len(self.source.lines[line - 1].encode()[:offset].decode())

    def _has_room(self, node: ast.AST) -> bool:
        """Return whether statements may be written before and after: not around an ``elif``."""
        parent = self.source.parents[node]
        if not (isinstance(node, ast.If) and isinstance(parent, ast.If)):
            return True
        line = self.source.lines[node.lineno - 1].encode()
        return node not in parent.orelse or line[node.col_offset :].startswith(b"if")


def _is_same(node: ast.AST, found: CSTNode) -> bool:
    """Return whether two nodes are the same code; f-string positions may be wrong before 3.12."""
    if isinstance(node, ast.Name):
        return getattr(found, "value", None) == node.id
    name = type(node).__name__
    return type(found).__name__ in _NODE_NAMES.get(name, (name,))


def _is_single(node: CSTNode) -> bool:
    """Return whether a line is one statement: not ``a = 1; b = 2``."""
    body = getattr(node, "body", None)
    return not isinstance(body, Sequence) or len(body) == 1


def _overlap(one: Span, other: Span) -> bool:
    return one[:2] < other[2:] and other[:2] < one[2:]


def _rewrite(module: Module, all_edits: Mapping[CSTNode, _NodeEdits]) -> Module:
    import libcst as cst

    def parse(code: str) -> list[Any]:
        return list(cst.parse_module(code, config=module.config_for_parsing).body)

    class Writer(cst.CSTTransformer):
        """Puts new nodes in the places of old ones."""

        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            left = super().on_leave(original_node, updated_node)
            edits = all_edits.get(original_node)
            if edits is None:
                return left
            if isinstance(original_node, cst.BaseExpression):
                return _put_expression(original_node, edits)
            return _put_statements(left, edits, parse)

    return module.visit(Writer())


def _put_statements(left: Any, edits: _NodeEdits, parse: Callable[[str], list[Any]]) -> Any:
    import libcst as cst

    kept = [left] if edits.replace is None else parse(edits.replace)
    if kept and kept[-1] is not left:
        kept[-1] = _with_comment(kept[-1], left)
    before = [node for code in edits.before for node in parse(code)]
    nodes = [*before, *kept, *(node for code in edits.after for node in parse(code))]
    if not nodes:
        return cst.RemoveFromParent()
    if nodes[0] is not left:
        lines = left.leading_lines
        if before and isinstance(left, cst.FunctionDef | cst.ClassDef):
            # Comments above a function stay with it.
            lines = [line for line in lines if line.comment is None]
        elif before and kept and kept[0] is left:
            nodes[len(before)] = left.with_changes(leading_lines=[])
        nodes[0] = nodes[0].with_changes(leading_lines=lines)
    return cst.FlattenSentinel(nodes)


def _put_expression(old: Any, edits: _NodeEdits) -> Any:
    import libcst as cst

    new: Any = cst.parse_expression(edits.replace or "None")
    if old.lpar and not new.lpar and not isinstance(old, cst.GeneratorExp | cst.Tuple):
        return new.with_changes(lpar=old.lpar, rpar=old.rpar)
    return new


def _with_comment(new: Any, old: Any) -> Any:
    """Return a new statement with the comment at the end of the old one's line."""
    import libcst as cst

    if isinstance(new, cst.SimpleStatementLine) and isinstance(old, cst.SimpleStatementLine):
        return new.with_changes(trailing_whitespace=old.trailing_whitespace)
    return new
