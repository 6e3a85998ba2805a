"""Command-line agents: real processes, real git, the sandbox that works here."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given, strategies as st

from fairtrial.arena import (
    Arena,
    ArenaSettings,
    Check,
    CodeProblem,
    Failure,
    Rejection,
    Verdict,
    open_arena,
)
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.disk_guard import DiskGuard
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreePool
from fairtrial.core import LabError, StudyError, build_record
from fairtrial.optimize import Brief, PreflightContext, Request, RequestKind, Tried
from fairtrial.optimize.proposers.command.prompt import write_prompt
from fairtrial.optimize.proposers.command.proposer import CommandProposer
from fairtrial.optimize.proposers.command.secrets import AgentSecrets
from fairtrial.optimize.replies import make_record
from fairtrial.sandbox import Captured, HostLock, Plain
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox

KEY = "sk-live-Zq81mPx0Vt55rWcd"
BASE = "def f(x):\n    return x in [1, 2, 3]\n"
BETTER = BASE.replace("[1, 2, 3]", "{1, 2, 3}")
FIRST = Request(RequestKind.INITIAL, 2, 0)
BRIEF = Brief("kit", "Make f faster.", {"src/mod.py": BASE}, ("tests must pass",), ("f",))
PATIENCE_S = 60.0
"""How long to wait for something that is to happen."""


def working_sandboxes():
    return [
        each for each in (*FULL_SANDBOXES, Plain()) if each.name == "plain" or not try_sandbox(each)
    ]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The user's tree: a repository with an ignored folder, and changes that nobody committed."""
    top = tmp_path_factory.mktemp("user") / "project"
    for path, text in {
        "src/mod.py": "def f(x):\n    return False\n",
        "src/other.py": "VALUE = 1\n",
        "tests/test_mod.py": "def test_f(): pass\n",
        "secret_inputs.py": "def make(rng): ...\n",
        ".gitignore": "data/\n",
        "data/big.txt": "ignored\n",
    }.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *words], cwd=top, check=True, env=clean)
    (top / "src/mod.py").write_text(BASE)
    return top


@pytest.fixture(autouse=True)
def _variables(monkeypatch):
    monkeypatch.setenv("AGENT_KEY", KEY)
    monkeypatch.setenv("NOT_FOR_AGENTS", "something-else-that-is-secret")


@asynccontextmanager
async def arena_of(top, sandbox=None, **more):
    problem = CodeProblem(
        "kit",
        editable=("src/**/*.py",),
        check=(Check(function="mod:f", inputs="secret_inputs.py:make"),),
        folder=top,
        **more,
    )
    sandbox = sandbox or working_sandboxes()[0]
    async with WorktreePool(top, 1) as pool:
        resources = ArenaResources(
            problem=problem,
            interpreter=Interpreter(Path(sys.executable), (3, 11, 0), (Path(sys.prefix),), False),
            sandbox=sandbox,
            outside=Plain(),
            pool=pool,
            import_roots=("src",),
            included=(),
            cores=anyio.Semaphore(2),
            lock=HostLock(top.parent),
            disk_guard=DiskGuard(pool.snapshot.repo.parent),
        )
        yield Arena(resources, (), PathRules.from_problem(problem), ())


def shell(script, **options):
    """An agent that is a few lines of shell."""
    given = {"variables": ("AGENT_KEY",), "timeout_s": PATIENCE_S, **options}
    return CommandProposer(argv=("sh", "-c", textwrap.dedent(script)), **given)


@pytest.fixture(scope="module")
def workshops(repository):
    """An open arena for each sandbox, its workshop, and the thread that its event loop is in."""
    with start_blocking_portal() as portal, ExitStack() as opened:
        arenas = {}

        def find(sandbox):
            if sandbox.name not in arenas:
                entering = portal.wrap_async_context_manager(arena_of(repository, sandbox))
                arena = opened.enter_context(entering)
                arenas[sandbox.name] = arena, portal.call(arena.make_workshop)
            return portal, *arenas[sandbox.name]

        yield find


@pytest.fixture
def ask(workshops):
    """Asks an agent: what it replies, and what the arena makes of that."""

    def ask(proposer, request=FIRST, sandbox=None, brief=BRIEF):
        portal, arena, workshop = workshops(sandbox or working_sandboxes()[0])

        async def run():
            ready = await proposer.open(workshop)
            reply = await ready.propose(brief, request)
            return reply, [await arena.resolve(each) for each in reply.candidates]

        reply, changes = portal.call(run)
        assert folders_of(arena) == [], "its folder is still there"
        assert KEY not in repr(reply)
        assert KEY not in json.dumps(make_record(request, reply))
        return reply, changes

    return ask


