"""Function checks: the base and a candidate, called with the same arguments."""

import json
from dataclasses import replace

import pytest
from calls_kit import CHECK, MAKER, PYTHON, SORT, Recorder, Slots
from old_python import find_old_python

from fairtrial.arena import Basis, Reason
from fairtrial.arena.checks import function_check as functions
from fairtrial.arena.checks.comparison_rules import ComparisonBudget, ComparisonRules
from fairtrial.arena.checks.function_judging import judge_calls
from fairtrial.arena.checks.import_errors import tell_roots
from fairtrial.arena.checks.value_comparison import compare
from fairtrial.arena.checks.worker_reports import compare_outcomes, read_outcome, read_report
from fairtrial.arena.interpreter import Interpreter
from fairtrial.core import StudyError
from fairtrial.sandbox import Captured, Completed, Ending, Limits

OLD = find_old_python()
ONE = "def make(rng): return (rng.randrange(9),), {}"


@pytest.fixture(scope="module")
def slots(tmp_path_factory):
    return Slots(tmp_path_factory.mktemp("slots"), {"tools.py": SORT, "bench/inputs.py": MAKER})


@pytest.fixture(scope="module")
def prepared(slots):
    return slots.prepare()


@pytest.fixture
def prepare(tmp_path):
    """Prepare a check of `tools:run` in a project of these files."""

    def prepare(tools, maker=ONE, **changes):
        slots = Slots(tmp_path, {"tools.py": tools, "bench/inputs.py": maker})
        return slots, slots.prepare(**{"function": "tools:run", "cases": 3, **changes})

    return prepare


def refusal(prepare, *args, **changes):
    with pytest.raises(StudyError) as stop:
        prepare(*args, **changes)
    return str(stop.value)


def test_the_base_holds_and_the_verdict_rests_on_compared_results(slots, prepared):
    run = slots.judge(prepared)
    assert run.rejection is None
    assert (prepared.basis, prepared.label) == (Basis.COMPARED, "check[1]")
    assert run.cpu_s > 0
    assert run.peak_rss_mb > 1


def test_another_way_to_the_same_results_holds(slots, prepared):
    tools = """
        def sort(items, reverse=False):
            rest, done = list(items), []
            while rest:
                done.append(rest.pop(rest.index((max if reverse else min)(rest))))
            return done
    """
    assert slots.judge(prepared, tools=tools).rejection is None


def test_files_that_were_imported_are_those_of_the_slot(slots, prepared):
    run = slots.judge(prepared, tools="import extra\nfrom extra import sort", extra=SORT)
    slot = slots.folder / f"slot{slots.given}"
    inside = {file for file in run.loaded if file.startswith(str(slots.folder))}
    assert inside == {str(slot / "tools.py"), str(slot / "extra.py")}
    assert any(file.endswith("/tools.py") for file in prepared.loaded)


def test_a_wrong_result_is_reported_with_its_position_and_the_call(slots, prepared):
    tools = "def sort(items, reverse=False): return sorted(items, reverse=not reverse)"
    rejection = slots.judge(prepared, tools=tools).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "4 of 4 calls of tools:sort differ" in rejection.message
    first = rejection.failures[0]
    assert (first.check, first.what) == ("check[1]", "tools:sort, case 1")
    assert first.message.startswith("called as sort([")
    assert "reverse=" in first.message
    place = first.differences[0]
    assert place.where == "result[0]"
    assert place.expected != place.actual


def test_one_wrong_case_of_many_is_found(slots, prepared):
    tools = """
        calls = 0
        def sort(items, reverse=False):
            global calls
            calls += 1
            return sorted(items, reverse=reverse) + [0] * (calls == 3)
    """
    rejection = slots.judge(prepared, tools=tools).rejection
    assert [failure.what for failure in rejection.failures] == ["tools:sort, case 3"]
    assert rejection.failures[0].differences[0].where == "len(result)"


def test_an_exception_comes_with_the_candidates_own_traceback(slots, prepared):
    tools = """
        def sort(items, reverse=False):
            return items[99]
    """
    rejection = slots.judge(prepared, tools=tools).rejection
    assert rejection.reason == Reason.DIFFERENT
    failure = rejection.failures[0]
    assert failure.differences[0].actual == "raised IndexError('list index out of range')"
    assert "return items[99]" in failure.message
    assert "worker.py" not in failure.message


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("items.append(0)", "after the call, args[0]"),
        ("print('sorted')", "output"),
        ("import os; os.write(1, b'x')", "output"),
        ("import os; os.system('echo x')", "output"),
        ("import sys; sys.__stdout__.write('x')", "output"),
    ],
)
def test_what_a_call_changes_and_prints_counts(slots, prepared, body, where):
    tools = f"""
        def sort(items, reverse=False):
            result = sorted(items, reverse=reverse)
            {body}
            return result
    """
    rejection = slots.judge(prepared, tools=tools).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert where in rejection.failures[0].differences[0].where


