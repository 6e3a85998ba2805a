"""Warm starts: a forked command sees the same as one in a new process."""

import json
import os
import re
import signal
import sys
import textwrap
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from old_python import find_old_python

from fairtrial.core import LabError
from fairtrial.sandbox import Command, Ending, Limits, Mount, View, system, warm_start
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.selection import try_sandbox
from fairtrial.testing.isolation import FullSandboxConformance
from fairtrial.testing.sandbox_commands import CommandRunner

REASON = try_sandbox(Namespaces())
pytestmark = pytest.mark.skipif(bool(REASON), reason=f"no namespaces here: {REASON}")
PYTHON = Path(system.own_python())
ENV = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "OTHER": "ähnlich",
}
IMPORTED = ("decimal", "email.message", "tempfile", "locale", "random", "logging", "signal")
"""Modules in place of third-party packages."""
LOOK = r"""
import gc, hashlib, json, locale, os, random, resource, signal, sys, tempfile, threading, warnings

import beside

def tell_limits():
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}

def tell_status():
    # The warm one has another parent, and what it has imported takes memory.
    names = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
             "SigBlk", "SigIgn", "SigCgt", "Seccomp", "Threads", "Umask", "NSpid")
    lines = [line.split(":", 1) for line in open("/proc/self/status").read().splitlines()]
    return {name: value.split() for name, value in lines if name in names}

def tell_mounts():
    return sorted(line.split()[3:6] for line in open("/proc/self/mountinfo"))

def tell_stream(stream):
    return [stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering,
            stream.write_through, stream.closed, stream.isatty()]

main = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv,
    "orig_argv": getattr(sys, "orig_argv", None),
    "path": sys.path,
    "name": __name__,
    "file": __file__,
    "package": __package__,
    "spec": __spec__ and [__spec__.name, __spec__.origin, str(__spec__.parent)],
    "doc": __doc__,
    "is_main": main.__dict__ is globals(),
    "cached": globals().get("__cached__"),
    "builtins": __builtins__ is sys.modules["builtins"],
    "beside": beside.__file__,
    "cwd": os.getcwd(),
    "env": dict(os.environ),
    "stdin": [sys.stdin.seekable(), sys.stdin.tell(), sys.stdin.read(), sys.stdin.seek(2),
              sys.stdin.read(3)],
    "streams": [tell_stream(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
    "same_streams": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__],
    "hash": hash("a text"),
    "temp": tempfile.gettempdir(),
    "home": os.path.expanduser("~"),
    "locale": [locale.setlocale(locale.LC_CTYPE), locale.getpreferredencoding()],
    "signals": {str(each): str(signal.getsignal(each)).split(" at ")[0]
                for each in sorted(signal.valid_signals())},
    "limits": tell_limits(),
    "status": tell_status(),
    "mounts": tell_mounts(),
    "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd"))[:-1],
    "oom": open("/proc/self/oom_score_adj").read(),
    "host": os.uname().nodename,
    "interfaces": sorted(line.split(":")[0] for line in open("/proc/net/dev") if ":" in line),
    "ids": [os.getpid(), os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), os.getuid()],
    "flags": [str(sys.flags), sys.dont_write_bytecode, sys.getrecursionlimit(), gc.isenabled(),
              gc.get_threshold(), sys.executable, sys.prefix, sys.base_prefix],
    "warnings": [str(each) for each in warnings.filters],
    "threads": [threading.current_thread() is threading.main_thread(), threading.active_count()],
    "switch": sys.getswitchinterval(),
    "hooks": [str(sys.excepthook), str(sys.displayhook), sys.gettrace(), sys.getprofile()],
    "finders": [str(each).split(" at ")[0] for each in sys.meta_path],
    "pycache": sys.pycache_prefix,
}, default=str))
"""


def import_files():
    """Return the folder of the modules that the server imports."""
    return [sys.modules[name].__file__ for name in IMPORTED if __import__(name)]


