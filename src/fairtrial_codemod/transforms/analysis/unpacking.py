"""What a name is given where several are: ``seen, found = [], {}``."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.uses import Scope


def given_to(scope: Scope, bound: ast.Name) -> ast.expr | None:
    """What an assignment gives a name, alone or as one of several that are written side by side."""
    if value := scope.assignment(bound):
        return value
    match scope.source.parents.get(scope.source.parents[bound]):
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            is_plain = not any(isinstance(each, ast.Starred) for each in (*names, *values))
            is_once = sum(isinstance(each, ast.Name) and each.id == bound.id for each in names) == 1
            if is_plain and is_once and len(names) == len(values) and bound in names:
                return values[names.index(bound)]
    return None
