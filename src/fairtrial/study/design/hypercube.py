"""Points spread evenly over numeric ranges: Latin hypercubes, Sobol and Halton sequences.

All of them work on the unit cube, one axis for each factor, and scale the points to the factors'
ranges at the end.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.maximin import measure_spread, spread_apart
from fairtrial.study.design.ranges import Points, Range, empty_ranges, plan_samples, scale
from fairtrial.study.design.rows import number_rows
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.identity import hash_id
from fairtrial.study.model.study import Study

MAX_COMPARED = 1_000
"""More samples than this are not compared pair by pair: that takes their square in memory."""
MAX_MEASURED = 2_000
"""Of more samples than this the discrepancy is not computed: that takes their square in time."""


@dataclass(frozen=True, slots=True)
class LatinHypercube(Record):
    """Samples that cover every factor's range evenly: one in each of n equal strata of it.

    `design_spec.n_samples` is the number of samples. A factor's range goes from its smallest to its
    largest level.

    bounds: low and high of each factor, in place of its levels
    backend: where the random numbers come from: `stdlib` gives the same rows everywhere; `scipy`
        (or `qmc`) those of the installed scipy
    criterion: `maximin` moves the samples apart: the smallest distance between two of them, in the
        unit cube, grows, and every stratum keeps its one sample
    tries: how many swaps `maximin` tries; more is slower and a little better
    integers: whether factors of dtype int get whole numbers, low and high included, each with an
        equal share of the range; without it all values are fractions
    """

    bounds: Mapping[str, tuple[float, float]] | None = None
    backend: Literal["stdlib", "scipy", "qmc"] = "stdlib"
    criterion: Literal["maximin"] | None = None
    tries: int = 10_000
    integers: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        yield from empty_ranges(self.bounds)
        if self.tries < 1:
            yield Mistake(("tries",), f"must be 1 or more, got {self.tries}")

    def table(self, study: Study) -> DesignTable:
        count, ranges = plan_samples(study, self.bounds, self.integers)
        seed = study.seed_policy.base_seed
        facts: dict[str, Any] = {"samples": count}

        def draw() -> Points:
            if self.backend == "stdlib":
                return draw_strata(count, len(ranges), seed)
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
            plain = draw()
            rng = random.Random(hash_id("maximin", {"base_seed": seed}))
            apart = spread_apart(plain, self.tries, rng)
            facts["smallest_distance"] = measure_spread(apart)
            facts["smallest_distance_before_maximin"] = measure_spread(plain)
            return number_rows(study, count, lambda: scale(ranges, apart), facts)
        return number_rows(study, count, lambda: scale(ranges, draw()), facts)


@dataclass(frozen=True, slots=True)
class _Sequence(Record):
    """What sequences of points have in common."""

    bounds: Mapping[str, tuple[float, float]] | None = None
    scramble: bool = True
    integers: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        return empty_ranges(self.bounds)


@dataclass(frozen=True, slots=True)
class Sobol(_Sequence):
    """The first points of a Sobol sequence: more even than random ones, and easy to add to.

    `design_spec.n_samples` is the number of points; powers of two are balanced. A larger number
    later leaves the earlier rows and their ids as they are, where rows are neither randomised nor
    repeated and there are no centre points. The points are those of the installed scipy.

    bounds: low and high of each factor, in place of its smallest and largest level
    scramble: whether the sequence is shifted at random, by the study's seed; without it the first
        point has every factor at its low
    integers: whether factors of dtype int get whole numbers, as for `latin_hypercube`
    """

    def table(self, study: Study) -> DesignTable:
        count, ranges = plan_samples(study, self.bounds, self.integers)

        def draw() -> Any:
            engine = _engine(
                "Sobol", len(ranges), study.seed_policy.base_seed, scramble=self.scramble
            )
            # Drawn up to the next power of two: scipy warns of any other number.
            return engine.random_base2((count - 1).bit_length())[:count]

        facts: dict[str, Any] = {}
        if count & (count - 1):
            below = 1 << (count.bit_length() - 1)
            facts["balance"] = f"balanced only at powers of two: {below} or {2 * below}"
        return _sequence_table(study, ranges, count, draw, facts)


@dataclass(frozen=True, slots=True)
class Halton(_Sequence):
    """The first points of a Halton sequence: even for any number of points, and easy to add to.

    `design_spec.n_samples` is the number of points. A larger number later leaves the earlier rows
    and their ids as they are, where rows are neither randomised nor repeated and there are no
    centre points. Best for up to about ten factors. The points are those of the installed scipy.

    bounds: low and high of each factor, in place of its smallest and largest level
    scramble: whether the sequence is permuted at random, by the study's seed; without it the first
        point has every factor at its low
    integers: whether factors of dtype int get whole numbers, as for `latin_hypercube`
    """

    def table(self, study: Study) -> DesignTable:
        count, ranges = plan_samples(study, self.bounds, self.integers)

        def draw() -> Any:
            engine = _engine(
                "Halton", len(ranges), study.seed_policy.base_seed, scramble=self.scramble
            )
            return engine.random(count)

        return _sequence_table(study, ranges, count, draw, {})


def _sequence_table(
    study: Study,
    ranges: Sequence[Range],
    count: int,
    draw: Callable[[], Any],
    facts: Mapping[str, Any],
) -> DesignTable:
    known: dict[str, Any] = {"samples": count, **facts}
    if count <= MAX_MEASURED:
        from scipy.stats import qmc

        known["centred_discrepancy"] = float(qmc.discrepancy(draw(), method="CD"))
    return number_rows(study, count, lambda: scale(ranges, draw().tolist()), known)


def draw_strata(count: int, dimensions: int, seed: int) -> list[tuple[float, ...]]:
    """A Latin hypercube: for each axis in turn one point in each stratum, and then a shuffle.

    The order in which random numbers are used is part of the format: rows, and so condition ids,
    are the same as those of *design-research-experiments* 0.3.
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
    """A sampler of scipy's, seeded."""
    from scipy.stats import qmc

    kind = getattr(qmc, name)
    # scipy 1.15 renamed the parameter; the older name is on its way out.
    parameter = "rng" if "rng" in inspect.signature(kind).parameters else "seed"
    # numpy takes no negative seeds: those go where no ordinary seed is.
    return kind(dimensions, **{parameter: seed if seed >= 0 else 2**64 - seed}, **options)
