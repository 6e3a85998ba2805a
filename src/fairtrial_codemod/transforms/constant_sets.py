"""Test membership in sets of constants instead of lists and tuples of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.code_patterns import is_same_code
from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse, list_scopes
from fairtrial_codemod.analysis.hashability import is_hashable, is_validated
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit

MIN_CONSTANTS = 3


def find_constant_sets(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``x in ["a", "b", "c"]``: the compiler stores a set of constants."""
    for scope in list_scopes(source):
        for node in scope.own_nodes(ast.Compare):
            match node:
                case ast.Compare(
                    left=left,
                    ops=[ast.In() | ast.NotIn()],
                    comparators=[(ast.List() | ast.Tuple()) as items],
                ) if _are_constants(items.elts):
                    change = _write_set(scope, node, left, items)
                    if change:
                        yield change
        for chain in scope.own_nodes(ast.BoolOp):
            change = _write_chain(scope, chain)
            if change:
                yield change


def _write_set(
    scope: FunctionScope, test: ast.Compare, left: ast.expr, items: ast.List | ast.Tuple
) -> CodeChange | None:
    source = scope.source
    # An unhashable value is no error in a list: leave tests alone that may be asked for one.
    is_plain = isinstance(left, ast.Name | ast.Attribute | ast.Subscript)
    if is_validated(source, test) or (is_plain and not is_hashable(scope, left)):
        return None
    elements = ", ".join(map(source.render, items.elts))
    description = f"a set of {len(items.elts)} constants"
    edit = ("replace", items, f"{{{elements}}}")
    return CodeChange(description, test.lineno, scope.name, (edit,))


def _write_chain(scope: FunctionScope, chain: ast.BoolOp) -> CodeChange | None:
    """Write ``x == 1 or x == 2 or x == 3`` as one test, if that is the whole condition."""
    wanted = ast.Eq if isinstance(chain.op, ast.Or) else ast.NotEq
    subjects, constants = [], []
    for part in chain.values:
        match part:
            case ast.Compare(left=left, ops=[operator], comparators=[ast.Constant() as constant]):
                subjects.append(left)
                constants.append(constant)
                if not isinstance(operator, wanted):
                    return None
            case _:
                return None
    subject, *others = subjects
    is_plain = isinstance(subject, ast.Name | ast.Attribute)
    if not is_plain or not all(is_same_code(subject, other) for other in others):
        return None
    if not _are_constants([*constants]) or not is_hashable(scope, subject):
        return None
    if is_validated(scope.source, chain):
        return None
    sign = "in" if wanted is ast.Eq else "not in"
    elements = ", ".join(map(scope.source.render, constants))
    code = f"({scope.source.render(subject)} {sign} {{{elements}}})"
    description = f"a set of {len(constants)} constants"
    return CodeChange(description, chain.lineno, scope.name, (("replace", chain, code),))


def _are_constants(elements: list[ast.expr]) -> bool:
    """Return whether all are constants of one type; mixed ones may be compared to anything."""
    types = {type(item.value) if isinstance(item, ast.Constant) else None for item in elements}
    is_plain = len(types) == 1 and types <= {str, int, bytes}
    return is_plain and len(elements) >= MIN_CONSTANTS


def find_module_sets(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``x in NAMES`` in functions, where the module says ``NAMES = ["a", "b", ...]``."""
    if not source.is_builtin("frozenset"):
        return
    scopes: dict[ast.AST | None, FunctionScope] = {s.function: s for s in list_scopes(source)}
    for statement in source.tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name) as target],
                value=(ast.List() | ast.Tuple()) as items,
            ) if _are_constants(items.elts):
                if isinstance(items, ast.List) and not name.startswith("_"):
                    continue  # another module may change it
                uses = _TableUses(source, scopes, name, target)
                change = uses.write(statement)
                if change:
                    yield change


class _TableUses:
    """All mentions of a module's table outside of its definition."""

    def __init__(
        self,
        source: SourceFile,
        scopes: dict[ast.AST | None, FunctionScope],
        name: str,
        target: ast.Name,
    ) -> None:
        self.source, self.scopes, self.name = source, scopes, name
        self.mentions = [
            node
            for node in source.walk(source.tree)
            if isinstance(node, ast.Name) and node.id == name and node is not target
        ]

    def write(self, statement: ast.stmt) -> CodeChange | None:
        """Return the change if the table is only read and tested, and never bound again."""
        source = self.source
        uses = [self._classify(mention) for mention in self.mentions]
        if any(use not in (NameUse.TEST, NameUse.READ) for use in uses):
            return None
        if len(source.binders[self.name]) != 1:
            return None
        tests = [
            mention
            for mention, use in zip(self.mentions, uses, strict=True)
            if use is NameUse.TEST and self._is_hashable_test(mention)
        ]
        if not tests:
            return None
        wish = self.name.lstrip("_")
        added = source.make_name(f"_{wish}_SET" if self.name.isupper() else f"_{wish}_set")
        edits: list[TextEdit] = [("after", statement, f"{added} = frozenset({self.name})")]
        edits += [("replace", mention, added) for mention in tests]
        lines = ", ".join(str(mention.lineno) for mention in tests)
        description = f"a frozenset beside {self.name} (tested in line {lines})"
        scope = self._get_scope(tests[0])
        assert scope is not None
        return CodeChange(description, statement.lineno, scope.name, tuple(edits))

    def _get_scope(self, mention: ast.Name) -> FunctionScope | None:
        return self.scopes.get(self.source.get_scope_node(mention))

    def _classify(self, mention: ast.Name) -> NameUse:
        scope = self._get_scope(mention)
        return NameUse.OTHER if scope is None else scope.classify(mention)

    def _is_hashable_test(self, mention: ast.Name) -> bool:
        scope, test = self._get_scope(mention), self.source.parents[mention]
        assert isinstance(test, ast.Compare)
        assert scope is not None
        is_plain = isinstance(test.left, ast.Name | ast.Attribute | ast.Subscript)
        if is_validated(self.source, test):
            return False
        return not is_plain or is_hashable(scope, test.left)
