"""Judging of a candidate and an honest rival in another process, for attacks on the judge itself.

Run as ``python -m fairtrial.testing.cheats.judge_process``: problem, candidates and settings are
pickled on standard input; one line of JSON with verdicts and the peak memory goes to standard
output, after a line for each time that it had to wait for another process that times.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairtrial.arena import ArenaSettings, Candidate, CodeProblem, evaluate_candidates_sync
from fairtrial.core import events

JUDGE_S = 60.0
"""How long judging two candidates may take, beyond what the rival alone takes."""
CHECK_S = 10.0
"""How long a check may take there: a slow candidate must not look like a slow judge."""
INTERRUPT_S = 10.0
"""How long the judge may take to end after an interrupt."""
WAITING = b"waiting"
MOST_MB = 600
"""How much memory the judge may use beyond what the rival alone takes."""


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """How a judge in another process fared.

    seconds: how long it took
    peak_mb: its peak memory; 0 if it didn't end
    verdicts: the verdict of each candidate by name
    messages: the message of each rejection by name
    has_ended: whether it ended in time
    heeds_interrupts: whether it ended when it was interrupted
    has_waited: whether it had to wait for another process that times on this machine
    """

    seconds: float
    peak_mb: float = 0.0
    verdicts: dict[str, str] | None = None
    messages: dict[str, str] | None = None
    has_ended: bool = True
    heeds_interrupts: bool = True
    has_waited: bool = False


def run_judge(
    problem: CodeProblem, candidates: Sequence[Candidate], settings: ArenaSettings, limit_s: float
) -> JudgeRun:
    """Judge candidates in another process, without timing; it is killed after `limit_s`."""
    options = {"unsandboxed": settings.unsandboxed, "lock_folder": settings.lock_folder}
    checks = tuple(
        replace(check, timeout_s=min(check.timeout_s, CHECK_S)) for check in problem.check
    )
    order = pickle.dumps((replace(problem, check=checks), list(candidates), options))
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        out, _ = process.communicate(order, timeout=limit_s)
    except subprocess.TimeoutExpired as late:
        run = _stop(process, time.monotonic() - began)
        return replace(run, has_waited=WAITING in (late.output or b""))
    finally:
        if process.poll() is None:  # this process was interrupted
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds = time.monotonic() - began
    try:
        report = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        return JudgeRun(seconds, has_ended=False)
    return JudgeRun(seconds, report["peak_mb"], report["verdicts"], report["messages"])


def _stop(process: subprocess.Popen[bytes], seconds: float) -> JudgeRun:
    """End a judge that takes too long: by an interrupt first, then by force."""
    process.send_signal(signal.SIGINT)
    heeds = True
    try:
        process.wait(INTERRUPT_S)
    except subprocess.TimeoutExpired:
        heeds = False
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return JudgeRun(seconds, has_ended=False, heeds_interrupts=heeds)


def describe_harm(run: JudgeRun, usual: JudgeRun, rival: str) -> str:
    """Return how an attack harmed the judge or the rival; empty if it did not.

    usual: the judge with the rival alone
    """
    if not run.has_ended:
        interrupt = "" if run.heeds_interrupts else ", and Ctrl-C didn't help"
        return f"the judge had not ended after {run.seconds:.0f} s{interrupt}"
    verdict = (run.verdicts or {}).get(rival, "none")
    if verdict != (usual.verdicts or {}).get(rival):
        return f"an honest rival's verdict became '{verdict}'"
    if run.peak_mb > usual.peak_mb + MOST_MB:
        return f"the judge took {run.peak_mb:.0f} MB instead of {usual.peak_mb:.0f} MB"
    return ""


def _tell_waiting(event: events.Event) -> None:
    if isinstance(event, events.HostWaitStarted):
        print(WAITING.decode("ascii"), flush=True)


def main() -> None:
    """Judge what is on standard input."""
    import resource

    problem, candidates, options = pickle.loads(sys.stdin.buffer.read())
    settings = ArenaSettings(timing="none", emit=_tell_waiting, **options)
    evaluation = evaluate_candidates_sync(problem, candidates, slots=2, settings=settings)
    report = {
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "verdicts": {
            judgement.name: judgement.verdict.value for judgement in evaluation.judgements
        },
        "messages": {
            judgement.name: judgement.rejection.message if judgement.rejection else ""
            for judgement in evaluation.judgements
        },
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
