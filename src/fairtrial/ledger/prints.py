"""Whether a study is the one that a ledger was begun with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from fairtrial.model.conditions import Condition
from fairtrial.model.identity import canonical_json
from fairtrial.model.study import Study

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
    "agents": ("max_parallel", "max_per_minute"),
    "design_spec": ("max_conditions", "replicates"),
}


def study_print(study: Study, conditions: Sequence[Condition]) -> dict[str, Any]:
    """What the results of a study depend on, as plain data."""
    data = study.to_dict()
    covered = {name: data.get(name) for name in COVERED}
    covered["design_spec"] = _without(data["design_spec"], NOT_RESULTS["design_spec"])
    covered["agents"] = {
        name: _without(binding, NOT_RESULTS["agents"]) for name, binding in data["agents"].items()
    }
    covered["conditions"] = _digest(conditions)
    return covered


def _without(data: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def _digest(conditions: Sequence[Condition]) -> str:
    digest = hashlib.sha256()
    for condition in conditions:
        digest.update(canonical_json([condition.condition_id, condition.admissible]).encode())
    return digest.hexdigest()


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """What changed from one print to another: ``factors[0].levels[1].value: 2 -> 3``."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(name for name in new if name not in old)]
        steps = [(f"{path}.{name}" if path else name, name) for name in names]
        return [
            line for step, name in steps for line in differences(old.get(name), new.get(name), step)
        ]
    if isinstance(old, list) and isinstance(new, list):
        pairs = [
            (old[i] if i < len(old) else None, new[i] if i < len(new) else None)
            for i in range(max(len(old), len(new)))
        ]
        return [line for i, pair in enumerate(pairs) for line in differences(*pair, f"{path}[{i}]")]
    return [f"{path}: {_shown(old)} -> {_shown(new)}"]


def _shown(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
