"""Constraint expressions: a small safe language over the values of factors and blocks.

An expression is parsed once, by Python's own parser, and compiled to functions; syntax that is not
on the list below is refused before anything is evaluated::

    x  factors["x"]  factors.x  blocks["b"]        a factor's or a block's value
    1  2.5  "text"  True  None  [1, 2]  (1, 2)     literals
    ==  !=  <  <=  >  >=  in  not in  is None      comparisons, chained ones too
    and  or  not                                   with short-circuit evaluation
    +  -  *  /  //  %                              of numbers; + also joins texts and lists
    len  int  float  str  bool                     of one value
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from fairtrial.core import Mistake, StudyError, canonical_json, describe_value, did_you_mean
from fairtrial.study.design.operators import ARITHMETIC, COMPARE, FUNCTIONS

MAX_CHARACTERS = 2_000
SHOWN_LENGTH = 120
Scope = Mapping[str, Any]
Evaluate = Callable[[Scope], Any]


class Expression:
    """A parsed expression; raises `StudyError` for text that is not in the language."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        """The factors and blocks that the expression refers to."""
        if len(text) > MAX_CHARACTERS:
            raise self._refusal(f"is longer than {MAX_CHARACTERS} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns of escapes such as "\\d"
                tree = ast.parse(text.strip(), mode="eval")
            self._tree = tree.body
            self._evaluate = self._read(self._tree)
        except SyntaxError as error:
            raise self._refusal(f"is not an expression: {_syntax(text, error)}") from None
        except (RecursionError, MemoryError):
            raise self._refusal("is nested too deeply") from None
        except ValueError as error:
            if isinstance(error, StudyError):
                raise
            raise self._refusal(f"can't be read: {error}") from None

    def holds(self, factors: Scope, blocks: Scope) -> bool:
        """Return whether the expression is true for one assignment.

        Raises `StudyError` if it can't be evaluated, or is neither true nor false.
        """
        scope = {**factors, **blocks, "factors": factors, "blocks": blocks}
        try:
            result = self._evaluate(scope)
        except StudyError:
            raise
        except Exception as error:
            reason = f"there is no {error}" if isinstance(error, KeyError) else error
            shown = format_factors(factors)
            raise self._refusal(f"fails for {shown}: {reason}") from error
        if not isinstance(result, bool):
            shown = format_factors(factors)
            raise self._refusal(
                f"must give true or false, gave {describe_value(result)} for {shown}"
            )
        return result

    def _refusal(self, reason: str) -> StudyError:
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        return StudyError(Mistake((), f"the expression `{shown}` {reason}"))

    def _read(self, node: ast.expr) -> Evaluate:
        reader = getattr(self, f"_read_{type(node).__name__.lower()}", None)
        if reader is None:
            code = self._source(node) or type(node).__name__
            shown = code if len(code) <= 60 else code[:57] + "..."
            raise self._refusal(f"uses `{shown}`, which is not allowed in expressions")
        evaluate: Evaluate = reader(node)
        return evaluate

    def _source(self, node: ast.expr) -> str:
        """Return the source text of a node; Python's parser normalizes letters such as `µ`."""
        return ast.get_source_segment(self.text.strip(), node) or ""

    def _read_constant(self, node: ast.Constant) -> Evaluate:
        value = node.value
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise self._refusal(f"uses the literal `{value!r}`, which is not allowed")
        return lambda scope: value

    def _read_name(self, node: ast.Name) -> Evaluate:
        name = self._source(node) or node.id
        if name not in ("factors", "blocks"):
            self.names.add(name)

        def look_up(scope: Scope) -> Any:
            if name not in scope:
                raise self._refusal(f"uses '{name}', which is no factor or block")
            return scope[name]

        return look_up

    def _read_attribute(self, node: ast.Attribute) -> Evaluate:
        if node.attr.startswith("__"):
            raise self._refusal(f"uses `.{node.attr}`, which is not allowed in expressions")
        return self._item(node.value, self._source(node).rpartition(".")[2].strip() or node.attr)

    def _read_subscript(self, node: ast.Subscript) -> Evaluate:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._item(node.value, node.slice.value)
        target, index = self._read(node.value), self._read(node.slice)
        return lambda scope: target(scope)[index(scope)]

    def _item(self, container: ast.expr, key: str) -> Evaluate:
        """Compile `container.key` and `container["key"]`, which read an entry of a mapping."""
        if isinstance(container, ast.Name) and container.id in ("factors", "blocks"):
            self.names.add(key)
        target = self._read(container)

        def look_up(scope: Scope) -> Any:
            mapping = target(scope)
            if not isinstance(mapping, Mapping):
                raise self._refusal(
                    f"looks up '{key}' in {describe_value(mapping)}, which has no names"
                )
            if key not in mapping:
                hint = did_you_mean(key, map(str, mapping))
                raise self._refusal(f"looks up '{key}', which isn't there; {hint}")
            return mapping[key]

        return look_up

    def _read_list(self, node: ast.List) -> Evaluate:
        items = [self._read(item) for item in node.elts]
        return lambda scope: [item(scope) for item in items]

    def _read_tuple(self, node: ast.Tuple) -> Evaluate:
        items = [self._read(item) for item in node.elts]
        return lambda scope: tuple(item(scope) for item in items)

    def _read_boolop(self, node: ast.BoolOp) -> Evaluate:
        parts = [self._read(value) for value in node.values]
        if isinstance(node.op, ast.And):
            return lambda scope: all(part(scope) for part in parts)
        return lambda scope: any(part(scope) for part in parts)

    def _read_unaryop(self, node: ast.UnaryOp) -> Evaluate:
        operand = self._read(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda scope: not operand(scope)
        if isinstance(node.op, ast.USub):
            return lambda scope: -self._number(operand(scope), "-")
        if isinstance(node.op, ast.UAdd):
            return lambda scope: +self._number(operand(scope), "+")
        raise self._refusal("uses `~`, which is not allowed in expressions")

    def _read_binop(self, node: ast.BinOp) -> Evaluate:
        if type(node.op) not in ARITHMETIC:
            sign = {"Pow": "**", "LShift": "<<", "RShift": ">>"}.get(type(node.op).__name__)
            raise self._refusal(f"uses `{sign or type(node.op).__name__}`, which is not allowed")
        symbol, apply = ARITHMETIC[type(node.op)]
        left, right = self._read(node.left), self._read(node.right)

        def compute(scope: Scope) -> Any:
            one, two = left(scope), right(scope)
            is_concatenation = (
                symbol == "+" and type(one) is type(two) and isinstance(one, (str, list, tuple))
            )
            if not is_concatenation:
                self._number(one, symbol)
                self._number(two, symbol)
            return apply(one, two)

        return compute

    def _number(self, value: Any, symbol: str) -> Any:
        # Texts and lists are refused: "x" * 10**9 would take a gigabyte.
        if not isinstance(value, (int, float)):
            raise self._refusal(f"uses `{symbol}` on {describe_value(value)}")
        return value

    def _read_compare(self, node: ast.Compare) -> Evaluate:
        operators = [COMPARE[type(op)] for op in node.ops]
        values = [self._read(value) for value in (node.left, *node.comparators)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            is_none = isinstance(right, ast.Constant) and right.value is None
            if isinstance(op, (ast.Is, ast.IsNot)) and not is_none:
                raise self._refusal("uses `is` with something else than None; use ==")

        def compare(scope: Scope) -> bool:
            left = values[0](scope)
            for apply, value in zip(operators, values[1:], strict=True):
                right = value(scope)
                if not apply(left, right):
                    return False
                left = right
            return True

        return compare

    def _read_call(self, node: ast.Call) -> Evaluate:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            raise self._refusal(f"calls something else than {', '.join(FUNCTIONS)}")
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise self._refusal(f"must give {node.func.id}() exactly one value")
        function, argument = FUNCTIONS[node.func.id], self._read(node.args[0])
        return lambda scope: function(argument(scope))


def format_factors(factors: Scope) -> str:
    """Return factors' values as JSON, shortened for messages."""
    text = canonical_json(factors)
    return text if len(text) <= SHOWN_LENGTH else f"{text[: SHOWN_LENGTH - 3]}..."


def _syntax(text: str, error: SyntaxError) -> str:
    at = f" (at character {error.offset})" if error.offset else ""
    for sign, word in (("&&", "and"), ("||", "or"), ("=", "==")):
        if sign in re.sub("[=!<>]=", "", text):
            return f"{error.msg}{at}; for `{sign}` write `{word}`"
    return f"{error.msg}{at}"
