"""A parsed module: its syntax tree, the parents of nodes, and the places that bind each name."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
LoopNode = ast.For | ast.AsyncFor | ast.While
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
TextEdit = tuple[str, ast.AST, str]
"""The kind of edit (``replace``, ``before``, ``after``), the node, and the new code."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
INNER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
"""Nodes at which other code may run before the function continues."""
INTROSPECTION = frozenset({"locals", "vars", "eval", "exec", "globals", "dir"})
"""Builtins whose callers may read any name."""
_CATCHING_WORDS = ("suppress", "raises", "ignore", "catch")
"""Words in the context manager of a ``with`` that swallows errors."""
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


@dataclass(frozen=True, slots=True)
class CodeChange:
    """One place where a transformation applies; written completely or not at all.

    description: what is changed, for people
    line: the line, counted from 1
    scope: the qualified name of the function: ``Graph.sort``
    edits: the code to write
    imports: the imports that the new code needs: ``heapq``, ``collections.deque``
    """

    description: str
    line: int
    scope: str
    edits: tuple[TextEdit, ...]
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceFile:
    """A parsed module.

    text: the source code
    tree: its syntax tree
    parents: the parent of each node
    """

    text: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their line ends, split as Python's parser counts them."""
        return _LINE_END.split(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map(len, self.lines))]

    def get_span(self, node: ast.AST) -> tuple[int, int]:
        """Return where the code of a node, decorators included, begins and ends in the text."""
        assert isinstance(node, ast.expr | ast.stmt)
        first = min([node, *getattr(node, "decorator_list", [])], key=lambda part: part.lineno)
        is_decorated = first is not node
        start = self._get_offset(first.lineno, first.col_offset) - is_decorated
        return start, self._get_offset(node.end_lineno or 0, node.end_col_offset or 0)

    def _get_offset(self, line: int, column: int) -> int:
        """Return a place as an index of the text; `ast` counts bytes."""
        text = self.lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column].decode(errors="replace"))

    def get_line_start(self, line: int) -> int:
        """Return where a line, counted from 1, begins in the text."""
        return self._starts[line - 1]

    def get_line(self, offset: int) -> int:
        """Return the line of a place in the text, counted from 1."""
        return bisect_right(self._starts, offset, hi=len(self.lines))

    def get_line_range(self, offset: int) -> tuple[int, int]:
        """Return where the line around a place begins, and where it ends with its line end."""
        line = self.get_line(offset)
        return self._starts[line - 1], self._starts[line]

    @cached_property
    def functions(self) -> list[tuple[str, FunctionNode]]:
        """Every function with its qualified name, in source order."""
        return list(_list_functions(self.tree, ""))

    @cached_property
    def binders(self) -> dict[str, list[ast.AST]]:
        """The nodes that bind each name, in any scope."""
        binders: dict[str, list[ast.AST]] = {}
        for node in self.walk(self.tree):
            for name in get_bound_names(node):
                binders.setdefault(name, []).append(node)
        return binders

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All names that occur in the module."""
        names = {node.id for node in self.walk(self.tree) if isinstance(node, ast.Name)}
        return frozenset(self.binders.keys() | names)

    def is_builtin(self, *names: str) -> bool:
        """Return whether names surely mean the builtins: the module never binds them."""
        return "*" not in self.binders and not any(name in self.binders for name in names)

    def can_import(self, dotted: str) -> bool:
        """Return whether a module, or a name of one, can be imported under its own name."""
        module, _, name = dotted.rpartition(".")
        binders = self.binders.get(name, [])
        is_same = all(self._is_import(node, module, name) for node in binders)
        return is_same and "*" not in self.binders

    def is_imported(self, name: str) -> bool:
        """Return whether a name is bound by imports only."""
        binders = self.binders.get(name, [])
        return bool(binders) and all(isinstance(node, ast.alias) for node in binders)

    def has_import(self, name: str) -> bool:
        """Return whether a module is imported at the top and its name is never bound again."""
        return name in self.binders and self.can_import(name)

    def _is_import(self, node: ast.AST, module: str, name: str) -> bool:
        if not isinstance(node, ast.alias) or node.name != name or node.asname:
            return False
        statement = self.parents[node]
        if self.parents[statement] is not self.tree:
            return False
        if isinstance(statement, ast.ImportFrom):
            return statement.module == module and not statement.level
        return not module

    @cached_property
    def _walks(self) -> dict[ast.AST, list[ast.AST]]:
        return {}

    def walk(self, node: ast.AST) -> list[ast.AST]:
        """Return a node and all its descendants like `ast.walk`; the list is cached."""
        nodes = self._walks.get(node)
        if nodes is None:
            nodes = self._walks[node] = list(ast.walk(node))
        return nodes

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def get_scope_node(self, node: ast.AST) -> ast.AST | None:
        """Return the innermost function, lambda or class around a node; None at the top."""
        return next((up for up in self.ancestors(node) if isinstance(up, INNER_SCOPES)), None)

    def is_error_caught(self, node: ast.AST) -> bool:
        """Return whether its function may catch an error of a node, by ``try`` or ``suppress``."""
        for up in self.ancestors(node):
            if isinstance(up, INNER_SCOPES):
                return False
            if catches_errors(up):
                return True
        return False

    def get_statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that contains a node."""
        if isinstance(node, ast.stmt):
            return node
        return next(up for up in self.ancestors(node) if isinstance(up, ast.stmt))

    def get_top_statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement of the module that contains a node."""
        top = node
        for up in self.ancestors(node):
            if isinstance(up, ast.Module):
                break
            top = up
        assert isinstance(top, ast.stmt)
        return top

    def get_block(self, statement: ast.AST) -> list[ast.stmt]:
        """Return the list of statements that a statement is in."""
        parent = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return []

    def get_preceding(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements before a statement in the same block."""
        block = self.get_block(statement)
        return block[: block.index(statement)] if statement in block else []

    def render(self, node: ast.expr) -> str:
        """Return an expression as code that can be an argument, in the original spelling if
        possible.
        """
        text = self._get_text(node)
        for form in (text, f"({text})"):
            # A tuple would become several arguments; a generator shares the call's parentheses.
            if not isinstance(node, ast.Tuple | ast.GeneratorExp) and _parses_to(form, node):
                return form
        return ast.unparse(node)

    def _get_text(self, node: ast.expr) -> str:
        """Return the code of an expression, its further lines without the margin of the first:
        they are indented again when written.
        """
        start, end = self.get_span(node)
        line = self.lines[node.lineno - 1]
        margin = line[: len(line) - len(line.lstrip())]
        text = self.text[start:end].replace("\r\n", "\n")
        return text.replace(f"\n{margin}", "\n")

    def make_name(self, wish: str, *taken: str) -> str:
        """Return a name that neither the module nor `taken` uses, as near to a wish as possible."""
        used = self.identifiers.union(taken)
        name, number = wish, 2
        while name in used:
            name, number = f"{wish}_{number}", number + 1
        return name

    def has_comment(self, node: ast.stmt) -> bool:
        """Return whether the lines of a statement may have a comment, which would be lost."""
        return any("#" in line for line in self.lines[node.lineno - 1 : node.end_lineno])


