"""Keys of older study files: accepted where they agree with what replaced them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.core import Mistake, Place


def modernise(data: dict[str, Any], path: Place, mistakes: list[Mistake]) -> dict[str, Any]:
    """The data of a study without its legacy keys, whose meaning is moved to where it lives now."""
    data = dict(data)
    version = data.pop("schema_version", None)
    if version is not None and not str(version).startswith("0."):
        mistakes.append(
            Mistake(
                (*path, "schema_version"),
                f"version {version!r} is newer than this fairtrial reads (0.x)",
                "update fairtrial",
            )
        )
    _check_linked_plans(data, path, mistakes)
    return _with_outcome_roles(data, path, mistakes)


def _records(data: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    found = data.get(key)
    rows = found if isinstance(found, (list, tuple)) else ()
    return [(index, row) for index, row in enumerate(rows) if isinstance(row, Mapping)]


def _check_linked_plans(data: Mapping[str, Any], path: Place, mistakes: list[Mistake]) -> None:
    tested_by = {
        str(row.get("analysis_plan_id")): row["hypothesis_ids"]
        for _, row in _records(data, "analysis_plans")
        if isinstance(row.get("hypothesis_ids"), (list, tuple))
    }
    for index, row in _records(data, "hypotheses"):
        plan = row.get("linked_analysis_plan_id")
        if plan and row.get("hypothesis_id") not in tested_by.get(str(plan), ()):
            mistakes.append(
                Mistake(
                    (*path, "hypotheses", index, "linked_analysis_plan_id"),
                    f"analysis plan '{plan}' does not test hypothesis '{row.get('hypothesis_id')}'",
                    "the plan's hypothesis_ids decide: add it there, or remove this key",
                )
            )


def _with_outcome_roles(
    data: dict[str, Any], path: Place, mistakes: list[Mistake]
) -> dict[str, Any]:
    """Carry `primary_outcomes` / `secondary_outcomes` over to the outcomes' own `primary`."""
    roles: dict[str, bool] = {}
    for key, is_primary in (("primary_outcomes", True), ("secondary_outcomes", False)):
        names = data.pop(key, None)
        if names is None:
            continue
        if not isinstance(names, (list, tuple)):
            mistakes.append(Mistake((*path, key), "expected a list of outcome names"))
            continue
        for index, name in enumerate(names):
            if not isinstance(name, str):
                mistakes.append(Mistake((*path, key, index), "expected the name of an outcome"))
                continue
            if roles.get(name, is_primary) != is_primary:
                mistakes.append(
                    Mistake((*path, key, index), f"'{name}' is listed as primary and as secondary")
                )
            roles[name] = is_primary
    if not roles or not isinstance(data.get("outcomes", []), (list, tuple)):
        return data
    outcomes = dict(_records(data, "outcomes"))
    known = {str(row.get("name")): index for index, row in outcomes.items()}
    stated = any("primary" in row for row in outcomes.values())
    for name, is_primary in roles.items():
        key = "primary_outcomes" if is_primary else "secondary_outcomes"
        if name not in known:
            mistakes.append(Mistake((*path, key), f"'{name}' is not among the outcomes"))
        elif stated and bool(outcomes[known[name]].get("primary", False)) != is_primary:
            mistakes.append(
                Mistake(
                    (*path, key),
                    f"says otherwise than the `primary` of outcome '{name}'",
                    f"remove {key}",
                )
            )
        else:
            outcomes[known[name]] = {**outcomes[known[name]], "primary": is_primary}
    rows = list(data.get("outcomes", ()))
    for index, row in outcomes.items():
        rows[index] = row
    return {**data, "outcomes": rows}
