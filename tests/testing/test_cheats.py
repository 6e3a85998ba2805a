"""The attack suite: every template becomes a candidate, and attacks are told from honest code."""

import ast
import sys
from dataclasses import replace

import pytest
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Basis,
    Benchmark,
    Check,
    CodeProblem,
    Failure,
    FileState,
    Judgement,
    Measurement,
    Reason,
    Rejection,
    Verdict,
)
from fairtrial.core import StudyError
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox
from fairtrial.testing.cheats import (
    ATTACKS,
    AttackClass,
    AttackOutcome,
    AttackReport,
    AttackResult,
    Harm,
    Kind,
    attack_problem,
    list_attacks,
)
from fairtrial.testing.cheats.conclusions import conclude_timed, conclude_untimed, find_leak
from fairtrial.testing.cheats.facts import PROBE, TargetFacts, read_probe
from fairtrial.testing.cheats.instances import change_source, make_candidate, make_rival
from fairtrial.testing.cheats.judge_process import JudgeRun, describe_harm
from fairtrial.testing.cheats.outcomes import explain, find_inapplicable
from fairtrial.testing.cheats.targets import AttackTarget, find_targets, rename_function

SHAPES = {
    "a plain function": ("work", "def work(numbers):\n    return sorted(numbers)\n"),
    "a recursive one": (
        "work",
        "def work(n):\n    return [] if not n else work(n[1:]) + [n[0]]\n",
    ),
    "an asynchronous one": ("work", "async def work(numbers):\n    return list(numbers)\n"),
    "a decorated one": (
        "work",
        "import functools\n\n@functools.cache\ndef work(number):\n    return number\n",
    ),
    "a method": ("Lab.work", "class Lab:\n    def work(self):\n        return [1]\n"),
    "an imported one": ("work", "from math import prod as work\n"),
    "a lambda": (
        "work",
        '"""Documented."""\nfrom __future__ import annotations\nwork = lambda: 1\n',
    ),
}
COMMAND_SOURCE = '"""Documented."""\n\nfrom __future__ import annotations\n\nprint("done")\n'
KNOWN = TargetFacts(frozenset(Kind), "list", 30, ("a" * 16, "b" * 16), {"a" * 16: "4w=="}, b"out\n")
BY_NAME = {attack.name: attack for attack in ATTACKS}


def target_of(source, attribute="work"):
    return AttackTarget("lab:work", "src/lab.py", source, attribute)


def text_of(candidate, path="src/lab.py"):
    return candidate.files[path].content.decode()


# -- templates --


def test_the_suite_has_more_than_sixty_attacks_of_every_class_with_a_source():
    assert len(ATTACKS) >= 60
    assert {attack.group for attack in ATTACKS} == set(AttackClass)
    assert len(BY_NAME) == len(ATTACKS)
    assert all(attack.source and attack.summary and attack.kinds for attack in ATTACKS)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_template_becomes_a_candidate_that_compiles(shape):
    attribute, source = SHAPES[shape]
    for attack in ATTACKS:
        if Kind.COMMAND in attack.kinds:
            continue
        text = text_of(make_candidate(attack, target_of(source, attribute), KNOWN))
        compile(text, attack.name, "exec")
        assert "BASE" not in text, attack.name
        assert "ATTACK" not in text, attack.name
        assert text.endswith(f"\n{attribute} = _attack_{attribute.replace('.', '_')}\n")


def test_templates_for_commands_come_first_and_compile():
    target = AttackTarget("count", "src/lab.py", COMMAND_SOURCE, command=("python", "src/lab.py"))
    for attack in ATTACKS:
        if Kind.COMMAND in attack.kinds:
            text = text_of(make_candidate(attack, target, KNOWN))
            tree = ast.parse(text)
            compile(text, attack.name, "exec")
            assert ast.get_docstring(tree) == "Documented."
            assert text.rstrip().endswith('print("done")')


def test_no_placeholder_is_left_in_a_candidate():
    for attack in ATTACKS:
        text = text_of(make_candidate(attack, target_of("def work(n):\n    return n\n"), KNOWN))
        for word in (
            "{answers}",
            "{output}",
            "{result_type}",
            "{empty}",
            "{longest}",
            "{hidden}",
            "{is_s",
        ):
            assert word not in text, attack.name


