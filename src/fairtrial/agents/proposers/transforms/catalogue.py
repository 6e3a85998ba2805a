"""All transformations, the most promising first, and how one is applied to a source."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from fairtrial.agents.proposers.transforms import ruff
from fairtrial.agents.proposers.transforms.caches import find_caches
from fairtrial.agents.proposers.transforms.divisors import find_divisors
from fairtrial.agents.proposers.transforms.heaps import find_heaps
from fairtrial.agents.proposers.transforms.hoists import find_hoists, find_lookups
from fairtrial.agents.proposers.transforms.indexes import find_counts, find_matches
from fairtrial.agents.proposers.transforms.joins import find_joins
from fairtrial.agents.proposers.transforms.lookups import (
    find_constant_sets,
    find_key_tests,
    find_module_sets,
    find_sets,
)
from fairtrial.agents.proposers.transforms.loops import find_enumerations, find_sums
from fairtrial.agents.proposers.transforms.memberships import find_inner_sets
from fairtrial.agents.proposers.transforms.patterns import find_patterns
from fairtrial.agents.proposers.transforms.picks import find_picks
from fairtrial.agents.proposers.transforms.prefixes import find_prefixes
from fairtrial.agents.proposers.transforms.queues import find_appends, find_queues
from fairtrial.agents.proposers.transforms.ready_heaps import find_ready_heaps
from fairtrial.agents.proposers.transforms.source import Change, Source, read_source
from fairtrial.agents.proposers.transforms.writing import write_changes

MOST_ROUNDS = 4
"""What is changed may show something else to change, but not for ever."""
LARGEST_CHARS = 400_000
_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class Transformation:
    """One way to make code faster.

    name: what it is called
    family: what it belongs to, for those who choose
    find: the places where it applies; None for ruff, which looks for itself
    """

    name: str
    family: str
    find: Callable[[Source], Iterator[Change]] | None


CATALOGUE = (
    Transformation("ready_heap", "heaps", find_ready_heaps),
    Transformation("cache", "caches", find_caches),
    Transformation("match_index", "indexes", find_matches),
    Transformation("inner_set", "lookups", find_inner_sets),
    Transformation("set_beside", "lookups", find_sets),
    Transformation("heap", "heaps", find_heaps),
    Transformation("running_sum", "prefixes", find_prefixes),
    Transformation("square_root", "divisors", find_divisors),
    Transformation("count_index", "indexes", find_counts),
    Transformation("hoist", "hoists", find_hoists),
    Transformation("deque", "queues", find_queues),
    Transformation("append", "queues", find_appends),
    Transformation("pick", "picks", find_picks),
    Transformation("join", "joins", find_joins),
    Transformation("module_set", "lookups", find_module_sets),
    Transformation("pattern", "patterns", find_patterns),
    Transformation("ruff", "ruff", None),
    Transformation("sum", "loops", find_sums),
    Transformation("constant_set", "lookups", find_constant_sets),
    Transformation("key_test", "lookups", find_key_tests),
    Transformation("enumerate", "loops", find_enumerations),
    Transformation("lookup", "hoists", find_lookups),
)
BY_NAME = {each.name: each for each in CATALOGUE}


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a source.

    text: as it is now
    notes: what was changed where, a line each
    scopes: the functions that were changed; "" for the module itself
    """

    text: str
    notes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


def refuse(text: str) -> str | None:
    """Why a file can't be transformed."""
    if len(text) > LARGEST_CHARS:
        return f"it is larger than {LARGEST_CHARS} characters"
    for line in text.split("\n", 2)[:2]:
        coding = _CODING.match(line)
        if coding and coding[1].lower().replace("_", "-") not in ("utf-8", "utf8", "ascii"):
            return f"it is written in {coding[1]}"
    return None if read_source(text.removeprefix("\ufeff")) else "it can't be parsed"


@lru_cache(maxsize=8192)
def transform(text: str, name: str, only: frozenset[str] | None = None) -> Applied:
    """Apply a transformation to a source, in some functions only or wherever it can be.

    A function of its arguments alone; what can't be changed safely stays as it is.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    applied = Applied(text.removeprefix(mark))
    try:
        if BY_NAME[name].find is None:
            applied = _fix(applied.text, only)
        else:
            for _ in range(MOST_ROUNDS):
                following = _one_round(applied, BY_NAME[name], only)
                if following is applied:
                    break
                applied = following
    except RecursionError:
        return Applied(text)
    return Applied(mark + applied.text, applied.notes, applied.scopes)


def _fix(text: str, only: frozenset[str] | None) -> Applied:
    if only is not None and "" not in only:
        return Applied(text)
    fixed = ruff.fix(text)
    if fixed == text or not _parses(fixed):
        return Applied(text)
    # Ruff numbers lines anew while it goes: those of the old text are what can be told.
    blocks = difflib.SequenceMatcher(None, text.split("\n"), fixed.split("\n"), autojunk=False)
    lines = [str(start + 1) for tag, start, *_ in blocks.get_opcodes() if tag != "equal"]
    return Applied(fixed, (f"line {', '.join(lines)}: ruff's fixes",), ("",))


def _one_round(applied: Applied, chosen: Transformation, only: frozenset[str] | None) -> Applied:
    source = read_source(applied.text)
    if source is None or chosen.find is None:
        return applied
    changes = [each for each in chosen.find(source) if only is None or each.scope in only]
    if not changes:
        return applied
    changes.sort(key=lambda each: each.line)
    for some in (changes, *([each] for each in changes)):
        text, done = write_changes(source, some)
        if done and text != applied.text and _parses(text):
            notes = [f"line {each.line}: {each.what}" for each in done]
            scopes = dict.fromkeys((*applied.scopes, *(each.scope for each in done)))
            return Applied(text, (*applied.notes, *notes), tuple(scopes))
    return applied


def _parses(text: str) -> bool:
    try:
        compile(text, "module.py", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
