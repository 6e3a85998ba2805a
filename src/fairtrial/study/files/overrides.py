"""A study with some of its values set from outside: ``run_budget.replicates=3``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, Place, StudyError, build, did_you_mean, parse
from fairtrial.study.model.study import Study
from fairtrial.study.validation import study_mistakes

SOURCE = "--set"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]=]+)\.?|\.")
_NAMES = ("name", "hypothesis_id", "analysis_plan_id", "constraint_id")


def override(study: Study, assignments: Iterable[str]) -> Study:
    """The study with each ``path=value`` set; values are read as YAML.

    A path is spelt as in reports of mistakes (``factors[0].levels``); an item of a list can be
    named instead of counted (``factors.style.levels``).
    """
    data = _plain_copy(study.to_dict())
    if study.output_dir == Study(study.study_id, study.title).output_dir:
        del data["output_dir"]  # it follows study_id
    mistakes: list[Mistake] = []
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        if not separator or not path.strip():
            mistakes.append(Mistake((), f"'{assignment}' is not of the form path=value"))
            continue
        try:
            _put(data, _steps(path.strip()), _value(text), path.strip())
        except StudyError as error:
            mistakes.extend(error.mistakes)
    changed = build(Study, data, (), mistakes)
    object.__setattr__(changed, "folder", study.folder)  # nobody else's yet
    if not mistakes:
        mistakes.extend(study_mistakes(changed, with_plan=False))
    if mistakes:
        raise StudyError(mistakes, source=SOURCE)
    return changed


def _plain_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain_copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_copy(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _value(text: str) -> Any:
    document = parse(f"value: {text}", "yaml")
    if document.mistakes or not isinstance(document.data, Mapping):
        raise StudyError(f"'{text}' is not a value that YAML can read")
    return document.data["value"]


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    end = 0
    for found in _STEP.finditer(path):
        if found.start() != end:
            break
        end = found.end()
        if found[1] is not None:
            steps.append(int(found[1]))
        elif found[2] is not None:
            steps.append(found[2])
    if end != len(path) or not steps:
        raise StudyError(f"'{path}' is not a path such as run_budget.replicates or factors[0].name")
    return steps


def _put(data: Any, steps: list[str | int], value: Any, path: str) -> None:
    *way, last = steps
    for depth, step in enumerate(way):
        here: Place = tuple(steps[: depth + 1])
        if isinstance(data, list):
            data = data[_index(data, step, here)]
        elif isinstance(data, dict):
            if data.get(str(step)) is None:
                data[str(step)] = {}
            data = data[str(step)]
        else:
            raise StudyError(Mistake(here, f"there is nothing inside this value ({path})"))
    if isinstance(data, list):
        data[_index(data, last, tuple(steps))] = value
    elif isinstance(data, dict):
        data[str(last)] = value
    else:
        raise StudyError(Mistake(tuple(way), f"there is nothing inside this value ({path})"))


def _index(items: list[Any], step: str | int, path: Place) -> int:
    if isinstance(step, int):
        if step >= len(items):
            raise StudyError(Mistake(path, f"there are only {len(items)} items, counted from 0"))
        return step
    names = [
        next((str(item[key]) for key in _NAMES if key in item), "")
        for item in items
        if isinstance(item, dict)
    ]
    if step not in names:
        raise StudyError(Mistake(path, f"there is no '{step}'", did_you_mean(step, names)))
    return names.index(step)
