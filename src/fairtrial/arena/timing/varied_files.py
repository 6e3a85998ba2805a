"""Variations of the files that a command reads: a gain must hold for them, too.

A command without `inputs` reads the same files in every run, so its output can be known by heart.
Before such a candidate is adopted, base and candidate also run on files with a few lines left out,
which nobody has seen. There the output must be the base's, and the saving must appear.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from random import Random

from fairtrial.arena.model.timings import Arm, TotalCheck, TotalVerdict
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.command_benchmark import (
    CommandSubject,
    ProcessBenchmark,
    TimedProcess,
    benchmark_label,
    draw_variables,
    take_sample,
)
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.arena.timing.stats.reconciliation import (
    CONFIDENCE,
    LEAST_SHARE,
    SavingClaim,
    SavingShare,
    estimate_share,
)
from fairtrial.sandbox import Command, Mount

LARGEST_BYTES = 16 * 2**20
"""Larger files are not varied."""
FEWEST_LINES = 4
LEFT_OUT = 0.02
"""The share of lines that a variation leaves out: few, so that the work stays what it was."""
LOOKS = (4, 6, 8)
"""After how many pairs of processes a decision is tried."""


@dataclass(frozen=True, slots=True)
class VariedSubject(CommandSubject):
    """A command that sees variations of files in place of the files themselves.

    shown: the variations, by the path of the file relative to the slot
    """

    shown: tuple[tuple[str, Path], ...] = ()

    def command(self, stage: Stage, *, env: Mapping[str, str], cores: tuple[int, ...]) -> Command:
        """Return the command to run on a slot, with the variations mounted over its files."""
        command = CommandSubject.command(self, stage, env=env, cores=cores)
        mounts = tuple(Mount(source, stage.seen / path) for path, source in self.shown)
        return replace(command, view=replace(command.view, over=(*command.view.over, *mounts)))


def find_files(argv: Sequence[str], setup: TimingSetup) -> dict[str, list[str]]:
    """Return the lines of text files that a command names, by their path relative to the slot.

    Files that the candidate has changed, and those that are no text of several lines, are left out.
    """
    files: dict[str, list[str]] = {}
    cwd = PurePosixPath(setup.base.problem.cwd)
    for word in argv[1:]:
        path = str(cwd / word)
        base, candidate = (stage.slot / path for stage in (setup.base, setup.candidate))
        try:
            is_inside = base.resolve().is_relative_to(setup.base.slot.resolve())
            if not is_inside or not base.is_file() or base.stat().st_size > LARGEST_BYTES:
                continue
            content = base.read_bytes()
            lines = content.decode("utf-8").splitlines(keepends=True)
            if len(lines) >= FEWEST_LINES and candidate.read_bytes() == content:
                files[path] = lines
        except (OSError, ValueError):
            continue
    return {path: lines for path, lines in files.items() if not path.endswith((".py", ".toml"))}


def vary(lines: Sequence[str], rng: Random) -> str:
    """Return a text with a few lines left out, but never the first one, which may be a heading."""
    count = max(1, round(LEFT_OUT * len(lines)))
    left_out = set(rng.sample(range(1, len(lines)), count))
    return "".join(line for number, line in enumerate(lines) if number not in left_out)


@contextmanager
def _write_variation(
    files: Mapping[str, Sequence[str]], rng: Random, parent: Path
) -> Iterator[tuple[tuple[str, Path], ...]]:
    folder = Path(tempfile.mkdtemp(prefix="varied-", dir=parent))
    folder.chmod(0o755)
    try:
        shown = []
        for number, (path, lines) in enumerate(sorted(files.items())):
            target = folder / str(number)
            target.write_text(vary(lines, rng), "utf-8", newline="")
            shown.append((path, target))
        yield tuple(shown)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def check_variations(
    benchmark: ProcessBenchmark, setup: TimingSetup, claim: SavingClaim, limit_s: float
) -> TotalCheck | Rejection | None:
    """Compare base and candidate on variations of the files that a command reads.

    limit_s: about how long it may take; the first look is always taken

    Returns a rejection if the candidate fails there or prints something else than the base; None if
    nothing can be varied: no such files, a base that fails on variations, a sandbox without mounts.
    """
    subject = benchmark.subject
    if not isinstance(subject, CommandSubject) or benchmark.files is not None:
        return None
    files = find_files(subject.argv, setup) if setup.base.sandbox.relocates else {}
    if not files:
        return None
    began = time.monotonic()
    pairs: list[Mapping[Arm, TimedProcess]] = []
    while True:
        rng = Random(f"{setup.seed}/{benchmark.name}/varied/{len(pairs)}")
        with _write_variation(files, rng, setup.base.slot.parent) as shown:
            varied = VariedSubject(subject.name, subject.argv, subject.timeout_s, shown=shown)
            pair = await _run_pair(varied, setup, rng)
            if pair is None or isinstance(pair, Rejection):
                return pair
        pairs.append(pair)
        count, spent_s = len(pairs), time.monotonic() - began
        is_last = count >= LOOKS[-1] or spent_s * (count + 1) / count > limit_s
        if count < LOOKS[0] or (count not in LOOKS and not is_last):
            continue
        share = _find_share(pairs, claim)
        verdict = _decide(share, claim)
        if is_last or verdict != TotalVerdict.UNCLEAR:
            names = ", ".join(sorted(files))
            return _summarize(benchmark.name, pairs, claim, share, verdict, names, spent_s)


async def _run_pair(
    subject: VariedSubject, setup: TimingSetup, rng: Random
) -> Mapping[Arm, TimedProcess] | Rejection | None:
    """Run base and candidate on a variation; None if the base can't use it, or varies itself."""
    arms: list[Arm] = ["base", "candidate"]
    rng.shuffle(arms)
    env = draw_variables(setup.base, rng)
    processes: dict[Arm, TimedProcess] = {}
    for arm in arms:
        stage = setup.base if arm == "base" else setup.candidate
        processes[arm] = await take_sample(subject, stage, setup, env)
    base, candidate = processes["base"], processes["candidate"]
    if await subject.find_fault(base) is not None:
        return None
    fault = await subject.find_fault(candidate)
    difference = None if fault else subject.find_difference(base, candidate)
    if fault is None and difference is None:
        return processes
    again = await take_sample(subject, setup.base, setup, env)
    if await subject.find_fault(again) is not None or subject.find_difference(base, again):
        return None
    names = ", ".join(path for path, _ in subject.shown)
    what = fault.message if fault else f"its output is not the base's, in {difference.where}"  # type: ignore[union-attr]
    message = (
        f"benchmark {subject.name}: with a few lines of {names} left out, {what}: its result seems "
        "to hold for this input alone"
    )
    failure = Failure(
        benchmark_label(subject.name), "command", message, (difference,) if difference else ()
    )
    return Rejection(fault.reason if fault else Reason.DIFFERENT, message, (failure,))


