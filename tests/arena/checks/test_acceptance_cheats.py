"""Accept functions against candidates that cheat: they judge inert data, where no candidate is."""

import sys
from functools import partial

import anyio
import pytest
from arena_kit import whole
from repository_kit import make_repository

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    Check,
    CodeProblem,
    FileState,
    Verdict,
    evaluate_candidates,
)

BASE = """\
def pair(numbers, total):
    for one in numbers:
        if total - one in numbers:
            return [one, total - one]
"""
LAST = BASE.replace("in numbers:\n        if", "in reversed(numbers):\n        if")
RULES = "def fits(result, total):\n    return len(result) == 2 and sum(result) == total\n"
VERIFY = """\
import rules

def is_pair(args, kwargs, result):
    numbers, total = args
    if not isinstance(result, list) or not rules.fits(result, total):
        return "it doesn't add up"
    return True if all(one in numbers for one in result) else "it has other numbers"
"""
MAKE = """\
def make(rng):
    numbers = [rng.randrange(100) for _ in range(10)]
    return (numbers, numbers[3] + numbers[6]), {}
"""
WRAPPED = BASE + "\n_pair = pair\n\n{}\ndef pair(numbers, total):\n    {}\n"


def wrap(body, before=""):
    return WRAPPED.format(before, body)


LIAR = """
class Liar(list):
    def __iter__(self):
        return iter(known)
    def __len__(self):
        return 2
    def __eq__(self, other):
        return True
    __hash__ = None
"""
CHEATS = {
    "a module that the accept function imports is replaced in memory": wrap(
        "return [0, 0]",
        "import sys, types\nfake = sys.modules['rules'] = types.ModuleType('rules')\n"
        "fake.fits = lambda *a: True\n",
    ),
    "a list whose methods lie": wrap("return Liar([0, 0])", LIAR),
    "a number that equals everything": wrap(
        "return [Any(0), Any(0)]",
        "class Any(int):\n    def __eq__(self, other):\n        return True\n"
        "    __hash__ = int.__hash__\n    def __add__(self, other):\n        return self\n"
        "    __radd__ = __add__\n",
    ),
    "arguments are changed until they fit": wrap("numbers[:] = [0] * 10; return [0, 0]"),
    "a result that is too deep to look at": wrap(
        "deep = []\n    for _ in range(100_000):\n        deep = [deep]\n    return deep"
    ),
    "a result of millions of numbers": wrap("return [0] * 3_000_000"),
    "a result that holds itself": wrap("ring = []; ring.append(ring); return ring"),
    "the comparison is replaced": wrap(
        "return [0, 0]", "import builtins\nbuiltins.sum = builtins.len = lambda *a: 2\n"
    ),
}
CALLS = '[{"args": [[1, 4, 2, 3], 5], "kwargs": {}, "result": [4, 1]}]'
FILES = {
    "src/pairs.py": BASE,
    "src/rules.py": RULES,
    "checks/verify.py": VERIFY,
    "checks/make.py": MAKE,
    "calls.json": CALLS,
}


def evaluate(top, candidates):
    check = Check(
        function="pairs:pair",
        inputs="checks/make.py:make",
        cases=8,
        accept="checks/verify.py:is_pair",
    )
    problem = CodeProblem(
        "pairs", editable=("src/*.py",), python=sys.executable, check=(check,), folder=top
    )
    settings = ArenaSettings(unsandboxed=True, timing="none", audit=False)
    evaluation = anyio.run(partial(evaluate_candidates, problem, candidates, settings=settings))
    return {judgement.name: judgement for judgement in evaluation.judgements}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTRIAL_HOME", str(tmp_path_factory.mktemp("home")))
        top = make_repository(tmp_path_factory.mktemp("pairs") / "repo", FILES)
        candidates = [whole(name, text, "src/pairs.py") for name, text in CHEATS.items()]
        wrong = BASE.replace("return [one, total - one]", "return [0, 0]").encode()
        lenient = b"def fits(result, total):\n    return True\n"
        files = {"src/pairs.py": FileState(wrong), "src/rules.py": FileState(lenient)}
        both = Candidate("the file that the accept function imports is changed", files=files)
        yield evaluate(top, [*candidates, both, whole("honest", LAST, "src/pairs.py")])


@pytest.mark.parametrize("name", [*CHEATS, "the file that the accept function imports is changed"])
def test_results_that_an_accept_function_would_refuse_are_rejected(judged, name):
    assert judged[name].verdict == Verdict.REJECTED, judged[name]


def test_cheats_don_t_keep_an_honest_candidate_from_its_verdict(judged):
    assert judged["honest"].verdict == Verdict.PASSED
