"""Find the local variables of a Python file, which can be renamed without changing its meaning.

The analysis is conservative: a variable that might be looked up by its name is left out, and then
two equivalent candidates may count as different.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

NamePosition = tuple[ast.AST, str, int]
"""The position of a name: a node, one of its fields, and the index in it if that is a list."""
Variable = tuple[int, str]
"""A local variable: the number of its scope, and its name."""
BY_NAME = frozenset(
    (
        *("locals", "vars", "eval", "exec", "dir", "globals", "breakpoint", "compile"),
        *("f_locals", "_getframe", "currentframe", "stack", "settrace", "setprofile"),
        *("__code__", "co_varnames", "__closure__", "co_freevars", "co_cellvars"),
        # pandas and numexpr look variables up in the caller's frame.
        *("query", "evaluate", "re_evaluate"),
    )
)
"""Functions and attributes that may look up local variables by name."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(eq=False, slots=True)
class _Scope:
    """The scope of a module, class, function or comprehension.

    number: its index in the list of all scopes
    kind: module, class, function or comprehension
    parent: the enclosing scope
    bound: names that are bound in it
    kept: bound names that must not be renamed
    nonlocals: names that are declared nonlocal
    globals: names that are declared global
    looks_up: whether code in it may look up variables by name
    """

    number: int
    kind: str
    parent: _Scope | None
    bound: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    looks_up: bool = False

    def chain(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def owner(self, name: str) -> _Scope | None:
        """Return the function or comprehension that a name in this scope is local to, or None."""
        for scope in self.chain():
            if scope.kind == "module" or name in scope.globals:
                return None
            if scope.kind == "class" and scope is not self:
                continue  # functions in a class don't see its names
            if name in scope.bound and name not in scope.nonlocals:
                return None if scope.kind == "class" else scope
        return None


def find_locals(tree: ast.Module) -> dict[tuple[int, str, int], Variable]:
    """Return the local variable at each position: by the node's id, a field and the index in it."""
    walker = _ScopeWalker()
    walker.walk(tree)
    return walker.resolve()


class _ScopeWalker:
    """Collects scopes, bindings and uses of names, without recursion since sources may be deep."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.uses: list[tuple[_Scope, str, NamePosition, bool]] = []
        self.pending: list[tuple[ast.AST, _Scope, bool]] = []

    def walk(self, tree: ast.Module) -> None:
        self.pending.append((tree, self._add_scope("module", None), False))
        while self.pending:
            node, scope, is_fixed = self.pending.pop()
            if isinstance(node, ast.Module):
                self._push(node.body, scope)
            elif isinstance(node, (*_FUNCTIONS, ast.Lambda)):
                self._enter_function(node, scope, is_fixed)
            elif isinstance(node, ast.ClassDef):
                self._enter_class(node, scope)
            elif isinstance(node, _COMPREHENSIONS):
                self._enter_comprehension(node, scope, is_fixed)
            else:
                self._visit(node, scope, is_fixed)

    def resolve(self) -> dict[tuple[int, str, int], Variable]:
        """Return the local variable at each position, once all bindings are known."""
        watched: set[int] = set()
        for scope in self.scopes:
            # Code that looks up variables sees those of its own and of enclosing functions.
            if scope.looks_up:
                watched.update(enclosing.number for enclosing in scope.chain())
            elif scope.parent and scope.parent.looks_up and scope.parent.kind != "module":
                scope.looks_up = True
                watched.add(scope.number)
        variables: dict[tuple[int, str, int], Variable] = {}
        fixed: set[Variable] = set()
        for scope, name, (node, attribute, index), is_fixed in self.uses:
            owner = scope.owner(name)
            if owner is None or owner.number in watched or name in owner.kept:
                continue
            variable = (owner.number, name)
            variables[id(node), attribute, index] = variable
            if is_fixed or name.startswith("__") or scope.kind == "class":
                fixed.add(variable)
        return {key: variable for key, variable in variables.items() if variable not in fixed}

    def _add_scope(self, kind: str, parent: _Scope | None) -> _Scope:
        scope = _Scope(len(self.scopes), kind, parent)
        self.scopes.append(scope)
        return scope

    def _push(self, nodes: object, scope: _Scope, is_fixed: bool = False) -> None:
        items = nodes if isinstance(nodes, list) else [nodes]
        self.pending.extend((node, scope, is_fixed) for node in items if isinstance(node, ast.AST))

    def _use(
        self, scope: _Scope, name: str, position: NamePosition, is_fixed: bool = False
    ) -> None:
        self.uses.append((scope, name, position, is_fixed))

    def _keep(self, scope: _Scope, name: str) -> None:
        scope.bound.add(name)
        scope.kept.add(name)

    def _enter_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: _Scope, fixed: bool
    ) -> None:
        inner = self._add_scope("function", scope)
        arguments = node.args
        self._push([*arguments.defaults, *arguments.kw_defaults], scope, fixed)
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
        for parameter in parameters:  # callers may pass it by name
            self._keep(inner, parameter.arg)
            self._push(parameter.annotation, scope, True)
        self._push(node.body, inner, fixed and isinstance(node, ast.Lambda))
        if not isinstance(node, ast.Lambda):
            self._keep(scope, node.name)  # its __name__
            self._push(node.decorator_list, scope)
            self._push(node.returns, scope, True)
            self._visit_type_parameters(node, scope, inner)

    def _enter_class(self, node: ast.ClassDef, scope: _Scope) -> None:
        inner = self._add_scope("class", scope)
        self._keep(scope, node.name)
        self._push([*node.bases, *node.keywords, *node.decorator_list], scope)
        self._push(node.body, inner)
        self._visit_type_parameters(node, scope, inner)

    def _visit_type_parameters(self, node: ast.AST, scope: _Scope, inner: _Scope) -> None:
        """Exclude a function or class with type parameters, which have scopes of their own."""
        parameters = getattr(node, "type_params", None)
        if parameters:
            inner.looks_up = True
            for parameter in parameters:
                self._keep(inner, parameter.name)
                self._push(parameter, scope, True)

    def _enter_comprehension(self, node: ast.AST, scope: _Scope, is_fixed: bool) -> None:
        inner = self._add_scope("comprehension", scope)
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        for index, generator in enumerate(generators):
            self._push(generator.iter, inner if index else scope, is_fixed)
            self._push([generator.target, *generator.ifs], inner, is_fixed)
        for name in ("elt", "key", "value"):
            self._push(getattr(node, name, None), inner, is_fixed)

    def _visit(self, node: ast.AST, scope: _Scope, is_fixed: bool) -> None:
        """Record what any other node binds and uses."""
        if isinstance(node, ast.Name):
            self._visit_name(node, scope, is_fixed)
            return
        if isinstance(node, ast.NamedExpr):
            # It binds in the function that encloses the comprehensions around it.
            target = next(outer for outer in scope.chain() if outer.kind != "comprehension")
            self._visit_name(node.target, target, is_fixed)
            self._push(node.value, scope, is_fixed)
            return
        if isinstance(node, ast.Attribute) and node.attr in BY_NAME:
            scope.looks_up = True
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            (scope.globals if isinstance(node, ast.Global) else scope.nonlocals).update(node.names)
            for index, name in enumerate(node.names):
                self._use(scope, name, (node, "names", index))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._visit_imports(node, scope)
        else:
            self._visit_captures(node, scope)
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        for child in ast.iter_child_nodes(node):
            self._push(child, scope, is_fixed or child is annotation)
        if type(node).__name__ == "TypeAlias":
            scope.looks_up = True

    def _visit_name(self, node: ast.Name, scope: _Scope, is_fixed: bool) -> None:
        if not isinstance(node.ctx, ast.Load):
            scope.bound.add(node.id)
        elif node.id in BY_NAME:
            scope.looks_up = True
        self._use(scope, node.id, (node, "id", 0), is_fixed)

    def _visit_imports(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
        for alias in node.names:
            if alias.asname is None:
                self._keep(scope, alias.name.partition(".")[0])
            else:
                scope.bound.add(alias.asname)
                self._use(scope, alias.asname, (alias, "asname", 0))

    def _visit_captures(self, node: ast.AST, scope: _Scope) -> None:
        """Record names that the syntax tree holds as plain strings."""
        for kind, attribute in (
            (ast.ExceptHandler, "name"),
            (ast.MatchAs, "name"),
            (ast.MatchStar, "name"),
            (ast.MatchMapping, "rest"),
        ):
            name = getattr(node, attribute, None) if isinstance(node, kind) else None
            if name is not None:
                scope.bound.add(name)
                self._use(scope, name, (node, attribute, 0))
