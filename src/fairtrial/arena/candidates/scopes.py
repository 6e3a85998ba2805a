"""Which names of a Python file are local variables, so that renaming them changes nothing.

Careful rather than complete: a variable that something might look up by its name keeps it, and
then two candidates that could be the same count as different.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Place = tuple[ast.AST, str, int]
"""Where a name stands: a node, one of its fields, and the place in it if that is a list."""
Variable = tuple[int, str]
"""A local variable: its scope's number and its name there."""
BY_NAME = frozenset(
    (
        *("locals", "vars", "eval", "exec", "dir", "globals", "breakpoint", "compile"),
        *("f_locals", "_getframe", "currentframe", "stack", "settrace", "setprofile"),
        *("__code__", "co_varnames", "__closure__", "co_freevars", "co_cellvars"),
        # pandas and numexpr look variables up in the caller's frame.
        *("query", "evaluate", "re_evaluate"),
    )
)
"""Names whose use may look local variables up by name."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(eq=False, slots=True)
class _Scope:
    """A module, class, function or comprehension.

    kept: names that stay as they are
    looks_up: whether something in it may look variables up by name
    """

    number: int
    kind: str
    parent: _Scope | None
    bound: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    world: set[str] = field(default_factory=set)
    looks_up: bool = False

    def chain(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def owner(self, name: str) -> _Scope | None:
        """The function or comprehension whose variable a name here is; None for all others."""
        for scope in self.chain():
            if scope.kind == "module" or name in scope.world:
                return None
            if scope.kind == "class" and scope is not self:
                continue  # functions in a class don't see its names
            if name in scope.bound and name not in scope.outer:
                return None if scope.kind == "class" else scope
        return None


def find_locals(tree: ast.Module) -> dict[tuple[int, str, int], Variable]:
    """The local variable at each place: by the node's identity, its field and the place there."""
    survey = _Survey()
    survey.run(tree)
    return survey.resolve()


