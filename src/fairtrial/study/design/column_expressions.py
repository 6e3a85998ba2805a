"""Constraint expressions evaluated for many rows at once, with the results of `Expression.holds`.

`and`, `or` and `not` are combined as arrays. What stands between them is either arithmetic on
columns of numbers, which numpy does exactly as Python would, or depends on few different values:
then Python evaluates it once for each combination of values that occurs. A row for which that
raises, or gives something else than true or false, is left undecided: the caller evaluates it by
`holds`, which raises the right error, or finds that it is never reached.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.study.design.expressions import Evaluate, Expression, Scope
from fairtrial.study.model.conditions import DesignRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Verdicts = NDArray[np.uint8]
    Codes = NDArray[np.int64]

FALSE, TRUE, UNDECIDED = 0, 1, 2
EXACT = 2**53
"""Integers below this are exact as floats, so that numpy's arithmetic gives Python's results."""
SCOPES = ("factors", "blocks")


class RowColumns:
    """The values of some rows by columns; each column is read when it is first needed."""

    def __init__(self, rows: Sequence[DesignRow]) -> None:
        self.rows = rows
        self._codes: dict[tuple[str, ...], tuple[Any, list[int]]] = {}
        self._column: dict[tuple[str, str], Any] = {}
        self._numbers: dict[str, Vector | None] = {}
        self._scopes: dict[int, Scope] = {}

    def scope(self, index: int) -> Scope:
        """Return what expressions can refer to in a row."""
        scope = self._scopes.get(index)
        if scope is None:
            scope = self._scopes[index] = make_scope(self.rows[index])
        return scope

    def codes(self, names: tuple[str, ...]) -> tuple[Any, list[int]]:
        """Return for each row the number of its combination of values, and a row of each."""
        if names not in self._codes:
            import numpy as np

            combined = np.zeros(len(self.rows), dtype=np.int64)
            for part in [self._column_codes(name, scope) for name in names for scope in SCOPES]:
                combined = np.unique(combined * len(self.rows) + part, return_inverse=True)[1]
            _, firsts, codes = np.unique(combined, return_index=True, return_inverse=True)
            self._codes[names] = codes, firsts.tolist()
        return self._codes[names]

    def _column_codes(self, name: str, scope: str) -> Any:
        import numpy as np

        # By identity: levels are shared by all rows, and equal values may be of different types.
        key = name, scope
        if key not in self._column:
            missing = object()
            ids = [id(getattr(row, scope).get(name, missing)) for row in self.rows]
            self._column[key] = np.unique(np.array(ids, dtype=np.int64), return_inverse=True)[1]
        return self._column[key]

    def numbers(self, name: str) -> Vector | None:
        """Return a column that holds only numbers, in all rows; None for other columns."""
        if name not in self._numbers:
            self._numbers[name] = self._read_numbers(name)
        return self._numbers[name]

    def _read_numbers(self, name: str) -> Vector | None:
        import numpy as np

        values = []
        for row in self.rows:
            if name in row.blocks or name not in row.factors:
                return None
            values.append(row.factors[name])
        kinds = set(map(type, values))
        if not kinds or not kinds <= {int, float}:
            return None
        bound = max((abs(value) for value in values if type(value) is int), default=0)
        if bound >= EXACT:
            return None
        return Vector(np.array(values, dtype=np.float64), bound if int in kinds else None)


@dataclass(frozen=True)
class Vector:
    """Numbers of all rows, or one for all.

    values: the numbers as floats
    bound: the largest magnitude that an integer among them can have; None if there is none
    """

    values: Any
    bound: int | None


Judge = Callable[[RowColumns], Any]
"""Returns for each row `TRUE`, `FALSE` or `UNDECIDED`."""
Compute = Callable[[RowColumns], Vector | None]
"""Returns the numbers of all rows; None if they can't be computed as columns."""


