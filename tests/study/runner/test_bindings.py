"""Binding names to agents and problems: before anything runs, with all mistakes at once."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from run_attempt_kit import CONDITION, assignment, do, run, study_of

from fairtrial.core import StudyError, did_you_mean, plugins
from fairtrial.study import AgentBinding, Condition, ProblemPacket, RunBudget
from fairtrial.study.agents import AgentHooks
from fairtrial.study.runner.bindings import bind
from fairtrial.study.runner.run_attempt import StudyWork

MODULE = """
from fairtrial.study.agents.call_forms import for_condition
from fairtrial.study.model.runs import RunOutput
from fairtrial.study.problems.packet import ProblemPacket

def write(task, warmth=0):
    return {"answer": warmth, "brief": task.problem.brief}

class Writer:
    def __init__(self, warmth):
        self.warmth = warmth
    def run(self, brief):
        return {"answer": self.warmth, "brief": brief}

@for_condition
def fresh(condition, warmth=0):
    return lambda task: {"answer": warmth, "x": condition.factor_assignments["x"]}

def double(answer):
    return 2 * answer

def no_answer():
    return 0

def make_problem(size, name="gap"):
    return ProblemPacket(name, "made", f"size {size}", {"size": size}, {}, double)

def make_nothing():
    return None

def fail():
    raise RuntimeError("no licence")

def run_condition(run_spec, condition):
    return RunOutput({"x": condition.factor_assignments["x"]})

not_callable = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine_own.py").write_text(MODULE)
    yield tmp_path
    plugins._import_module.cache_clear()
    sys.modules.pop("mine_own", None)


def study_in(folder, **fields):
    study = study_of(**fields)
    object.__setattr__(study, "folder", folder)
    return study


def binding_mistakes(study, *args, **kwargs):
    with pytest.raises(StudyError) as caught:
        bind(study, [CONDITION], *args, **kwargs)
    return str(caught.value)


def run_in(study, **bound):
    return do(StudyWork(bind(study, [CONDITION], **bound)), assignment(study))


# -- agents --


@pytest.mark.parametrize(
    ("binding", "output"),
    [
        ("mine_own:write", {"answer": 0, "brief": "find it"}),
        ({"use": "mine_own:write", "options": {"warmth": 2}}, {"answer": 2, "brief": "find it"}),
        ({"use": "mine_own:Writer", "options": {"warmth": 3}}, {"answer": 3, "brief": "find it"}),
        ({"use": "mine_own:fresh", "options": {"warmth": 4}}, {"answer": 4, "x": 3}),
    ],
)
def test_a_studys_own_agents_are_looked_up_in_its_folder(folder, binding, output):
    problem = {"brief": "find it", "evaluator": "mine_own:double"}
    study = study_in(folder, agents={"agent": binding}, problems={"gap": problem})
    ran = run_in(study)
    assert ran.body["outputs"] == output
    assert ran.body["metrics"]["primary_outcome"] == 2 * output["answer"]


class Choosy(AgentHooks):
    """An agent that takes no problem but `gap`, and needs a budget."""

    def check_start(self, budget):
        if budget.max_cost_usd is None:
            raise StudyError("needs max_cost_usd")

    def check_problem(self, problem, *, imports):
        assert imports
        if problem.problem_id != "gap":
            raise StudyError(f"can't work on {problem.problem_id}")

    def __call__(self, task):
        return {"answer": 1}


@pytest.mark.parametrize("use_class", [False, True])
def test_agents_with_hooks_are_checked_before_anything_runs(folder, use_class):
    budget = RunBudget(max_cost_usd=1.0)
    bound = {"agent": f"{__name__}:Choosy" if use_class else Choosy()}
    good = study_in(folder, run_budget=budget)
    assert run_in(good, agent_bindings=bound, problem_registry={"gap": {}}).body["outputs"]
    no_budget = binding_mistakes(study_in(folder), bound, {"gap": {}})
    assert no_budget == "agent_bindings.agent.options: needs max_cost_usd"
    other = study_in(folder, run_budget=budget, problem_ids=("hole",))
    assert (
        binding_mistakes(other, bound, {"hole": {}}) == "agents.agent.options: can't work on hole"
    )


def test_what_python_binds_goes_before_what_the_study_says(folder):
    study = study_in(
        folder, agents={"agent": "mine_own:write"}, problems={"gap": {"brief": "theirs"}}
    )
    ran = run_in(
        study,
        agent_bindings={"agent": lambda brief: {"brief": brief}},
        problem_registry={"gap": {"brief": "mine"}},
    )
    assert ran.body["outputs"] == {"brief": "mine"}


def test_python_may_bind_by_reference_too(folder):
    study = study_in(folder)
    for bound in ("mine_own:write", AgentBinding("mine_own:write")):
        packet = ProblemPacket("gap", evaluator="mine_own:double")
        ran = run_in(study, agent_bindings={"agent": bound}, problem_registry={"gap": packet})
        assert ran.outcome.status == "success"


