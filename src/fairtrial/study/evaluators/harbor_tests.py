"""The evaluator `harbor`: the tests of a task of Harbor, run in the sandbox."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import LabError, Mistake
from fairtrial.sandbox import Command, Mount, View
from fairtrial.study.evaluators.case import EvaluationCase
from fairtrial.study.evaluators.code_evaluators import SandboxedEvaluator, python_folders

TESTS, LOGS = Path("/tests"), Path("/logs")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class HarborTests(SandboxedEvaluator):
    """The reward that a task's `tests/test.sh` writes to `/logs/verifier`.

    The tests find the files that the agent has left (`files` of its output) in the task's working
    folder, and run without network and without the task's image: with this machine's programs.

    timeout_s: the longest that they may take; the task's own limit if that is shorter
    """

    timeout_s: float = 600.0

    def _mistakes(self) -> Iterator[Mistake]:
        yield from SandboxedEvaluator._mistakes(self)
        if self.sandbox == "plain":
            message = "the tests name folders such as /tests and /app, which need a sandbox"
            yield Mistake(("sandbox",), message, "leave it out")

    async def evaluate(self, case: EvaluationCase) -> Any:
        """Return the reward, or several by name; raises `LabError` if the tests wrote none."""
        files = case.output.get("files")
        if not isinstance(files, Mapping):
            return {"score": 0, "note": "the output has no `files`: what the agent has left behind"}
        with tempfile.TemporaryDirectory(prefix="fairtrial-harbor-") as name:
            work, logs = Path(name).resolve() / "app", Path(name).resolve() / "logs"
            (logs / "verifier").mkdir(parents=True)
            left_out = _write_files(files, work)
            done = await self._run_tests(case, work, logs)
            reward = _read_reward(logs / "verifier")
        if reward is None:
            text = (done.stderr.text or done.stdout.text).strip()[-_MOST_NOTE:]
            ending = f"exit code {done.exit_code}, {done.ending}"
            raise LabError(
                f"the tests of {case.problem.problem_id} wrote no reward ({ending}): {text}"
            )
        scores = dict(reward) if isinstance(reward, Mapping) else {"reward": reward}
        if "score" not in scores and len(scores) == 1:
            scores = {"score": next(iter(scores.values()))}
        notes = {"left_out_files": left_out} if left_out else {}
        return {**scores, "tests": done.stdout.text.strip()[-_MOST_NOTE:], **notes}

    async def _run_tests(self, case: EvaluationCase, work: Path, logs: Path) -> Any:
        task = (self.folder or Path()).absolute() / str(case.cell("task"))
        seen = Path(str(case.cell("work_folder")))
        timeout_s = min(self.timeout_s, float(case.cell("test_timeout_s")))
        own = tuple(Mount(path, path) for path in python_folders())
        command = Command(
            ("bash", str(TESTS / "test.sh")),
            seen,
            {"PATH": PATH, "LANG": "C.UTF-8"},
            View(
                readable=(*own, Mount(task / "tests", TESTS)),
                writable=(Mount(work, seen), Mount(logs, LOGS)),
            ),
            self.limits,
            timeout_s,
            output_bytes=1 << 20,
        )
        return await self._find_sandbox().run(command)


def _write_files(files: Mapping[str, Any], folder: Path) -> list[str]:
    """Write the files of an output; returns those whose content isn't in it."""
    folder.mkdir()
    left_out = []
    for name, content in files.items():
        path = (folder / name).resolve()
        if not isinstance(content, str) or not path.is_relative_to(folder):
            left_out.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
        if content.startswith("#!"):
            path.chmod(0o755)
    return left_out


def _read_reward(folder: Path) -> Any:
    """Return what the tests wrote: a number, or numbers by name; None if there is none."""
    for name in ("reward.json", "reward.txt"):
        path = folder / name
        if not path.is_file() or path.is_symlink():
            continue
        try:
            reward = json.loads(path.read_text("utf-8"))
        except ValueError:
            return None
        values = list(reward.values()) if isinstance(reward, dict) else [reward]
        if values and all(
            isinstance(item, (int, float)) and math.isfinite(item) for item in values
        ):
            return reward
    return None