def test_what_is_printed_while_importing_or_to_stderr_does_not_count(slots, prepared):
    tools = "import sys\nprint('imported')\nsys.stderr.write('x')\n" + SORT.replace(
        "    def", "def"
    )
    assert (
        slots.judge(prepared, tools=tools.replace("        return", "    return")).rejection is None
    )


# What candidates do to get away with it: out, with a reason, and never an exception.

RIGHT = "return sorted(items, reverse=reverse)"
CHEATS = {
    "leaves": ("import os; os._exit(0)", Reason.CRASH),
    "leaves_later": ("import threading, os; threading.Timer(0, os._exit, [0]).start(); "
                     "import time; time.sleep(9)", Reason.CRASH),
    "exits": ("raise SystemExit(0)", Reason.DIFFERENT),
    "interrupts": ("raise KeyboardInterrupt", Reason.DIFFERENT),
    "dies": ("import os; os.kill(os.getpid(), 9)", Reason.CRASH),
    "recurses": ("return sort(items, reverse)", Reason.DIFFERENT),
    "closes_all": ("import os; os.closerange(0, 99)", Reason.CRASH),
    "never_returns": ("while True: pass", Reason.TIMEOUT),
    "endless": ("import itertools; return itertools.count()", Reason.DIFFERENT),
    "slow_iterator": ("import time; return iter(lambda: time.sleep(9), 1)", Reason.TIMEOUT),
    "equal_to_all": ("return type('L', (list,), {'__eq__': lambda s, o: True})(items)",
                     Reason.DIFFERENT),
    "opaque": ("return object()", Reason.DIFFERENT),
    "too_large": ("return 'x' * (1 << 25)", Reason.DIFFERENT),
    "too_deep": ("exec('d = []\\nfor _ in range(500): d = [d]', g := {}); return g['d']",
                 Reason.DIFFERENT),
    "prints_much": ("print('x' * (1 << 22)); " + RIGHT, Reason.DIFFERENT),
    "json_replaced": ("import json; json.dumps = json.JSONEncoder.encode = lambda *a: '[]'; "
                      "return items", Reason.DIFFERENT),
    "breaks_worker": ("import __main__ as w; w.CallReporter.send = None; " + RIGHT,
                      Reason.DIFFERENT),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_out_with_a_reason(slots, prepared, name):
    body, reason = CHEATS[name]
    prepared = prepared_for(slots, prepared, name)
    tools = f"def sort(items, reverse=False):\n    {body}\n"
    rejection = slots.judge(prepared, tools=tools).rejection
    assert rejection is not None
    assert reason is None or rejection.reason == reason
    assert rejection.failures
    assert rejection.message


def prepared_for(slots, prepared, name):
    if name in ("never_returns", "slow_iterator"):
        # The base has had all the time that it needs: only the candidate is out of it soon.
        return replace(
            prepared, expectation=replace(prepared.expectation, check=replace(CHECK, timeout_s=0.5))
        )
    if name == "endless":
        return slots.prepare(cases=1)  # each is followed until it is too large
    return prepared


FORGED = {
    "garbage": ("w(c, b'garbage\\n')", Reason.MISSING),
    "garbage_in_front": ("w(c, b'\\x00\\xff')", Reason.MISSING),
    "deep": ("w(c, b'[' * 100000 + b'\\n')", Reason.MISSING),
    "closed_early": ('w(c, b\'{"done":4,"files":[]}\\n\'); os._exit(0)', Reason.MISSING),
    "all_forged": (
        '[w(c, b\'{"case":%d,"result":[],"output":"","after":null}\\n\' % n)'
        ' for n in range(4)]; w(c, b\'{"done":4,"files":[]}\\n\'); os._exit(0)',
        Reason.DIFFERENT,
    ),
    "no_result": (
        '[w(c, b\'{"case":%d,"output":"","after":null}\\n\' % n) for n in range(4)];'
        ' w(c, b\'{"done":4,"files":[]}\\n\'); os._exit(0)',
        Reason.DIFFERENT,
    ),
    "bare_cases": (
        '[w(c, b\'{"case":%d,}\\n\' % n) for n in range(4)]; w(c, b\'{"done":4,"files":[]}\\n\');'
        " os._exit(0)",
        Reason.DIFFERENT,
    ),
    "wrong_shapes": (
        '[w(c, b\'{"case":%d,"result":{"$":7},"raised":3,"output":[],"after":5,'
        '"traceback":[]}\\n\' % n) for n in range(4)];'
        ' w(c, b\'{"done":4,"files":[1,null]}\\n\'); os._exit(0)',
        Reason.DIFFERENT,
    ),
    "failed": ('w(c, b\'{"failed":{"type":"x","args":[]}}\\n\'); os._exit(0)', Reason.CRASH),
    "said_twice": (
        'w(c, b\'{"case":0,"result":[],"output":"","after":null}\\n\')',
        Reason.MISSING,
    ),
    "flood": ("[w(c, b'x' * 65536) for _ in range(200)]", Reason.MISSING),
    "replaced": ("os.dup2(os.open('/dev/null', 1), c)", Reason.CRASH),
    "closed": ("os.close(c)", Reason.CRASH),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_report_never_passes(slots, prepared, name):
    body, reason = FORGED[name]
    # The channel is the only pipe beside the standard streams; it is found by trying.
    tools = f"""
        import os, stat
        w = os.write
        def find():
            for number in range(3, 64):
                try:
                    if stat.S_ISFIFO(os.fstat(number).st_mode):
                        return number
                except OSError:
                    pass
        c = find()
        first = True
        def sort(items, reverse=False):
            global first
            if first:
                first = False
                {body}
            return sorted(items, reverse=reverse)
    """
    rejection = slots.judge(prepared, tools=tools).rejection
    assert rejection is not None
    assert rejection.reason == reason
    assert rejection.failures


CASES = b'{"case":0,"result":1}\n{"case":1,"result":2}\n'
DONE = b'{"done":2,"files":["a.py",3]}\n'


@pytest.mark.parametrize(
    ("channel", "lines", "is_complete"),
    [
        (CASES + DONE, 2, True),
        (CASES, 2, False),
        (CASES + DONE[:-1], 2, False),
        (CASES[:-1], 1, False),
        (CASES + DONE + b"x\n", 2, False),
        (CASES + DONE + b"x", 2, False),
        (CASES + DONE + DONE, 2, False),
        (CASES + CASES + DONE, 2, False),
        (b"\n" + CASES + DONE, 0, False),
        (CASES.replace(b"0", b"1", 1) + DONE, 0, False),
        (CASES[:22] + DONE, 1, False),
        (CASES + b'{"done":1,"files":[]}\n', 2, False),
        (DONE, 0, False),
        (b"", 0, False),
    ],
)
def test_a_report_is_complete_or_it_is_not(channel, lines, is_complete):
    report = read_report(channel, 2)
    assert (len(report.lines), report.is_complete) == (lines, is_complete)
    assert report.files <= {"a.py"}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({}, None),
        ({"ending": Ending.TIMEOUT, "exit_code": None}, Reason.TIMEOUT),
        ({"ending": Ending.MEMORY, "exit_code": None}, Reason.MEMORY),
        ({"ending": Ending.SIGNALLED, "exit_code": None, "signal": 11}, Reason.CRASH),
        ({"exit_code": 3}, Reason.CRASH),
        ({"channel_overflowed": True}, Reason.MISSING),
    ],
)
def test_right_results_do_not_help_a_process_that_ends_badly(slots, prepared, end, reason):
    lines = b"\n".join(prepared.expectation.lines) + b'\n{"done":4,"files":[]}\n'
    done = Completed(Ending.EXITED, 0, None, Captured(), Captured(), lines, False, 1, 1, 1)
    done = replace(done, **end)
    command = functions.call_command(slots.stage({"a": ""}), prepared.expectation.check, b"", 1)
    rejection = judge_calls(prepared.expectation, read_report(lines, 4), done, command)
    assert (rejection and rejection.reason) == reason


