"""Space-filling designs over numeric ranges: Latin hypercubes, Sobol and Halton sequences.

All of them generate points in the unit cube, with one axis for each factor, and scale them to the
factors' ranges at the end.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.maximin import measure_spread, spread_apart
from fairtrial.study.design.ranges import Points, find_range_mistakes, plan_samples, scale
from fairtrial.study.design.rows import number_rows
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.identity import hash_id
from fairtrial.study.model.study import Study

MAX_COMPARED = 1_000
"""The most samples that `maximin` compares pair by pair, which takes memory of their square."""
MAX_MEASURED = 2_000
"""The most samples whose discrepancy is computed, which takes time of their square."""


@dataclass(frozen=True, slots=True)
class LatinHypercube(Record):
    """Samples that cover every factor's range evenly: one in each of n equal strata.

    `design_spec.n_samples` is the number of samples. A factor's range is from its smallest to its
    largest level.

    bounds: low and high of each factor, in place of its levels
    backend: the source of random numbers: `stdlib` gives the same rows everywhere; `scipy` (or
        `qmc`) those of the installed scipy
    criterion: `maximin` maximizes the smallest distance between two samples in the unit cube; every
        stratum keeps its one sample
    tries: how many swaps `maximin` tries; more are slower and slightly better
    integers: whether factors of dtype int get whole numbers, low and high included, each with an
        equal share of the range; otherwise their values are fractions
    """

    bounds: Mapping[str, tuple[float, float]] | None = None
    backend: Literal["stdlib", "scipy", "qmc"] = "stdlib"
    criterion: Literal["maximin"] | None = None
    tries: int = 10_000
    integers: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        yield from find_range_mistakes(self.bounds)
        if self.tries < 1:
            yield Mistake(("tries",), f"must be 1 or more, got {self.tries}")

    def table(self, study: Study) -> DesignTable:
        """Return the table of samples; raises `StudyError` if a factor has no numeric range."""
        count, ranges = plan_samples(study, self.bounds, self.integers)
        seed = study.seed_policy.base_seed
        facts: dict[str, Any] = {"samples": count}

        def draw() -> Points:
            if self.backend == "stdlib":
                return draw_latin_hypercube(count, len(ranges), seed)
            points: Points = _engine("LatinHypercube", len(ranges), seed).random(count).tolist()
            return points

        if self.criterion == "maximin":
            if count > MAX_COMPARED:
                raise StudyError(
                    Mistake(
                        ("design_spec", "n_samples"),
                        f"maximin compares all pairs of samples, of {MAX_COMPARED:,} at most; "
                        f"got {count:,}",
                        "leave out options.criterion, or use sobol",
                    )
                )
            drawn = draw()
            rng = random.Random(hash_id("maximin", {"base_seed": seed}))
            improved = spread_apart(drawn, self.tries, rng)
            facts["smallest_distance"] = measure_spread(improved)
            facts["smallest_distance_before_maximin"] = measure_spread(drawn)
            return number_rows(study, count, lambda: scale(ranges, improved), facts)
        return number_rows(study, count, lambda: scale(ranges, draw()), facts)


@dataclass(frozen=True, slots=True)
class _LowDiscrepancySequence(Record):
    """The options of Sobol and Halton sequences, and how their points become a table."""

    bounds: Mapping[str, tuple[float, float]] | None = None
    scramble: bool = True
    integers: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        return find_range_mistakes(self.bounds)

    def table(self, study: Study) -> DesignTable:
        """Return the table of points; raises `StudyError` if a factor has no numeric range."""
        count, ranges = plan_samples(study, self.bounds, self.integers)

        def draw() -> Any:
            seed = study.seed_policy.base_seed
            engine = _engine(type(self).__name__, len(ranges), seed, scramble=self.scramble)
            return self._draw(engine, count)

        facts: dict[str, Any] = {"samples": count, **self._facts(count)}
        if count <= MAX_MEASURED:
            from scipy.stats import qmc

            facts["centered_discrepancy"] = float(qmc.discrepancy(draw(), method="CD"))
        return number_rows(study, count, lambda: scale(ranges, draw().tolist()), facts)

    def _draw(self, engine: Any, count: int) -> Any:
        """Return the first points of the sequence."""
        return engine.random(count)

    def _facts(self, count: int) -> Mapping[str, Any]:
        """Return what else is known of so many points."""
        return {}


@dataclass(frozen=True, slots=True)
class Sobol(_LowDiscrepancySequence):
    """The first points of a Sobol sequence: more even than random points, and extensible.

    `design_spec.n_samples` is the number of points; powers of two are balanced. With a larger
    number later, the earlier rows keep their ids, unless rows are randomized or repeated or there
    are center points. The points are those of the installed scipy.

    bounds: low and high of each factor, in place of its smallest and largest level
    scramble: whether the sequence is scrambled by the study's seed; otherwise the first point has
        every factor at its low
    integers: whether factors of dtype int get whole numbers, as for `latin_hypercube`
    """

    def _draw(self, engine: Any, count: int) -> Any:
        # Drawn up to the next power of two, as scipy warns of any other number.
        return engine.random_base2((count - 1).bit_length())[:count]

    def _facts(self, count: int) -> Mapping[str, Any]:
        if not count & (count - 1):
            return {}
        below = 1 << (count.bit_length() - 1)
        return {"balance": f"balanced only at powers of two: {below} or {2 * below}"}


@dataclass(frozen=True, slots=True)
class Halton(_LowDiscrepancySequence):
    """The first points of a Halton sequence: even for any number of points, and extensible.

    `design_spec.n_samples` is the number of points. With a larger number later, the earlier rows
    keep their ids, unless rows are randomized or repeated or there are center points. Best for up
    to about ten factors. The points are those of the installed scipy.

    bounds: low and high of each factor, in place of its smallest and largest level
    scramble: whether the sequence is scrambled by the study's seed; otherwise the first point has
        every factor at its low
    integers: whether factors of dtype int get whole numbers, as for `latin_hypercube`
    """


def draw_latin_hypercube(count: int, dimensions: int, seed: int) -> list[tuple[float, ...]]:
    """Return the points of a Latin hypercube: on each axis one in each stratum, shuffled.

    The order in which random numbers are drawn must not change: rows, and so condition ids, are the
    same as those of *design-research-experiments* 0.3.
    """
    rng = random.Random(seed)
    columns = []
    for _ in range(dimensions):
        column = []
        for stratum in range(count):
            start, end = stratum / count, (stratum + 1) / count
            column.append(start + rng.random() * (end - start))
        rng.shuffle(column)
        columns.append(column)
    return list(zip(*columns, strict=True))


def _engine(name: str, dimensions: int, seed: int, **options: Any) -> Any:
    """Return a seeded sampler of `scipy.stats.qmc`."""
    from scipy.stats import qmc

    sampler = getattr(qmc, name)
    # scipy 1.15 renamed the parameter `seed`.
    parameter = "rng" if "rng" in inspect.signature(sampler).parameters else "seed"
    # numpy takes no negative seeds; they are mapped beyond the range of ordinary seeds.
    return sampler(dimensions, **{parameter: seed if seed >= 0 else 2**64 - seed}, **options)
