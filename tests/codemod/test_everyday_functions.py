"""Everyday slow functions that were written before the transformations were looked at."""

import importlib.util
from pathlib import Path

import pytest

from fairtrial_codemod.catalog import CATALOG, transform

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = sorted(path.stem for path in (BENCHMARKS / "codemod_functions").glob("*.py"))
MISSED = {
    *("running_maximum", "prefix_sums", "transpose", "multiply", "moving_average"),
    *("medians_of_prefixes", "group_anagrams", "count_paths", "cheapest_route", "is_prime"),
    *("primes_below", "divisors", "histogram"),
}
"""The functions for which nothing is proposed; benchmarks/README.md lists them."""


def read_benchmark():
    """The benchmark that has their inputs."""
    path = BENCHMARKS / "codemod_coverage.py"
    spec = importlib.util.spec_from_file_location("codemod_coverage", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("module", MODULES)
def test_functions_behave_as_before_and_only_the_known_ones_are_missed(module):
    benchmark = read_benchmark()
    text = new = (BENCHMARKS / "codemod_functions" / f"{module}.py").read_text("utf-8")
    changed = set()
    for transformation in CATALOG:
        applied = transform(new, transformation.name)
        changed |= {scope.partition(".")[0] for scope in applied.scopes}
        new = applied.text
    names = {line[4:].partition("(")[0] for line in text.splitlines() if line.startswith("def ")}
    assert names - changed == names & MISSED
    for name in sorted(names):
        before, after = benchmark.load(text, name), benchmark.load(new, name)
        assert benchmark.is_right(before, after, name, scales=(4, 20, 60)), name


def test_every_function_has_inputs():
    inputs = read_benchmark().make_inputs(1)
    assert inputs.keys() >= MISSED
    assert len(inputs) == 50