def folders_of(arena, path="tree"):
    """Where agents are at work."""
    return list((arena.resources.pool.base.parent / "agents").glob(f"agent-*/{path}"))


async def begun(arena, count):
    """Wait until so many agents say that they have started; where they say it."""
    with anyio.fail_after(PATIENCE_S):
        while len(found := folders_of(arena, "tree/started")) < count:
            await anyio.sleep(0.01)
    return found


def edited(changes):
    (one,) = changes
    assert not isinstance(one, Rejection), one
    return {path: state and state.content.decode() for path, state in one.files.items()}


EDIT = "sed -i 's/\\[1, 2, 3\\]/{1, 2, 3}/' src/mod.py\n"
AWAIT_GO = "echo > started; until test -e go; do sleep 0.02; done"


# -- what it leaves is the candidate --


@pytest.mark.parametrize("sandbox", working_sandboxes(), ids=lambda each: each.name)
def test_edited_files_are_the_candidate(ask, repository, sandbox):
    reply, changes = ask(shell(EDIT + "echo all done"), sandbox=sandbox)
    assert edited(changes) == {"src/mod.py": BETTER}
    (candidate,) = reply.candidates
    assert (candidate.name, candidate.origin) == ("sh-2.0", "command: sh")
    assert candidate.note == "all done"
    assert (repository / "src/mod.py").read_text() == BASE
    assert reply.usage.model == "sh"
    assert reply.usage.seconds > 0
    assert reply.usage.cost_usd is None  # nobody knows


@pytest.mark.parametrize(
    "way",
    [
        "git commit -qam better",
        "git checkout -q -b other && git commit -qam better && rm -rf .git",
        "git add src && git stash -q && git stash apply -q",
        "git add src",
    ],
)
def test_the_state_of_git_in_the_folder_makes_no_difference(ask, way):
    _, changes = ask(shell(f"set -e\n{EDIT}{way}"))
    assert edited(changes) == {"src/mod.py": BETTER}


def test_stashed_away_is_not_there(ask):
    reply, _ = ask(shell(f"{EDIT}git stash -q"))
    assert reply.candidates == ()
    assert "sh changed nothing" in reply.refusal


def test_new_and_removed_files_modes_and_links(ask):
    script = """
    mkdir src/sub; printf 'A = 1\\n' > src/sub/new.py; rm src/other.py
    chmod +x src/mod.py; ln -s mod.py src/alias.py
    mkdir src/__pycache__; echo x > src/__pycache__/mod.pyc; git init -q src/inner
    """
    reply, (changes,) = ask(shell(script))
    found = changes.files
    assert found.keys() == {"src/sub/new.py", "src/other.py", "src/mod.py", "src/alias.py"}
    assert found["src/other.py"] is None
    assert found["src/mod.py"].executable
    assert found["src/alias.py"].is_link
    assert reply.candidates[0].note == ""


def test_the_repository_it_sees_is_of_one_commit_and_holds_the_uncommitted_changes(ask):
    script = """
    git log --oneline | wc -l; git status --porcelain | wc -l; cat src/mod.py
    test -e secret_inputs.py && echo seen; test -e data && echo data; exit 3
    """
    reply, _ = ask(shell(script))
    assert reply.exchange[0]["stdout"].split() == ["1", "0", *BASE.split()]


def test_without_git(ask):
    reply, _ = ask(shell("git status; exit 3", git=False))
    assert "not a git repository" in reply.refusal


def test_changes_of_files_that_are_not_editable_are_left_out_and_named(ask):
    script = f"{EDIT}echo no > tests/test_mod.py; echo log > .agent.log; mkfifo src/pipe"
    reply, changes = ask(shell(script))
    assert edited(changes) == {"src/mod.py": BETTER}
    note = "left out, as they are not editable: .agent.log, src/pipe, tests/test_mod.py"
    assert reply.candidates[0].note == note
    assert reply.exchange[0]["dropped"] == [".agent.log", "src/pipe", "tests/test_mod.py"]


def test_only_files_that_are_not_editable(ask):
    reply, _ = ask(shell("echo no > tests/test_mod.py; touch src/mod.py"))
    assert reply.candidates == ()
    assert "changed nothing: left out, as they are not editable: tests/test_mod" in reply.refusal


def test_a_file_that_hides_a_module_is_for_the_arena_to_reject(ask):
    _, (rejection,) = ask(shell("echo > src/json.py"))
    assert isinstance(rejection, Rejection)
    assert "would hide the module json" in rejection.message


