"""Real coding agents, from the package registry, with a vendor on loopback who plays the model.

What is theirs is real: how they start, read, edit, run commands, give up. What they are told to do
is fixed. No key and no network beyond this machine, except for fetching them once.
"""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest
from project import own_children, read_all
from registry import PATIENCE_S, cache_folder
from repository_kit import fingerprint, make_repository

from fairtrial.arena import ArenaSettings, Check, CodeProblem, Verdict, open_arena
from fairtrial.optimize import Brief, Request, RequestKind
from fairtrial.optimize.preparation import opened_proposer
from fairtrial.optimize.proposers.command.prompt import write_prompt
from fairtrial.optimize.proposers.command.proposer import CommandProposer
from fairtrial.optimize.replies import make_record

KEY = "sk-loopback-Zq81mPx0Vt55rWcd"
PATH, OLD, NEW = "src/mod.py", "[1, 2, 3]", "{1, 2, 3}"
FILES = {PATH: f"def f(x):\n    return x in {OLD}\n", "README.md": "A project.\n"}
BRIEF = Brief("kit", "Make f faster.", {PATH: FILES[PATH]}, ("f gives the same",), ("f",))
FIRST = Request(RequestKind.INITIAL, 0, 0)
CALLED = "call_1"


# -- the vendor --


class Vendor(BaseHTTPRequestHandler):
    """Answers with what the server holds: how to edit the file, and a few words when that's done.

    Speaks Anthropic's messages, OpenAI's responses and OpenAI's chat completions.
    """

    def log_message(self, *_):
        pass

    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "")
        self.server.heard.append((key.removeprefix("Bearer "), json.dumps(told)))
        if self.server.refuses:
            error = {"type": "authentication_error", "message": "no such key"}
            return self.send(401, "application/json", {"type": "error", "error": error})
        if self.path == "/v1/chat/completions":
            return self.send(200, "application/json", speak_chat(told))
        speak = speak_responses if self.path == "/v1/responses" else speak_messages
        events = speak(told, self.server)
        lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]
        return self.send(200, "text/event-stream", "".join(lines))

    def send(self, status, kind, content):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()
        text = content if isinstance(content, str) else json.dumps(content)
        self.wfile.write(text.encode())


@contextmanager
def serving(command=f"sed -i 's/{OLD[1:-1]}/x/; s/\\[x\\]/{NEW}/' {PATH}", refuses=False):
    """A vendor; `command` is what agents are told to run that edit by commands."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    server.daemon_threads = True
    server.heard, server.command, server.refuses = [], command, refuses
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def speak_messages(told, server):
    has_run = "tool_result" in json.dumps(told["messages"])
    is_call = bool(told.get("tools")) and not has_run
    call = {"type": "tool_use", "id": CALLED, "name": "Bash", "input": {}}
    given = json.dumps({"command": server.command})
    block, delta = (
        (call, {"type": "input_json_delta", "partial_json": given})
        if is_call
        else ({"type": "text", "text": ""}, {"type": "text_delta", "text": "A set is faster."})
    )
    message = {"id": "m", "type": "message", "role": "assistant", "model": told["model"]}
    usage = {"input_tokens": 10, "output_tokens": 5}
    yield {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    why = "tool_use" if is_call else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": why}, "usage": usage}
    yield {"type": "message_stop"}


def speak_responses(told, server):
    text = [{"type": "output_text", "text": "A set is faster.", "annotations": []}]
    item = {"type": "message", "role": "assistant", "id": "m", "content": text}
    if not any(each["type"].endswith("_output") for each in told["input"]):
        given = json.dumps({"cmd": server.command})
        item = {"type": "function_call", "call_id": CALLED, "name": "exec_command"}
        item = {**item, "arguments": given}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    response = {"id": "r", "object": "response", "output": [], "usage": usage}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {**response, "output": [item]}}


def speak_chat(told):
    old, new = (f"    return x in {each}" for each in (OLD, NEW))
    edit = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"
    text = f"A set is faster.\n\n{PATH}\n```python\n{edit}\n```\n"
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": told["model"]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**answer, "choices": [choice], "usage": usage}


# -- the agents, as docs/connecting.md has them --


def claude(url):
    top = npm_install("@anthropic-ai/claude-code", "2.1.197")
    program = next(iter(sorted(top.glob("node_modules/@anthropic-ai/claude-code-*/claude"))))
    settings = (f"ANTHROPIC_BASE_URL={url}", "CLAUDE_CODE_MAX_RETRIES=0", "DISABLE_TELEMETRY=1")
    words = ("-p", "--dangerously-skip-permissions")
    return {"argv": ("env", *settings, str(program), *words), "variables": ("ANTHROPIC_API_KEY",)}


def codex(url):
    top = npm_install("@openai/codex", "0.166.0")
    provider = f'name = "mine", base_url = "{url}/v1", env_key = "OPENAI_API_KEY", '
    provider += 'wire_api = "responses", request_max_retries = 0, stream_max_retries = 0'
    words = ("exec", "--sandbox", "danger-full-access", "-c", 'model = "gpt-5-codex"')
    words += ("-c", 'model_provider = "mine"', "-c", f"model_providers.mine = {{ {provider} }}")
    return {
        "argv": (str(top / "node_modules/.bin/codex"), *words),
        "variables": ("OPENAI_API_KEY",),
        "readable": (top,),
    }


def aider(url):
    found = shutil.which("aider")
    if found is None:
        pytest.skip("there is no aider on the path, and its packages take too long to fetch")
    program = Path(found).resolve()
    words = ("--model", "openai/gpt-4o", "--openai-api-base", f"{url}/v1", "--yes-always")
    words += ("--no-stream", "--no-pretty", "--no-auto-commits", "--no-gitignore")
    words += ("--no-check-update", "--no-show-release-notes", "--analytics-disable")
    return {
        "argv": (str(program), *words, "--message-file", "{prompt}", PATH),
        "prompt": "file",
        "variables": ("OPENAI_API_KEY",),
        "readable": (program.parent.parent, (program.parent / "python").resolve().parent.parent),
    }


def npm_install(package, version):
    """The folder that it is in; fetched once, and kept."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("there is no npm to fetch it with")
    kept = cache_folder() / f"{package.replace('/', '-')}-{version}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            top = Path(scratch) / "top"
            words = ["npm", "install", "--prefix", top, "--ignore-scripts", "--no-audit"]
            words += ["--no-fund", "--fetch-retries=1", f"{package}@{version}"]
            try:
                done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                pytest.skip(f"no {package} {version} within {PATIENCE_S} s")
            if done.returncode:
                pytest.skip(f"{package} {version} can't be fetched: {done.stderr[-500:]}")
            top.rename(kept)
    return kept