def test_agents_are_those_that_the_conditions_name():
    study = study_of(agent_specs=["nobody"])
    conditions = [
        Condition("c1", {"agent_id": "left"}),
        Condition("c2", {"agent_id": "right"}),
        Condition("c3", {"agent_id": "nobody"}, admissible=False),
    ]
    agents = {"left": lambda task: {}, "right": lambda task: {}, "spare": 42}
    bindings = bind(study, conditions, agents, {"gap": {}})
    assert set(bindings.agents) == {"left", "right"}


# -- problems --


def test_problems_come_from_packets_and_from_functions(folder):
    written = {"family": "search", "brief": "find it", "payload": {"size": 1}}
    made = {"use": "mine_own:make_problem", "options": {"size": 7}}
    study = study_in(
        folder,
        agents={"agent": "mine_own:write"},
        problem_ids=["written", "made"],
        problems={"written": written, "made": made},
    )
    problems = bind(study, [CONDITION]).problems
    assert problems["written"] == ProblemPacket("written", "search", "find it", {"size": 1})
    assert (problems["made"].family, problems["made"].payload) == ("made", {"size": 7})


def test_a_study_without_problems_runs_its_agents_on_none():
    study = study_of(problem_ids=[])
    bindings = bind(study, [CONDITION], {"agent": lambda task: {"brief": task.problem.brief}})
    ran = do(StudyWork(bindings), assignment(study))
    assert ran.outcome.status == "success"
    assert ran.body["outputs"] == {"brief": ""}
    assert ran.body["evaluations"] == []
    assert ran.body["execution_metadata"] == {"problem_family": "none"}


def test_problems_that_nobody_listed_are_asked_for():
    mistakes = binding_mistakes(study_of(problem_ids=[]), {"agent": lambda task: {}}, {"gap": {}})
    assert mistakes == (
        "problem_ids: the study doesn't say which problem to use; list it here; bound are gap"
    )


# -- condition runners --


def test_a_condition_runner_takes_the_place_of_agents_and_problems(folder):
    study = study_in(folder, condition_runner="mine_own:run_condition")
    assert run_in(study).body["outputs"] == {"x": 3}
    other = bind(study_of(), [CONDITION], condition_runner=lambda spec, condition: {"y": 1})
    assert other.condition_runner is not None
    assert not other.agents


@pytest.mark.parametrize(
    ("runner", "says"),
    [
        (lambda spec: 0, "must take two arguments: run_spec and condition"),
        (42, "a value of type int is no condition runner"),
        ("mine_own:missing", "condition_runner: module 'mine_own' has no 'missing'"),
    ],
)
def test_what_is_no_condition_runner_is_reported(folder, runner, says):
    assert says in binding_mistakes(study_in(folder), condition_runner=runner)


# -- mistakes --


def test_unbound_names_get_a_hint_and_all_mistakes_come_at_once(folder):
    study = study_in(
        folder,
        agent_specs=["writer", "reader", "talker", "thinker", "coder"],
        problem_ids=["gap", "hole", "pit", "moat"],
        agents={
            "wirter": "mine_own:write",
            "reader": {"use": "mine_own:write", "options": {"wramth": 1}},
            "talker": "mine_own:wriite",
            "thinker": "no_such_module_here:think",
            "coder": "mine_own.write",
        },
        problems={
            "gap": {"brief": "x", "evaluator": "mine_own:no_answer"},
            "hole": {"use": "mine_own:make_nothing"},
            "pit": {"use": "mine_own:fail"},
        },
    )
    assert binding_mistakes(study).splitlines() == [
        "agents: nothing is bound to the agent 'writer'; did you mean 'wirter'?; bind it under "
        "`agents`, or pass agent_bindings={'writer': ...}",
        "problems: nothing is bound to the problem 'moat'; known: gap, hole, pit; bind it under "
        "`problems`, or pass problem_registry={'moat': ...}",
        "agents.reader.options.wramth: write has no parameter of that name; did you mean 'warmth'?",
        "agents.talker.use: module 'mine_own' has no 'wriite'; did you mean 'write'?",
        f"agents.thinker.use: module 'no_such_module_here' can't be imported (looked in {folder} "
        "first): ModuleNotFoundError: No module named 'no_such_module_here'",
        "agents.coder.use: there is no agent 'mine_own.write'; "
        f"{did_you_mean('mine_own.write', plugins.names('agents'))}; "
        "a function of your own is written module:callable",
        "problems.gap.evaluator: no_answer must be a function of one argument: the answer to judge",
        "problems.hole: a value of type NoneType is no problem: it has no problem_id, family, "
        "brief, evaluate; a problem is a ProblemPacket, a mapping of its fields, or an object "
        "with problem_id, family, brief and evaluate(output)",
        "problems.pit.use: fail made no problem: RuntimeError: no licence",
    ]