def test_caches_of_tools_are_left_out_silently(ask):
    script = """
    mkdir -p src/data src/.venv/lib src/node_modules/x
    touch src/data/x.py src/.venv/lib/x.py src/node_modules/x/x.py
    mkdir -p .pytest_cache/v .mypy_cache .ruff_cache src/.hypothesis .aider.tags.cache.v4
    touch .pytest_cache/v/nodeids .mypy_cache/x .ruff_cache/x src/.hypothesis/x.py
    touch .aider.tags.cache.v4/cache.db .aider.chat.history.md src/.aider.input.history
    """
    reply, changes = ask(shell(EDIT + script))
    assert edited(changes) == {"src/mod.py": BETTER}
    assert reply.candidates[0].note == ""


def test_a_large_file_that_is_left_out_anyway(ask):
    reply, changes = ask(shell(f"{EDIT}head -c 21000000 /dev/zero > core; chmod 0 tests"))
    assert edited(changes) == {"src/mod.py": BETTER}
    assert reply.candidates[0].note.endswith("not editable: core")


def test_one_that_removes_all_there_is(ask):
    for sandbox in working_sandboxes():
        script = 'here=$PWD; cd /; rm -rf "$here" "$HOME"; exit 0'
        reply, (changes,) = ask(shell(script), sandbox=sandbox)
        assert changes.files == {"src/mod.py": None, "src/other.py": None}
        assert "tests/test_mod.py" in reply.candidates[0].note


def test_a_folder_becomes_a_link_and_a_file_a_folder(ask):
    script = """
    mkdir src/mod; mv src/mod.py src/mod/__init__.py; mkdir src/other.py; echo > src/other.py/x.py
    mv src elsewhere; ln -s elsewhere src
    """
    reply, _ = ask(shell(script))
    assert "changed nothing" not in reply.refusal
    (candidate,) = reply.candidates
    assert b"deleted file" in candidate.diff
    assert "elsewhere/mod/__init__.py" in candidate.note


def test_too_much(ask):
    reply, _ = ask(shell("head -c 21000000 /dev/zero > src/big.py"))
    assert reply.refusal == "sh left more than 20 MB"


# -- what it goes on from --


def tried(old, new, **more):
    diff = f"--- a/src/mod.py\n+++ b/src/mod.py\n@@ -1,2 +1,2 @@\n def f(x):\n-{old}\n+{new}\n"
    return Tried("0.0", "d1", diff, Verdict.REJECTED, "f(1) differs", **more)


ABOUT = tried("    return x in [1, 2, 3]", "    return x in {1, 2}")


@pytest.mark.parametrize("kind", [RequestKind.REPAIR, RequestKind.REFINE, RequestKind.ADAPT])
def test_a_refinement_starts_with_the_files_of_the_candidate(ask, kind):
    request = Request(kind, 0, 1, about=(ABOUT,), history=(ABOUT,))
    script = "git diff --stat | cat; sed -i 's/{1, 2}/{1, 2, 3}/' src/mod.py"
    reply, changes = ask(shell(script), request)
    assert edited(changes) == {"src/mod.py": BETTER}
    assert reply.candidates[0].parent == "d1"
    assert "1 file changed" in reply.candidates[0].note


def test_files_of_the_given_candidate_that_stay_untouched_are_kept(ask):
    request = Request(RequestKind.REPAIR, 0, 1, about=(ABOUT,))
    _, changes = ask(shell("echo 'VALUE = 2' > src/other.py"), request)
    assert edited(changes) == {
        "src/mod.py": BASE.replace("[1, 2, 3]", "{1, 2}"),
        "src/other.py": "VALUE = 2\n",
    }


def test_an_unchanged_candidate_is_a_refusal(ask):
    request = Request(RequestKind.REPAIR, 0, 1, about=(ABOUT,))
    reply, _ = ask(shell("touch src/mod.py"), request)
    assert "sh changed nothing" in reply.refusal
    reply, _ = ask(shell("git checkout -q ."), request)  # that is the base
    assert "sh changed nothing" in reply.refusal


def test_a_candidate_that_can_t_be_applied(ask):
    request = Request(RequestKind.REPAIR, 0, 1, about=(tried("    pass", "    return 1"),))
    reply, _ = ask(shell(EDIT), request)
    assert "can't be applied" in reply.refusal


# -- how it is told --


