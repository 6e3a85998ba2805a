"""The fingerprint of a study: what its results depend on, and how two fingerprints differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.core import canonical_json
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study

COVERED_FIELDS = (
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
"""The fields that affect results. Not output_dir, budgets (with replicates), claims and notes."""
EXCLUDED_FIELDS = {
    "factors": ("description",),
    "constraints": ("description",),
    # The content of a matrix file counts, by way of the conditions, but not its path.
    "design_spec": ("max_conditions", "replicates", "matrix_path"),
    "agents": ("max_parallel", "max_per_minute", "resources", "max_cost_usd", "max_tokens"),
    "problems": ("resources",),
}
"""Parts of those fields that don't affect results."""
ASKING_PLUGINS = ("chat", "http", "judge")
PACE_OPTIONS = (
    *("key_variable", "retries", "backoff_s", "longest_wait_s"),
    *("most_at_once", "requests_per_minute", "tokens_per_minute"),
)
"""Options of these plug-ins that say how quickly and by which key an endpoint is asked."""
CONDITIONS = "conditions"
DATA = "data"
"""What identifies the rows of a dataset; only studies with one have it."""
KEY_FIELDS = ("name", "constraint_id")
"""The fields that identify the items of a list."""
_MISSING = object()
MAX_SHOWN = 80


def study_fingerprint(study: Study, conditions: Sequence[Condition]) -> dict[str, Any]:
    """Return what the results of a study depend on, as plain data."""
    data = study.to_dict()
    covered = {name: _without(data[name], EXCLUDED_FIELDS.get(name, ())) for name in COVERED_FIELDS}
    if study.dataset is not None:
        covered[DATA] = dict(study.dataset.table.facts)
    covered[CONDITIONS] = digest_conditions(conditions)
    return covered


def _without(data: Any, names: Sequence[str]) -> Any:
    """Return a record, or each record of a list or mapping, without some of its fields."""
    if not names:
        return data
    if isinstance(data, list):
        return [_without_fields(item, names) for item in data]
    if all(isinstance(item, dict) for item in data.values()):
        return {key: _without_fields(item, names) for key, item in data.items()}
    return _without_fields(data, names)


def _without_fields(data: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {key: item for key, item in data.items() if key not in names}


def without_pace(data: Any) -> Any:
    """Return plain data without what says how quickly, and by which key, an endpoint is asked."""
    if isinstance(data, list):
        return [without_pace(item) for item in data]
    if not isinstance(data, dict):
        return data
    plain = {key: without_pace(item) for key, item in data.items()}
    if data.get("use") in ASKING_PLUGINS and isinstance(data.get("options"), dict):
        options = _without_fields(plain["options"], PACE_OPTIONS)
        if isinstance(options.get("judges"), list):
            options["judges"] = _without(options["judges"], PACE_OPTIONS)
        plain["options"] = options
    return plain


def digest_conditions(conditions: Sequence[Condition]) -> str:
    """Return the SHA-256 of the ids of conditions, and of which of them are admissible."""
    digest = hashlib.sha256()
    for condition in conditions:
        digest.update(canonical_json([condition.condition_id, condition.admissible]).encode())
    return digest.hexdigest()


def differences(old: Any, new: Any) -> list[str]:
    """Return what changed from one fingerprint to another, one line each.

    For example ``factors[model].levels[small].value: 2 -> 3``. How quickly, and by which key, an
    endpoint is asked is no difference.
    """
    old, new = without_pace(old), without_pace(new)
    data = _data_difference(old, new)
    if data:
        old, new = ({key: one[key] for key in one if key != DATA} for one in (old, new))
    lines = [*data, *_differences(old, new, "")]
    other_conditions = [line for line in lines if line.startswith(f"{CONDITIONS}: ")]
    for line in other_conditions:
        lines.remove(line)
    if other_conditions:
        why = "" if lines else " (a matrix file or a rule has changed)"
        lines.append(f"the design gives other conditions{why}")
    return lines


def _data_difference(old: Any, new: Any) -> list[str]:
    """Return a line about other rows of the same dataset; none if they are the same."""
    before, after = old.get(DATA), new.get(DATA)
    if not before or not after or before == after:
        return []
    counts = [f"{facts['rows']:,} rows, {facts['problems']:,} used" for facts in (before, after)]
    digests = [str(facts["digest"])[:12] for facts in (before, after)]
    source = new["problems"].get("from", "the dataset")
    sizes = f"still {counts[0]}" if counts[0] == counts[1] else f"{counts[0]} -> {counts[1]}"
    if digests[0] == digests[1]:
        return [f"problems: other rows of {source} are used: {sizes}"]
    return [f"problems: the content of {source} changed: {sizes}; {' -> '.join(digests)}"]


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if _canonical_text(old) == _canonical_text(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            step = f"{path}.{name}" if path else name
            yield from _differences(old.get(name, _MISSING), new.get(name, _MISSING), step)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_differences(old, new, path)
    elif old is _MISSING:
        yield f"{path}: added: {_shorten(new)}"
    elif new is _MISSING:
        yield f"{path}: removed: {_shorten(old)}"
    else:
        yield f"{path}: {_shorten(old)} -> {_shorten(new)}"


def _list_differences(old: list[Any], new: list[Any], path: str) -> Iterator[str]:
    before, after = _by_name(old), _by_name(new)
    if before is None or after is None:
        if max(len(_canonical_text(old)), len(_canonical_text(new))) <= MAX_SHOWN:
            yield f"{path}: {_shorten(old)} -> {_shorten(new)}"
            return
        before, after = ({str(i): item for i, item in enumerate(items)} for items in (old, new))
    for name in dict.fromkeys([*before, *after]):
        yield from _differences(
            before.get(name, _MISSING), after.get(name, _MISSING), f"{path}[{name}]"
        )
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    if kept_before != kept_after:
        yield f"{path}: order: {_shorten(kept_before)} -> {_shorten(kept_after)}"


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Return the items of a list by their key field; None if they have no unique one."""
    named: dict[str, Any] = {}
    for item in items:
        keys = [item[key] for key in KEY_FIELDS if key in item] if isinstance(item, dict) else []
        if not keys or not isinstance(keys[0], str) or keys[0] in named:
            return None
        named[keys[0]] = item
    return named


def _canonical_text(value: Any) -> str:
    """Return the text by which values are compared: 1 differs from 1.0 and from true."""
    return "" if value is _MISSING else canonical_json(value)


def _shorten(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