def test_exceeded_limits_are_reported(slots, prepared):
    """Whoever goes beyond one of them is far from the other."""
    hog = """
        def sort(items, reverse=False):
            hog = b"x" * (1 << 28)
            while True:
                pass
    """
    little = replace(slots, folder=slots.folder / "little", limits=Limits(memory_mb=150))
    assert little.judge(prepared, tools=hog).rejection.reason == Reason.MEMORY
    forks = """
        import os, time
        def sort(items, reverse=False):
            for _ in range(40):
                if os.fork() == 0:
                    time.sleep(30)
            time.sleep(30)
    """
    limits = Limits(memory_mb=4096, processes=8)
    few = replace(slots, folder=slots.folder / "few", limits=limits)
    assert few.judge(prepared, tools=forks).rejection.reason == Reason.PROCESSES


@pytest.mark.parametrize(
    "body",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import atexit, time; atexit.register(time.sleep, 60)",
        "import os; os.fork()",
        "import sys; sys.stdout = None",
        "import sys; sys.stdout.close()",
        "import os; os.close(1)",
        "import os; os.chdir('/'); os.environ.clear()",
        "import sys; sys.setrecursionlimit(120)",
        "import os; os.write = os.getpid = os._exit = None",
        "import sys; sys.path.clear(); sys.modules.pop('json', None)",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    ],
)
def test_odd_but_right_code_still_gets_a_right_answer(slots, body):
    tools = f"def sort(items, reverse=False):\n    {body}\n    {RIGHT}\n"
    prepared = slots.prepare(process_state="any")
    assert slots.judge(prepared, tools=tools).rejection is None


