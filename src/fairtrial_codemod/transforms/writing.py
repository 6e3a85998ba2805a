"""Changes, written into a source by libcst: comments, blank lines and style stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from fairtrial.core import LabError
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.importing import add_imports

if TYPE_CHECKING:
    from libcst import CSTNode, Module

MISSING = "the codemod proposer needs libcst: pip install 'fairtrial[codemod]'"
Span = tuple[int, int, int, int]
_NAMES = {
    "BinOp": ("BinaryOperation",),
    "BoolOp": ("BooleanOperation",),
    "Compare": ("Comparison",),
    "Constant": ("Integer", "Float", "Imaginary", "SimpleString", "ConcatenatedString", "Name"),
    "JoinedStr": ("FormattedString", "ConcatenatedString"),
    "UnaryOp": ("UnaryOperation",),
}
"""What libcst calls something that has another name in `ast`."""


def write_changes(source: Source, changes: Iterable[Change]) -> tuple[str, list[Change]]:
    """The source with as many of the changes as don't get in each other's way, and which.

    None of them if libcst can't: it doesn't take all that Python does, and says so in many ways.
    """
    check_installed()
    try:
        tree = _Tree(source)
        done = [change for change in changes if tree.take(change)]
        if not done:
            return source.text, []
        text = tree.write(sorted({name for change in done for name in change.imports}))
    except Exception:
        return source.text, []
    return text, done


def can_write(text: str) -> bool:
    """Whether libcst takes a source that Python takes, and gives it back as it is."""
    import libcst as cst

    try:
        return bool(cst.parse_module(text).code == text)
    except Exception:  # as above
        return False


def check_installed() -> None:
    """Raise a `LabError` if libcst isn't there."""
    try:
        import libcst  # noqa: F401
    except ImportError as error:
        raise LabError(MISSING) from error


@dataclass(slots=True)
class _Plan:
    """What becomes of one node."""

    helpers: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    replace: str | None = None
    after: list[str] = field(default_factory=list)


class _Tree:
    """The source as libcst sees it, with what is to become of its nodes."""

    def __init__(self, source: Source) -> None:
        import libcst as cst
        from libcst.metadata import MetadataWrapper, PositionProvider

        self.source = source
        # What was parsed just now has no node twice, so that it needn't be copied.
        wrapper = MetadataWrapper(cst.parse_module(source.text), unsafe_skip_copy=True)
        self.module: Module = wrapper.module
        self.expressions: dict[Span, CSTNode] = {}
        self.statements: dict[tuple[int, int], CSTNode] = {}
        self.plans: dict[CSTNode, _Plan] = {}
        self.claimed: list[Span] = []
        self.helpers: dict[str, tuple[int, CSTNode]] = {}
        for node, place in wrapper.resolve(PositionProvider).items():
            span = (place.start.line, place.start.column, place.end.line, place.end.column)
            if isinstance(node, cst.BaseExpression):
                self.expressions.setdefault(span, node)
            elif isinstance(node, cst.BaseStatement) and _is_whole(node):
                self.statements[span[:2]] = node

    def take(self, change: Change) -> bool:
        """Plan a change, if all its places are there and free."""
        found: list[tuple[CSTNode, Edit]] = []
        spans: list[Span] = []
        for edit in change.edits:
            how, node, _ = edit
            target = self._find(node)
            if target is None or (how != "replace" and not self._has_room(node)):
                return False
            found.append((target, edit))
            if how == "replace":
                spans.append(self._span(node))
        if any(_overlap(mine, other) for mine in spans for other in self.claimed):
            return False
        self.claimed += spans
        for target, (how, node, code) in found:
            plan = self.plans.setdefault(target, _Plan())
            match how:
                case "before":
                    plan.before.append(code)
                case "after":
                    plan.after.append(code)
                case "helper":
                    self._share(code, self._span(node)[0], target)
                case _:
                    plan.replace = code
        return True

    def write(self, imports: Sequence[str]) -> str:
        """The source with all that was planned."""
        for code, (_, target) in self.helpers.items():
            self.plans[target].helpers.append(code)
        return add_imports(_rewrite(self.module, self.plans), imports).code

    def _share(self, code: str, line: int, target: CSTNode) -> None:
        """Have a helper written where it is needed first."""
        self.helpers[code] = min(
            (line, target), self.helpers.get(code, (line, target)), key=lambda each: each[0]
        )

    def _find(self, node: ast.AST) -> CSTNode | None:
        span = self._span(node)
        if isinstance(node, ast.stmt):
            return self.statements.get(span[:2])
        found = self.expressions.get(span) or self.expressions.get(_inside(span))
        return found if found is not None and _is_same(node, found) else None

    def _span(self, node: ast.AST) -> Span:
        """Where a node stands, in characters; `ast` counts bytes."""
        assert isinstance(node, ast.expr | ast.stmt)
        last = node.end_lineno or node.lineno
        return (
            node.lineno,
            self._column(node.lineno, node.col_offset),
            last,
            self._column(last, node.end_col_offset or 0),
        )

    def _column(self, line: int, offset: int) -> int:
        return len(self.source.lines[line - 1].encode()[:offset].decode())

    def _has_room(self, node: ast.AST) -> bool:
        """Whether statements may stand before and after: not around an `elif`."""
        parent = self.source.parents[node]
        if not (isinstance(node, ast.If) and isinstance(parent, ast.If)):
            return True
        return node not in parent.orelse or self._starts_with_if(node)

    def _starts_with_if(self, node: ast.If) -> bool:
        line = self.source.lines[node.lineno - 1].encode()
        return line[node.col_offset :].startswith(b"if")


