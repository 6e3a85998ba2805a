"""Whether a study is the one that a ledger was begun with, and if not, what has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core import canonical_json
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

COVERED = (
    "study_id",
    "factors",
    "blocks",
    "constraints",
    "design_spec",
    "seed_policy",
    "agent_specs",
    "problem_ids",
    "agents",
    "problems",
    "condition_runner",
)
"""What changes results. Not output_dir, budgets (replicates among them), claims, notes."""
NOT_RESULTS = {
    "factors": ("description",),
    "constraints": ("description",),
    # What a matrix holds counts, and the conditions show it; not where it lies.
    "design_spec": ("max_conditions", "replicates", "matrix_path"),
    "agents": ("max_parallel", "max_per_minute"),
}
"""What doesn't, of those."""
CONDITIONS = "conditions"
NAMES = ("name", "constraint_id")
"""What tells the items of a list apart."""
NOTHING = object()
LONGEST = 80


def study_print(study: Study, conditions: Sequence[Condition]) -> dict[str, Any]:
    """What the results of a study depend on, as plain data."""
    data = study.to_dict()
    covered = {name: _without(data[name], NOT_RESULTS.get(name, ())) for name in COVERED}
    covered[CONDITIONS] = _digest(conditions)
    return covered


def _without(data: Any, names: Sequence[str]) -> Any:
    """A record without some of its fields; the same for each of a list or mapping of records."""
    if not names:
        return data
    if isinstance(data, list):
        return [_without(item, names) for item in data]
    if all(isinstance(item, dict) for item in data.values()):
        return {key: _without(item, names) for key, item in data.items()}
    return {key: item for key, item in data.items() if key not in names}


def _digest(conditions: Sequence[Condition]) -> str:
    digest = hashlib.sha256()
    for condition in conditions:
        digest.update(canonical_json([condition.condition_id, condition.admissible]).encode())
    return digest.hexdigest()


def differences(old: Any, new: Any) -> list[str]:
    """What changed from one print to another: ``factors[model].levels[small].value: 2 -> 3``."""
    lines = list(_differences(old, new, ""))
    other_conditions = [line for line in lines if line.startswith(f"{CONDITIONS}: ")]
    for line in other_conditions:
        lines.remove(line)
    if other_conditions:
        why = "" if lines else " (a matrix file or a rule has changed)"
        lines.append(f"the design gives other conditions{why}")
    return lines


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if _text(old) == _text(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            step = f"{path}.{name}" if path else name
            yield from _differences(old.get(name, NOTHING), new.get(name, NOTHING), step)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _differences_of_lists(old, new, path)
    elif old is NOTHING:
        yield f"{path}: added: {_shown(new)}"
    elif new is NOTHING:
        yield f"{path}: removed: {_shown(old)}"
    else:
        yield f"{path}: {_shown(old)} -> {_shown(new)}"


def _differences_of_lists(old: list[Any], new: list[Any], path: str) -> Iterator[str]:
    before, after = _by_name(old), _by_name(new)
    if before is None or after is None:
        if max(len(_text(old)), len(_text(new))) <= LONGEST:
            yield f"{path}: {_shown(old)} -> {_shown(new)}"
            return
        before, after = ({str(i): item for i, item in enumerate(items)} for items in (old, new))
    for name in dict.fromkeys([*before, *after]):
        yield from _differences(
            before.get(name, NOTHING), after.get(name, NOTHING), f"{path}[{name}]"
        )
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    if kept_before != kept_after:
        yield f"{path}: order: {_shown(kept_before)} -> {_shown(kept_after)}"


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """The items of a list by what tells them apart; None where nothing does."""
    named: dict[str, Any] = {}
    for item in items:
        keys = [item[key] for key in NAMES if key in item] if isinstance(item, dict) else []
        if not keys or not isinstance(keys[0], str) or keys[0] in named:
            return None
        named[keys[0]] = item
    return named


def _text(value: Any) -> str:
    """The text by which two values are the same: 1 is not 1.0, nor true."""
    return "" if value is NOTHING else canonical_json(value)


def _shown(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