@pytest.mark.parametrize(
    ("body", "setting"),
    [
        ("import gc; gc.disable()", "garbage collector"),
        ("import os; os.chdir('/')", "working folder"),
        ("import os; os.environ['TZ'] = 'UTC'", "environment variable TZ"),
        ("import sys; sys.setrecursionlimit(500)", "recursion limit"),
        ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", "handler of SIGTERM"),
        ("import builtins; builtins.sum = max", "builtins.sum"),
        ("import time; time.sleep = print", "time.sleep"),
    ],
)
def test_a_candidate_that_changes_its_callers_process_is_rejected(slots, prepared, body, setting):
    tools = f"def sort(items, reverse=False):\n    {body}\n    {RIGHT}\n"
    rejection = slots.judge(prepared, tools=tools).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert f"the base doesn't: {setting}; `process_state: any`" in rejection.message


def test_settings_that_are_restored_or_that_the_base_changes_too_are_no_offense(prepare):
    off = "import gc\ndef run(*args):\n    gc.disable()\n    return 1\n"
    slots, prepared = prepare(off)
    assert slots.judge(prepared, tools=off + "# the same\n").rejection is None
    kept = "import gc\ndef run(*args):\n    gc.disable()\n    gc.enable()\n    return 1\n"
    slots, prepared = prepare("def run(*args):\n    return 1\n")
    assert slots.judge(prepared, tools=kept).rejection is None


def test_a_coroutine_is_not_the_result_that_it_would_give(prepare):
    slots, prepared = prepare("def run(*args):\n    return 1\n")
    lazy = "async def run(*args):\n    return 1\n"
    rejection = slots.judge(prepared, tools=lazy).rejection
    assert "what the call returns should be its result, is a coroutine" in rejection.message


def test_a_module_that_fails_is_reported_with_its_own_line(slots, prepared):
    rejection = slots.judge(prepared, tools="def sort(items):\n    return [\n").rejection
    assert rejection.reason == Reason.CRASH
    assert rejection.message.startswith("tools:sort can't be used: SyntaxError: ")
    assert 'tools.py", line 2' in rejection.failures[0].message
    rejection = slots.judge(prepared, tools="other = 1").rejection
    assert "has no attribute 'sort'" in rejection.message
    rejection = slots.judge(prepared, tools="raise SystemExit").rejection
    assert rejection.reason == Reason.CRASH


def test_candidates_get_inputs_and_nothing_else(slots, prepared):
    slots.sandbox.commands.clear()
    slots.judge(prepared)
    assert len(slots.sandbox.commands) == 2
    for command in slots.sandbox.commands:
        for line in prepared.expectation.lines:
            expected = json.loads(line)["result"]
            assert json.dumps(expected) not in json.dumps(json.loads(command.stdin))
        case = json.loads(command.stdin)["cases"][0]
        assert set(case) == {"args", "kwargs"}
        assert not (command.cwd / "bench").exists()
        assert prepared.seed not in command.env.values()


