"""Override values of a study by assignments such as ``run_budget.replicates=3``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import FieldPath, Mistake, StudyError, build_record, did_you_mean, documents
from fairtrial.study.model.study import Study
from fairtrial.study.validation import find_study_mistakes

SOURCE = "--set"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]=]+)\.?|\.")
_NAME_FIELDS = ("name", "hypothesis_id", "analysis_plan_id", "constraint_id")


def override(study: Study, assignments: Iterable[str]) -> Study:
    """Return the study with each ``path=value`` applied; values are read as YAML.

    Paths have the form used in error messages (``factors[0].levels``); an item of a list can be
    given by its name instead of its number (``factors.style.levels``). Raises one `StudyError` with
    all mistakes in the assignments and in the resulting study.
    """
    data = _plain_copy(study.to_dict())
    if study.output_dir == Study(study.study_id, study.title).output_dir:
        del data["output_dir"]  # the default, which depends on study_id
    mistakes: list[Mistake] = []
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        if not separator or not path.strip():
            mistakes.append(Mistake((), f"'{assignment}' is not of the form path=value"))
            continue
        try:
            _set_value(data, _parse_path(path.strip()), _parse_value(text), path.strip())
        except StudyError as error:
            mistakes.extend(error.mistakes)
    changed = build_record(Study, data, (), mistakes)
    changed.set_folder(study.folder)  # no one else has a reference to it yet
    if not mistakes:
        mistakes.extend(find_study_mistakes(changed, with_plan=False))
    if mistakes:
        raise StudyError(mistakes, source=SOURCE)
    return changed


def _plain_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain_copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_copy(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _parse_value(text: str) -> Any:
    document = documents.parse_document(f"value: {text}", "yaml")
    if document.mistakes or not isinstance(document.data, Mapping):
        raise StudyError(f"'{text}' is not a value that YAML can read")
    return document.data["value"]


def _parse_path(path: str) -> list[str | int]:
    """Return the keys and indexes in a path."""
    steps: list[str | int] = []
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        end = match.end()
        if match[1] is not None:
            steps.append(int(match[1]))
        elif match[2] is not None:
            steps.append(match[2])
    if end != len(path) or not steps:
        raise StudyError(f"'{path}' is not a path such as run_budget.replicates or factors[0].name")
    return steps


def _set_value(data: Any, steps: list[str | int], value: Any, path: str) -> None:
    """Set one value inside nested data; missing mappings on the way are added."""
    *parents, last = steps
    for depth, step in enumerate(parents):
        location: FieldPath = tuple(steps[: depth + 1])
        if isinstance(data, list):
            data = data[_find_index(data, step, location)]
        elif isinstance(data, dict):
            if data.get(str(step)) is None:
                data[str(step)] = {}
            data = data[str(step)]
        else:
            raise StudyError(Mistake(location, f"there is nothing inside this value ({path})"))
    if isinstance(data, list):
        data[_find_index(data, last, tuple(steps))] = value
    elif isinstance(data, dict):
        data[str(last)] = value
    else:
        raise StudyError(Mistake(tuple(parents), f"there is nothing inside this value ({path})"))


def _find_index(items: list[Any], step: str | int, path: FieldPath) -> int:
    """Return the index of an item that is given by its number or its name."""
    if isinstance(step, int):
        if step >= len(items):
            raise StudyError(Mistake(path, f"there are only {len(items)} items, counted from 0"))
        return step
    names = [
        next((str(item[key]) for key in _NAME_FIELDS if key in item), "")
        for item in items
        if isinstance(item, dict)
    ]
    if step not in names:
        raise StudyError(Mistake(path, f"there is no '{step}'", did_you_mean(step, names)))
    return names.index(step)
