"""The GitHub action: its steps run in bash as they stand; it comments to a server on loopback."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step.get("name"): step for step in ACTION["runs"]["steps"]}


class GitHub(ThreadingHTTPServer):
    """Comments of one pull request, in pages, as GitHub's interface has them."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments, self.refusal, self.seen = [], 0, []


class Handler(BaseHTTPRequestHandler):
    def handle_any(self):
        server = self.server
        length = int(self.headers.get("Content-Length", 0))
        data = json.loads(self.rfile.read(length)) if length else None
        server.seen.append((self.command, self.headers["Authorization"]))
        if server.refusal and self.command != "GET":
            return self.answer(server.refusal, {"message": "Resource not accessible"})
        if self.command == "GET":
            assert self.path.startswith("/repos/o/r/issues/7/comments?")
            page = int(re.search(r"&page=(\d+)", self.path)[1])
            return self.answer(200, server.comments[100 * (page - 1) : 100 * page])
        if self.command == "POST":
            assert self.path == "/repos/o/r/issues/7/comments"
            made = comment(len(server.comments), data["body"])
            server.comments.append(made)
            return self.answer(201, made)
        number = int(re.fullmatch(r"/repos/o/r/issues/comments/(\d+)", self.path)[1])
        server.comments[number]["body"] = data["body"]
        return self.answer(200, server.comments[number])

    do_GET = do_POST = do_PATCH = handle_any  # noqa: N815

    def answer(self, status, data):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def comment(number, body, kind="Bot"):
    return {"id": number, "body": body, "user": {"type": kind}}


@pytest.fixture
def github():
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def say(github, tmp_path):
    """Return a function that comments like the action does."""
    event = tmp_path / "event.json"
    event.write_text('{"pull_request": {"number": 7}}')

    def say(text, title="problem.yaml"):
        file = tmp_path / "fairtrial.md"
        if text is not None:
            file.write_text(text)
        return subprocess.run(
            [sys.executable, ROOT / "tools" / "comment.py", file],
            env={
                **os.environ,
                "no_proxy": "*",
                "TOKEN": "secret",
                "TITLE": title,
                "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_EVENT_PATH": str(event),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    return say


def test_a_comment_is_made_once_and_then_updated(github, say):
    github.comments = [comment(at, "other") for at in range(130)]
    say("first")
    say("second")
    assert len(github.comments) == 131
    assert github.comments[-1]["body"].endswith("-->\nsecond")
    assert ("PATCH", "Bearer secret") in github.seen


def test_each_problem_has_a_comment_of_its_own(github, say):
    say("one", "one.yaml")
    say("two", "two.yaml")
    assert [made["body"].splitlines()[1] for made in github.comments] == ["one", "two"]


def test_a_person_who_writes_the_marker_keeps_the_comment(github, say):
    say("first")
    marker = github.comments[0]["body"].splitlines()[0]
    github.comments = [comment(0, f"{marker}\nmine", "User")]
    say("second")
    assert github.comments[0]["body"].endswith("mine")
    assert github.comments[1]["body"].endswith("second")


def test_a_token_that_may_not_comment_is_no_error(github, say):
    github.refusal = 403
    assert "::notice::" in say("text")


def test_without_a_result_there_is_no_comment(github, say):
    assert "nothing was judged" in say(None)
    assert not github.seen


# -- the step that compares --


@pytest.fixture
def compare(tmp_path):
    """Return a function that runs the step with a fairtrial that notes its words."""
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "fairtrial"
    program.write_text(
        "#!/bin/bash\nprintf '%s\\n' \"$@\" > words\n"
        'while [ "$1" != --markdown ]; do shift; done\necho comment > "$2"\nexit $CODE\n'
    )
    program.chmod(0o755)

    def compare(code=0, **inputs):
        given = {
            name: str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()
        } | inputs
        step = STEPS["Compare"]
        env = {
            name: given[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)[1]]
            for name, text in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path,
            env={
                "PATH": f"{tools}:{os.environ['PATH']}",
                "CODE": str(code),
                "RUNNER_TEMP": str(tmp_path),
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
                **env,
                **inputs.get("variables", {"GITHUB_BASE_REF": "main"}),
            },
        )
        words = (tmp_path / "words").read_text().splitlines()
        return done.returncode, words, (tmp_path / "summary").read_text()

    return compare


def test_the_job_ends_with_the_exit_code_of_the_gate_and_a_summary(compare):
    code, words, summary = compare(7, problem="p.yaml")
    assert code == 7
    assert words[:4] == ["compare", "origin/main...HEAD", "p.yaml", "--fail-on"]
    assert summary == "comment\n"


def test_outside_of_pull_requests_the_last_commit_is_compared(compare):
    _, words, _ = compare(problem="p.yaml", variables={})
    assert words[:4] == ["compare", "HEAD^", "HEAD", "p.yaml"]


def test_inputs_are_words_and_never_code(compare, tmp_path):
    evil = "p; touch evil $(touch evil)"
    code, words, _ = compare(problem=evil, versions="v1 $(touch${IFS}evil)", options="--no-audit")
    assert code == 0
    assert words[1:4] == ["v1", "$(touch${IFS}evil)", evil]
    assert words[-1] == "--no-audit"
    assert not (tmp_path / "evil").exists()


def test_no_step_puts_an_input_into_its_script():
    assert not any("${{" in step.get("run", "") for step in ACTION["runs"]["steps"])


def test_the_whole_history_is_checked_out_without_credentials():
    (checkout,) = (step for step in ACTION["runs"]["steps"] if "checkout" in step.get("uses", ""))
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