def test_ways_of_telling(ask):
    wanted = write_prompt(BRIEF, FIRST)
    by_stdin, _ = ask(shell("cat; exit 1"))
    by_argument = CommandProposer(argv=("sh", "-c", 'printf %s "$1"; exit 1', "x", "{prompt}"))
    argument, _ = ask(by_argument)
    by_file = CommandProposer(("sh", "-c", 'cat "$1"; exit 1', "x", "{prompt}"), prompt="file")
    file, _ = ask(by_file)
    said = [reply.exchange[0]["stdout"] for reply in (by_stdin, argument, file)]
    assert said == [wanted] * 3
    assert by_stdin.exchange[0]["prompt"] == wanted


def test_a_prompt_that_no_argument_can_hold(ask):
    brief = Brief("kit", "x" * 200_000, {})
    proposer = CommandProposer(argv=("true", "{prompt}"))
    reply, _ = ask(proposer, brief=brief)
    assert "set `prompt: stdin`" in reply.refusal


def test_prompts_say_what_was_wrong():
    failures = (Failure("check[0]", "mod:f, case 7", "returned False"),)
    about = tried("    pass", "    return 1", failures=failures)
    earlier = Tried("0.0", "d0", "", Verdict.PASSED, "the first of them")
    request = Request(RequestKind.REPAIR, 0, 1, about=(about,), history=(earlier, about))
    text = write_prompt(BRIEF, request)
    for part in (
        "Make f faster.",
        "- src/mod.py",
        "mod:f, case 7",
        "returned False",
        "+    return",
    ):
        assert part in text
    assert "1. passed: the first of them" in text
    assert BASE not in text  # it sees the files themselves
    assert "could not be applied" in write_prompt(
        BRIEF, Request(RequestKind.REPAIR, 0, 1, about=(Tried("a", "d", "", Verdict.REJECTED),))
    )


@given(st.text(), st.text())
def test_prompts_can_be_handed_over(task, why):
    about = Tried("a", "d", why, Verdict.REJECTED, why)
    for kind in RequestKind:
        text = write_prompt(Brief("p", task, {}), Request(kind, 0, 0, about=(about,)))
        assert "\0" not in text
        assert text.encode()


def test_python_and_scripts_of_the_project(ask):
    script = "import pathlib; pathlib.Path('src/mod.py').write_text('X = 1\\n')"
    _, changes = ask(CommandProposer(argv=("{python}", "-c", script)))
    assert edited(changes) == {"src/mod.py": "X = 1\n"}


# -- what it can see and use --


@pytest.mark.parametrize("sandbox", working_sandboxes(), ids=lambda each: each.name)
def test_the_agent_gets_only_the_named_variables(ask, sandbox, tmp_path):
    (tmp_path / "seed/deep").mkdir(parents=True)
    (tmp_path / "seed/deep/settings").write_text("loud")
    script = """
    env | cut -d= -f1 | sort; cat "$HOME/deep/settings"; echo > "$HOME/mine"; exit 1
    """
    proposer = shell(script, home=tmp_path / "seed")
    said = ask(proposer, sandbox=sandbox)[0].exchange[0]["stdout"].split()
    assert said[-1] == "loud"
    assert "AGENT_KEY" in said
    assert "NOT_FOR_AGENTS" not in said
    assert not {"SSH_AUTH_SOCK", "USER", "PYTHONPATH", "VIRTUAL_ENV"} & set(said)
    assert sorted(path.name for path in (tmp_path / "seed").iterdir()) == ["deep"]


def full():
    found = working_sandboxes()[0]
    if not found.relocates:
        pytest.skip("no full sandbox works here")
    return found


def test_it_sees_the_users_path_and_nothing_beside_it(ask, repository, tmp_path):
    (tmp_path / "private.txt").write_text("mine")
    script = f"pwd; ls {repository.parent}; cat {tmp_path}/private.txt; exit 1"
    reply, _ = ask(shell(script), sandbox=full())
    assert reply.exchange[0]["stdout"].split() == [str(repository), "project"]
    assert "No such file" in reply.refusal
    readable, _ = ask(shell(script, readable=(tmp_path,)), sandbox=full())
    assert readable.exchange[0]["stdout"].endswith("mine")