def test_a_candidate_can_not_take_a_module_of_the_harness_for_its_own(slots, prepared):
    """Our files don't stand before a project's modules of the same name."""
    tools = f"""
        import codec, library, rebuild, worker
        def sort(items, reverse=False):
            assert codec.mine and library.mine and rebuild.mine and worker.mine
            {RIGHT}
    """
    mine = dict.fromkeys(("codec", "library", "rebuild", "worker"), "mine = True")
    assert slots.judge(prepared, tools=tools, **mine).rejection is None


# What the base may be, and what is refused.


def test_inputs_are_the_same_for_the_same_seed_and_each_has_its_own(prepare):
    maker = "def make(rng): return (rng.getrandbits(64),), {}"
    _, one = prepare("run = abs", maker)
    _, other = prepare("run = abs", maker, cases=2)
    cases = one.expectation.read_cases()
    assert cases[:2] == other.expectation.read_cases()
    assert cases[0] != cases[1] != cases[2]
    assert one.notes == ("check[1]: 3 inputs of tools:run were made with seed 7",)


def test_methods_coroutines_and_generators_can_be_called(tmp_path):
    tools = """
        class Tool:
            @staticmethod
            async def wait(n):
                return n
            @classmethod
            def count(cls, n):
                yield from range(n)
        async def many(n):
            for item in range(n):
                yield item
    """
    slots = Slots(tmp_path, {"tools.py": tools, "bench/inputs.py": ONE})
    for name in ("Tool.wait", "Tool.count", "many"):
        prepared = slots.prepare(function=f"tools:{name}", cases=1)
        assert slots.judge(prepared).rejection is None
        wrong = tools.replace("return n", "return -1 - n").replace("range(n)", "range(n + 1)")
        assert slots.judge(prepared, tools=wrong).rejection.reason == Reason.DIFFERENT


def test_exceptions_of_the_base_are_expected(prepare):
    tools = "def run(n):\n    raise KeyError('no', n)"
    slots, prepared = prepare(tools)
    assert any("every call of tools:run raises on the base" in note for note in prepared.notes)
    assert slots.judge(prepared, tools=tools + "  # the same").rejection is None
    for other in ("raise KeyError('no', n + 1)", "raise LookupError('no', n)", "return n"):
        rejection = slots.judge(prepared, tools=f"def run(n):\n    {other}").rejection
        assert rejection.reason == Reason.DIFFERENT


def test_one_call_does_not_take_the_output_from_the_next(prepare):
    _, prepared = prepare("import sys\ndef run(n):\n    print('x')\n    sys.stdout = None")
    assert [json.loads(line)["output"] for line in prepared.expectation.lines] == ["x\n"] * 3


def test_the_tolerance_is_the_checks(prepare):
    slots, prepared = prepare("def run(n): return n / 3 + 1", rel_tol=1e-6)
    close, far = (f"def run(n): return (n / 3 + 1) * {off}" for off in (1 + 1e-8, 1 + 1e-4))
    assert slots.judge(prepared, tools=close).rejection is None
    assert slots.judge(prepared, tools=far).rejection.reason == Reason.DIFFERENT


@pytest.mark.parametrize(
    "body",
    [
        "import random; return random.random()",
        "import time; return time.perf_counter_ns()",
        "import os; print(os.getpid())",
        "return list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})",
        "raise ValueError(repr(object()))",
    ],
)
def test_a_function_that_varies_is_refused(prepare, body):
    message = refusal(prepare, f"def run(n):\n    {body}")
    assert "check[1].function: tools:run, case 1 isn't the same every time on the base" in message
    assert ", then " in message
    assert "builtins:sorted" in message


def test_a_view_makes_plain_data_of_objects_and_order_of_sets(prepare):
    tools = """
        class Graph:
            def __init__(self, n):
                self.n = n
                self.made_by = lambda: n
        def run(n):
            return Graph(n)
        def show(graph):
            return {"n": graph.n}
        def names(n):
            return list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})
    """
    message = refusal(prepare, tools)
    assert "its result holds <an object of type function>, whose content can't" in message
    assert "give view:" in message
    slots, prepared = prepare(tools, view="tools:show")
    wrong = tools.replace("self.n = n", "self.n = n + 1")
    assert slots.judge(prepared, tools=wrong).rejection.failures[0].differences[0].where == (
        "result['n']"
    )
    prepare(tools, function="tools:names", view="builtins:sorted")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 'x' * (1 << 25)", "more than 16,777,216 bytes"),
        ("print('x' * (1 << 21))", "its output is too large"),
        ("raise ValueError(object())", "the exception that it raises holds <an object"),
        ("n.append(object())", "its arguments, after the call holds <an object"),
        ("import os; os._exit(3)", "exited with 3 in run([])"),
        ("import os; os.kill(os.getpid(), 11)", "died of SIGSEGV"),
    ],
)
def test_a_base_that_can_not_be_compared_is_refused(prepare, body, message):
    maker = "def make(rng): return ([],), {}"
    assert message in refusal(prepare, f"def run(n):\n    {body}", maker, cases=1)