@pytest.fixture(scope="module")
def portal():
    """An event loop for a server that serves several tests; it dies with its thread."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def start(portal, tmp_path_factory):
    """Return a function that starts servers, which are stopped at the end."""
    with ExitStack() as stack:

        def start(**changes):
            options = {
                "files": import_files(),
                "folders": [Path(sys.base_prefix)],
                "never": [],
                "env": ENV,
                "scratch_parent": tmp_path_factory.mktemp("scratch"),
                **changes,
            }
            python = options.pop("python", PYTHON)
            block = portal.wrap_async_context_manager(
                warm_start.WarmServer.starting(python, **options)
            )
            return stack.enter_context(block)

        yield start


@pytest.fixture(scope="module")
def server(start):
    server = start()
    assert server is not None
    return server


class Refusing:
    """A sandbox that must not be used."""

    name, relocates, shortfalls = "refusing", True, ()

    async def run(self, command):
        raise AssertionError(f"started cold: {command.argv}")


@pytest.fixture
def slot(tmp_path):
    slot = tmp_path / "slot"
    (slot / "inner" / "pack").mkdir(parents=True)
    for folder in (slot, slot / "inner"):
        (folder / "beside.py").write_text("")
    (slot / "inner" / "look.py").write_text('"""Looks."""\n' + LOOK)
    (slot / "inner" / "pack" / "__init__.py").write_text("")
    (slot / "inner" / "pack" / "look.py").write_text(LOOK)
    (slot / "inner" / "pack" / "__main__.py").write_text(LOOK)
    return slot


def command_in(slot, *words, **options):
    python = [Mount(Path(source), Path(target)) for source, target in system.own_python_mounts()]
    env = {**ENV, "PYTHONPATH": f"{slot}/inner", **options.pop("env", {})}
    return Command(
        (str(PYTHON), *words),
        options.pop("cwd", slot),
        env,
        View(tuple(python), (Mount(slot, slot),)),
        **{"timeout_s": 60.0, **options},
    )


def run_both(server, command):
    """Run a command warm and cold; returns both results."""
    warm = warm_start.WarmSandbox(Refusing(), server, ENV)
    return anyio.run(warm.run, command), anyio.run(Namespaces().run, command)


def run_program(server, slot, text, *words, **options):
    """Write a program and run it warm and cold."""
    (slot / "program.py").write_text(textwrap.dedent(text))
    return run_both(server, command_in(slot, "program.py", *words, **options))


def essence(done):
    return done.ending, done.exit_code, done.signal, done.stdout.text, done.channel


# -- what a command sees --


@pytest.mark.parametrize(
    "words",
    [
        ("inner/look.py",),
        ("inner/look.py", "--option", "päth", "-m", ""),
        ("-m", "look", "x"),
        ("-m", "pack.look", "-q"),
        ("-m", "pack"),
    ],
    ids=["file", "arguments", "module", "inner-module", "package"],
)
def test_a_command_sees_the_same_warm_and_cold(server, slot, words):
    warm, cold = run_both(server, command_in(slot, *words, stdin="gelesen: ä\n".encode()))
    assert cold.exit_code == 0, cold.stderr.text
    assert warm.exit_code == 0, warm.stderr.text
    seen = [json.loads(done.stdout.text) for done in (warm, cold)]
    assert seen[0] == seen[1]
    assert seen[0]["stdin"] == [True, 0, "gelesen: ä\n", 2, "les"]


def test_an_absolute_file_and_another_folder_to_start_in(server, slot):
    command = command_in(slot, f"{slot}/inner/look.py", cwd=slot / "inner")
    warm, cold = run_both(server, command)
    assert json.loads(warm.stdout.text) == json.loads(cold.stdout.text)


def test_a_script_that_is_a_link_finds_what_lies_beside_its_target(server, slot):
    (slot / "link.py").symlink_to("inner/look.py")
    (slot / "beside.py").unlink()
    warm, cold = run_both(server, command_in(slot, "link.py", env={"PYTHONPATH": ""}))
    assert json.loads(warm.stdout.text) == json.loads(cold.stdout.text)


def test_forks_get_different_random_numbers_and_temporary_names(server, slot):
    program = "import random, tempfile as t; print(random.random(), next(t._RandomNameSequence()))"
    (slot / "program.py").write_text(program)
    warm = warm_start.WarmSandbox(Refusing(), server, ENV)
    told = {anyio.run(warm.run, command_in(slot, "program.py")).stdout.text for _ in range(3)}
    assert len(told) == 3


# -- how it ends --

ENDS = {
    "returns": "print('done')",
    "number": "import sys; sys.exit(3)",
    "large number": "import sys; sys.exit(256 + 7)",
    "negative": "import sys; sys.exit(-1)",
    "nothing": "import sys; sys.exit(None)",
    "true": "import sys; sys.exit(True)",
    "text": "import sys; sys.exit('gave up')",
    "object": "import sys; sys.exit(['gave', 'up'])",
    "raises": "def f():\n    raise ValueError('no')\n\nf()",
    "syntax": "def f(:\n",
    "interrupt": "raise KeyboardInterrupt",
    "leaves": "import os; os._exit(9)",
    "aborts": "import os; os.abort()",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "sigterm": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "sigint": "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)",
    "hook": "import sys; sys.excepthook = lambda *e: print('hook', e[0].__name__); 1 / 0",
    "atexit": (
        "import atexit, sys\n"
        "atexit.register(print, 'registered first')\n"
        "atexit.register(print, 'registered last')\n"
        "print('body')\nsys.exit(4)"
    ),
    "atexit that raises": (
        "import atexit\natexit.register(print, 'still called')\n"
        "atexit.register(lambda: 1 / 0)\nprint('body')"
    ),
    "atexit that reads globals": (
        "import atexit\nWORD = 'mine'\ndef last():\n    print(WORD, helper())\n"
        "def helper():\n    return __name__\natexit.register(last)"
    ),
    "thread": (
        "import threading\nWORD = 'late'\n"
        "def work():\n    threading.main_thread().join(); print(WORD)\n"
        "threading.Thread(target=work).start()\nprint('body')"
    ),
    "daemon": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\nprint('body')"
    ),
    "thread, then atexit": (
        "import atexit, threading\natexit.register(print, 'atexit')\n"
        "wait = threading.main_thread().join\n"
        "threading.Thread(target=lambda: (wait(), print('thread'))).start()"
    ),
    "main after the end": (
        "import atexit, sys\nthe = sys.modules['__main__']\n"
        "atexit.register(lambda: print(sys.modules['__main__'] is the, sys.argv))"
    ),
    "pool": (
        "from concurrent.futures import ProcessPoolExecutor\nimport math, multiprocessing\n"
        "def double(n):\n    return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    for way in ('fork', 'spawn'):\n"
        "        context = multiprocessing.get_context(way)\n"
        "        with ProcessPoolExecutor(1, mp_context=context) as pool:\n"
        "            print(list(pool.map(double, [1, 2])))"
    ),
    "child": (
        "import os, subprocess, sys\n"
        "print(subprocess.check_output([sys.executable, '-c', "
        "'import os, sys; print(sorted(os.environ), sys.path)']))\n"
    ),
    "closed pipe": (
        "import os\nread, write = os.pipe()\nos.close(read)\n"
        "try:\n    os.write(write, b'x')\nexcept BrokenPipeError:\n    print('broken')"
    ),
    "unflushed": "import sys\nsys.stdout.write('no newline')\nsys.stderr.write('nor here')",
    "closed output": "import sys\nprint('before')\nsys.stdout.flush()\nsys.stdout.close()",
    "output replaced": "import io, sys\nsys.stdout = io.StringIO()\nprint('unseen')",
    "stdin twice": "import sys\nprint(repr(sys.stdin.readline()), repr(sys.stdin.buffer.read()))",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends_the_same_way_warm_and_cold(server, slot, name):
    warm, cold = run_program(server, slot, ENDS[name], stdin=b"one\ntwo\n")
    assert essence(warm) == essence(cold), (warm.stderr.text, cold.stderr.text)


@pytest.mark.parametrize("name", ["raises", "syntax", "text", "object", "interrupt", "unflushed"])
def test_what_it_says_of_its_end_is_the_same(server, slot, name):
    warm, cold = run_program(server, slot, ENDS[name])
    assert warm.stderr.text == cold.stderr.text


@pytest.mark.parametrize("words", [("missing.py",), ("-m", "missing"), ("-m", "beside.missing")])
def test_a_program_that_is_not_there_fails_as_it_does_cold(server, slot, words):
    warm, cold = run_both(server, command_in(slot, *words))
    assert warm.exit_code == cold.exit_code != 0
    assert "missing" in warm.stderr.text


def test_the_largest_file_is_bounded_by_an_error_and_not_by_a_signal(server, slot):
    program = """
        try:
            with open("large", "wb") as file:
                for _ in range(3):
                    file.write(bytes(1 << 20))
        except OSError as error:
            print(error.errno)
    """
    warm, cold = run_program(server, slot, program, limits=Limits(file_mb=1))
    assert essence(warm) == essence(cold)
    assert warm.ending == Ending.EXITED


def test_the_channel_is_there_and_outlives_a_change_of_program(server, slot):
    write = "import os, sys; os.write(int(os.environ['FAIRTRIAL_CHANNEL']), b'told')"
    program = f"{write}\nos.execv(sys.executable, [sys.executable, '-c', {write!r}])"
    warm, cold = run_program(server, slot, program, channel_bytes=100)
    assert warm.channel == cold.channel == b"toldtold"


def test_a_candidate_can_not_reach_the_next_one(server, slot):
    # the trap: candidate 1 rewrites the memory of a server that candidate 2 inherits
    program = """
        import builtins, decimal, email.message, json, os, sys
        print(hasattr(decimal, "mark"), hasattr(builtins, "mark"), "mark" in sys.modules,
              os.path.exists("/tmp/mark"), os.environ.get("MARK"))
        for module in list(sys.modules.values()):
            try:
                module.mark = 1
            except Exception:
                pass
        sys.modules["mark"] = json
        os.environ["MARK"] = "1"
        open("/tmp/mark", "w").close()
    """
    for _ in range(2):
        warm, cold = run_program(server, slot, program)
        assert warm.stdout.text == cold.stdout.text == "False False False False None\n"


# -- what can be forked --


@pytest.mark.parametrize(
    "change",
    [
        lambda command: replace(command, argv=(command.argv[0], "-c", "print(1)")),
        lambda command: replace(command, argv=(command.argv[0], "-O", "inner/look.py")),
        lambda command: replace(command, argv=(command.argv[0], "-m")),
        lambda command: replace(command, argv=(command.argv[0],)),
        lambda command: replace(command, argv=(command.argv[0], "inner")),
        lambda command: replace(command, argv=("/bin/sh", "x.py")),
        lambda command: replace(command, env={**command.env, "PYTHONHASHSEED": "1"}),
        lambda command: replace(command, env={**command.env, "OTHER": "another"}),
        lambda command: replace(command, env={"PYTHONHASHSEED": "0"}),
        lambda command: replace(command, env={**command.env, "PYTHONOPTIMIZE": "1"}),
    ],
    ids=[
        "code", "flag", "no-module", "no-file", "no-py", "other", "seed", "env", "less", "more"
    ],
)  # fmt: skip
def test_what_a_fork_can_not_become_is_started_cold(server, slot, change):
    command = change(command_in(slot, "inner/look.py"))
    with pytest.raises(AssertionError, match="started cold"):
        anyio.run(warm_start.WarmSandbox(Refusing(), server, ENV).run, command)


def test_when_the_server_is_gone_commands_start_cold(start, slot):
    server = start()
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait()
    (slot / "program.py").write_text("print('cold')")
    warm = warm_start.WarmSandbox(Namespaces(), server, ENV)
    for _ in range(2):
        assert anyio.run(warm.run, command_in(slot, "program.py")).stdout.text == "cold\n"


def find_first(server):
    """Return the process that is pid 1 of a command forked from this server."""
    for pid in below(server._process.pid):
        with suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            if re.findall(r"^NSpid:.*\s(\d+)$", status, re.MULTILINE) == ["1"]:
                return pid
    raise LookupError("no command is running")


def below(pid):
    """Return the descendants of a process."""
    with suppress(OSError):  # it may have ended meanwhile
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from below(child)


def test_a_command_that_another_process_ends_is_not_at_fault(start, slot):
    server = start()
    (slot / "program.py").write_text("open('begun', 'w').close(); import time; time.sleep(60)")

    async def run():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                warm_start.WarmSandbox(Refusing(), server, ENV).run, command_in(slot, "program.py")
            )
            while not (slot / "begun").exists():
                await anyio.sleep(0.01)
            os.kill(find_first(server), signal.SIGKILL)

    with pytest.raises(ExceptionGroup) as raised:
        anyio.run(run)
    assert raised.group_contains(LabError, match="ended from outside")


def test_orders_that_are_too_large_for_the_socket_start_cold(server, slot):
    (slot / "program.py").write_text("import sys; print(len(sys.argv))")
    words = ["x" * 1000] * 500
    warm = warm_start.WarmSandbox(Namespaces(), server, ENV)
    done = anyio.run(warm.run, command_in(slot, "program.py", *words))
    assert done.stdout.text == "501\n"


def test_a_plain_sandbox_is_never_warm():
    from fairtrial.sandbox import Plain

    assert not warm_start.supports_warm_start(Plain())
    assert warm_start.supports_warm_start(Namespaces())


# -- the server --


def test_an_old_python_can_be_a_server(start, slot):  # 12
    python = find_old_python()
    if python is None:
        pytest.skip("no Python 3.8 here")
    prefix = Path(os.path.realpath(python)).parent.parent
    server = start(python=Path(python), files=[], folders=[prefix])
    texts = [ENDS[name] for name in ("returns", "text", "raises", "thread, then atexit")]
    for text in ["import sys; print(sys.argv, sys.path, __file__, sys.version_info[:2])", *texts]:
        (slot / "program.py").write_text(text)
        command = command_in(slot, "program.py", "x")
        mounts = (*command.view.readable, Mount(prefix, prefix))
        warm, cold = run_both(
            server,
            replace(
                command,
                argv=(python, "program.py", "x"),
                view=replace(command.view, readable=mounts),
            ),
        )
        assert (essence(warm), warm.stderr.text) == (essence(cold), cold.stderr.text)


def test_the_server_has_imported_the_requested_modules(server, slot):
    names = ["decimal", "email.message", "logging", "logging.__init__"]
    warm, cold = run_program(
        server, slot, f"import sys; print([n in sys.modules for n in {names}])"
    )
    assert warm.stdout.text == "[True, True, True, False]\n"
    assert cold.stdout.text == "[False, False, False, False]\n"


def test_its_home_goes_with_it(portal, tmp_path):
    async def run():
        async with warm_start.WarmServer.starting(
            PYTHON,
            files=[],
            folders=[Path(sys.base_prefix)],
            never=[],
            env=ENV,
            scratch_parent=tmp_path,
        ) as server:
            assert [each.name[:5] for each in tmp_path.iterdir()] == ["warm-"]
            return server._process

    process = portal.call(run)
    assert process.poll() is not None
    assert not list(tmp_path.iterdir())


def test_it_sees_nothing_of_our_own_environment(monkeypatch, portal, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "secret")

    async def run():
        async with warm_start.WarmServer.starting(
            PYTHON,
            files=[],
            folders=[Path(sys.base_prefix)],
            never=[],
            env=ENV,
            scratch_parent=tmp_path,
        ) as server:
            return Path(f"/proc/{server._process.pid}/environ").read_bytes()

    assert b"secret" not in portal.call(run)


def environment(folder, **files):
    """Make a Python with these modules in its site-packages; `x_pth` stands for a .pth file."""
    import venv

    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name, text in files.items():
        file = packages / (f"{name[:-4]}.pth" if name.endswith("_pth") else f"{name}.py")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return {
        "python": folder / "bin" / "python",
        "files": [str(packages / f"{name}.py") for name in files if not name.endswith("_pth")],
        "folders": [Path(sys.base_prefix), folder],
    }


THREADED = """
import threading, time
threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
"""


def test_a_module_that_starts_a_thread_is_left_out_and_the_others_are_not(start, tmp_path, slot):
    modules = {"first": "", "some/threaded": THREADED, "users": "import some.threaded"}
    options = environment(tmp_path / "env", **modules)
    program = "import sys; print([n in sys.modules for n in ('first', 'some', 'users')])"
    told = run_there(start(**options), options["python"], slot, program)
    assert told == "[True, False, False]\n"


def run_there(server, python, slot, program):
    """Return the output of a program forked from a server in another environment."""
    env = python.parent.parent
    (slot / "program.py").write_text(program)
    command = command_in(slot, "program.py")
    mounts = (*command.view.readable, Mount(env, env))
    view = replace(command.view, readable=mounts)
    command = replace(command, argv=(str(python), "program.py"), view=view)
    return anyio.run(warm_start.WarmSandbox(Refusing(), server, ENV).run, command).stdout.text


def test_pytest_xdist_gives_its_workers_the_commands_path_and_not_the_servers(
    start, tmp_path, slot
):
    # It takes a copy of the path when it is imported.
    xdist = {"xdist/plugin": "import sys\n_sys_path = list(sys.path)\n"}
    options = environment(tmp_path / "env", **xdist)
    program = "import sys, xdist.plugin; print(xdist.plugin._sys_path == sys.path)"
    assert run_there(start(**options), options["python"], slot, program) == "True\n"


STATEFUL = {
    "temporary": "import tempfile\ntempfile.gettempdir()",
    "numpy/__init__": "",
    "numpy/random": "STATE = 0\ndef seed():\n    global STATE\n    STATE += 1",
}


def test_modules_keep_nothing_of_the_environment_of_the_server(start, tmp_path, slot):
    options = environment(tmp_path / "env", **STATEFUL)
    program = "import temporary, numpy.random, tempfile\n"
    program += "print(tempfile.gettempdir(), numpy.random.STATE)"
    assert run_there(start(**options), options["python"], slot, program) == "/tmp 1\n"


def test_pytest_does_not_complain_of_plug_ins_that_are_there_already(start, slot):
    plugins = [sys.modules["pytest"].__file__, find_spec("xdist.plugin").origin]
    folders = [Path(sys.base_prefix), Path(sys.prefix), Path(plugins[0]).parent.parent]
    server = start(python=Path(sys.executable), files=plugins, folders=folders)
    (slot / "test_it.py").write_text("def test_it(): pass\n")
    words = ("-m", "pytest", "-q", "-W", "error", "-p", "xdist.plugin", "test_it.py")
    command = command_in(slot, *words, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    mounts = (*command.view.readable, *(Mount(folder, folder) for folder in folders[1:]))
    view = replace(command.view, readable=mounts)
    command = replace(command, argv=(sys.executable, *words), view=view)
    warm = anyio.run(warm_start.WarmSandbox(Refusing(), server, ENV).run, command)
    assert "1 passed" in warm.stdout.text, warm.stdout.text + warm.stderr.text
    assert "warning" not in warm.stdout.text


def test_programs_are_not_run_beforehand(start, tmp_path):
    program = f"open({str(tmp_path / 'ran')!r}, 'w').close()"
    options = environment(tmp_path / "env", **{"tool/__main__": program, "tool/__init__": ""})
    assert start(**options) is not None
    assert not (tmp_path / "ran").exists()


def test_there_is_no_server_if_the_project_is_imported_when_its_python_starts(start, tmp_path):
    # Such an environment would bring the user's own copy into every fork.
    options = environment(tmp_path / "env", outer="", project="", boot_pth="import project\n")
    options["files"] = options["files"][:1]
    assert start(**options) is not None
    assert start(**options, never=["project"]) is None


def test_too_many_hindrances_mean_no_server(start, tmp_path):
    modules = {f"m{number}": f"import project.p{number}" for number in range(20)}
    options = environment(tmp_path / "env", **modules)
    (Path(options["files"][0]).parent / "project").mkdir()
    for number in range(20):
        (Path(options["files"][0]).parent / "project" / f"p{number}.py").write_text("")
    assert start(**options, never=["project"]) is None


# -- what every sandbox promises --


class WarmScene(CommandRunner):
    """Programs as files, so that they can be forked."""

    def command(self, program, **options):
        command = super().command(program, **options)
        folder = self.folder.parent / "programs"
        folder.mkdir(exist_ok=True)
        file = folder / f"p{len(list(folder.iterdir()))}.py"
        file.write_text(command.argv[-1])
        view = replace(command.view, readable=(*command.view.readable, Mount(folder, folder)))
        return replace(command, argv=(command.argv[0], str(file)), view=view)


@pytest.fixture(scope="module")
def bare(start):
    env = {"PATH": os.defpath}
    return warm_start.WarmSandbox(Namespaces(), start(env=env), env)


class TestWarm(FullSandboxConformance):
    vanishing_s = 60.0

    @pytest.fixture
    def sandbox(self, bare):
        return bare

    @pytest.fixture
    def runner(self, sandbox, tmp_path):
        folder = tmp_path / "slot"
        folder.mkdir()
        return WarmScene(sandbox, folder)
