"""Older keys of study files, accepted if they agree with the fields that replaced them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.core import FieldPath, Mistake

ROLE_KEYS = {True: "primary_outcomes", False: "secondary_outcomes"}
"""The keys that list primary and secondary outcomes, by the outcomes' `primary`."""


def modernize_study(
    data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
) -> dict[str, Any]:
    """Return the data of a study with its legacy keys replaced by current fields.

    Mistakes in the legacy keys are appended to `mistakes`.
    """
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
    roles = _pop_outcome_roles(data, path, mistakes)
    if not roles or not isinstance(data.get("outcomes", []), (list, tuple)):
        return data
    return {**data, "outcomes": _apply_outcome_roles(data, roles, path, mistakes)}


def _list_records(data: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return (index, record) of each mapping in a list."""
    value = data.get(key)
    rows = value if isinstance(value, (list, tuple)) else ()
    return [(index, row) for index, row in enumerate(rows) if isinstance(row, Mapping)]


def _check_linked_plans(data: Mapping[str, Any], path: FieldPath, mistakes: list[Mistake]) -> None:
    """Check that `linked_analysis_plan_id` agrees with the `hypothesis_ids` of the plan."""
    hypothesis_ids = {
        str(row.get("analysis_plan_id")): row["hypothesis_ids"]
        for _, row in _list_records(data, "analysis_plans")
        if isinstance(row.get("hypothesis_ids"), (list, tuple))
    }
    for index, row in _list_records(data, "hypotheses"):
        plan = row.get("linked_analysis_plan_id")
        if plan and row.get("hypothesis_id") not in hypothesis_ids.get(str(plan), ()):
            mistakes.append(
                Mistake(
                    (*path, "hypotheses", index, "linked_analysis_plan_id"),
                    f"analysis plan '{plan}' does not test hypothesis '{row.get('hypothesis_id')}'",
                    "the plan's hypothesis_ids decide: add it there, or remove this key",
                )
            )


def _pop_outcome_roles(
    data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
) -> dict[str, bool]:
    """Remove the lists of outcomes from the data; return whether each outcome is primary."""
    roles: dict[str, bool] = {}
    for is_primary, key in ROLE_KEYS.items():
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
    return roles


def _apply_outcome_roles(
    data: Mapping[str, Any], roles: Mapping[str, bool], path: FieldPath, mistakes: list[Mistake]
) -> list[Any]:
    """Return the outcomes with `primary` set by their roles."""
    outcomes = dict(_list_records(data, "outcomes"))
    indexes = {str(row.get("name")): index for index, row in outcomes.items()}
    has_primary = any("primary" in row for row in outcomes.values())
    for name, is_primary in roles.items():
        key = ROLE_KEYS[is_primary]
        if name not in indexes:
            mistakes.append(Mistake((*path, key), f"'{name}' is not among the outcomes"))
            continue
        outcome = outcomes[indexes[name]]
        if has_primary and bool(outcome.get("primary", False)) != is_primary:
            mistakes.append(
                Mistake(
                    (*path, key),
                    f"says otherwise than the `primary` of outcome '{name}'",
                    f"remove {key}",
                )
            )
        else:
            outcomes[indexes[name]] = {**outcome, "primary": is_primary}
    rows = list(data.get("outcomes", ()))
    for index, row in outcomes.items():
        rows[index] = row
    return rows
