"""Expressions that compare a factor with what it never is: a misspelt value, or a level's name.

Such a rule can be read, and does nothing; nobody means that.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fairtrial.core import (
    Mistake,
    Place,
    StudyError,
    describe,
    did_you_mean,
    is_scalar,
    scalar_text,
)
from fairtrial.study.design.constraints import Expression
from fairtrial.study.design.dependent_factors import BY_COMBINATION, BY_LEVEL, iter_conditions
from fairtrial.study.model.factors import DesignKind, Factor
from fairtrial.study.model.study import Study

_OF_LEVELS = (*BY_COMBINATION, *BY_LEVEL, DesignKind.CUSTOM_MATRIX)
"""Designs that give factors no other values than their levels."""


def expression_doubts(study: Study) -> Iterator[Mistake]:
    """A remark for each comparison, in constraints and `when`, that can never be met."""
    for path, text in _expressions(study):
        yield from comparison_doubts(study, path, text)


def comparison_doubts(
    study: Study, path: Place, text: str, others: Mapping[str, Sequence[Any]] = MappingProxyType({})
) -> Iterator[Mistake]:
    """A remark for each comparison of an expression that can never be met.

    others: what else it may ask for beside factors and blocks, with all values
    """
    factors = {factor.name: factor for factor in study.factors if _has_only_levels(study, factor)}
    blocks = {**others, **{block.name: block.levels for block in study.blocks}}
    for name, value in _comparisons(text):
        if value is None:
            continue
        if name in factors:
            yield from _doubts(path, factors[name], value)
        elif name in blocks and value not in blocks[name]:
            yield _never(path, name, value, blocks[name])


def _has_only_levels(study: Study, factor: Factor) -> bool:
    spec = study.design_spec
    return bool(factor.levels) and spec.kind in _OF_LEVELS and not spec.center_points


def _expressions(study: Study) -> Iterator[tuple[Place, str]]:
    for index, rule in enumerate(study.constraints):
        if rule.expression is not None:
            yield ("constraints", index, "expression"), rule.expression
    for index, factor in enumerate(study.factors):
        yield from iter_conditions(factor, ("factors", index))


def _comparisons(text: str) -> Iterator[tuple[str, Any]]:
    """The names that an expression compares with plain values, and the values."""
    try:
        Expression(text)
    except StudyError:
        return  # A mistake, told as such.
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if not isinstance(node, ast.Compare):
            continue
        sides = itertools.pairwise((node.left, *node.comparators))
        for operator, (left, right) in zip(node.ops, sides, strict=True):
            if isinstance(operator, (ast.Eq, ast.NotEq)):
                yield from _pairs(left, [right])
                yield from _pairs(right, [left])
            elif isinstance(operator, (ast.In, ast.NotIn)) and isinstance(
                right, (ast.List, ast.Tuple)
            ):
                yield from _pairs(left, right.elts)


def _pairs(node: ast.expr, others: Sequence[ast.expr]) -> Iterator[tuple[str, Any]]:
    name = _name(node)
    if name is not None:
        yield from ((name, other.value) for other in others if isinstance(other, ast.Constant))


def _name(node: ast.expr) -> str | None:
    """What `x`, `factors["x"]` and `factors.x` refer to."""
    match node:
        case ast.Name(name) | ast.Attribute(ast.Name("factors" | "blocks"), name):
            return name
        case ast.Subscript(ast.Name("factors" | "blocks"), ast.Constant(str() as name)):
            return name
    return None


def _doubts(path: Place, factor: Factor, value: Any) -> Iterator[Mistake]:
    if value == factor.default or any(value == level.value for level in factor.levels):
        return
    named = [level.value for level in factor.levels if level.name == value]
    if named and isinstance(named[0], str):
        message = f"'{value}' is the name of a level of '{factor.name}'"
        shown = named[0] if len(named[0]) <= 40 else f"{named[0][:39]}…"
        yield Mistake(path, message, f"expressions compare its value, '{shown}'")
    else:
        yield _never(path, factor.name, value, factor.iter_values())


def _never(path: Place, name: str, value: Any, values: Sequence[Any]) -> Mistake:
    text = scalar_text(value)
    plain = [one for one in values if is_scalar(one)]
    twin = next((one for one in plain if scalar_text(one) == text), None)
    known = [scalar_text(one) for one in plain]
    # Numbers that look alike are no more likely to be meant than others.
    hint = did_you_mean(text if isinstance(value, str) else "", known)
    if twin is not None:
        hint = f"write '{text}' in quotes" if isinstance(twin, str) else f"write {text} unquoted"
    return Mistake(path, f"'{name}' never is {describe(value)}", hint)