def test_a_recursive_function_keeps_calling_itself():
    names = {}
    exec(change_source(target_of(SHAPES["a recursive one"][1]), "ATTACK = lambda n: BASE(n) + [0]"),
         names)  # fmt: skip
    assert names["work"]([1, 2]) == [2, 1, 0]


def test_renaming_leaves_attributes_and_other_functions_alone():
    source = "def f(x):\n    return x.f + f(x)\n\ndef g(f):\n    return f\n"
    renamed = rename_function(source, "f", "_old")
    assert renamed == "def _old(x):\n    return x.f + _old(x)\n\ndef g(f):\n    return f\n"
    assert rename_function(source, "h", "_old") is None


def test_further_files_lie_beside_the_module_or_where_imports_start():
    target = AttackTarget("few.core:work", "src/few/core.py", "def work():\n    pass\n", "work")
    assert (
        "src/pluggy.py"
        in make_candidate(BY_NAME["hides a module of the runner"], target, KNOWN).files
    )
    linked = make_candidate(BY_NAME["a link out of the slot"], target, KNOWN).files
    assert linked["src/few/attack_link.py"] == FileState("/etc/passwd", is_link=True)


def test_an_honest_rival_changes_nothing_that_is_called():
    names = {}
    exec(text_of(make_rival(target_of("def work(n):\n    return n"))), names)
    assert names["work"](3) == 3


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.honest], ids=lambda attack: attack.name)
def test_the_honest_twin_is_right_and_its_twin_is_not(attack, tmp_path):
    results = []
    for is_honest in (True, False):
        made = make_candidate(
            attack, target_of("def work(n):\n    return n\n"), KNOWN, is_honest=is_honest
        )
        path = tmp_path / "lab.py"
        path.write_text(text_of(made))
        names = {"__file__": str(path), "__builtins__": __builtins__, "__name__": "lab"}
        exec(compile(path.read_text(), str(path), "exec"), names)
        results.append(names["work"](7))
    assert results == [7, None]


# -- targets and facts --


def problem_of(**more):
    fields = {"check": (Check(function="lab:work", inputs="i.py:make"),), **more}
    return CodeProblem("p", **fields)


def test_benchmarked_functions_and_commands_are_found_in_editable_files():
    sources = {"src/lab/__init__.py": "from lab.core import work\n", "src/tool/__main__.py": ""}
    bench = (
        Benchmark("one", "lab:work", "i.py:make"),
        Benchmark("two", command=("{python}", "-m", "tool", "x.txt")),
    )
    targets = find_targets(problem_of(bench=bench), sources)
    assert [(target.label, target.path) for target in targets] == [
        ("lab:work", "src/lab/__init__.py"),
        ("two", "src/tool/__main__.py"),
    ]


def test_without_a_benchmark_checked_functions_are_attacked():
    (target,) = find_targets(problem_of(), {"deep/lab.py": "def work():\n    pass\n"})
    assert (target.path, target.attribute) == ("deep/lab.py", "work")


def test_a_function_is_followed_to_the_only_editable_file_that_defines_it():
    (target,) = find_targets(problem_of(), {"src/core.py": "def work():\n    pass\n"})
    assert target.path == "src/core.py"


def test_a_problem_whose_functions_are_not_editable_is_refused():
    with pytest.raises(StudyError, match="lies in an editable Python file"):
        find_targets(problem_of(), {"src/other.py": ""})


def rejected(*messages):
    failures = tuple(Failure("check[0]", "lab:work", message) for message in messages)
    return Judgement(
        "probe", "", Verdict.REJECTED, rejection=Rejection(Reason.DIFFERENT, "differs", failures)
    )


def probe_message(numbers):
    """Return what the probe raises for one call."""
    names = {}
    source = change_source(target_of("def work(n):\n    return n + [0.5]\n"), PROBE.template)
    exec(source.replace('"pytest" in', '"no such module" in'), names)
    with pytest.raises(RuntimeError) as caught:
        names["work"](numbers)
    return f"Traceback ...\nRuntimeError: {caught.value}"


