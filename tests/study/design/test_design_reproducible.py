"""A design is a function of the study and its seed alone (spec 12), whatever the process."""

import json
import os
import random
import subprocess
import sys

import pytest

from fairtrial import DesignKind, Study, build_design, plan_runs
from fairtrial.study import execution_order

SPECS = {
    "d_optimal": {"n_samples": 8},
    "latin_hypercube": {"n_samples": 9, "options": {"criterion": "maximin"}},
    "sobol": {"n_samples": 8},
    "halton": {"n_samples": 7},
    "custom_matrix": {"matrix_path": "rows.csv"},
}
PLAN = """
import json, sys
from fairtrial import build_design, load_study, plan_runs
from fairtrial.study import execution_order
for path in sys.argv[1:]:
    study = load_study(path)
    conditions = build_design(study)
    runs = [[run.run_id, run.seed] for run in plan_runs(study, conditions)]
    print(json.dumps([runs, list(execution_order(study, conditions))]))
"""


def study_of(kind, folder, **fields):
    (folder / "rows.csv").write_text("a,b,c,site\n0,1,1,n\n1,0,1,s\n")
    blocks = [] if kind == "latin_square" else [{"name": "site", "levels": ["n", "s"]}]
    data = {
        "study_id": f"s-{kind}",
        "title": "t",
        "factors": [{"name": name, "levels": [0, 1]} for name in "abc"],
        "blocks": blocks,
        "design_spec": {"kind": kind, "randomize": True, **SPECS.get(kind, {})},
        "seed_policy": {"base_seed": 11},
        "run_budget": {"replicates": 2},
        **fields,
    }
    path = folder / f"{kind}.json"
    path.write_text(json.dumps(data))
    return path, Study.from_json(path)


def plan(study):
    conditions = build_design(study)
    runs = [[run.run_id, run.seed] for run in plan_runs(study, conditions)]
    return [runs, list(execution_order(study, conditions))]


def test_every_design_is_the_same_in_another_process_with_other_hashes(tmp_path):
    made = [study_of(str(kind), tmp_path) for kind in DesignKind]
    random.seed(1)
    here = [plan(study) for _, study in made]
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    shown = subprocess.run(
        [sys.executable, "-c", PLAN, *(str(path) for path, _ in made)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line) for line in shown.stdout.splitlines()] == here


@pytest.mark.parametrize("kind", [*map(str, DesignKind)])
def test_a_design_leaves_the_callers_random_numbers_alone(kind, tmp_path):
    _, study = study_of(kind, tmp_path)
    random.seed(5)
    before = random.getstate()
    plan(study)
    assert random.getstate() == before


@pytest.mark.parametrize("kind", [*map(str, DesignKind)])
def test_what_is_not_designed_changes_no_design(kind, tmp_path):
    _, study = study_of(kind, tmp_path)
    other, _ = study_of(kind, tmp_path, notes="n", tags=["t"], output_dir="o", title="another")
    assert plan(Study.from_json(other)) == plan(study)
