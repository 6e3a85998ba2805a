"""All transformations, the most promising first, and how one is applied to a source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from fairtrial_codemod import assumptions, ruff
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, read_source
from fairtrial_codemod.transforms.comparisons import find_comparisons
from fairtrial_codemod.transforms.constant_sets import find_constant_sets, find_module_sets
from fairtrial_codemod.transforms.growing_sets import find_growing_sets
from fairtrial_codemod.transforms.growth import find_appends, find_joins, find_prepends
from fairtrial_codemod.transforms.hoists import find_hoists
from fairtrial_codemod.transforms.inlining import find_inlinable_calls
from fairtrial_codemod.transforms.list_arguments import find_list_arguments
from fairtrial_codemod.transforms.lookup_sets import find_lookup_sets
from fairtrial_codemod.transforms.manual_sorts import find_manual_sorts
from fairtrial_codemod.transforms.memoization import find_caches
from fairtrial_codemod.transforms.module_constants import find_module_constants
from fairtrial_codemod.transforms.nested_scans import find_nested_scans
from fairtrial_codemod.transforms.queues import find_deques
from fairtrial_codemod.transforms.recursive_prepends import find_recursive_prepends
from fairtrial_codemod.transforms.regex_patterns import find_pattern_caches, find_patterns
from fairtrial_codemod.transforms.scan_indexes import find_scan_indexes
from fairtrial_codemod.writing import write_changes

MAX_ROUNDS = 4
"""A change may make another one possible; this often it is looked for."""
MAX_CHARACTERS = 400_000
_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class Transformation:
    """One way to make code faster.

    name: its name in recipes and options
    family: the name of a group of transformations, for options
    find: yields the places where it applies; None for ruff, which has its own rules
    is_small: whether it gains little at best
    assumes: what it assumes where syntax can't tell; empty if nothing
    """

    name: str
    family: str
    find: Callable[[SourceFile], Iterator[CodeChange]] | None
    is_small: bool = False
    assumes: str = ""


def _find_all_prepends(source: SourceFile) -> Iterator[CodeChange]:
    return chain(find_prepends(source), find_recursive_prepends(source))


CATALOG = (
    Transformation("sort", "sorts", find_manual_sorts, assumes=assumptions.ORDER),
    Transformation("cache", "caches", find_caches, assumes=assumptions.REMEMBERED),
    Transformation("growing_set", "lookups", find_growing_sets, assumes=assumptions.HASHABLE),
    Transformation("lookup_set", "lookups", find_lookup_sets, assumes=assumptions.SEARCHED),
    Transformation("hoist", "hoists", find_hoists, assumes=assumptions.HOISTED),
    Transformation("scan_index", "indexes", find_scan_indexes, assumes=assumptions.HASHABLE),
    Transformation("scan_group", "indexes", find_nested_scans, assumes=assumptions.GROUPED),
    Transformation("deque", "queues", find_deques),
    Transformation("append", "queues", find_appends, assumes=assumptions.COMPLETE),
    Transformation("prepend", "queues", _find_all_prepends, assumes=assumptions.INTERNAL),
    Transformation("inline", "inlining", find_inlinable_calls, assumes=assumptions.INLINED),
    Transformation("join", "joins", find_joins, assumes=assumptions.TEXTS),
    Transformation("module_set", "lookups", find_module_sets, assumes=assumptions.TABLES),
    Transformation("pattern", "patterns", find_patterns),
    Transformation("pattern_cache", "patterns", find_pattern_caches),
    Transformation("module_constant", "constants", find_module_constants),
    Transformation("min_max", "loops", find_comparisons),
    Transformation(
        "listing", "loops", find_list_arguments, is_small=True, assumes=assumptions.LISTED
    ),
    Transformation(
        "constant_set", "lookups", find_constant_sets, is_small=True, assumes=assumptions.CONSTANTS
    ),
    Transformation("ruff", "ruff", None, is_small=True, assumes=assumptions.LISTS),
)
BY_NAME = {transformation.name: transformation for transformation in CATALOG}


@dataclass(frozen=True, slots=True)
class AppliedTransform:
    """The result of a transformation.

    text: the new source
    notes: what was changed, a line each
    scopes: the functions that were changed; "" for the module itself
    """

    text: str
    notes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


def get_refusal(text: str) -> str | None:
    """Return why a file can't be transformed; None if it can."""
    if len(text) > MAX_CHARACTERS:
        return f"it is larger than {MAX_CHARACTERS} characters"
    for line in text.split("\n", 2)[:2]:
        coding = _CODING.match(line)
        if coding and coding[1].lower().replace("_", "-") not in ("utf-8", "utf8", "ascii"):
            return f"it is written in {coding[1]}"
    text = text.removeprefix("\ufeff")
    return "it can't be parsed" if read_source(text) is None else None


@lru_cache(maxsize=8192)
def transform(text: str, name: str, only: frozenset[str] | None = None) -> AppliedTransform:
    """Apply a transformation to a source, in some functions only or wherever it applies.

    The result depends on the arguments alone. Code that can't be changed safely stays unchanged.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    applied = AppliedTransform(text.removeprefix(mark))
    try:
        for _ in range(MAX_ROUNDS):
            following = _apply_round(applied, BY_NAME[name], only)
            if following is applied:
                break
            applied = following
    except RecursionError:
        return AppliedTransform(text)
    return AppliedTransform(mark + applied.text, applied.notes, applied.scopes)


def _apply_ruff(applied: AppliedTransform, only: frozenset[str] | None) -> AppliedTransform:
    fixed = ruff.fix_some(applied.text, only)
    if fixed.text == applied.text or not _parses(fixed.text):
        return applied
    notes = (*applied.notes, f"line {', '.join(map(str, fixed.lines))}: ruff's fixes")
    scopes = dict.fromkeys((*applied.scopes, *fixed.scopes))
    return AppliedTransform(fixed.text, notes, tuple(scopes))


def _apply_round(
    applied: AppliedTransform, transformation: Transformation, only: frozenset[str] | None
) -> AppliedTransform:
    if transformation.find is None:
        return _apply_ruff(applied, only)
    source = read_source(applied.text)
    if source is None:
        return applied
    changes = [
        change for change in transformation.find(source) if only is None or change.scope in only
    ]
    changes.sort(key=lambda change: change.line)
    # If all of them together can't be written, the first that can be alone is.
    for group in (changes, *([change] for change in changes)):
        text, done = write_changes(source, group)
        if done and text != applied.text and _parses(text):
            notes = [f"line {change.line}: {change.description}" for change in done]
            scopes = dict.fromkeys((*applied.scopes, *(change.scope for change in done)))
            return AppliedTransform(text, (*applied.notes, *notes), tuple(scopes))
    return applied


def _parses(text: str) -> bool:
    try:
        compile(text, "module.py", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