def test_results_that_are_too_large_together_are_refused(prepare, monkeypatch):
    monkeypatch.setattr(functions, "CHANNEL_BYTES", 2**20)
    message = refusal(prepare, "def run(n): return 'x' * 400_000")
    assert "the base's results of all cases together take more than 1 MB" in message
    maker = "def make(rng): return ('x' * 400_000,), {}"
    assert "the inputs of all cases take more than 1 MB" in refusal(prepare, "run = len", maker)


class Hasty(Recorder):
    """Has little time for what calls the function; makers have theirs."""

    async def run(self, command):
        calls = any(word.endswith("worker.py") for word in command.argv)
        return await super().run(replace(command, timeout_s=0.5) if calls else command)


def test_a_base_that_is_too_slow_is_refused(tmp_path):
    files = {"tools.py": "def run(n):\n    while True: pass", "bench/inputs.py": ONE}
    slots = Slots(tmp_path, files, sandbox=Hasty())
    message = refusal(slots.prepare, function="tools:run")
    assert message.startswith(
        "check[1].function: on the unchanged base, tools:run was stopped: it took"
    )
    assert "raise check[1].timeout_s" in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"view": "tools:show"}, "has no attribute 'show'"),
        ({"inputs": "bench/other.py:make"}, "there is no Python file"),
        ({"inputs": "bench/inputs.py:other"}, "has no function other"),
    ],
)
def test_names_that_lead_nowhere_are_refused(prepare, changes, message):
    assert message in refusal(prepare, "run = abs", **changes)


def test_a_missing_function_is_reported_once_with_the_import_roots(prepare):
    message = refusal(prepare, "run = abs", function="nowhere:run")
    assert "nowhere:run can't be used in the base: ModuleNotFoundErr" in message
    assert message.count("No module named 'nowhere'") == 1
    assert "from the import roots (here: .); the project has no module nowhere" in message
    message = refusal(prepare, "run = abs", function="tools:walk")
    assert message.endswith("(here: .)")
    assert "'tools' has no attribute 'walk'" in message


def test_a_misspelt_function_gets_the_name_that_was_meant(prepare):
    code = "class Cart:\n    def total(self): pass\n\ndef walks(n):\n    return n\n"
    message = refusal(prepare, code, function="tools:walk")
    assert message.endswith("tools has no walk; did you mean 'walks'?")
    message = refusal(prepare, code, function="tools:Cart.totl")
    assert message.endswith("did you mean 'Cart.total'?")
    # What is bound in another way is not called misspelt.
    assert "has no walk;" not in refusal(
        prepare, f"{code}from math import *\n", function="tools:walk"
    )


@pytest.mark.parametrize(
    ("files", "cwd", "message"),
    [
        ({"extra.py": ""}, ".", "extra lies in .: import_roots: [src, .] finds it"),
        ({"a/b/extra/one.py": ""}, ".", "extra lies in a/b: import_roots: [src, a/b] finds it"),
        ({"a/extra.py": "", "extra.py": ""}, ".", "extra lies in .: "),
        ({"sub/extra.py": ""}, "sub", "extra lies in .: import_roots: [src, .] finds it"),
        ({"src/extra.py": ""}, ".", "(here: src)"),
        ({}, ".", "extra.py generates inputs, and candidates may not see it"),
        ({".git/extra.py": "", "extra/data.txt": ""}, ".", "extra.py generates inputs"),
    ],
)
def test_the_import_root_that_finds_a_module_is_suggested(tmp_path, files, cwd, message):
    stage = Slots(tmp_path, {}).stage(files)
    check = replace(stage.problem.check[0], inputs="bench/extra.py:make")
    problem = replace(stage.problem, cwd=cwd, check=(check,))
    roots = ("src" if cwd == "." else f"{cwd}/src",)
    hint = tell_roots("extra:run", replace(stage, problem=problem, import_roots=roots))
    assert message in hint