@lru_cache(maxsize=8)
def read_source(text: str) -> SourceFile | None:
    """Parse a module; return None if that isn't possible."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    # Contexts and operators are shared between nodes: they have no single parent.
    shared = ast.expr_context | ast.operator | ast.unaryop | ast.cmpop
    return SourceFile(
        text, tree, {node: up for node, up in parents.items() if not isinstance(node, shared)}
    )


def _parses_to(text: str, node: ast.expr) -> bool:
    """Return whether a text is that expression; positions in f-strings may be wrong before 3.12."""
    try:
        return ast.dump(ast.parse(text, mode="eval").body) == ast.dump(node)
    except (SyntaxError, ValueError):
        return False


def catches_errors(node: ast.AST) -> bool:
    """Return whether a statement may catch errors of its body: ``try``, or such a ``with``."""
    match node:
        case ast.Try() | ast.TryStar():
            return True
        case ast.With(items=items) | ast.AsyncWith(items=items):
            texts = [ast.unparse(item.context_expr).lower() for item in items]
            return any(word in text for word in _CATCHING_WORDS for text in texts)
    return False


def _list_functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, FunctionNode]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from _list_functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _list_functions(child, f"{prefix}{child.name}.")
        else:
            yield from _list_functions(child, prefix)


def get_bound_names(node: ast.AST) -> list[str]:
    """Return the names that a node itself binds, deletes or declares."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.arg(arg=name):
            return [name]
        case ast.alias(name=name, asname=asname):
            return [asname or name.partition(".")[0]]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def get_names(node: ast.AST) -> set[str]:
    """Return all names that occur in a node."""
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
