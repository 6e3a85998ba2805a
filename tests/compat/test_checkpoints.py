"""Results that design-research-experiments stored are imported, and the study goes on.

The files in `tests/data/checkpoints` were written by design-research-experiments 0.4.0.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import fairtrial.compat as dre
from fairtrial.core import LedgerError, StudyError
from fairtrial.study import Study, report

DATA = Path(__file__).parents[1] / "data/checkpoints"
FIRST, SECOND = "run-1185c5e4e652", "run-aa07ec4cf041"
PROBLEM = "decision_laptop_design_profit_maximization"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = Study.from_yaml(DATA / "study.yaml")
    return dataclasses.replace(study, output_dir=str(tmp_path / "imported"))


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA, tmp_path / "earlier"))


def change(earlier: Path, run_id: str, **fields: object) -> None:
    path = earlier / f"artifacts/checkpoints/{run_id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def measure(answer: float) -> dict[str, float]:
    return {"objective_value": answer}


def resume(study: Study) -> dict[str, dre.RunResult]:
    results = dre.resume_study(
        study,
        agent_bindings={"SeededRandomBaselineAgent": lambda task: {"answer": 1.0}},
        problem_registry={
            PROBLEM: dre.ProblemPacket(
                PROBLEM, evaluator=lambda answer: {"objective_value": answer}
            )
        },
    )
    return {result.run_id: result for result in results}


def test_results_keep_values_times_and_events(study: Study, earlier: Path) -> None:
    results = {result.run_id: result for result in dre.import_checkpoints(study, earlier)}
    assert set(results) == {FIRST, SECOND}
    first = results[FIRST]
    assert first.status == "success"
    assert first.metrics["primary_outcome"] == 0.14322238558938327
    assert first.outputs == {"z1": 17.0, "z2": 0.75, "z3": 2.0, "z4": 2.5, "z5": 15.0}
    assert first.started_at == "2026-11-19T13:03:57+00:00"
    assert first.latency == 0.29231997200008664
    assert [event["event_type"] for event in first.observations] == ["baseline_candidate_selected"]
    assert {row["metric_name"] for row in first.evaluator_outputs} >= {"utility", "objective_value"}


def test_the_study_goes_on_with_the_runs_that_are_left(study: Study, earlier: Path) -> None:
    before = {result.run_id: result.metrics for result in dre.import_checkpoints(study, earlier)}
    after = resume(study)
    assert len(after) == 6
    assert {run_id: after[run_id].metrics for run_id in before} == before
    assert "0.14322238558938327" in Path(str(study.output_dir), "runs.csv").read_text()


def test_failures_are_imported_and_skipped_runs_stay_to_be_done(
    study: Study, earlier: Path
) -> None:
    change(earlier, FIRST, status="failed", error_info="ValueError: no")
    change(earlier, SECOND, status="skipped")
    (result,) = dre.import_checkpoints(study, earlier)
    assert (result.run_id, result.status, result.error_info) == (FIRST, "failed", "ValueError: no")
    assert resume(study)[SECOND].status == "success"


def test_claims_of_an_imported_study_are_exploratory(study: Study, earlier: Path) -> None:
    hypothesis = dre.Hypothesis(
        "h", "l", "s", independent_vars=("tone",), dependent_vars=("objective_value",)
    )
    plan = dre.AnalysisPlan("p", hypothesis_ids=("h",), tests=("difference_in_means",))
    study = dataclasses.replace(study, hypotheses=(hypothesis,), analysis_plans=(plan,))
    with pytest.warns(UserWarning, match="claims changed after 2 results"):
        dre.import_checkpoints(study, earlier)
    resume(study)
    text = report.write_report(Path(str(study.output_dir)), earlier / "report.md")
    assert "exploratory" in text
    assert "added after 2 results were known" in text


def test_a_folder_without_results_of_the_study_is_refused(study: Study, earlier: Path) -> None:
    with pytest.raises(StudyError, match="there are no checkpoints"):
        dre.import_checkpoints(study, earlier / "artifacts")
    other = dataclasses.replace(study, study_id="other")
    with pytest.raises(StudyError, match="none of the 2 results"):
        dre.import_checkpoints(other, earlier)
    own = dataclasses.replace(study, output_dir=str(earlier))
    with pytest.raises(LedgerError, match="another `output_dir`"):
        dre.import_checkpoints(own, earlier)


def test_a_torn_checkpoint_is_named(study: Study, earlier: Path) -> None:
    (earlier / f"artifacts/checkpoints/{FIRST}.json").write_text('{"run_id": ')
    with pytest.raises(StudyError, match=f"{FIRST}.json can't be read"):
        dre.import_checkpoints(study, earlier)


def test_a_command_imports_results_and_another_does_the_rest(
    tmp_path: Path, earlier: Path, run: Any
) -> None:
    (tmp_path / "tone_agents.py").write_text("def agent(task):\n    return {'answer': 1.0}\n")
    data = yaml.safe_load((DATA / "study.yaml").read_text())
    data["agents"] = {"SeededRandomBaselineAgent": "tone_agents:agent"}
    data["problems"] = {PROBLEM: {"brief": "b", "evaluator": {"use": "numeric"}, "reference": 1}}
    data["output_dir"] = "imported"
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(data))
    code, out, err = run("import-checkpoints", "study.yaml", "earlier")
    assert (code, out) == (
        0,
        "2 results of 6 runs imported to imported\nnext:    fairtrial resume study.yaml\n",
    ), err
    code, _, err = run("import-checkpoints", "study.yaml", "earlier")
    assert (code, "holds results" in err) == (3, True)
    code, out, err = run("resume", "study.yaml")
    assert (code, "6 of 6 runs done: 6 success" in out) == (0, True), err
    code, _, err = run("import-checkpoints", "study.yaml", "nowhere")
    assert (code, "there are no checkpoints in nowhere" in err) == (2, True)
