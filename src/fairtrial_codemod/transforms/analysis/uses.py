"""How a function uses its names: what is local to it, what is only read, what runs in a loop."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum

from fairtrial_codemod.transforms.analysis.kinds import READING, is_fixed_type, is_optional
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    INNER_SCOPES,
    LOOPS,
    PEEPING,
    Comprehension,
    Function,
    Loop,
    Source,
    binds,
)

PURE = frozenset(
    {"abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "float"}
    | {"frozenset", "hash", "int", "isinstance", "len", "list", "max", "min", "ord", "pow"}
    | {"range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"}
)
"""Builtins that change nothing and keep nothing but what they give back."""
KEEPING = frozenset({"enumerate", "reversed", "zip"})
"""Those whose result still reads what they were given."""


class Use(StrEnum):
    """What one mention of a name does."""

    BIND = "bind"
    TEST = "in"
    READ = "read"
    """its elements, its length, its truth: nothing that changes or keeps it"""
    METHOD = "method"
    """a method of it is called"""
    OPERAND = "operand"
    """compared, added, or the place or bound of a subscript: nothing that changes or keeps it"""
    GIVE = "give"
    """returned"""
    OTHER = "other"


@dataclass(frozen=True)
class Scope:
    """A function of a module, and what may be said of its names."""

    source: Source
    name: str
    function: Function

    @property
    def is_opaque(self) -> bool:
        """Whether names may be seen by other means than their mention."""
        return any(
            isinstance(node, ast.Name) and node.id in PEEPING
            for node in self.source.walk(self.function)
        )

    def mentions(self, name: str, within: ast.AST | None = None) -> list[ast.Name]:
        """Every mention of a name, in order of the text."""
        found = [
            node
            for node in self.source.walk(within or self.function)
            if isinstance(node, ast.Name) and node.id == name
        ]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def parameter(self, name: str) -> ast.arg | None:
        """The parameter of that name."""
        given = self.function.args
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if each.arg == name:
                return each
        return None

    def is_local(self, name: str) -> bool:
        """Whether a name is a variable or parameter of this function and of no other's."""
        if self.is_opaque:
            return False
        is_bound = self.parameter(name) is not None
        for node in self.source.walk(self.function):
            if node is self.function or name not in (*binds(node), *_reads(node)):
                continue
            if isinstance(node, ast.arg):
                if node is not self.parameter(name):
                    return False
            elif not isinstance(node, ast.Name) or self.source.function_of(node) != self.function:
                return False
            elif not isinstance(node.ctx, ast.Load):
                if self._in_comprehension_target(node):
                    return False
                is_bound = True
        return is_bound

    def _in_comprehension_target(self, node: ast.AST) -> bool:
        return any(isinstance(each, ast.comprehension) for each in self.source.around(node))

    def bindings(self, name: str) -> list[ast.Name]:
        """Where a name is bound or deleted."""
        return [node for node in self.mentions(name) if not isinstance(node.ctx, ast.Load)]

    def assignment(self, bound: ast.Name) -> ast.expr | None:
        """What a plain assignment of this name alone gives it."""
        match self.source.parents[bound]:
            case ast.Assign(targets=[target], value=value) if target is bound:
                return value
            case ast.AnnAssign(target=target, value=value, simple=1) if target is bound:
                return value
        return None

    def use(self, mention: ast.Name) -> Use:
        """What a mention does."""
        if not isinstance(mention.ctx, ast.Load):
            return Use.BIND
        parent = self.source.parents[mention]
        match parent:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[it]) if it is mention:
                return Use.TEST
            case ast.Subscript(value=it, ctx=ast.Load()) if it is mention:
                return Use.READ
            case ast.For(iter=it) | ast.comprehension(iter=it) if it is mention:
                return Use.READ
            case ast.Starred() | ast.FormattedValue():
                return Use.READ
            case _ if self.is_truth(mention):
                return Use.READ
            case ast.Call(func=ast.Name(id=name), args=args) if mention in args:
                if name in PURE and self.source.is_builtin(name):
                    return self._use_of_builtin(name, parent)
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join")):
                return Use.READ
            case ast.Attribute(value=it) if it is mention:
                above = self.source.parents[parent]
                is_called = isinstance(above, ast.Call) and above.func is parent
                return Use.METHOD if is_called else Use.OTHER
            case ast.Return():
                return Use.GIVE
            case ast.BinOp(op=ast.LShift() | ast.RShift()):
                return Use.OTHER  # streams are written that way
            case ast.Compare() | ast.BinOp() | ast.UnaryOp() | ast.Slice():
                return Use.OPERAND
            case ast.Subscript(slice=it, ctx=ast.Load()) if it is mention:
                return Use.OPERAND
        return Use.OTHER

    def is_truth(self, mention: ast.Name) -> bool:
        """Whether a mention only asks if there is anything."""
        below: ast.AST = mention
        for each in self.source.around(mention):
            match each:
                case ast.BoolOp():
                    below = each
                case ast.If(test=it) | ast.While(test=it) | ast.IfExp(test=it):
                    return it is below
                case ast.UnaryOp(op=ast.Not()):
                    return True
                case _:
                    return False
        return False

    def _use_of_builtin(self, name: str, call: ast.AST) -> Use:
        """Some builtins hand back what they were given, or something that reads it later."""
        is_read_at_once = isinstance(self.source.parents[call], ast.For | ast.comprehension)
        is_kept = name in KEEPING and not is_read_at_once
        return Use.OTHER if is_kept else Use.READ

    def method(self, mention: ast.Name) -> tuple[str, ast.Call]:
        """The method of it that is called, and the call."""
        attribute = self.source.parents[mention]
        assert isinstance(attribute, ast.Attribute)
        call = self.source.parents[attribute]
        assert isinstance(call, ast.Call)
        return attribute.attr, call

    def is_untouched(self, name: str, within: ast.AST) -> bool:
        """Whether, as far as one sees, what a local name stands for stays as it is in there."""
        if not self.is_local(name):
            return False
        mentions = self.mentions(name, within)
        if self.is_fixed(name):
            return not any(self.use(each) is Use.BIND for each in mentions)
        return not self.has_alias(name) and all(map(self.only_reads, mentions))

    def only_reads(self, mention: ast.Name) -> bool:
        """Whether a mention neither changes what the name stands for nor hands it on."""
        use = self.use(mention)
        if use is Use.METHOD:
            method, call = self.method(mention)
            return method in READING and not any(each.arg == "inplace" for each in call.keywords)
        return use in (Use.READ, Use.TEST, Use.OPERAND)

    def is_fixed(self, name: str) -> bool:
        """Whether a name can only stand for what nobody can change: a text, a number."""
        parameter = self.parameter(name)
        if parameter is not None and not is_fixed_type(parameter.annotation):
            return False
        values = [self.assignment(each) for each in self.bindings(name)]
        return bool(parameter or values) and all(
            isinstance(each, ast.Constant | ast.JoinedStr) for each in values
        )

    def is_questioned(self, name: str, within: ast.AST) -> bool:
        """Whether it may be nothing, or of another kind: code in there, or its default, says so."""
        parameter = self.parameter(name)
        if parameter is not None and is_optional(self.function, parameter):
            return True
        for mention in self.mentions(name, within):
            match self.source.parents[mention]:
                case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                    return True
                case ast.Call(func=ast.Name(id="isinstance" | "callable" | "hasattr" | "type")):
                    return True
            if self.is_truth(mention):
                return True
        return False

    def has_alias(self, name: str) -> bool:
        """Whether it may be changed by another name of this function's, or ``add = it.append``."""
        naming = ast.Assign | ast.AnnAssign | ast.List | ast.Tuple | ast.Dict | ast.NamedExpr
        choosing = ast.Attribute | ast.BoolOp | ast.IfExp
        for each in self.mentions(name):
            is_over = isinstance(self.source.statement_of(each), ast.Return)
            if is_over or not isinstance(each.ctx, ast.Load):
                continue
            parent = self.source.parents[each]
            if isinstance(parent, naming):
                return True
            if isinstance(parent, choosing) and self.use(each) is Use.OTHER:
                return True
        return False

    def can_precede(self, loop: Loop | Comprehension) -> bool:
        """Whether what stands before a loop's statement comes right before the loop, always."""
        statement = self.source.statement_of(loop)
        if statement is loop:
            return True
        if isinstance(statement, ast.While):
            return False
        for each in self.source.around(loop):
            if each is statement:
                return True
            if isinstance(each, ast.IfExp | ast.BoolOp):
                return False
        return False

    def loops(self, node: ast.AST) -> list[Loop | Comprehension]:
        """The loops in whose repeated part a node stands, the outermost first."""
        found: list[Loop | Comprehension] = []
        below = node
        for each in self.source.around(node):
            if each is self.function or isinstance(each, INNER_SCOPES):
                break
            if isinstance(each, LOOPS) and below is not getattr(each, "iter", None):
                if below not in each.orelse:
                    found.append(each)
            elif isinstance(each, COMPREHENSIONS):
                first = each.generators[0]
                if below is not first or self._is_repeated(node, first):
                    found.append(each)
            below = each
        return found[::-1]

    def _is_repeated(self, node: ast.AST, first: ast.comprehension) -> bool:
        """The first iterable is made once; its conditions are tested each time."""
        return any(node is each for test in first.ifs for each in ast.walk(test))


def _reads(node: ast.AST) -> list[str]:
    return [node.id] if isinstance(node, ast.Name) else []


def is_fresh_list(value: ast.expr | None, source: Source) -> bool:
    """Whether an expression makes a new list, for all that one can see."""
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.Call(func=ast.Name(id="list" | "sorted" as name)):
            return source.is_builtin(name)
        case ast.Call(func=ast.Attribute(attr="split" | "rsplit" | "splitlines" | "readlines")):
            return True
        case ast.BinOp(left=ast.List(), op=ast.Mult()) | ast.BinOp(right=ast.List(), op=ast.Mult()):
            return True
    return False


def unhashable(node: ast.expr) -> bool:
    """Whether an expression visibly can't be hashed."""
    return isinstance(
        node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    )