@pytest.mark.parametrize(
    ("maker", "message"),
    [
        ("1 / 0", "input 1: ZeroDivisionError: division by zero"),
        ("def make(rng):\n    raise SystemExit", "input 1: SystemExit"),
        ("def make(rng): return 3", "it must return (args, kwargs)"),
        ("def make(rng): return (3,)", "it returned (3,)"),
        ("def make(rng): return [1], {2: 3}", "it must return (args, kwargs)"),
        (
            "def make(rng): return (3, lambda: 0), {}",
            "argument 2, of type function, can't be pickled",
        ),
        (
            "class Cart: pass\ndef make(rng): return (Cart(),), {}",
            "Cart is defined in the file of the input maker",
        ),
        ("def make(rng): return ('x' * (1 << 25),), {}", "it is too large"),
        ("import os\ndef make(rng): os._exit(4)", "the process that makes inputs exited with 4"),
        ("def make(rng):\n    while True: pass", "took longer than 0.3 s"),
        ("def make(): return (), {}", "takes 0 positional arguments"),
    ],
)
def test_mistakes_of_an_input_generator_are_reported(prepare, maker, message):
    message = refusal(
        prepare, "run = abs", maker, **({"timeout_s": 0.3} if "while" in maker else {})
    )
    assert message.startswith("check[1].inputs: bench/inputs.py:make: ")
    assert message in message
    assert "make(rng)" in message


def test_a_maker_may_use_its_neighbors_and_the_project(tmp_path):
    files = {
        "tools.py": SORT,
        "bench/near.py": "five = 5",
        "bench/inputs.py": """
            import near, tools
            def make(rng):
                print("makers may print")
                return ([near.five, *tools.sort([2, 1])],), {}
        """,
    }
    slots = Slots(tmp_path, files, hidden=("bench/inputs.py", "bench/near.py"))
    assert slots.judge(slots.prepare(cases=1)).rejection is None


def test_arguments_of_many_types_arrive_as_they_were_made(prepare):
    maker = """
        import collections, datetime, decimal
        def make(rng):
            when = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)
            return ((1, 2), {3}, b"x", float("nan"), when), {"d": decimal.Decimal("1.10")}
    """
    tools = "def run(*args, **kwargs): return repr((args, kwargs))"
    _, prepared = prepare(tools, maker, cases=1)
    assert json.loads(prepared.expectation.lines[0])["result"] == (
        "(((1, 2), {3}, b'x', nan, datetime.datetime(2020, 1, 2, 0, 0, "
        "tzinfo=datetime.timezone.utc)), {'d': Decimal('1.10')})"
    )


def test_arrays_cross_and_are_compared(prepare):
    maker = "import numpy\ndef make(rng): return (numpy.arange(6.0).reshape(2, 3),), {}"
    tools = "import numpy\ndef run(a): return a @ a.T, a.sum(), a.dtype.type(3)"
    slots, prepared = prepare(tools, maker, cases=1)
    assert (
        slots.judge(prepared, tools=tools.replace("a @ a.T", "numpy.dot(a, a.T)")).rejection is None
    )
    wrong = slots.judge(prepared, tools=tools.replace("a @ a.T", "a @ a.T + numpy.eye(2)"))
    assert [difference.where for difference in wrong.rejection.failures[0].differences] == [
        "result[0][0, 0]",
        "result[0][1, 1]",
    ]
    plain = slots.judge(prepared, tools=tools.replace("a.sum()", "float(a.sum())"))
    assert plain.rejection.failures[0].differences[0].where == "result[1]"


@pytest.mark.skipif(OLD is None, reason="there is no Python 3.8 here")
def test_projects_may_have_an_old_python(tmp_path):
    python = Interpreter(PYTHON.executable.__class__(OLD), (3, 8, 0), (), has_pytest=False)
    tools = """
        import sys
        def run(items):
            print(sys.version_info[:2])
            return sorted(items), (1, {2}), 1 << 80, (n for n in items)
    """
    maker = "def make(rng): return ([rng.random() for _ in range(3)],), {}"
    slots = Slots(tmp_path, {"tools.py": tools, "bench/inputs.py": maker}, interpreter=python)
    prepared = slots.prepare(function="tools:run", cases=2)
    assert json.loads(prepared.expectation.lines[0])["output"] == "(3, 8)\n"
    assert slots.judge(prepared).rejection is None
    rejection = slots.judge(prepared, tools=tools.replace("{2}", "{3}")).rejection
    assert rejection.failures[0].differences[0].where == "result[1][1] (an item)"


# What candidates do to the harness by name: it is not there, or it uses something else.

