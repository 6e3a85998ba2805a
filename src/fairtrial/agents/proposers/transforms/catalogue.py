"""All transformations, the most promising first, and how one is applied to a source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from fairtrial.agents.proposers.transforms import assumptions, ruff
from fairtrial.agents.proposers.transforms.accumulators import find_accumulators
from fairtrial.agents.proposers.transforms.analysis.source import Change, Source, read_source
from fairtrial.agents.proposers.transforms.asked import find_asked_sets
from fairtrial.agents.proposers.transforms.bests import find_bests
from fairtrial.agents.proposers.transforms.caches import find_caches
from fairtrial.agents.proposers.transforms.cells import find_cells
from fairtrial.agents.proposers.transforms.constants import find_constants
from fairtrial.agents.proposers.transforms.counters import find_counters
from fairtrial.agents.proposers.transforms.dates import find_dates
from fairtrial.agents.proposers.transforms.divisors import find_divisors
from fairtrial.agents.proposers.transforms.earlier import find_earlier
from fairtrial.agents.proposers.transforms.extremes import find_extremes
from fairtrial.agents.proposers.transforms.heaps import find_heaps
from fairtrial.agents.proposers.transforms.hoists import find_hoists, find_lookups
from fairtrial.agents.proposers.transforms.indexes import find_counts
from fairtrial.agents.proposers.transforms.inner_caches import find_inner_caches
from fairtrial.agents.proposers.transforms.items import find_items
from fairtrial.agents.proposers.transforms.joins import find_joins
from fairtrial.agents.proposers.transforms.levels import find_levels
from fairtrial.agents.proposers.transforms.listings import find_listings
from fairtrial.agents.proposers.transforms.lookups import (
    find_constant_sets,
    find_key_tests,
    find_module_sets,
    find_sets,
)
from fairtrial.agents.proposers.transforms.loops import find_enumerations, find_sums
from fairtrial.agents.proposers.transforms.matches import find_matches
from fairtrial.agents.proposers.transforms.memberships import find_inner_sets
from fairtrial.agents.proposers.transforms.mirrors import find_mirrors
from fairtrial.agents.proposers.transforms.patterns import find_pattern_caches, find_patterns
from fairtrial.agents.proposers.transforms.picks import find_few, find_picks
from fairtrial.agents.proposers.transforms.plain_texts import find_plain_texts
from fairtrial.agents.proposers.transforms.prefixes import find_prefixes
from fairtrial.agents.proposers.transforms.prepends import find_prepends
from fairtrial.agents.proposers.transforms.queues import find_appends, find_queues
from fairtrial.agents.proposers.transforms.ready_heaps import find_ready_heaps
from fairtrial.agents.proposers.transforms.slices import find_offsets, find_slice_fills
from fairtrial.agents.proposers.transforms.tallies import find_tallies
from fairtrial.agents.proposers.transforms.windows import find_windows
from fairtrial.agents.proposers.transforms.writing import can_write, write_changes

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
    is_small: whether it gains little at best, and may cost something
    assumes: what it takes for granted where syntax can't tell; empty if there is no such thing
    """

    name: str
    family: str
    find: Callable[[Source], Iterator[Change]] | None
    is_small: bool = False
    assumes: str = ""