class _Survey:
    """Walks a file without recursion (sources may be deep) and notes who binds and uses what."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.uses: list[tuple[_Scope, str, Place, bool]] = []
        self.left: list[tuple[ast.AST, _Scope, bool]] = []

    def run(self, tree: ast.Module) -> None:
        self.left.append((tree, self._open("module", None), False))
        while self.left:
            node, scope, is_fixed = self.left.pop()
            if isinstance(node, ast.Module):
                self._go(node.body, scope)
            elif isinstance(node, (*_FUNCTIONS, ast.Lambda)):
                self._enter_function(node, scope, is_fixed)
            elif isinstance(node, ast.ClassDef):
                self._enter_class(node, scope)
            elif isinstance(node, _COMPREHENSIONS):
                self._enter_comprehension(node, scope, is_fixed)
            else:
                self._note(node, scope, is_fixed)

    def resolve(self) -> dict[tuple[int, str, int], Variable]:
        """What each place means, now that all bindings are known."""
        watched: set[int] = set()
        for scope in self.scopes:
            # What looks variables up sees its own, and those of the functions around it.
            if scope.looks_up:
                watched.update(each.number for each in scope.chain())
            elif scope.parent and scope.parent.looks_up and scope.parent.kind != "module":
                scope.looks_up = True
                watched.add(scope.number)
        found: dict[tuple[int, str, int], Variable] = {}
        fixed: set[Variable] = set()
        for scope, name, (node, where, place), is_fixed in self.uses:
            owner = scope.owner(name)
            if owner is None or owner.number in watched or name in owner.kept:
                continue
            variable = (owner.number, name)
            found[id(node), where, place] = variable
            if is_fixed or name.startswith("__") or scope.kind == "class":
                fixed.add(variable)
        return {place: variable for place, variable in found.items() if variable not in fixed}

    def _open(self, kind: str, parent: _Scope | None) -> _Scope:
        scope = _Scope(len(self.scopes), kind, parent)
        self.scopes.append(scope)
        return scope

    def _go(self, nodes: object, scope: _Scope, is_fixed: bool = False) -> None:
        several = nodes if isinstance(nodes, list) else [nodes]
        self.left.extend((node, scope, is_fixed) for node in several if isinstance(node, ast.AST))

    def _use(self, scope: _Scope, name: str, place: Place, is_fixed: bool = False) -> None:
        self.uses.append((scope, name, place, is_fixed))

    def _keep(self, scope: _Scope, name: str) -> None:
        scope.bound.add(name)
        scope.kept.add(name)

    def _enter_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: _Scope, fixed: bool
    ) -> None:
        inner = self._open("function", scope)
        arguments = node.args
        self._go([*arguments.defaults, *arguments.kw_defaults], scope, fixed)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        for argument in every:  # callers may pass it by name
            self._keep(inner, argument.arg)
            self._go(argument.annotation, scope, True)
        self._go(node.body, inner, fixed and isinstance(node, ast.Lambda))
        if not isinstance(node, ast.Lambda):
            self._keep(scope, node.name)  # its __name__
            self._go(node.decorator_list, scope)
            self._go(node.returns, scope, True)
            self._watch_parameters(node, scope, inner)

    def _enter_class(self, node: ast.ClassDef, scope: _Scope) -> None:
        inner = self._open("class", scope)
        self._keep(scope, node.name)
        self._go([*node.bases, *node.keywords, *node.decorator_list], scope)
        self._go(node.body, inner)
        self._watch_parameters(node, scope, inner)

    def _watch_parameters(self, node: ast.AST, scope: _Scope, inner: _Scope) -> None:
        """Type parameters have scopes of their own; what has them is left as it is."""
        parameters = getattr(node, "type_params", None)
        if parameters:
            inner.looks_up = True
            for parameter in parameters:
                self._keep(inner, parameter.name)
                self._go(parameter, scope, True)

    def _enter_comprehension(self, node: ast.AST, scope: _Scope, is_fixed: bool) -> None:
        inner = self._open("comprehension", scope)
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        for place, generator in enumerate(generators):
            self._go(generator.iter, inner if place else scope, is_fixed)
            self._go([generator.target, *generator.ifs], inner, is_fixed)
        for name in ("elt", "key", "value"):
            self._go(getattr(node, name, None), inner, is_fixed)

    def _note(self, node: ast.AST, scope: _Scope, is_fixed: bool) -> None:
        """What any other node binds and uses."""
        if isinstance(node, ast.Name):
            self._note_name(node, scope, is_fixed)
            return
        if isinstance(node, ast.NamedExpr):
            # It binds in the function around the comprehensions that it stands in.
            home = next(each for each in scope.chain() if each.kind != "comprehension")
            self._note_name(node.target, home, is_fixed)
            self._go(node.value, scope, is_fixed)
            return
        if isinstance(node, ast.Attribute) and node.attr in BY_NAME:
            scope.looks_up = True
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            (scope.world if isinstance(node, ast.Global) else scope.outer).update(node.names)
            for place, name in enumerate(node.names):
                self._use(scope, name, (node, "names", place))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._note_imports(node, scope)
        else:
            self._note_captures(node, scope)
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        for child in ast.iter_child_nodes(node):
            self._go(child, scope, is_fixed or child is annotation)
        if type(node).__name__ == "TypeAlias":
            scope.looks_up = True

    def _note_name(self, node: ast.Name, scope: _Scope, is_fixed: bool) -> None:
        if not isinstance(node.ctx, ast.Load):
            scope.bound.add(node.id)
        elif node.id in BY_NAME:
            scope.looks_up = True
        self._use(scope, node.id, (node, "id", 0), is_fixed)

    def _note_imports(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
        for alias in node.names:
            if alias.asname is None:
                self._keep(scope, alias.name.partition(".")[0])
            else:
                scope.bound.add(alias.asname)
                self._use(scope, alias.asname, (alias, "asname", 0))

    def _note_captures(self, node: ast.AST, scope: _Scope) -> None:
        """Names that are bound by being written as plain text."""
        for kind, where in (
            (ast.ExceptHandler, "name"),
            (ast.MatchAs, "name"),
            (ast.MatchStar, "name"),
            (ast.MatchMapping, "rest"),
        ):
            name = getattr(node, where, None) if isinstance(node, kind) else None
            if name is not None:
                scope.bound.add(name)
                self._use(scope, name, (node, where, 0))