PATCHES = """
import builtins, binascii, collections, enum, functools, gc, json, marshal, os, struct, sys, time
import __main__ as worker
def forge(*args, **kwargs):
    return "[]"
assert not [name for name in sys.modules if "fairtrial" in name]
assert not hasattr(worker, "run_case")
worker.run_case = worker.main = lambda *args: {}
for module, name in [
    (json, "dumps"), (json, "loads"), (json.JSONEncoder, "encode"),
    (json.JSONEncoder, "iterencode"), (json.encoder, "c_make_encoder"),
    (json.encoder, "encode_basestring_ascii"), (json.decoder.JSONDecoder, "decode"),
    (marshal, "dumps"), (binascii, "b2a_base64"), (enum, "Enum"), (functools, "partial"),
    (os, "write"), (os, "_exit"), (os, "pread"), (os, "getpid"), (struct, "Struct"),
    (collections, "Counter"), (collections, "OrderedDict"), (time, "perf_counter"),
]:
    setattr(module, name, forge)
_sorted = sorted
for name in ("len", "type", "id", "zip", "isinstance", "dict", "list", "any", "sorted", "iter"):
    setattr(builtins, name, None)
"""


def test_what_a_candidate_replaces_by_name_does_not_change_its_report(slots):
    prepared = slots.prepare(process_state="any")
    right = PATCHES + "def sort(items, reverse=False): return _sorted(items, reverse=reverse)"
    assert slots.judge(prepared, tools=right).rejection is None
    spoils = PATCHES + (
        "def sort(items, reverse=False):\n"
        "    result = _sorted(items, reverse=reverse)\n"
        "    items.clear()\n"
        "    return result"
    )
    rejection = slots.judge(prepared, tools=spoils).rejection
    assert rejection.failures[0].differences[0].where.startswith("len(after the call, args[0]")
    wrong = PATCHES + "def sort(items, reverse=False): return []"
    assert slots.judge(prepared, tools=wrong).rejection.reason == Reason.DIFFERENT


def test_a_list_that_is_none_is_reported_as_what_it_is(slots, prepared):
    lie = """
        class Lie(list):
            __module__, __qualname__ = "builtins", "list"
            __class__ = list
        def sort(items, reverse=False):
            return Lie(sorted(items, reverse=reverse))
    """
    rejection = slots.judge(prepared, tools=lie).rejection
    assert "another class of this name" in rejection.message


# Reports that are made to keep the judge busy.


def nest(depth):
    node = [["a", 1]]
    for _ in range(depth):
        node = [[{"$": "dict", "items": node}, 1]]
    return {"$": "dict", "items": node}


@pytest.mark.parametrize(
    "result",
    [
        nest(150),
        {"$": "dict", "items": [[nest(100), nest(100)]] * 20},
        {"$": "dict", "items": [[{"$": "set", "items": [nest(60)] * 50}, 1]] * 50},
    ],
    ids=["deep", "wide", "sets"],
)
def test_a_nested_report_is_compared_in_the_time_of_a_flat_one(result):
    """Each part of a key is looked at once: twice at each level would never end."""
    rules = ComparisonRules(budget=ComparisonBudget(cpu_s=20))
    assert compare({"a": 1}, result, rules).count


def test_a_comparison_that_takes_too_long_is_a_difference():
    def branch(depth, leaf):
        if depth == 0:
            return leaf
        sets = [branch(depth - 1, leaf + 10**-7 * side) for side in (1, 2, 4)]
        return {"$": "frozenset", "items": sets}

    rules = ComparisonRules(rel_tol=1e-9, budget=ComparisonBudget(steps=20_000))
    found = compare(branch(7, 1.0), branch(7, 2.0), rules)
    assert found.count == 1
    assert "can't be compared within the limits" in found.first[0].actual


def test_a_report_far_longer_than_the_base_s_is_not_even_read(slots, prepared):
    long = b'{"case":0,"result":[' + b"[]," * 2_000_000 + b"[]]}"
    outcome = read_outcome(long, prepared.expectation.lines[0])
    assert outcome == {"oversized": len(long)}
    found = compare_outcomes({"result": 1}, outcome, {}, ComparisonRules())
    assert found.first[0].actual == f"a report of {len(long):,} bytes, which is too long to be read"


def test_a_report_of_line_ends_alone_is_not_split():
    report = read_report(b"\n" * 10_000_000, 2)
    assert (report.lines, report.is_complete) == ((), False)