class ColumnExpression(Expression):
    """An expression that can be evaluated for many rows at once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._judge: Judge | None = None

    def judge(self, columns: RowColumns) -> Verdicts:
        """Return for each row whether the expression holds: `TRUE`, `FALSE` or `UNDECIDED`."""
        if self._judge is None:  # not before it is needed: that imports numpy
            self._judge = self._compile(self._tree, is_whole=True)
        verdicts: Verdicts = self._judge(columns)
        return verdicts

    def _compile(self, node: ast.expr, *, is_whole: bool = False) -> Judge:
        if isinstance(node, ast.BoolOp):
            parts = [self._compile(value) for value in node.values]
            return _join(parts, decisive=FALSE if isinstance(node.op, ast.And) else TRUE)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _negate(self._compile(node.operand))
        compute = _compile_comparison(self, node) if isinstance(node, ast.Compare) else None
        judge = self._compile_part(node, is_whole=is_whole)
        if compute is None:
            return judge

        def judge_numbers(columns: RowColumns) -> Any:
            verdicts = compute(columns)
            return judge(columns) if verdicts is None else verdicts

        return judge_numbers

    def _compile_part(self, node: ast.expr, *, is_whole: bool) -> Judge:
        """Compile a part that Python evaluates once for each combination of values."""
        import numpy as np

        known, self.names = self.names, set()
        evaluate: Evaluate = self._read(node)
        names, self.names = tuple(sorted(self.names)), known
        if _uses_whole_scopes(node):
            return lambda columns: np.full(len(columns.rows), UNDECIDED, dtype=np.uint8)

        def judge_values(columns: RowColumns) -> Any:
            codes, firsts = columns.codes(names)
            verdicts = np.empty(len(firsts), dtype=np.uint8)
            for number, index in enumerate(firsts):
                try:
                    value = evaluate(columns.scope(index))
                    is_valid = not is_whole or isinstance(value, bool)
                    verdicts[number] = bool(value) if is_valid else UNDECIDED
                except Exception:  # `holds` raises it for the first row that gets there
                    verdicts[number] = UNDECIDED
            return verdicts[codes]

        return judge_values

    def column_name(self, node: ast.expr) -> str | None:
        """Return the factor or block that a node stands for; None if it is anything else."""
        name = (self._source(node) or node.id) if isinstance(node, ast.Name) else None
        return None if name in SCOPES else name


def make_scope(row: DesignRow) -> Scope:
    """Return what expressions can refer to in a row, as `Expression.holds` does."""
    return {**row.factors, **row.blocks, "factors": row.factors, "blocks": row.blocks}


def _uses_whole_scopes(node: ast.expr) -> bool:
    """Return whether a part looks at all factors or blocks, or at one that is only computed."""
    named = set()
    for child in ast.walk(node):
        is_constant = isinstance(child, ast.Subscript) and isinstance(child.slice, ast.Constant)
        if isinstance(child, ast.Attribute) or is_constant:
            named.add(id(child.value))  # type: ignore[attr-defined]
    return any(
        isinstance(child, ast.Name) and child.id in SCOPES and id(child) not in named
        for child in ast.walk(node)
    )


def _join(parts: Sequence[Judge], *, decisive: int) -> Judge:
    """Return the function for `and` or `or`: the first decisive or undecided part counts."""

    def judge(columns: RowColumns) -> Any:
        verdicts = parts[0](columns)
        for part in parts[1:]:
            is_open = verdicts == 1 - decisive
            if not is_open.any():
                break
            verdicts = verdicts.copy()
            verdicts[is_open] = part(columns)[is_open]
        return verdicts

    return judge


def _negate(judge: Judge) -> Judge:
    import numpy as np

    opposite = np.array([TRUE, FALSE, UNDECIDED], dtype=np.uint8)
    return lambda columns: opposite[judge(columns)]


def _compile_comparison(expression: ColumnExpression, node: ast.Compare) -> Judge | None:
    """Return the function for a comparison of numbers; None if it compares something else."""
    import numpy as np

    compare = {
        ast.Eq: np.equal,
        ast.NotEq: np.not_equal,
        ast.Lt: np.less,
        ast.LtE: np.less_equal,
        ast.Gt: np.greater,
        ast.GtE: np.greater_equal,
    }
    operators = [compare.get(type(op)) for op in node.ops]
    sides = [_compile_number(expression, side) for side in (node.left, *node.comparators)]
    if None in operators or None in sides:
        return None

    def judge(columns: RowColumns) -> Any:
        vectors = []
        for side in sides:
            vector = side(columns) if side is not None else None
            if vector is None:
                return None
            vectors.append(vector.values)
        verdicts = np.ones(len(columns.rows), dtype=bool)
        for apply, left, right in zip(operators, vectors, vectors[1:], strict=False):
            assert apply is not None
            verdicts &= apply(left, right)
        return verdicts.astype(np.uint8)

    return judge


def _compile_number(expression: ColumnExpression, node: ast.expr) -> Compute | None:
    """Return the function that computes a number of each row; None for anything else."""
    if isinstance(node, ast.Constant):
        value = node.value
        if type(value) is float or (type(value) is int and abs(value) < EXACT):
            bound = abs(value) if type(value) is int else None
            constant = Vector(float(value), bound)
            return lambda columns: constant
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _compile_number(expression, node.operand)
        if operand is None:
            return None
        return lambda columns: _negative(operand(columns))
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        return _compile_arithmetic(expression, node)
    name = expression.column_name(node)
    return None if name is None else lambda columns: columns.numbers(name)


def _negative(vector: Vector | None) -> Vector | None:
    return None if vector is None else Vector(-vector.values, vector.bound)


def _compile_arithmetic(expression: ColumnExpression, node: ast.BinOp) -> Compute | None:
    left = _compile_number(expression, node.left)
    right = _compile_number(expression, node.right)
    if left is None or right is None:
        return None
    is_product = isinstance(node.op, ast.Mult)
    is_difference = isinstance(node.op, ast.Sub)

    def compute(columns: RowColumns) -> Vector | None:
        import numpy as np

        one, two = left(columns), right(columns)
        if one is None or two is None:
            return None
        bound = None
        if one.bound is not None and two.bound is not None:
            bound = one.bound * two.bound if is_product else one.bound + two.bound
            if bound >= EXACT:
                return None
        with np.errstate(all="ignore"):
            if is_product:
                return Vector(one.values * two.values, bound)
            if is_difference:
                return Vector(one.values - two.values, bound)
            return Vector(one.values + two.values, bound)

    return compute
