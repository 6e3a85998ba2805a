"""Warnings about expressions that compare a factor with a value that it never has.

Such a comparison is valid but has no effect; usually the value is misspelled, or is the name of a
level rather than its value.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fairtrial.core import (
    FieldPath,
    Mistake,
    StudyError,
    describe_value,
    did_you_mean,
    is_scalar,
    scalar_text,
)
from fairtrial.study.design.dependent_factors import BY_COMBINATION, BY_LEVEL, iter_conditions
from fairtrial.study.design.expressions import Expression
from fairtrial.study.model.factors import DesignKind, Factor
from fairtrial.study.model.study import Study

_LEVEL_DESIGNS = (*BY_COMBINATION, *BY_LEVEL, DesignKind.CUSTOM_MATRIX)
"""Designs in which factors have no other values than their levels."""


def find_expression_warnings(study: Study) -> Iterator[Mistake]:
    """Yield a warning for each comparison in constraints and `when` that can never be true."""
    for path, text in _iter_expressions(study):
        yield from find_comparison_warnings(study, path, text)


def find_comparison_warnings(
    study: Study,
    path: FieldPath,
    text: str,
    other_names: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> Iterator[Mistake]:
    """Yield a warning for each comparison of an expression that can never be true.

    other_names: further names beside factors and blocks, each with all its values
    """
    factors = {factor.name: factor for factor in study.factors if _has_only_levels(study, factor)}
    blocks = {**other_names, **{block.name: block.levels for block in study.blocks}}
    for name, value in _find_comparisons(text):
        if value is None:
            continue
        if name in factors:
            yield from _check_factor_value(path, factors[name], value)
        elif name in blocks and value not in blocks[name]:
            yield _warn_of_value(path, name, value, blocks[name])


def _has_only_levels(study: Study, factor: Factor) -> bool:
    spec = study.design_spec
    return bool(factor.levels) and spec.kind in _LEVEL_DESIGNS and not spec.center_points


def _iter_expressions(study: Study) -> Iterator[tuple[FieldPath, str]]:
    for index, constraint in enumerate(study.constraints):
        if constraint.expression is not None:
            yield ("constraints", index, "expression"), constraint.expression
    for index, factor in enumerate(study.factors):
        yield from iter_conditions(factor, ("factors", index))


def _find_comparisons(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the names that an expression compares with literals, each with the literal's value."""
    try:
        Expression(text)
    except StudyError:
        return  # reported as a mistake elsewhere
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


def _pairs(node: ast.expr, operands: Sequence[ast.expr]) -> Iterator[tuple[str, Any]]:
    name = _get_name(node)
    if name is not None:
        yield from ((name, item.value) for item in operands if isinstance(item, ast.Constant))


def _get_name(node: ast.expr) -> str | None:
    """Return the name that `x`, `factors["x"]` or `factors.x` refers to; None for other nodes."""
    match node:
        case ast.Name(name) | ast.Attribute(ast.Name("factors" | "blocks"), name):
            return name
        case ast.Subscript(ast.Name("factors" | "blocks"), ast.Constant(str() as name)):
            return name
    return None


def _check_factor_value(path: FieldPath, factor: Factor, value: Any) -> Iterator[Mistake]:
    if value == factor.default or any(value == level.value for level in factor.levels):
        return
    named_levels = [level.value for level in factor.levels if level.name == value]
    if named_levels and isinstance(named_levels[0], str):
        level_value = named_levels[0]
        message = f"'{value}' is the name of a level of '{factor.name}'"
        shown = level_value if len(level_value) <= 40 else f"{level_value[:39]}…"
        yield Mistake(path, message, f"expressions compare its value, '{shown}'")
    else:
        yield _warn_of_value(path, factor.name, value, factor.iter_values())


def _warn_of_value(path: FieldPath, name: str, value: Any, values: Sequence[Any]) -> Mistake:
    text = scalar_text(value)
    scalars = [item for item in values if is_scalar(item)]
    same_text = next((item for item in scalars if scalar_text(item) == text), None)
    # Similar numbers are no better suggestions than others.
    hint = did_you_mean(text if isinstance(value, str) else "", map(scalar_text, scalars))
    if same_text is not None:
        is_text = isinstance(same_text, str)
        hint = f"write '{text}' in quotes" if is_text else f"write {text} unquoted"
    return Mistake(path, f"'{name}' never is {describe_value(value)}", hint)
