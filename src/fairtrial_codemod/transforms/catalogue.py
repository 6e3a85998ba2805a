"""All transformations, the most promising first, and how one is applied to a source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from fairtrial_codemod.transforms import assumptions, ruff
from fairtrial_codemod.transforms.accumulators import find_accumulators
from fairtrial_codemod.transforms.analysis.source import Change, Source, read_source
from fairtrial_codemod.transforms.asked import find_asked_sets
from fairtrial_codemod.transforms.bests import find_bests
from fairtrial_codemod.transforms.caches import find_caches
from fairtrial_codemod.transforms.cells import find_cells
from fairtrial_codemod.transforms.constants import find_constants
from fairtrial_codemod.transforms.counters import find_counters
from fairtrial_codemod.transforms.dates import find_dates
from fairtrial_codemod.transforms.divisors import find_divisors
from fairtrial_codemod.transforms.earlier import find_earlier
from fairtrial_codemod.transforms.extremes import find_extremes
from fairtrial_codemod.transforms.heaps import find_heaps
from fairtrial_codemod.transforms.hoists import find_hoists, find_lookups
from fairtrial_codemod.transforms.indexes import find_counts
from fairtrial_codemod.transforms.inner_caches import find_inner_caches
from fairtrial_codemod.transforms.items import find_items
from fairtrial_codemod.transforms.joins import find_joins
from fairtrial_codemod.transforms.levels import find_levels
from fairtrial_codemod.transforms.listings import find_listings
from fairtrial_codemod.transforms.lookups import (
    find_constant_sets,
    find_key_tests,
    find_module_sets,
    find_sets,
)
from fairtrial_codemod.transforms.loops import find_enumerations, find_sums
from fairtrial_codemod.transforms.matches import find_matches
from fairtrial_codemod.transforms.memberships import find_inner_sets
from fairtrial_codemod.transforms.mirrors import find_mirrors
from fairtrial_codemod.transforms.patterns import find_pattern_caches, find_patterns
from fairtrial_codemod.transforms.picks import find_few, find_picks
from fairtrial_codemod.transforms.plain_texts import find_plain_texts
from fairtrial_codemod.transforms.prefixes import find_prefixes
from fairtrial_codemod.transforms.prepends import find_prepends
from fairtrial_codemod.transforms.queues import find_appends, find_queues
from fairtrial_codemod.transforms.ready_heaps import find_ready_heaps
from fairtrial_codemod.transforms.slices import find_offsets, find_slice_fills
from fairtrial_codemod.transforms.tallies import find_tallies
from fairtrial_codemod.transforms.windows import find_windows
from fairtrial_codemod.transforms.writing import can_write, write_changes

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