def _find_share(pairs: Sequence[Mapping[Arm, TimedProcess]], claim: SavingClaim) -> SavingShare:
    gain = 1 - 1 / claim.ratio
    base = [pair["base"].done.wall_s for pair in pairs]
    saved = [pair["base"].done.wall_s - pair["candidate"].done.wall_s for pair in pairs]
    return estimate_share("wall", saved, [gain * wall_s for wall_s in base], base)


def _decide(share: SavingShare, claim: SavingClaim) -> TotalVerdict:
    doubt = (1 - 1 / claim.ratio) / max(1 - 1 / max(claim.low, 1.0), 1e-9)
    if share.high * doubt < LEAST_SHARE:
        return TotalVerdict.CONTRADICTED
    return TotalVerdict.CONFIRMED if share.low > LEAST_SHARE else TotalVerdict.UNCLEAR


def _summarize(
    name: str,
    pairs: Sequence[Mapping[Arm, TimedProcess]],
    claim: SavingClaim,
    share: SavingShare,
    verdict: TotalVerdict,
    varied: str,
    seconds: float,
) -> TotalCheck:
    base_s, candidate_s = (
        sum(pair[arm].done.wall_s for pair in pairs) / len(pairs) for arm in ("base", "candidate")
    )
    return TotalCheck(
        benchmark=name,
        verdict=verdict,
        claimed_s=(1 - 1 / claim.ratio) * base_s,
        base_s=base_s,
        candidate_s=candidate_s,
        base_cpu_s=None,
        candidate_cpu_s=None,
        share=share.share,
        low=share.low,
        high=share.high,
        confidence=CONFIDENCE,
        clock="wall",
        blocks=len(pairs),
        calls=1,
        seconds=seconds,
        varied=varied,
    )
