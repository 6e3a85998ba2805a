"""How a function uses its names: which are local, which are only read, what runs in a loop."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import TypeVar

from fairtrial_codemod.analysis.python_facts import (
    LAZY_BUILTINS,
    PURE_BUILTINS,
    READING_METHODS,
    is_immutable_type,
    is_optional,
    list_parameters,
)
from fairtrial_codemod.analysis.source_file import (
    COMPREHENSIONS,
    INNER_SCOPES,
    INTROSPECTION,
    LOOPS,
    CodeChange,
    ComprehensionNode,
    FunctionNode,
    LoopNode,
    SourceFile,
    get_bound_names,
)

NodeType = TypeVar("NodeType", bound=ast.AST)


class NameUse(StrEnum):
    """What one mention of a name does."""

    BIND = "bind"
    TEST = "in"
    """the right side of ``in``"""
    READ = "read"
    """its elements, length or truth are read"""
    METHOD = "method"
    """a method of it is called"""
    OPERAND = "operand"
    """compared, added, or the index or bound of a subscript"""
    RETURN = "return"
    OTHER = "other"
    """anything else: it may be changed or stored there"""


@dataclass(frozen=True)
class FunctionScope:
    """A function of a module.

    source: the module
    name: the qualified name of the function
    function: its node
    """

    source: SourceFile
    name: str
    function: FunctionNode

    @cached_property
    def is_opaque(self) -> bool:
        """Whether names may be read by other means than their mention, `locals` for instance."""
        return any(
            isinstance(node, ast.Name) and node.id in INTROSPECTION
            for node in self.source.walk(self.function)
        )

    def own_nodes(self, *kinds: type[NodeType]) -> Iterator[NodeType]:
        """Yield the nodes of some kinds, without those of nested functions and classes."""
        for node in self.source.walk(self.function):
            if isinstance(node, kinds) and self.source.get_scope_node(node) is self.function:
                yield node

    def mentions(self, name: str, within: ast.AST | None = None) -> list[ast.Name]:
        """Return every mention of a name in source order."""
        nodes = [
            node
            for node in self.source.walk(within or self.function)
            if isinstance(node, ast.Name) and node.id == name
        ]
        return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))

    def parameter(self, name: str) -> ast.arg | None:
        """Return the parameter of that name."""
        return next((arg for arg in list_parameters(self.function) if arg.arg == name), None)

    def is_local(self, name: str) -> bool:
        """Return whether a name is a variable or parameter that no nested function mentions."""
        return self.is_closure_local(name) and all(
            self.source.get_scope_node(node) is self.function for node in self.mentions(name)
        )

    def is_closure_local(self, name: str) -> bool:
        """Return whether a name is a variable or parameter that nested functions only read."""
        if self.is_opaque:
            return False
        is_bound = self.parameter(name) is not None
        for node in self.source.walk(self.function):
            if node is self.function or name not in get_bound_names(node):
                continue
            if isinstance(node, ast.arg):
                if node is not self.parameter(name):
                    return False
            elif not isinstance(node, ast.Name) or self._is_bound_elsewhere(node):
                return False
            else:
                is_bound = True
        return is_bound

    def _is_bound_elsewhere(self, node: ast.Name) -> bool:
        """Return whether a nested function or a comprehension binds the name for itself."""
        if self.source.get_scope_node(node) is not self.function:
            return True
        return any(isinstance(up, ast.comprehension) for up in self.source.ancestors(node))

    def bindings(self, name: str) -> list[ast.Name]:
        """Return the mentions that bind or delete a name."""
        return [node for node in self.mentions(name) if not isinstance(node.ctx, ast.Load)]

    def get_value(self, bound: ast.Name) -> ast.expr | None:
        """Return the value of an assignment to a name, alone or in ``seen, found = [], {}``."""
        parent = self.source.parents[bound]
        match parent:
            case ast.Assign(targets=[target], value=value) if target is bound:
                return value
            case ast.AnnAssign(target=target, value=value, simple=1) if target is bound:
                return value
        match self.source.parents.get(parent):
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                is_plain = not any(isinstance(part, ast.Starred) for part in (*names, *values))
                count = sum(isinstance(part, ast.Name) and part.id == bound.id for part in names)
                if is_plain and count == 1 and len(names) == len(values) and bound in names:
                    return values[names.index(bound)]
        return None

    def get_values(self, name: str) -> list[ast.expr | None]:
        """Return the values of all bindings of a name; None for those that can't be seen."""
        return [self.get_value(bound) for bound in self.bindings(name)]

    def classify(self, mention: ast.expr) -> NameUse:
        """Return what the mention of a name does, or another expression with its value."""
        if isinstance(getattr(mention, "ctx", None), ast.Store | ast.Del):
            return NameUse.BIND
        parent = self.source.parents[mention]
        match parent:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[it]) if it is mention:
                return NameUse.TEST
            case ast.Subscript(value=it, ctx=ast.Load()) if it is mention:
                return NameUse.READ
            case ast.For(iter=it) | ast.comprehension(iter=it) if it is mention:
                return NameUse.READ
            case ast.Starred() | ast.FormattedValue():
                return NameUse.READ
            case _ if self.is_truth_test(mention):
                return NameUse.READ
            case ast.Call(func=ast.Name(id=name), args=args) if mention in args:
                if name in PURE_BUILTINS and self.source.is_builtin(name):
                    is_read_now = isinstance(
                        self.source.parents[parent], ast.For | ast.comprehension
                    )
                    is_stored = name in LAZY_BUILTINS and not is_read_now
                    return NameUse.OTHER if is_stored else NameUse.READ
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join")):
                return NameUse.READ
            case ast.Attribute(value=it) if it is mention:
                above = self.source.parents[parent]
                is_called = isinstance(above, ast.Call) and above.func is parent
                return NameUse.METHOD if is_called else NameUse.OTHER
            case ast.Return():
                return NameUse.RETURN
            case ast.BinOp(op=ast.LShift() | ast.RShift()):
                return NameUse.OTHER  # streams are written that way
            case ast.Compare() | ast.BinOp() | ast.UnaryOp() | ast.Slice():
                return NameUse.OPERAND
            case ast.Subscript(slice=it, ctx=ast.Load()) if it is mention:
                return NameUse.OPERAND
        return NameUse.OTHER

    def is_truth_test(self, node: ast.expr) -> bool:
        """Return whether an expression is only tested for its truth."""
        below: ast.AST = node
        for up in self.source.ancestors(node):
            match up:
                case ast.BoolOp():
                    below = up
                case ast.If(test=it) | ast.While(test=it) | ast.IfExp(test=it):
                    return it is below
                case ast.UnaryOp(op=ast.Not()):
                    return True
                case _:
                    return False
        return False

    def get_method_call(self, mention: ast.expr) -> tuple[str, ast.Call]:
        """Return the name of the method that a mention calls, and the call."""
        attribute = self.source.parents[mention]
        assert isinstance(attribute, ast.Attribute)
        call = self.source.parents[attribute]
        assert isinstance(call, ast.Call)
        return attribute.attr, call

    def is_only_read(self, name: str, within: ast.AST) -> bool:
        """Return whether no mention of a local name in a node may change its value."""
        if not self.is_local(name):
            return False
        mentions = self.mentions(name, within)
        if self.is_immutable(name):
            return not any(self.classify(node) is NameUse.BIND for node in mentions)
        return not self.has_alias(name) and all(map(self.is_read, mentions))

    def is_read(self, mention: ast.expr) -> bool:
        """Return whether the value of an expression is neither changed nor stored there."""
        use = self.classify(mention)
        if use is NameUse.METHOD:
            method, call = self.get_method_call(mention)
            is_in_place = any(keyword.arg == "inplace" for keyword in call.keywords)
            return method in READING_METHODS and not is_in_place
        return use in (NameUse.READ, NameUse.TEST, NameUse.OPERAND)

    def is_immutable(self, name: str) -> bool:
        """Return whether all values of a name are immutable: strings, numbers."""
        parameter = self.parameter(name)
        if parameter is not None and not is_immutable_type(parameter.annotation):
            return False
        values = self.get_values(name)
        return bool(parameter or values) and all(
            isinstance(value, ast.Constant | ast.JoinedStr) for value in values
        )

    def may_be_none(self, name: str, within: ast.AST) -> bool:
        """Return whether a name may be None or of another type: its default or a test says so."""
        parameter = self.parameter(name)
        if parameter is not None and is_optional(self.function, parameter):
            return True
        for mention in self.mentions(name, within):
            match self.source.parents[mention]:
                case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                    return True
                case ast.Call(func=ast.Name(id="isinstance" | "callable" | "hasattr" | "type")):
                    return True
            if self.is_truth_test(mention):
                return True
        return False

    def has_alias(self, name: str) -> bool:
        """Return whether another name of the function may stand for the same object."""
        naming = ast.Assign | ast.AnnAssign | ast.List | ast.Tuple | ast.Dict | ast.NamedExpr
        choosing = ast.Attribute | ast.BoolOp | ast.IfExp
        for mention in self.mentions(name):
            statement = self.source.get_statement(mention)
            if isinstance(statement, ast.Return) or not isinstance(mention.ctx, ast.Load):
                continue
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.BoolOp() | ast.IfExp()):
                    if target == name:
                        continue  # ``items = items or []``
            parent = self.source.parents[mention]
            if isinstance(parent, naming):
                return True
            if isinstance(parent, choosing) and self.classify(mention) is NameUse.OTHER:
                return True
        return False

    def can_insert_before(self, loop: LoopNode | ComprehensionNode) -> bool:
        """Return whether code before a loop's statement runs right before the loop, always."""
        statement = self.source.get_statement(loop)
        if statement is loop:
            return True
        if isinstance(statement, ast.While):
            return False
        for up in self.source.ancestors(loop):
            if up is statement:
                return True
            if isinstance(up, ast.IfExp | ast.BoolOp):
                return False
        return False

    def loops(self, node: ast.AST) -> list[LoopNode | ComprehensionNode]:
        """Return the loops in whose repeated part a node is, the outermost first."""
        loops: list[LoopNode | ComprehensionNode] = []
        below = node
        for up in self.source.ancestors(node):
            if up is self.function or isinstance(up, INNER_SCOPES):
                break
            if isinstance(up, LOOPS) and below is not getattr(up, "iter", None):
                if below not in up.orelse:
                    loops.append(up)
            elif isinstance(up, COMPREHENSIONS):
                # The first iterable is evaluated once, its conditions for each item.
                first = up.generators[0]
                is_tested = any(node is child for test in first.ifs for child in ast.walk(test))
                if below is not first or is_tested:
                    loops.append(up)
            below = up
        return loops[::-1]

    def find_largest_loop(
        self, node: ast.AST, is_fit: Callable[[LoopNode | ComprehensionNode], bool]
    ) -> LoopNode | ComprehensionNode | None:
        """Return the outermost loop that fits, as do all loops between it and the node."""
        return next(iter([*takewhile(is_fit, reversed(self.loops(node)))][::-1]), None)

    def is_assigned_before(self, name: str, statement: ast.stmt) -> bool:
        """Return whether a name always has a value when a statement begins."""
        bindings = self.bindings(name)
        if any(isinstance(bound.ctx, ast.Del) for bound in bindings):
            return False
        if self.parameter(name) is not None:
            return True
        above = [statement, *self.source.ancestors(statement)]
        for bound in bindings:
            assigned = self.source.get_statement(bound)
            if assigned is statement:
                continue
            if assigned in above:
                return True
            while _always_assigns(self.source.parents[assigned], name):
                assigned = self.source.get_statement(self.source.parents[assigned])
            block = self.source.get_block(assigned)
            if any(node in block[block.index(assigned) :] for node in above if node in block):
                return True
        return False


def _always_assigns(node: ast.AST, name: str) -> bool:
    """Return whether a statement assigns a name in every branch."""
    match node:
        case ast.If(body=body, orelse=orelse):
            return all(_assigns_or_leaves(name, block) for block in (body, orelse))
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return False


def _assigns_or_leaves(name: str, block: list[ast.stmt]) -> bool:
    leaving = ast.Return | ast.Raise | ast.Continue | ast.Break
    is_left = bool(block) and isinstance(block[-1], leaving)
    return is_left or any(_always_assigns(statement, name) for statement in block)


def list_scopes(source: SourceFile) -> Iterator[FunctionScope]:
    """Yield every function of a module in source order."""
    for name, function in source.functions:
        yield FunctionScope(source, name, function)


def find_at_nodes(
    source: SourceFile,
    kind: type[NodeType],
    find: Callable[[FunctionScope, NodeType], CodeChange | None],
) -> Iterator[CodeChange]:
    """Yield what `find` changes at the nodes of a kind, in all functions of a module."""
    for scope in list_scopes(source):
        for node in scope.own_nodes(kind):
            change = find(scope, node)
            if change:
                yield change