def _is_same(node: ast.AST, found: CSTNode) -> bool:
    """Whether it is the same thing: in f-strings, places may be wrong before Python 3.12."""
    if isinstance(node, ast.Name):
        return getattr(found, "value", None) == node.id
    name = type(node).__name__
    return type(found).__name__ in _NAMES.get(name, (name,))


def _is_whole(node: CSTNode) -> bool:
    """Whether it is one statement: not ``a = 1; b = 2``."""
    body = getattr(node, "body", None)
    return not isinstance(body, Sequence) or len(body) == 1


def _inside(span: Span) -> Span:
    """The same without parentheses: libcst has them around, `ast` in, tuples and generators."""
    return (span[0], span[1] + 1, span[2], span[3] - 1)


def _overlap(one: Span, other: Span) -> bool:
    return one[:2] < other[2:] and other[:2] < one[2:]


def _rewrite(module: Module, plans: Mapping[CSTNode, _Plan]) -> Module:
    import libcst as cst

    def parse(code: str) -> list[Any]:
        return list(cst.parse_module(code, config=module.config_for_parsing).body)

    class Writer(cst.CSTTransformer):
        """Puts new nodes in the places of old ones."""

        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            left = super().on_leave(original_node, updated_node)
            plan = plans.get(original_node)
            if plan is None:
                return left
            if isinstance(original_node, cst.BaseExpression):
                return _put_expression(original_node, plan)
            return _put_statements(left, plan, parse)

    return module.visit(Writer())


def _put_statements(left: Any, plan: _Plan, parse: Callable[[str], list[Any]]) -> Any:
    import libcst as cst

    kept = [left] if plan.replace is None else parse(plan.replace)
    if kept and kept[-1] is not left:
        kept[-1] = _with_comment(kept[-1], left)
    before = [node for code in plan.before for node in parse(code)]
    nodes = [*before, *kept, *(node for code in plan.after for node in parse(code))]
    if not nodes:
        return cst.RemoveFromParent()
    helpers = [node for code in plan.helpers for node in parse(code)]
    if nodes[0] is not left:
        lines = left.leading_lines
        if before and isinstance(left, cst.FunctionDef | cst.ClassDef):
            # What is said of a function stays with it.
            lines = [each for each in lines if each.comment is None]
        elif before and kept and kept[0] is left:
            nodes[len(before)] = left.with_changes(leading_lines=[])
        nodes[0] = nodes[0].with_changes(leading_lines=lines)
    if helpers:
        nodes = [*map(_set_apart, helpers), _set_apart(nodes[0]), *nodes[1:]]
    return cst.FlattenSentinel(nodes)


def _set_apart(node: Any) -> Any:
    """A statement of a module with two blank lines above it, and above what is said of it."""
    import libcst as cst

    said = list(dropwhile(lambda line: line.comment is None, node.leading_lines))
    return node.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2 + said)


def _put_expression(old: Any, plan: _Plan) -> Any:
    import libcst as cst

    new: Any = cst.parse_expression(plan.replace or "None")
    if old.lpar and not new.lpar and not isinstance(old, cst.GeneratorExp | cst.Tuple):
        return new.with_changes(lpar=old.lpar, rpar=old.rpar)
    return new


def _with_comment(new: Any, old: Any) -> Any:
    """What stands behind a statement on its line stays there."""
    import libcst as cst

    if isinstance(new, cst.SimpleStatementLine) and isinstance(old, cst.SimpleStatementLine):
        return new.with_changes(trailing_whitespace=old.trailing_whitespace)
    return new
