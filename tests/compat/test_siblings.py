"""Names of agents and problems are looked up in the sibling libraries where they are installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fairtrial.compat as dre
from fairtrial.core import StudyError
from fairtrial.study import Factor, OutcomeSpec, RunBudget, Study

AGENTS = """
class Result:
    success, metadata = True, {"agent_kind": "counter"}
    def __init__(self, output): self.output = output

class Counter:
    def __init__(self): self.calls = 0
    def run(self, prompt, *, request_id=None, dependencies=None):
        self.calls += 1
        return Result({"final_output": {"candidate": prompt.target + self.calls}})

class NeedsClient:
    def __init__(self, llm_client): pass
    def run(self, prompt): pass
"""
PROBLEMS = """
from . import integration
def list_problems(): return ("near", "broken")
"""
INTEGRATION = """
from types import SimpleNamespace
class Near:
    target = 10
    def evaluate(self, x): return {"distance": abs(x - self.target)}
def resolve_problem_binding(name):
    if name == "broken": raise RuntimeError("needs an extra")
    return SimpleNamespace(family="toy", brief="Come near.", metadata={}, problem_object=Near())
def evaluate_problem_output(binding, output):
    return [{"metric_name": k, "metric_value": v}
            for k, v in binding.problem_object.evaluate(output["candidate"]).items()]
"""


def forget_libraries() -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in ("design_research_agents", "design_research_problems"):
            del sys.modules[name]


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins with the interface of the real libraries, which need Python 3.12."""
    forget_libraries()
    for name, files in {
        "design_research_agents": {"__init__.py": AGENTS},
        "design_research_problems": {"__init__.py": PROBLEMS, "integration.py": INTEGRATION},
    }.items():
        folder = tmp_path / "lib" / name
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    importlib.invalidate_caches()
    yield
    forget_libraries()


def make_study(tmp_path: Path, agent: str, problem: str) -> Study:
    return Study(
        "siblings",
        "t",
        factors=(Factor("tone", levels=("a", "b")),),
        outcomes=(OutcomeSpec("distance", source_table="evaluations", primary=True),),
        agent_specs=(agent,),
        problem_ids=(problem,),
        run_budget=RunBudget(replicates=2),
        output_dir=str(tmp_path / "out"),
    )


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_unbound_names_are_found_and_agents_are_made_for_each_run(
    tmp_path: Path, executor: str
) -> None:
    results = dre.run_study(make_study(tmp_path, "Counter", "near"), executor=executor)
    assert [result.metrics["primary_outcome"] for result in results] == [1, 1, 1, 1]
    assert {result.provenance_info["problem_family"] for result in results} == {"toy"}


@pytest.mark.usefixtures("libraries")
def test_own_bindings_come_first(tmp_path: Path) -> None:
    def mine(task: Any) -> dict[str, Any]:
        return {"candidate": 12}

    study = make_study(tmp_path, "Counter", "near")
    results = dre.run_study(study, agent_bindings={"Counter": mine})
    assert {result.metrics["primary_outcome"] for result in results} == {2}


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("agent", "problem", "message"),
    [
        ("NeedsClient", "near", "can't be made without llm_client"),
        ("Missing", "near", "nothing is bound to the agent 'Missing'"),
        ("Counter", "missing", "nothing is bound to the problem 'missing'"),
        ("Counter", "broken", "RuntimeError: needs an extra"),
    ],
)
def test_what_can_not_be_found_or_made_is_reported_before_anything_runs(
    tmp_path: Path, agent: str, problem: str, message: str
) -> None:
    with pytest.raises(StudyError, match=message):
        dre.run_study(make_study(tmp_path, agent, problem))
    assert not (tmp_path / "out").exists()


def test_the_real_libraries_give_the_values_of_design_research_experiments(tmp_path: Path) -> None:
    pytest.importorskip("design_research_agents", reason="needs Python 3.12 and the library")
    pytest.importorskip("design_research_problems", reason="needs Python 3.12 and the library")
    artifacts = pytest.importorskip("design_research_experiments.artifacts")
    study = Study.from_yaml(Path(__file__).parents[1] / "data/checkpoints/study.yaml")
    output = tmp_path / "out"
    results = dre.run_study(replace(study, output_dir=str(output)))
    values = {result.run_id: result.metrics["primary_outcome"] for result in results}
    assert values["run-1185c5e4e652"] == 0.14322238558938327
    assert values["run-aa07ec4cf041"] == 0.023688781495193177
    assert set(artifacts.validate_canonical_artifacts(output)) >= {"runs.csv", "manifest.json"}


def test_a_function_of_a_condition_makes_agents(tmp_path: Path) -> None:
    def build(cond: Any) -> Any:
        return lambda problem_packet: {"tone": cond.factor_assignments["tone"]}

    study = make_study(tmp_path, "made", "p")
    settings = {"problem_registry": {"p": dre.ProblemPacket("p")}}
    results = dre.run_study(study, agent_bindings={"made": build}, **settings)
    assert [result.outputs["tone"] for result in results] == ["a", "a", "b", "b"]
    assert len(dre.resume_study(study, agent_bindings={"made": build}, **settings)) == 4
