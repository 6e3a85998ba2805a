"""Studies of design-research-experiments 0.3.0 move over with their rows, ids and seeds.

`data/anchor.json` holds what that library made of some studies: conditions (id, factors, blocks,
admissible, messages) and runs (id, condition, seed, agent, problem, problem id, replicate).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairtrial.study import Condition, Study, build_design, plan_runs

VECTORS = json.loads(
    (Path(__file__).parents[1] / "data" / "anchor.json").read_text(encoding="utf-8")
)
# These are put in a better order than the anchor's.
REORDERED = ("randomized_block", "repeated_measures")


def read_study(vector: dict[str, Any], folder: Path) -> Study:
    for name, text in vector["files"].items():
        (folder / name).write_bytes(text.encode())
    runner = "somewhere:run" if vector["condition_runner"] else None
    return replace(Study.from_dict(vector["study"]), folder=folder, condition_runner=runner)


def facts_of(condition: Condition) -> list[Any]:
    return [
        condition.condition_id,
        dict(condition.factor_assignments),
        dict(condition.block_assignments),
        condition.admissible,
        list(condition.constraint_messages),
    ]


def same_cell(value: Any, text: str) -> bool:
    """Whether a typed value is what the text of a CSV cell says."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).lower() == text.lower()
    return value == float(text)


def vectors() -> list[Any]:
    return [
        pytest.param(vector, id=vector["name"].replace(" ", "-"))
        for vector in VECTORS
        if not vector["study"]["design_spec"]["block_randomization_key"]
    ]


def by_id(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize("vector", vectors())
def test_conditions_are_the_anchors(vector: dict[str, Any], tmp_path: Path) -> None:
    study = read_study(vector, tmp_path)
    ours = [facts_of(condition) for condition in build_design(study)]
    theirs = vector["conditions"]
    if study.design_spec.kind in REORDERED:
        ours, theirs = by_id(ours), by_id(theirs)
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    if any(name.endswith(".csv") for name in vector["files"]):
        # Cells are typed here, and text there.
        for our_row, their_row in zip(ours, theirs, strict=True):
            for cells, texts in zip(our_row[1:3], their_row[1:3], strict=True):
                assert cells.keys() == texts.keys()
                assert all(same_cell(cells[name], texts[name]) for name in cells)
            assert our_row[3:] == their_row[3:]
    else:
        # As text too: 1, 1.0 and True are equal in Python.
        assert json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)


@pytest.mark.parametrize("vector", vectors())
def test_runs_have_the_anchors_ids_and_seeds(vector: dict[str, Any], tmp_path: Path) -> None:
    study = read_study(vector, tmp_path)
    ours = [
        [
            spec.run_id,
            spec.condition_id,
            spec.seed,
            spec.agent_spec_ref,
            spec.problem_spec_ref,
            spec.problem_id,
            spec.replicate,
        ]
        for spec in plan_runs(study, build_design(study))
    ]
    theirs = vector["runs"]
    if study.design_spec.kind in REORDERED:
        ours, theirs = by_id(ours), by_id(theirs)
    assert ours == theirs


def test_rows_shuffled_within_a_factors_values_are_the_anchors_in_an_order_of_our_own(
    tmp_path: Path,
) -> None:
    # The anchor repeats one permutation for every value; the number of a row is part of
    # its id, so only what is assigned can be the same.
    (vector,) = (v for v in VECTORS if v["study"]["design_spec"]["block_randomization_key"])
    study = read_study(vector, tmp_path)
    key = study.design_spec.block_randomization_key
    ours = [condition.factor_assignments for condition in build_design(study)]
    theirs = [row[1] for row in vector["conditions"]]
    assert [row[key] for row in ours] == [row[key] for row in theirs]
    assert Counter(map(json.dumps, ours)) == Counter(map(json.dumps, theirs))


def test_the_vectors_cover_every_design_of_the_anchor() -> None:
    kinds = {vector["study"]["design_spec"]["kind"] for vector in VECTORS}
    assert kinds == {
        "full_factorial",
        "constrained_factorial",
        "randomized_block",
        "repeated_measures",
        "latin_square",
        "custom_matrix",
        "latin_hypercube",
        "fractional_factorial_2level",
    }


def test_the_published_condition_id() -> None:

    study = Study.from_dict(
        {"study_id": "s", "title": "s", "factors": [{"name": "x", "levels": [1]}]}
    )
    assert [condition.condition_id for condition in build_design(study)] == ["cond-dc7d73c6ab1c"]