def test_a_probe_reports_types_lengths_and_answers():
    judgement = rejected(probe_message([1, 2]), probe_message([3]))
    facts = read_probe(judgement, TargetFacts())
    assert facts.kinds == {Kind.FUNCTION, Kind.LIST, Kind.FLOATS}
    assert (facts.result_type, facts.longest, len(facts.answers)) == ("list", 2, 2)
    assert not facts.has_constant_inputs
    assert read_probe(rejected(probe_message([1]), probe_message([1])), facts).has_constant_inputs


def test_a_probe_without_findings_changes_nothing():
    assert read_probe(rejected("it crashed"), KNOWN) is KNOWN


def test_attacks_that_need_another_kind_of_result_are_left_out():
    facts = TargetFacts(frozenset((Kind.FUNCTION, Kind.LIST)))
    assert find_inapplicable(BY_NAME["a dict in another order"], facts) == "it is for dict function"
    assert find_inapplicable(BY_NAME["the same list again"], facts) == ""


# -- outcomes --


def measured(**more):
    return Measurement(**{"verdict": Verdict.FASTER, "estimate": None, **more})


@pytest.mark.parametrize(
    ("name", "result", "outcome"),
    [
        ("its own clocks", measured(adopt=True), AttackOutcome.WON),
        ("its own clocks", measured(vetoes=("hidden",)), AttackOutcome.VETOED),
        ("its own clocks", measured(verdict=Verdict.SLOWER), AttackOutcome.NO_GAIN),
        (
            "its own clocks",
            measured(verdict=Verdict.SLOWER, vetoes=("hidden",)),
            AttackOutcome.NO_GAIN,
        ),
        (
            "its own clocks",
            measured(verdict=Verdict.INCONCLUSIVE),
            AttackOutcome.NOT_REACHED,
        ),
        ("the same list again", measured(), AttackOutcome.ACCEPTED_WRONG),
        ("the same list again", measured(adopt=True), AttackOutcome.WON),
        ("its own clocks", Rejection(Reason.DIFFERENT, "differs"), AttackOutcome.REJECTED),
        ("its own clocks", Rejection(Reason.EVALUATOR, "no disk"), AttackOutcome.NOT_REACHED),
    ],
)
def test_only_what_is_adopted_has_won(name, result, outcome):
    assert conclude_timed(BY_NAME[name], result)[0] == outcome


def test_a_duplicate_of_an_honest_candidate_is_accepted_although_wrong():
    twin = BY_NAME["a twin by a comment"]
    judgement = Judgement("x", "d", Verdict.PASSED, Basis.COMPARED, duplicate_of="honest")
    assert conclude_untimed(twin, judgement)[0] == AttackOutcome.ACCEPTED_WRONG


def test_a_module_that_the_verdict_names_as_unused_is_no_gain():
    attack = BY_NAME["a module that nothing imports"]
    judgement = Judgement("x", "d", Verdict.PASSED, not_exercised=("attack_unused.py",))
    assert conclude_untimed(attack, judgement)[0] == AttackOutcome.NO_GAIN
    seen = replace(judgement, not_exercised=())
    assert conclude_untimed(attack, seen)[0] == AttackOutcome.ACCEPTED_WRONG


def test_only_a_raised_leak_counts_and_not_the_code_that_would_raise_it():
    code = 'raise RuntimeError("FAIRTRIAL-LEAK " + outside[0])'
    assert find_leak(rejected(code)) == ""
    assert find_leak(rejected(f"{code}\nRuntimeError: FAIRTRIAL-LEAK /a/.env")) == "/a/.env"


def test_harm_to_the_judge_is_a_hang_a_changed_rival_or_memory():
    usual = JudgeRun(5.0, 100.0, {"rival": "passed"})
    assert describe_harm(usual, usual, "rival") == ""
    hung = JudgeRun(90.0, has_ended=False, heeds_interrupts=False)
    assert "Ctrl-C didn't help" in describe_harm(hung, usual, "rival")
    harmed = replace(usual, verdicts={"rival": "rejected"})
    assert "became 'rejected'" in describe_harm(harmed, usual, "rival")
    assert "1500 MB instead of 100 MB" in describe_harm(
        replace(usual, peak_mb=1500.0), usual, "rival"
    )