def test_a_program_in_a_home_folder_is_found_by_name(ask, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "my-agent"
    program.write_text(f"#!/bin/sh\n{EDIT}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=os.pathsep)
    reply, changes = ask(CommandProposer(argv=("my-agent",)))
    assert edited(changes) == {"src/mod.py": BETTER}
    assert reply.candidates[0].name == "my-agent-2.0"


def test_a_program_that_env_sets_variables_for(ask, tmp_path, monkeypatch):
    (tmp_path / "my-agent").write_text(f'#!/bin/sh\n{EDIT}\necho "$MODEL, $1"')
    (tmp_path / "my-agent").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    reply, changes = ask(CommandProposer(argv=("env", "MODEL=large", "my-agent", "B=2")))
    assert edited(changes) == {"src/mod.py": BETTER}
    assert reply.candidates[0].name == "my-agent-2.0"
    assert reply.candidates[0].note == "large, B=2"
    with pytest.raises(StudyError, match=r"argv\[2\]: there is no program 'no-such-agent'"):
        CommandProposer(argv=("env", "MODEL=large", "no-such-agent")).preflight(PreflightContext())


def test_a_script_without_what_lies_beside_it(ask, tmp_path):
    """As codex does it, which then says that it should be installed anew."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/parts.sh").write_text(EDIT)
    program = tmp_path / "lib/my-agent"
    program.write_text('#!/bin/sh\n. "${0%/*}/parts.sh" || exit 1')
    program.chmod(0o755)
    reply, _ = ask(CommandProposer(argv=(str(program),)), sandbox=full())
    assert "status 2 (only the program itself is shown to it: see `readable`)" in reply.refusal
    (tmp_path / "first").symlink_to(program)
    (tmp_path / "second").symlink_to("first")
    (tmp_path / "folder").symlink_to("lib")
    for way in (program, tmp_path / "second", tmp_path / "folder/my-agent"):
        proposer = CommandProposer(argv=(str(way),), readable=(tmp_path / "lib",))
        _, changes = ask(proposer, sandbox=full())
        assert edited(changes) == {"src/mod.py": BETTER}


@pytest.mark.parametrize("network", [True, False])
def test_a_network_only_if_it_is_declared(ask, network):
    script = (
        "import socket, sys\n"
        "try: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\n"
        "except OSError: sys.exit(4)\n"
        "sys.exit(5)"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        proposer = CommandProposer(("{python}", "-c", script, port), network=network)
        reply, _ = ask(proposer, sandbox=full())
    assert f"ended with status {5 if network else 4}" in reply.refusal


# -- how it can fail --


def test_a_status_is_a_refusal_with_the_end_of_what_it_said(ask):
    script = f"{EDIT}seq 5000; echo 'no credit left' >&2; exit 9"
    reply, _ = ask(shell(script))
    assert reply.refusal.startswith("sh ended with status 9; it said: ")
    assert reply.refusal.endswith("\n4999\n5000\nno credit left")
    assert len(reply.refusal) < 1_000
    assert reply.candidates == ()
    assert reply.exchange[0]["exit_code"] == 9
    reply, _ = ask(shell("seq 5000; exit 9"))
    assert reply.refusal.endswith("4999\n5000")
    assert len(reply.refusal) < 2_000


def test_error_messages_are_reported_from_either_stream(ask):
    """As aider does it, which ends with status 0."""
    script = "echo 'Check your API key.'; echo 'Warning: not a terminal' >&2"
    reply, _ = ask(shell(script))
    assert reply.refusal == (
        "sh changed nothing; it said: Check your API key.\nWarning: not a terminal"
    )


def test_a_repeated_prompt_is_left_out_of_messages(ask):
    """As codex does it: the prompt, and then what matters."""
    reply, _ = ask(shell("(echo user; cat; seq 300; echo 'no such key') >&2; exit 1"))
    assert reply.refusal.startswith("sh ended with status 1; it said: user\n[prompt]\n1\n2\n")
    assert reply.refusal.endswith("\n300\nno such key")
    assert write_prompt(BRIEF, FIRST) in reply.exchange[0]["stderr"]


def test_the_output_of_the_agent_becomes_one_line(ask):
    """As aider does it, which fills up its lines."""
    script = "printf '%-80s\\n\\n%-80s\\n' 'Keep a' 'set.'"
    reply, _ = ask(shell(EDIT + script))
    assert reply.candidates[0].note == "Keep a set."
    reply, _ = ask(shell(f"{EDIT}seq 1000 1300"))
    note = reply.candidates[0].note
    assert note.startswith("... 1")
    assert note.split()[1:] == [str(n) for n in range(int(note.split()[1]), 1301)]
    assert 400 < len(note) < 520
    reply, _ = ask(shell(f"{EDIT}head -c 900 /dev/zero | tr '\\0' x"))
    assert reply.candidates[0].note == f"... {'x' * 500}"


def test_one_that_hangs_is_ended_with_all_that_it_started(ask):
    for limit_s in (0.3, 3, 30):  # on a busy machine it may not come that far
        reply, _ = ask(shell(f"{EDIT}echo begun\nsleep 300 & sleep 300", timeout_s=limit_s))
        late = f"sh took longer than {limit_s} s, without a network"
        assert reply.refusal.startswith(late)
        if "begun" in reply.refusal:
            break
    assert reply.refusal == f"{late}; it said: begun"
    reply, _ = ask(shell("sleep 300", timeout_s=0.3, network=True))
    assert reply.refusal == "sh took longer than 0.3 s"


def test_one_that_dies(ask):
    reply, _ = ask(shell("kill -9 $$"))
    assert reply.refusal == "sh died of signal 9"


def test_a_program_that_comes_with_the_project_and_isn_t_there_is_refused_before_any_request(ask):
    with pytest.raises(
        StudyError, match=r"argv\[0\]: there is no program 'tools/agent' in the pro"
    ):
        ask(CommandProposer(argv=("tools/agent", "go")))


def test_cancelled_nothing_is_left(workshops):
    portal, arena, _ = workshops(working_sandboxes()[0])

    async def run():
        ready = await shell("echo > started; sleep 300").open(arena.make_workshop())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ready.propose, BRIEF, FIRST)
            await begun(arena, 1)
            tasks.cancel_scope.cancel()

    portal.call(run)
    assert folders_of(arena) == []


def test_it_holds_the_hosts_lock_while_it_works(workshops):
    portal, arena, _ = workshops(working_sandboxes()[0])
    proposer = shell(f"{EDIT}{AWAIT_GO}")

    async def run():
        ready = await proposer.open(arena.make_workshop())
        timed = anyio.Event()

        async def clock():
            async with arena.resources.lock.exclusive():
                assert folders_of(arena) == []
                timed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ready.propose, BRIEF, FIRST)
            (started,) = await begun(arena, 1)
            tasks.start_soon(clock)
            with anyio.move_on_after(0.2):
                await timed.wait()
            assert not timed.is_set()
            started.with_name("go").touch()
            with anyio.fail_after(PATIENCE_S):
                await timed.wait()

    portal.call(run)


def test_no_more_at_once_than_allowed_and_each_in_a_folder_of_its_own(workshops):
    portal, arena, _ = workshops(working_sandboxes()[0])
    proposer = shell(f'echo "X = $$" >> src/mod.py; {AWAIT_GO}', most_at_once=2)

    async def run():
        ready = await proposer.open(arena.make_workshop())
        replies, released, most = [], set(), 0

        async def one(line):
            replies.append(await ready.propose(BRIEF, Request(RequestKind.INITIAL, line, 0)))

        async with anyio.create_task_group() as tasks:
            for line in range(4):
                tasks.start_soon(one, line)
            with anyio.fail_after(PATIENCE_S):
                while len(replies) < 4:
                    most = max(most, len(folders_of(arena)))
                    started = set(folders_of(arena, "tree/started"))
                    if len(started) == 2 or len(replies) == 3:  # the last may be alone
                        for each in started - released:
                            each.with_name("go").touch()
                        released |= started
                    await anyio.sleep(0.01)
        return [reply.candidates[0].diff.count(b"\n+X = ") for reply in replies], most

    counts, most = portal.call(run)
    assert counts == [1] * 4
    assert most == 2


# -- its key --


@pytest.mark.parametrize(
    "leak",
    [
        'echo "# $AGENT_KEY" >> src/mod.py',
        "echo \"K = '$AGENT_KEY'\" > src/new.py",
        "printf '%s' \"$AGENT_KEY\" | base64 >> src/mod.py",
        "printf 'x%s' \"$AGENT_KEY\" | base64 >> src/mod.py",
        "printf '%s' \"$AGENT_KEY\" | od -An -tx1 >> src/mod.py",
        "printf '%s' \"$AGENT_KEY\" | fold -w 7 | sed 's/.*/# &/' >> src/mod.py",
        'ln -s "$AGENT_KEY" src/new.py',
        'echo > "src/$AGENT_KEY.py"',
    ],
)
def test_a_candidate_that_holds_the_key_is_refused(ask, leak):
    reply, _ = ask(shell(f"{EDIT}{leak}"))
    assert reply.candidates == ()
    assert "put the value of AGENT_KEY into src/" in reply.refusal


def test_a_key_that_is_printed_is_removed_everywhere(ask):
    script = 'echo "my key is $AGENT_KEY"; echo "$AGENT_KEY" >&2; echo > "$AGENT_KEY"\n'
    reply, changes = ask(shell(script + EDIT))
    assert edited(changes) == {"src/mod.py": BETTER}
    assert "my key is [key removed]" in reply.candidates[0].note
    reply, _ = ask(shell(script + "exit 1"))
    told = "sh ended with status 1; it said: my key is [key removed]\n[key removed]"
    assert reply.refusal == told
    assert reply.exchange[0]["stdout"] == "my key is [key removed]\n"


def test_a_change_beside_a_value_that_stood_there_is_refused(ask, monkeypatch):
    """The diff is kept, told and handed over, with the lines around the change."""
    monkeypatch.setenv("AGENT_KEY", "return x")
    reply, _ = ask(shell(EDIT))
    assert reply.candidates == ()
    assert "the change shows the value of AGENT_KEY, which stood there" in reply.refusal


VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60)


@given(VALUES, st.binary(max_size=40), st.binary(max_size=40))
def test_values_are_found_and_removed_in_any_form(value, before, after):
    keys = AgentSecrets({"K": value})
    raw = value.encode()
    forms = [
        raw,
        base64.b64encode(before + raw + after),
        raw.hex().encode(),
        raw.hex().upper().encode(),
    ]
    for form in forms:
        text = before + b"\n" + form + b"\n" + after
        assert keys.find(text) == "K"
        assert form.decode() not in keys.redact(text.decode("utf-8", "replace"))


@given(VALUES, st.data())
def test_a_value_that_was_cut_leaves_no_more_than_a_scrap(value, data):
    keys = AgentSecrets({"K": value})
    at = data.draw(st.integers(1, len(value) - 1))
    captured = Captured(b"\x00" + value[:at].encode(), value[at:].encode() + b"\x00", 9)
    text = keys.redact_output(captured)
    left = text.replace("[key removed]", "").replace("\n... 9 bytes left out ...\n", "")
    for piece in (value[:at], value[at:]):
        assert len(piece) < 4 or piece not in left


@given(st.text(max_size=200))
def test_other_texts_stay_as_they_are(text):
    keys = AgentSecrets({"K": KEY, "SHORT": "abc"})
    assert keys.redact(text) == text
    assert (
        keys.redact_output(Captured(text.encode("utf-8", "replace")))
        == text.encode("utf-8", "replace").decode()
    )


# -- options --


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"argv": []}, "argv: must name a program"),
        ({"argv": ["claude -p"]}, "argv[0]: expected a program, got 'claude -p'"),
        ({"argv": ["claude -p"]}, 'write each word on its own: ["claude", "-p"]'),
        (
            {"argv": "{python} agent.py"},
            'argv: expected a list of words, got a text; write ["{python}", "agent.py"]',
        ),
        ({"argv": ["A=1", "claude"]}, "argv[0]: expected a program"),
        ({"argv": ["x"], "prompt": "argument"}, "argv: must say where the prompt goes"),
        ({"argv": ["x", "{prompt}"], "prompt": "stdin"}, "prompt: is on stdin, but"),
        ({"argv": ["x"], "prompt": "mail"}, "prompt:"),
        ({"argv": ["env", "MY_KEY=sk-12345", "x"]}, "argv[1]: looks like a key"),
        ({"argv": ["x", "--openai-api-key", "sk-12345"]}, "argv[2]: looks like a key"),
        ({"argv": ["x", "--api-key=openai=sk-12345"]}, "argv[1]: looks like a key"),
        ({"argv": ["x"], "variables": ["sk-123"]}, "variables[0]: must be the name of"),
        ({"argv": ["x"], "variables": ["HOME"]}, "variables[0]: HOME is set by the sandbox"),
        ({"argv": ["x"], "timeout_s": 0}, "timeout_s: must be more than 0"),
        ({"argv": ["x"], "most_at_once": 0}, "most_at_once: must be 1 or more"),
        ({"argv": ["x"], "limits": {"network": True}}, "limits.network: has an option of its own"),
        ({"argv": ["x"], "cost_usd": -1}, "cost_usd: must be 0 or more"),
        ({"argv": ["x"], "wrong": 1}, "wrong: unknown key"),
    ],
)
def test_mistakes(options, told):
    mistakes = []
    build_record(CommandProposer, options, (), mistakes)
    text = "\n".join(map(str, mistakes))
    assert told in text
    assert "sk-123" not in text


@pytest.mark.parametrize(
    "words",
    [
        ("env", "MAX_OUTPUT_TOKENS=64000000", "x"),
        ("x", "-c", 'model_providers.mine.env_key="MY_AGENT_KEY"'),
        ("x", "--openai-api-key", "dummy"),
        ("x", "--openai-api-base", "http://127.0.0.1:8000/v1"),
    ],
)
def test_settings_are_not_taken_for_keys(words):
    assert CommandProposer(argv=words).argv == words


def test_missing_programs_and_variables_are_reported_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.delenv("AGENT_KEY")
    with pytest.raises(StudyError, match="environment variable AGENT_KEY is not set"):
        shell("true").preflight(PreflightContext())
    with pytest.raises(StudyError, match=r"argv\[0\]: there is no program 'no-such-agent'"):
        CommandProposer(argv=("no-such-agent",)).preflight(PreflightContext())
    with pytest.raises(StudyError, match="home: there is no"):
        CommandProposer(("sh",), home=Path("nowhere")).preflight(PreflightContext(tmp_path))
    with pytest.raises(StudyError, match="your own home would be copied"):
        CommandProposer(("sh",), home=Path("~")).preflight(PreflightContext(tmp_path))
    with pytest.raises(StudyError, match=r"readable\[0\]: there is no"):
        CommandProposer(("sh",), readable=(Path("nowhere"),)).preflight(PreflightContext(tmp_path))
    assert shutil.which("sh")
    CommandProposer(("sh",), home=Path(), readable=(Path(),)).preflight(PreflightContext(tmp_path))


def test_a_ceiling_needs_a_cost():
    with pytest.raises(StudyError, match="nobody knows what sh costs"):
        CommandProposer(argv=("sh", "-p")).preflight(PreflightContext(max_cost_usd=1.0))
    CommandProposer(argv=("sh", "-p")).preflight(PreflightContext(max_cost_usd=None))
    CommandProposer(argv=("sh", "-p"), cost_usd=0.5).preflight(PreflightContext(max_cost_usd=1.0))


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("/opt/bin/claude", "-p"), "claude"),
        (("{python}", "tools/agent.py"), "agent.py"),
        (("{python}", "-m", "agent"), "python"),
        (("{python}",), "python"),
        (("env", "A=1", "/opt/bin/claude", "B=2"), "claude"),
        (("/usr/bin/env", "A=1", "{python}", "agent.py"), "agent.py"),
        (("env", "-i", "claude"), "env"),
        (("env", "A=1"), "env"),
    ],
)
def test_an_agent_is_named_after_its_program(argv, name):
    assert CommandProposer(argv).program == name


def test_an_agent_that_is_not_opened_can_not_propose():
    with pytest.raises(LabError, match="needs a workshop"):
        anyio.run(CommandProposer(argv=("sh",)).propose, BRIEF, FIRST)


# -- with an arena as optimizers open it --


def test_in_a_real_arena_with_a_project_in_a_folder_and_included_data(repository, tmp_path):
    top = tmp_path / "user"
    shutil.copytree(repository, top / "inner", ignore=shutil.ignore_patterns(".git"))
    (top / "inner/src/table.csv").write_text("1,2\n")
    (top / "inner/src/extra.py").write_text("ignored = 1\n")
    (top / ".gitignore").write_text("data/\n*.csv\nextra.py\n")
    subprocess.run(["git", "init", "-q"], cwd=top, check=True)
    problem = CodeProblem(
        "kit",
        repo="inner",
        editable=("src/**/*.py",),
        include=("src/table.csv", "src/extra.py"),
        check=(Check(command=("{python}", "-c", "import sys; sys.path[0] = 'src'; import mod")),),
        folder=top,
    )
    script = "set -e; pwd; cat src/table.csv; {python} -c 'import sys; print(sys.version)'\n" + EDIT
    proposer = CommandProposer(argv=("sh", "-c", script, "{prompt}"))

    async def run():
        async with open_arena(problem, slots=1, settings=settings) as arena:
            ready = await proposer.open(arena.make_workshop())
            reply = await ready.propose(BRIEF, FIRST)
            return reply, [await arena.judge(each) for each in reply.candidates]

    settings = ArenaSettings(unsandboxed=True, lock_folder=tmp_path)
    reply, judgements = anyio.run(run)
    assert reply.refusal == ""
    (candidate,) = reply.candidates
    assert candidate.diff.count(b"diff --git") == 1
    assert b"a/inner/src/mod.py" in candidate.diff
    assert "left out" not in candidate.note
    assert [each.verdict for each in judgements] == [Verdict.PASSED]
    if working_sandboxes()[0].relocates:
        assert reply.exchange[0]["stdout"].startswith(f"{top}/inner\n1,2\n")