def test_a_study_without_agents_is_mistakes_how_to_bind_one():
    mistakes = binding_mistakes(study_of(agent_specs=[]), problem_registry={"gap": {}})
    assert mistakes == (
        "agent_specs: the study doesn't say which agent to use; bind it under `agents`, or pass "
        "agent_bindings={'default-agent': ...}"
    )
    bound = {"writer": lambda task: {}}
    mistakes = binding_mistakes(study_of(agent_specs=[]), bound, {"gap": {}})
    assert "list it here; bound are writer" in mistakes
    bind(study_of(agent_specs=[]), [CONDITION], {"default-agent": len}, {"gap": {}})


def test_bindings_that_are_no_mapping_are_refused():
    with pytest.raises(StudyError, match="agent_bindings: must be a mapping"):
        bind(study_of(), [CONDITION], lambda task: {})


def test_a_mistake_in_what_python_binds_names_the_argument():
    mistakes = binding_mistakes(study_of(), {"agent": 42}, {"gap": {"breif": "x"}})
    assert "agent_bindings.agent: a value of type int is no agent" in mistakes
    assert "problem_registry.gap.breif: unknown key; did you mean 'brief'?" in mistakes
    mistakes = binding_mistakes(
        study_of(), {"agent": len}, {"gap": ProblemPacket("p", evaluator=3)}
    )
    assert "problem_registry.gap.evaluator: int must be a function of one argument" in mistakes


# -- plug-ins --

PLUGINS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Echo:
    times: int = 1
    def __call__(self, task):
        return {"text": task.problem.brief * self.times}

@dataclass(frozen=True)
class Maze:
    size: int
    problem_id = "maze"
    family = "mazes"
    @property
    def brief(self):
        return f"maze {self.size} "
    def evaluate(self, output):
        return len(output["text"])
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    (tmp_path / "maze_plugins.py").write_text(PLUGINS)
    info = tmp_path / "maze_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: maze_plugins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fairtrial.agents]\necho = maze_plugins:Echo\n\n"
        "[fairtrial.problems]\nmaze = maze_plugins:Maze\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plugins._find_entry_points.cache_clear()
    yield tmp_path
    plugins._find_entry_points.cache_clear()
    sys.modules.pop("maze_plugins", None)


def test_plug_ins_are_bound_by_name_with_their_options(installed):
    study = study_of(
        agents={"agent": {"use": "echo", "options": {"times": 2}}},
        problems={"gap": {"use": "maze", "options": {"size": 3}}},
    )
    ran = run_in(study)
    assert ran.body["outputs"] == {"text": "maze 3 maze 3 "}
    assert ran.body["evaluations"][0]["metric_value"] == 14
    assert ran.body["execution_metadata"] == {"problem_family": "mazes"}


def test_a_plug_ins_options_are_checked(installed):
    study = study_of(
        agents={"agent": {"use": "ecko"}},
        problems={"gap": {"use": "maze", "options": {"size": "3"}}},
    )
    mistakes = binding_mistakes(study)
    assert "agents.agent.use: there is no agent 'ecko'; did you mean 'echo'?" in mistakes
    assert "problems.gap.options.size: expected a whole number, got the text '3'" in mistakes


# -- to another process --

FRESH = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
work = pickle.loads(sys.stdin.buffer.read())
from run_attempt_kit import assignment, do
ran = do(work)
print(ran.outcome.status, ran.body["outputs"], ran.body["metrics"]["primary_outcome"])
"""


def test_work_reaches_a_fresh_process_with_its_folder_and_options(folder):
    """The module lies in the study's folder, which the other process doesn't look into."""
    study = study_in(
        folder,
        agents={"agent": {"use": "mine_own:Writer", "options": {"warmth": 3}}},
        problems={"gap": {"brief": "find it", "evaluator": "mine_own:double"}},
    )
    work = StudyWork(bind(study, [CONDITION]))
    process = subprocess.run(
        [sys.executable, "-c", FRESH, str(Path(__file__).parents[2] / "kits")],
        input=pickle.dumps(work),
        capture_output=True,
        check=True,
    )
    assert process.stdout.decode().strip() == "success {'answer': 3, 'brief': 'find it'} 6"


def top_level_agent(task):
    return {"answer": task.seed}


def test_pickled_work_does_the_same_runs():
    bindings = bind(study_of(), [CONDITION], {"agent": top_level_agent}, {"gap": {}})
    work = pickle.loads(pickle.dumps(StudyWork(bindings, workspaces=Path("w"))))
    assert do(work).body["outputs"] == run(top_level_agent).body["outputs"]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(bind(study_of(), [CONDITION], {"agent": lambda task: {}}, {"gap": {}}))
