"""`editable` must match a file; otherwise all commands refuse the problem before they run it."""

import anyio
import pytest
from clock_kit import few_problem
from repository_kit import make_repository, run_git

from fairtrial import run_study
from fairtrial.arena import ArenaSettings, Check, CodeProblem, open_arena, require_editable_files
from fairtrial.cli.main import main
from fairtrial.core import StudyError
from fairtrial.optimize import Optimizer
from fairtrial.optimize.code_problem import BoundCode
from fairtrial.study import Study
from fairtrial.study.runner.bound_objects import make_problem

CHECK = (Check(command=("true",)),)
FILES = {"src/pkg/mod.py": "x = 1\n", "src/pkg/data.txt": "", "sub/one.py": "", "odd[1]/a.py": ""}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "hook.py").write_text("")
    return tmp_path


def problem_of(folder, *editable, **more):
    return CodeProblem("p", editable=editable, check=CHECK, folder=folder, **more)


@pytest.mark.parametrize(
    ("editable", "more"),
    [
        (("**/*.py",), {}),
        (("src/**/*.py",), {}),
        (("src",), {}),
        (("./src/pkg/mod.py",), {}),
        (("lib/*.py", "sub/*.py"), {}),
        ((r"odd\[1]/*.py",), {}),
        (("*.py",), {"cwd": "sub"}),
        (("*.py",), {"repo": "sub"}),
        (("src/**", ":!src/**/*.py"), {}),
        (("nowhere/*.py",), {"repo": "nowhere"}),  # that the folder isn't there is said elsewhere
    ],
)
def test_a_pattern_that_matches_a_file_is_accepted(project, editable, more):
    require_editable_files(problem_of(project, *editable, **more))


@pytest.mark.parametrize(
    "editable",
    [
        ("lib/*.py",),
        ("*.py",),
        ("src/*.py", "lib"),
        ("src/pkg/mod.pyx",),
        ("src/**/*.py", ":!src/**"),
        ("hook.py",),
        (".git/none.py",),
    ],
)
def test_patterns_that_match_nothing_are_named(project, editable):
    with pytest.raises(StudyError) as stop:
        require_editable_files(problem_of(project, *editable), "p.yaml")
    (mistake,) = stop.value.mistakes
    assert mistake.path == ("editable",)
    assert mistake.message.startswith(", ".join(editable))
    assert str(stop.value).startswith("p.yaml: editable: ")


def test_every_command_and_every_study_refuses_it(project, monkeypatch, capsys):
    make_repository(project / "own", FILES)
    monkeypatch.chdir(project / "own")
    (project / "own/p.yaml").write_text(
        'problem_id: p\neditable: ["lib/*.py"]\ncheck: [{command: ["true"]}]\n'
        'bench: [{name: b, command: ["true"]}]\n'
    )
    (project / "own/s.yaml").write_text(
        "study_id: s\ntitle: t\nagents: {opt: optimize}\n"
        "problems: {p: {use: code, options: {path: p.yaml}}}\n"
        "outcomes: [{name: speedup, source_table: evaluations}]\n"
    )
    for words in (["evaluate", "p.yaml"], ["optimize", "p.yaml"], ["run", "s.yaml"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        error = capsys.readouterr().err
        assert stop.value.code == 2
        assert "p.yaml: editable: lib/*.py matches no file of" in error
    assert not (project / "own/artifacts").exists()


def test_patterns_that_match_protected_files_only_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    top = make_repository(tmp_path / "repo", {"tests/test_it.py": "def test_it(): pass\n"})
    settings = ArenaSettings(unsandboxed=True, lock_folder=tmp_path)
    problem = few_problem(top, editable=("tests/*.py",), check=CHECK, bench=(), sandbox="plain")

    async def open_it():
        async with open_arena(problem, slots=1, settings=settings):
            pass

    with pytest.raises(
        StudyError, match=r"tests/\*\.py matches no file that a candidate may change"
    ):
        anyio.run(open_it)


def test_a_bare_repository_is_reported_when_it_is_opened(tmp_path):
    run_git(tmp_path, "init", "--bare", "-q", "bare.git")
    require_editable_files(problem_of(tmp_path / "bare.git", "src/*.py"))


# -- code problems that Python code gives --


def test_a_code_problem_can_be_registered_from_python(project):
    given = problem_of(project, "src/**/*.py", brief="faster")
    bound = make_problem("w", given, None)
    assert isinstance(bound, BoundCode)
    assert (bound.problem_id, bound.brief, bound.code) == ("w", "faster", given)


def test_a_problem_without_editable_files_is_refused_before_any_run(project):
    study = Study("s", "t", agent_specs=("opt",), problem_ids=("w",))
    with pytest.raises(StudyError, match=r"problem_registry\.w\.editable: lib matches no file"):
        run_study(
            study,
            agent_bindings={"opt": Optimizer()},
            problem_registry={"w": problem_of(project, "lib")},
        )
