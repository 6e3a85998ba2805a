"""A module as transformations see it: its tree, and who binds and uses which name where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Edit = tuple[str, ast.AST, str]
"""How (``replace``, ``before``, ``after``, ``helper``), at which node, and the new code.

A helper is a function of the module's own that several changes may share: it is written once,
before the first statement that needs it.
"""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
INNER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
PEEPING = {"locals", "vars", "eval", "exec", "globals", "dir"}
"""Who calls one of these may see any name."""
_CATCHING = ("suppress", "raises", "ignore", "catch")
"""Words in a ``with`` that lets no error through."""
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


@dataclass(frozen=True, slots=True)
class Change:
    """One place where a transformation applies; done as a whole or not at all.

    what: what is done, for people
    line: where, counted from 1
    scope: the function that it is in: ``Graph.sort``
    edits: what is written where
    imports: what it needs: ``heapq``, ``collections.deque``
    """

    what: str
    line: int
    scope: str
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A module that was read.

    text: as it is written
    tree: what that means
    parents: the node around each node
    """

    text: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends, as the parser counts them."""
        return _LINE_END.split(self.text)

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Every function with its qualified name, in the order of the text."""
        return list(_functions(self.tree, ""))

    @cached_property
    def _binders(self) -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for node in self.walk(self.tree):
            for name in binds(node):
                found.setdefault(name, []).append(node)
        return found

    @property
    def bound(self) -> Set[str]:
        """All names that are bound anywhere, in any scope; they may not be what builtins say."""
        return self._binders.keys()

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All names, of whatever kind."""
        names = {node.id for node in self.walk(self.tree) if isinstance(node, ast.Name)}
        return frozenset(self.bound | names)

    def is_bound_once(self, name: str) -> bool:
        """Whether a name is bound in one place only, in whatever scope."""
        return len(self._binders.get(name, ())) == 1

    def is_builtin(self, name: str) -> bool:
        """Whether a name surely means the builtin."""
        return name not in self.bound and "*" not in self.bound

    def can_import(self, dotted: str) -> bool:
        """Whether a module, or a name of one, is imported under its own name or may be."""
        module, _, name = dotted.rpartition(".")
        binders = self._binders.get(name, [])
        is_ours = all(self._is_import(node, module, name) for node in binders)
        return is_ours and "*" not in self.bound

    def is_imported(self, name: str) -> bool:
        """Whether a name never means anything but what was imported under it."""
        binders = self._binders.get(name, [])
        return bool(binders) and all(isinstance(each, ast.alias) for each in binders)

    def has_import(self, name: str) -> bool:
        """Whether a module is imported at the top, and its name never means anything else."""
        return name in self.bound and self.can_import(name)

    def _is_import(self, node: ast.AST, module: str, name: str) -> bool:
        if not isinstance(node, ast.alias) or node.name != name:
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
        """A node and all that is in it, as `ast.walk` has them; each is gone through only once."""
        found = self._walks.get(node)
        if found is None:
            found = self._walks[node] = list(ast.walk(node))
        return found

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> ast.AST | None:
        """The innermost function, lambda or class around a node."""
        return next((each for each in self.around(node) if isinstance(each, INNER_SCOPES)), None)

    def is_watched(self, node: ast.AST) -> bool:
        """Whether somebody in its function waits for an error there, by ``try`` or ``suppress``."""
        for each in self.around(node):
            if isinstance(each, INNER_SCOPES):
                return False
            if catches(each):
                return True
        return False

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(each for each in self.around(node) if isinstance(each, ast.stmt))

    def top_of(self, node: ast.AST) -> ast.stmt:
        """The statement of the module that a node is part of."""
        last = node
        for each in self.around(node):
            if isinstance(each, ast.Module):
                break
            last = each
        assert isinstance(last, ast.stmt)
        return last

    def block_of(self, statement: ast.AST) -> list[ast.stmt]:
        """The statements among which a statement stands."""
        parent = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return []

    def say(self, node: ast.expr) -> str:
        """An expression as code that can stand as an argument, as it is written if possible."""
        text = self._text(node)
        for form in (text, f"({text})"):
            # A tuple would become several arguments; a generator has the call's own parentheses.
            if not isinstance(node, ast.Tuple | ast.GeneratorExp) and _means(form, node):
                return form
        return ast.unparse(node)

    def _text(self, node: ast.expr) -> str:
        lines = [line.encode() for line in self.lines[node.lineno - 1 : node.end_lineno]]
        # Further lines as if the first began at the margin: where it goes, it is indented again.
        margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        lines[-1] = lines[-1][: node.end_col_offset]
        first = lines[0][node.col_offset :]
        rest = [line.removeprefix(margin) for line in lines[1:]]
        return b"".join([first, *rest]).decode(errors="replace")

    def fresh(self, wish: str, *others: str) -> str:
        """A name that is not used anywhere yet."""
        taken = self.identifiers.union(others)
        name, number = wish, 2
        while name in taken:
            name, number = f"{wish}_{number}", number + 1
        return name


@lru_cache(maxsize=8)
def read_source(text: str) -> Source | None:
    """A module, ready for transformations; None if it can't be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    # Contexts and operators are shared between nodes: they have no place of their own.
    return Source(text, tree, {node: up for node, up in parents.items() if _has_place(node)})


def _means(text: str, node: ast.expr) -> bool:
    """Whether a text is that expression: in f-strings, places may be wrong before Python 3.12."""
    try:
        return ast.dump(ast.parse(text, mode="eval").body) == ast.dump(node)
    except (SyntaxError, ValueError):
        return False


def catches(node: ast.AST) -> bool:
    """Whether a statement may catch errors of what is in it: ``try``, or such a ``with``."""
    match node:
        case ast.Try() | ast.TryStar():
            return True
        case ast.With(items=items) | ast.AsyncWith(items=items):
            said = [ast.unparse(each.context_expr).lower() for each in items]
            return any(word in text for word in _CATCHING for text in said)
    return False


def _has_place(node: ast.AST) -> bool:
    return not isinstance(node, ast.expr_context | ast.operator | ast.unaryop | ast.cmpop)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def binds(node: ast.AST) -> list[str]:
    """The names that a node itself binds, deletes or declares."""
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
