"""Variations of the files that a command reads, in a sandbox whose programs are functions."""

import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
from test_timing_commands import PROBLEM, PYTHON, ended

from fairtrial.arena import Reason, Rejection
from fairtrial.arena.model.timings import Measurement, TotalVerdict
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.command_benchmark import CommandSubject, ProcessBenchmark
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.arena.timing.stats.reconciliation import SavingClaim
from fairtrial.arena.timing.total_checks import TotalBatch, add_checks, describe_total_check
from fairtrial.arena.timing.varied_files import check_variations, vary

TEXT = "".join(f"word{number % 7} line {number}\n" for number in range(200))
KNOWN = hashlib.sha256(TEXT.encode()).hexdigest()
CLAIM = SavingClaim(ratio=4.0, low=3.0)


def count_words(text):
    return ended(repr(sorted(Counter(text.split()).items())).encode(), wall_s=0.4)


def by_heart(text):
    return replace(count_words(TEXT), wall_s=0.1)


def by_digest(text):
    known = hashlib.sha256(text.encode()).hexdigest() == KNOWN
    return replace(count_words(text), wall_s=0.1 if known else 0.4)


def faster(text):
    return replace(count_words(text), wall_s=0.1)


def fussy(text):
    """A program that reads nothing but the file that it knows."""
    return count_words(text) if text == TEXT else ended(code=1)


@dataclass
class Programs:
    """A sandbox in which base and candidate are functions of the text that they see."""

    programs: dict
    seen: list = field(default_factory=list)
    name: str = "scripted"
    relocates: bool = True
    shortfalls: tuple = ()

    async def run(self, command):
        arm = command.view.readable[-1].source.name
        (mount,) = command.view.over
        assert mount.target == Path("/project/words.txt")
        text = mount.source.read_text("utf-8")
        self.seen.append(text)
        return self.programs[arm](text)


@pytest.fixture
def check(tmp_path):
    """Check a candidate on variations; returns the result and the texts that were read."""

    def check(candidate, base=count_words, *, text=TEXT, own_text=None, **changes):
        sandbox = replace(Programs({"base": base, "candidate": candidate}), **changes)
        stages = []
        for arm, content in (("base", text), ("candidate", own_text or text)):
            folder = tmp_path / arm
            folder.mkdir(exist_ok=True)
            (folder / "words.txt").write_text(content, "utf-8")
            stage = Stage(PROBLEM, PYTHON, sandbox, folder, Path("/project"), (".",))
            stages.append(replace(stage, is_writable=False))
        setup = TimingSetup(*stages, (1,), "secret")
        subject = CommandSubject("count", ("{python}", "count.py", "words.txt"), 60.0)
        benchmark = ProcessBenchmark("count", subject, 0.8)
        result = anyio.run(check_variations, benchmark, setup, CLAIM, 60.0)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("varied")] == []
        return result, sandbox.seen

    return check


def test_an_output_known_by_heart_is_wrong_for_a_variation(check):
    result, _ = check(by_heart)
    assert isinstance(result, Rejection)
    assert result.reason == Reason.DIFFERENT
    assert "with a few lines of words.txt left out, its output is not the base's" in result.message


def test_a_gain_for_the_known_file_alone_is_vetoed_with_both_figures(check):
    result, _ = check(by_digest)
    assert result.verdict == TotalVerdict.CONTRADICTED
    measured = Measurement(verdict=Verdict.FASTER, estimate=None, adopt=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "fairtrial.arena.timing.total_checks.find_claims", lambda measured: {"count": CLAIM}
        )
        checked = add_checks(measured, TotalBatch(checks=(result,)))
    assert not checked.adopt
    (veto,) = checked.vetoes
    assert "doesn't appear if a few lines of words.txt are left out" in veto
    assert "a run takes 400 ms, 400 ms on the base" in veto


def test_a_gain_that_holds_for_variations_is_confirmed(check):
    result, seen = check(faster)
    assert result.verdict == TotalVerdict.CONFIRMED
    assert "appears with variations of words.txt" in describe_total_check(result)
    texts = list(dict.fromkeys(seen))
    assert len(texts) == result.blocks
    assert TEXT not in texts


@pytest.mark.parametrize(
    "options",
    [
        {"base": fussy},
        {"text": "one line\n"},
        {"own_text": TEXT + "changed\n"},
        {"relocates": False},
    ],
    ids=["the base fails", "one line", "changed by the candidate", "no mounts"],
)
def test_what_cannot_be_varied_is_held_against_nobody(check, options):
    assert check(faster, **options)[0] is None


def test_a_base_whose_output_varies_accuses_nobody(check):
    numbers = iter(range(100))

    def changing(text):
        return ended(str(next(numbers)).encode())

    assert check(faster, base=changing)[0] is None


@pytest.mark.parametrize("count", [4, 50, 1000])
def test_a_variation_keeps_the_first_line_and_the_order(count):
    lines = [f"{number}\n" for number in range(count)]
    left = [int(line) for line in vary(lines, random.Random(1)).splitlines()]
    assert left == sorted(left)
    assert left[0] == 0
    assert count - len(left) == max(1, round(0.02 * count))


def test_inputs_that_never_change_keep_a_candidate_from_being_adopted():
    measured = Measurement(verdict=Verdict.FASTER, estimate=None, adopt=True)
    checked = add_checks(measured, TotalBatch(vetoes=("work: it gives the same input every time",)))
    assert not checked.adopt
    assert checked.vetoes == ("work: it gives the same input every time",)