CATALOGUE = (
    Transformation("ready_heap", "heaps", find_ready_heaps, assumes=assumptions.ORDER),
    Transformation("levels", "levels", find_levels, assumes=assumptions.UNCHANGED),
    Transformation("cache", "caches", find_caches, assumes=assumptions.REMEMBERED),
    Transformation("inner_cache", "caches", find_inner_caches, assumes=assumptions.REMEMBERED),
    Transformation("match_index", "indexes", find_matches, assumes=assumptions.KEYS),
    Transformation("inner_set", "lookups", find_inner_sets, assumes=assumptions.HASHABLE),
    Transformation("set_beside", "lookups", find_sets, assumes=assumptions.HASHABLE),
    Transformation("mirror_set", "lookups", find_mirrors, assumes=assumptions.HASHABLE),
    Transformation("asked_set", "lookups", find_asked_sets, assumes=assumptions.HASHABLE),
    Transformation("heap", "heaps", find_heaps, assumes=assumptions.ORDER),
    Transformation("running_sum", "prefixes", find_prefixes, assumes=assumptions.SUMS),
    Transformation("window_sum", "prefixes", find_windows, assumes=assumptions.WHOLE_PLACES),
    Transformation("square_root", "divisors", find_divisors, assumes=assumptions.WHOLE),
    Transformation("count_index", "indexes", find_counts, assumes=assumptions.HASHABLE),
    Transformation("place_index", "indexes", find_earlier, assumes=assumptions.HASHABLE),
    Transformation("items", "items", find_items, assumes=assumptions.DICTIONARY),
    Transformation("iso_date", "dates", find_dates),
    Transformation("hoist", "hoists", find_hoists, assumes=assumptions.SAME),
    Transformation("deque", "queues", find_queues),
    Transformation("append", "queues", find_appends, assumes=assumptions.LATER),
    Transformation("prepend", "queues", find_prepends, assumes=assumptions.LATER),
    Transformation("accumulator", "joins", find_accumulators, assumes=assumptions.LATER),
    Transformation("slice_fill", "slices", find_slice_fills, assumes=assumptions.PLACES),
    Transformation("offset", "slices", find_offsets, assumes=assumptions.A_TEXT),
    Transformation("counter", "loops", find_counters, assumes=assumptions.UNCHANGED),
    Transformation("best", "loops", find_bests, assumes=assumptions.COMPARED),
    Transformation("pick", "picks", find_picks, assumes=assumptions.COMPARED),
    Transformation("join", "joins", find_joins, assumes=assumptions.TEXTS),
    Transformation("module_set", "lookups", find_module_sets, assumes=assumptions.TABLES),
    Transformation("plain_text", "patterns", find_plain_texts, assumes=assumptions.A_TEXT),
    Transformation("pattern", "patterns", find_patterns),
    Transformation("pattern_cache", "patterns", find_pattern_caches),
    Transformation("module_constant", "constants", find_constants),
    Transformation("cell", "joins", find_cells, assumes=assumptions.LATER),
    Transformation("min_max", "extremes", find_extremes),
    Transformation("tally", "loops", find_tallies, is_small=True, assumes=assumptions.MEMORY),
    Transformation("listing", "listings", find_listings, is_small=True, assumes=assumptions.LISTED),
    Transformation("ruff", "ruff", None, is_small=True, assumes=assumptions.LISTS),
    Transformation("sum", "loops", find_sums, is_small=True, assumes=assumptions.SUMS),
    Transformation(
        "constant_set", "lookups", find_constant_sets, is_small=True, assumes=assumptions.SOUGHT
    ),
    Transformation(
        "key_test", "lookups", find_key_tests, is_small=True, assumes=assumptions.SOUGHT
    ),
    Transformation(
        "enumerate", "loops", find_enumerations, is_small=True, assumes=assumptions.UNCHANGED
    ),
    Transformation("lookup", "hoists", find_lookups, is_small=True, assumes=assumptions.SAME_NAMES),
    Transformation("few", "picks", find_few, is_small=True, assumes=assumptions.COMPARED),
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
    text = text.removeprefix("\ufeff")
    if read_source(text) is None:
        return "it can't be parsed"
    return None if can_write(text) else "libcst can't parse it, though Python can"


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
    fixed = ruff.fix_some(text, only)
    if fixed.text == text or not _parses(fixed.text):
        return Applied(text)
    # Ruff numbers lines anew while it goes: those of the old text are what can be told.
    lines = ", ".join(map(str, fixed.lines))
    return Applied(fixed.text, (f"line {lines}: ruff's fixes",), fixed.scopes)


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
