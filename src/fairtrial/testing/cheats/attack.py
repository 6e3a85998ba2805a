"""The record of one attack: a template of a cheating candidate, with its class and source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MADE = "made for this judge"
COMMON = "common"
METR = "METR (2025), Recent frontier models are reward hacking"
KERNELS = "Andere (2026), A field guide to reward hacking in AI kernel generation"
PRODUCTION = "MacDiarmid et al. (2025), arXiv:2511.18397"
IMPOSSIBLE = "Zhong, Raghunathan, Carlini (2025), ImpossibleBench"
SAKANA = "Sakana AI (2025), The AI CUDA Engineer"


class AttackClass(StrEnum):
    """Classes of attacks, by what they exploit."""

    SPLIT = "split channels"
    SLOW_BASE = "slow the base"
    HARNESS = "faster harness"
    BEFORE = "work off the clock"
    CORE = "second core"
    FORGED = "forged report"
    ALIASED = "aliased results"
    BY_HEART = "inputs known by heart"
    TWINS = "twins"
    JUDGE = "attack on the judge"
    TIMED = "other while timed"
    NEIGHBOR = "neighbor's files"
    NEVER_RUN = "never run"
    ONLY_HERE = "right only here"
    CLOCKS = "clocks and settings"
    LAZY = "postponed work"
    LESS = "less work"
    TESTS = "tampering with tests"
    EQUAL = "false equality"
    EXITS = "early exit"
    EXPECTED = "reading expected values"


class Harm(StrEnum):
    """What an attack tries to achieve."""

    SPEED = "speed"
    """is adopted as faster, although it does the same work or more"""
    WRONG = "wrong"
    """passes although it differs from the base"""
    JUDGE = "judge"
    """stops the judge, takes its memory, or costs a rival its verdict"""
    LEAK = "leak"
    """brings data from outside into a report, or writes outside"""


class Kind(StrEnum):
    """Kinds of problems that an attack applies to, and results that a function attack needs."""

    FUNCTION = "any function"
    LIST = "list function"
    NUMPY = "numpy"
    PRINTS = "prints"
    DICT = "dict function"
    FLOATS = "floats"
    COMMAND = "command"


class Place(StrEnum):
    """Where the code of a template goes."""

    END = "end"
    """the end of the function's module; it uses `BASE` and binds `ATTACK`"""
    START = "start"
    """the start of the file that a command runs"""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: a template that becomes a candidate for a problem.

    name: a unique name
    group: the class of attack
    summary: what it does, in one sentence
    template: Python code; `BASE` stands for the original function, `ATTACK` for the new one. Words
        in braces, such as `{answers}`, stand for what is known of the problem
    kinds: the kinds of problems that it applies to
    harm: what it tries to achieve
    source: the paper or project where it is known from, `common`, or `made for this judge`
    place: where the code goes
    files: further files by path; `{folder}` stands for the folder of the attacked module, `{root}`
        for the folder that its import starts from
    links: symbolic links by path
    empties: patterns of names of files that are emptied
    honest: for twins: the template of an honest candidate that is judged first
    needs_clock: whether it differs from the base only while it is timed
    """

    name: str
    group: AttackClass
    summary: str
    template: str
    kinds: tuple[Kind, ...] = (Kind.FUNCTION,)
    harm: Harm = Harm.SPEED
    source: str = COMMON
    place: Place = Place.END
    files: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    empties: tuple[str, ...] = ()
    honest: str = ""
    needs_clock: bool = False
