"""A stage for accidents: a study, commands run on it in real processes, and what they leave."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fairtrial.study.tables.integrity import validate_artifacts

HERE = Path(__file__).parent
PRINTED = ("stdout", "stderr")
LONGEST_S = 60.0
"""How long to wait for anything; on a machine that has much else to do."""
TIMES = {
    "runs.csv": ("start_time", "end_time", "latency_s", "host", "attempt"),
    "events.csv": ("timestamp",),
    "evaluations.csv": (),
    "conditions.csv": (),
}
"""The columns that may differ between two runs of one study."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]

    @property
    def told(self) -> Any:
        return json.loads(self.out)


class Command:
    """A command under way."""

    def __init__(self, pid: int, wait: Callable[[], int], out: Path, err: Path) -> None:
        self.pid = pid
        self._wait, self._out, self._err = wait, out, err

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def wait(self) -> Ended:
        """Wait for its end; gives it `LONGEST_S`."""
        wait_until(lambda: is_gone(self.pid), f"process {self.pid} to end", self._tell)
        return Ended(self._wait(), self._out.read_text(), self._err.read_text())

    def _tell(self) -> str:
        self.kill()
        return self._err.read_text()


class Zygote:
    """The warm process that others are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "fault_zygote.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


SEVERAL = """
import json, os, sys
from fairtrial.cli.main import main

for number, words in enumerate(json.loads(sys.argv[1])):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        for place, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"several-{name}-{number}", os.O_WRONLY | os.O_CREAT, 0o666), place)
        if words[0] == "sh":
            os.execvp("sh", words)
        sys.argv[1:] = words
        main()
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
"""Runs commands one after the other, each in a process of its own, and prints their exit codes.

A command is fairtrial's, or the shell's."""


class Stage:
    """A folder with a study, its agents and their witness."""

    def __init__(self, folder: Path, zygote: Zygote) -> None:
        self.folder, self._zygote = folder, zygote
        self.output = folder / "out"
        self.witness_file = folder / "witness"
        self.study_file = folder / "study.yaml"
        self._count = 0
        shutil.copy(HERE / "fault_agents.py", folder / "fault_agents.py")

    # -- the study --

    def write(self, agent: str = "steady", *, options: Any = None, **changes: Any) -> None:
        """Write the study: three doses, one agent, one problem."""
        study: dict[str, Any] = {
            "study_id": "faults",
            "title": "Faults",
            "factors": [{"name": "dose", "levels": [1, 2, 3]}],
            "agents": {"subject": {"use": f"fault_agents:{agent}", "options": options or {}}},
            "agent_specs": ["subject"],
            "problems": {"task": {"family": "f", "evaluator": "fault_agents:score"}},
            "problem_ids": ["task"],
            "run_budget": {"replicates": 2},
        }
        study |= changes
        self.study_file.write_text(yaml.safe_dump(study))

    # -- commands --

    def environment(self) -> dict[str, str]:
        """That of commands: where the witness is."""
        return {**os.environ, "WITNESS": str(self.witness_file), "NO_COLOR": "1"}

    def start(
        self,
        *arguments: object,
        faults: Mapping[str, Any] | None = None,
        cold: bool = False,
        stderr: int | None = None,
        folder: Path | None = None,
    ) -> Command:
        """Start a command; `cold` by a Python that starts afresh, its errors to `stderr`."""
        self._count += 1
        out, err = (self.folder / f"{name}-{self._count}" for name in ("stdout", "stderr"))
        words = [str(argument) for argument in arguments]
        if cold:
            with out.open("wb") as to, err.open("wb") as aside:
                process = subprocess.Popen(
                    [sys.executable, "-m", "fairtrial", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=to,
                    stderr=aside if stderr is None else stderr,
                    cwd=self.folder,
                    env=self.environment(),
                    start_new_session=True,
                )
            return Command(process.pid, process.wait, out, err)
        request = {
            "arguments": words,
            "folder": str(folder or self.folder),
            "environment": self.environment(),
            "faults": dict(faults or {}),
            "stdout": str(out),
            "stderr": str(err),
        }
        pid = self._zygote.ask(request)
        return Command(pid, lambda: self._zygote.ask({"wait": pid}), out, err)

    def several(
        self, *commands: Sequence[object], prefix: Sequence[str] = (), script: str = SEVERAL
    ) -> list[Ended]:
        """Run commands one after the other by one Python that starts afresh, in the study's folder.

        prefix: who starts that Python; script: something that runs `SEVERAL`
        """
        words = [[str(word) for word in command] for command in commands]
        done = subprocess.run(
            [*prefix, sys.executable, "-c", script, json.dumps(words)],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        codes = done.stdout.split()
        assert (len(codes), done.returncode) == (len(words), 0), done.stderr
        return [
            Ended(int(code), *(self._printed(f"several-{name}-{number}") for name in PRINTED))
            for number, code in enumerate(codes)
        ]

    def _printed(self, name: str) -> str:
        return (self.folder / name).read_text()

    def call(self, *arguments: object, faults: Mapping[str, Any] | None = None) -> Ended:
        """Run a command to its end; it may fail, but not by a mistake of ours."""
        ended = self.start(*arguments, faults=faults).wait()
        assert "Traceback" not in ended.err, ended.err
        return ended

    def run(self, *more: object, **named: Any) -> Ended:
        """Run the study."""
        return self.call("run", self.study_file, "--output", self.output, *more, **named)

    def start_run(self, *more: object, **named: Any) -> Command:
        return self.start("run", self.study_file, "--output", self.output, *more, **named)

    def status(self) -> dict[str, Any]:
        """What `status --json` tells; nothing while there is no study yet."""
        ended = self.call("status", self.output, "--json")
        return ended.told if ended.code == 0 else {"done": 0, "is_running": False, "live": None}

    # -- what is left --

    def witnessed(self) -> list[str]:
        """The run of each call of an agent."""
        return [line.split()[0] for line in self._lines()]

    def witnesses(self) -> set[int]:
        """The processes in which agents were called."""
        return {int(line.split()[1]) for line in self._lines()}

    def _lines(self) -> list[str]:
        return self.witness_file.read_text().splitlines() if self.witness_file.exists() else []

    def calls(self) -> Counter[str]:
        """How often the agent was called for each run."""
        return Counter(self.witnessed())

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """Look into the ledger, if there is one, without going through the product."""
        path = self.output / "ledger.sqlite"
        if not path.exists():
            return []
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def done(self) -> list[str]:
        """The runs that have a result in the ledger."""
        return [run_id for (run_id,) in self.query("SELECT run_id FROM results")]

    def table(self, name: str = "runs.csv") -> list[dict[str, str]]:
        with (self.output / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def tables(self) -> dict[str, list[dict[str, str]]]:
        """All tables, without what may differ."""
        assert validate_artifacts(self.output) == []
        return {
            name: [
                {key: value for key, value in row.items() if key not in left_out}
                for row in self.table(name)
            ]
            for name, left_out in TIMES.items()
        }

    def message(self, name: str = "go") -> None:
        """Leave agents a message."""
        (self.folder / name).touch()


def wait_until(
    is_so: Callable[[], Any], what: str, tell: Callable[[], str] = lambda: "", every_s: float = 0.01
) -> None:
    """Wait for a condition."""
    until = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < until, f"waited in vain for {what} {tell()}"
        time.sleep(every_s)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in "ZX"