# -- what comes of it --


@pytest.fixture
def ask(tmp_path, home, monkeypatch):
    """Asks an agent: what it replies, and how that is judged; nothing may be left of it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    top = make_repository(tmp_path / "project", FILES)
    same = "import sys; sys.path[0] = 'src'; import mod; assert mod.f(3) and not mod.f(4)"
    check = Check(command=("{python}", "-c", same))
    problem = CodeProblem("kit", editable=("src/**/*.py",), check=(check,), folder=top)
    settings = ArenaSettings(lock_folder=tmp_path)

    async def run(proposer):
        async with open_arena(problem, slots=1, settings=settings) as arena:
            async with opened_proposer(proposer, arena) as opened:
                reply = await opened.propose(BRIEF, FIRST)
            return reply, [(await arena.judge(each)).verdict for each in reply.candidates]

    def ask(agent, vendor, timeout_s=60.0):
        before, children = fingerprint(top), own_children()
        options = agent(vendor.url)
        proposer = CommandProposer(**options, network=True, timeout_s=timeout_s)
        reply, verdicts = anyio.run(run, proposer)
        assert KEY not in repr(reply)
        assert KEY not in json.dumps(make_record(FIRST, reply))
        assert fingerprint(top) == before
        assert not list(home.glob("arena/*"))
        assert own_children() <= children
        return reply, verdicts

    return ask


@pytest.mark.parametrize("agent", [claude, codex, aider])
def test_what_it_makes_of_the_files_is_the_candidate(ask, agent):
    with serving() as vendor:
        reply, verdicts = ask(agent, vendor)
    assert reply.refusal == ""
    (candidate,) = reply.candidates
    assert f"-    return x in {OLD}\n+    return x in {NEW}\n".encode() in candidate.diff
    assert candidate.diff.count(b"diff --git") == 1
    assert candidate.name == f"{agent.__name__}-0.0"
    assert "A set is faster." in candidate.note
    assert "left out" not in candidate.note
    assert verdicts == [Verdict.PASSED]
    keys, told = zip(*vendor.heard, strict=True)
    assert set(keys) == {KEY}
    prompt = json.dumps(write_prompt(BRIEF, FIRST).strip())[1:-1]
    assert any(prompt in each for each in told)
    assert KEY not in "".join(told)


@pytest.mark.parametrize("agent", [claude, codex, aider])
def test_the_reason_of_a_failing_agent_is_reported(ask, agent):
    with serving(refuses=True) as vendor:
        reply, _ = ask(agent, vendor)
    assert reply.candidates == ()
    assert "no such key" in reply.refusal


@pytest.mark.parametrize("agent", [claude, codex])
def test_its_time_is_over_for_all_that_it_started(ask, agent):
    token = f"{os.getpid()}.{'0' * 20}1"  # seconds, as nobody else would write them
    seen = threading.Event()
    over = threading.Event()

    def watch():
        while not over.wait(0.1):
            if len(running(token)) >= 2:
                seen.set()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        for timeout_s in (8.0, 30.0, 120.0):  # on a busy machine it starts late
            with serving(f"setsid sleep {token} & sleep {token}") as vendor:
                reply, _ = ask(agent, vendor, timeout_s=timeout_s)
            assert reply.refusal.startswith(f"{agent.__name__} took longer than {timeout_s:g} s")
            assert not running(token)
            if seen.is_set():
                break
    finally:
        over.set()
        watching.join()
    assert seen.is_set()


def running(token):
    """The processes that sleep for so long."""
    return [pid for pid, text in read_all("cmdline") if text.split("\0")[:2] == ["sleep", token]]