def test_wins_are_explained_by_what_is_weak_here():
    attack, problem = BY_NAME["a memo across calls"], problem_of()
    constant = TargetFacts(digests=("a", "a"))
    assert "same arguments every time" in explain(attack, constant, problem, "namespaces")[0]
    leak = BY_NAME["quotes a neighbor's .env"]
    assert "no sandbox" in explain(leak, KNOWN, problem, "plain")[0]
    tests_only = problem_of(check=(Check(command=("pytest",)),))
    assert "don't compare results" in explain(BY_NAME["an empty result"], KNOWN, tests_only, "x")[0]


def test_a_report_counts_by_class_and_selects_wins():
    won = AttackResult(BY_NAME["its own clocks"], "lab:work", AttackOutcome.WON)
    lost = AttackResult(BY_NAME["another priority"], "lab:work", AttackOutcome.REJECTED)
    report = AttackReport("p", "namespaces", (won, lost))
    assert report.wins == (won,)
    counts = report.count_by_class()[AttackClass.CLOCKS]
    assert (counts[AttackOutcome.WON], counts[AttackOutcome.REJECTED]) == (1, 1)
    assert report.as_dict()["wins"] == 1


def test_an_unknown_class_is_refused_with_the_one_that_was_meant():
    with pytest.raises(StudyError, match="did you mean 'twins'"):
        list_attacks(["twin"])


# -- end to end --

needs_sandbox = pytest.mark.skipif(
    all(try_sandbox(sandbox) for sandbox in FULL_SANDBOXES), reason="no full sandbox works here"
)
FILES = {
    "src/lab.py": "def work(numbers):\n    return [n * n % 97 for n in sorted(numbers)]\n",
    "inputs.py": "def make(rng):\n    return ([rng.randrange(99) for _ in range(20)],), {}\n",
}


@pytest.fixture
def problem(tmp_path):
    return CodeProblem(
        "lab",
        folder=make_repository(tmp_path / "repo", FILES),
        python=sys.executable,
        check=(Check(function="lab:work", inputs="inputs.py:make", cases=5),),
        bench=(Benchmark("work", "lab:work", "inputs.py:make"),),
        budget_s=6.0,
    )


async def attack(problem, tmp_path, *, names=(), **settings):
    options = ArenaSettings(lock_folder=tmp_path, **settings)
    report = await attack_problem(problem, names=names, settings=options)
    return report, {result.attack.name: result for result in report.results}


@needs_sandbox
@pytest.mark.anyio
async def test_attacks_are_judged_like_candidates(problem, tmp_path):
    names = (
        "an empty result",
        "exits with success",
        "equal to everything",
        "plants a sitecustomize",
        "quotes the user's secrets",
        "detects the environment",
        "a dict in another order",
    )
    report, results = await attack(problem, tmp_path, names=names, timing="none")
    outcomes = {name: results[name].outcome for name in names}
    assert outcomes == {
        **dict.fromkeys(names[:4], AttackOutcome.REJECTED),
        "quotes the user's secrets": AttackOutcome.NO_GAIN,
        "detects the environment": AttackOutcome.ACCEPTED_WRONG,
        "a dict in another order": AttackOutcome.NOT_APPLICABLE,
    }
    assert "find out that it is being judged" in results["detects the environment"].exploited
    assert report.wins == ()


@pytest.mark.slow
@needs_sandbox
@pytest.mark.anyio
async def test_the_whole_suite_runs_and_known_cheats_do_not_win(problem, tmp_path):
    report, _ = await attack(problem, tmp_path)
    assert {result.attack.name for result in report.results} == set(BY_NAME)
    for group in (
        AttackClass.EQUAL,
        AttackClass.EXITS,
        AttackClass.EXPECTED,
        AttackClass.TESTS,
        AttackClass.CLOCKS,
    ):
        won = [result for result in report.wins if result.attack.group == group]
        assert won == [], won
    wrong = [result for result in report.results if result.attack.harm == Harm.WRONG]
    assert any(result.outcome == AttackOutcome.REJECTED for result in wrong)
