"""Response-surface designs: enough points of numeric factors to fit a full quadratic model.

Points are coded, -1 at a factor's smallest level and 1 at its largest, and read back at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.aliases import LETTERS, Product
from fairtrial.study.design.coded_points import Point, read_axes, read_point, refuse_fractions
from fairtrial.study.design.fractional import MOST_FACTORS, coded_rows, published_fraction
from fairtrial.study.design.rows import Assignment, number_rows
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.study import Study

# Factors that vary together, with all others in the middle; how many centre runs there are.
PUBLISHED: dict[int, tuple[str, int]] = {
    3: ("AB AC BC", 3),
    4: ("AB CD AD BC AC BD", 3),
    5: ("AB CD BE AC DE BC AD CE AE BD", 6),
    6: ("ABD BCE CDF ADE BEF ACF", 6),
    7: ("DEF AFG BEG ABD CDG ACE BCF", 6),
    9: ("ADG BEH CFJ ABC DEF GHJ AEJ CDH BFG AFH BDJ CEG ADG BEH CFJ", 10),
    10: ("BFGK ABEK BCGH BDFJ AHJK CDEK ADGH CEGJ ACFJ DEFH", 10),
    11: ("CGHJL ADHJK BEJKL ACFKL ABDGL ABCEH BCDFJ CDEGK DEFHL AEFGJ BFGHK", 12),
    12: ("ABEG BCFH CDGJ DEHK EFJL FGKM AGHL BHJM ACJK BDKL CELM ADFM", 12),
    16: (
        "ABFJ CDHL EKNO GMPQ BCGK ADEM FLOP HJNQ BEFN DGHP AJKO CLMQ "
        "CFGO AEHQ BKLP DJMN ACNP BDOQ EGJL FHKM DFKQ CEJP AGLN BHMO",
        12,
    ),
}
"""The designs of Box & Behnken, "Some new three level designs for the study of quantitative
variables", *Technometrics* 2 (1960), as later programs that cite the paper have them (it was not
at hand; tests compute what the designs promise), by the usual letters (without I). Each group takes
all combinations of low and high; a group of five the half of them with E = ABCD."""


@dataclass(frozen=True, slots=True)
class CentralComposite(Record):
    """A cube of two-level points, two points on each factor's axis, and runs in the centre.

    A factor's smallest and largest level are its range. By default no point lies outside of it: a
    range is often a hard limit (a share, a temperature, a number of tokens).

    alpha: how far axial points lie from the centre, where the cube's corners are at 1: `rotatable`
        (predictions are equally good in all directions; Box & Hunter 1957), `orthogonal`
        (quadratic effects are estimated independently of each other; Box & Wilson 1951),
        `spherical` (as far as the corners), `face` (1), or a number
    face: how that fits the ranges: `inscribed` shrinks the whole design until it lies within them,
        `circumscribed` puts the corners at their ends and axial points outside, `faced` has both at
        their ends: alpha is 1, and three levels do
    fraction: whether the cube is the smallest fraction of resolution V; the quadratic model needs
        no more, and from 5 factors on it saves half of the corners and then more
    center: runs in the centre; 3 to 5 measure pure error and steady predictions there
    """

    alpha: float | Literal["rotatable", "orthogonal", "spherical", "face"] = "rotatable"
    face: Literal["inscribed", "circumscribed", "faced"] = "inscribed"
    fraction: bool = True
    center: int = 4

    def _mistakes(self) -> Iterator[Mistake]:
        if isinstance(self.alpha, float) and self.alpha <= 0:
            yield Mistake(("alpha",), f"must be above 0, got {self.alpha:g}")
        if self.face == "faced" and self.alpha not in ("rotatable", "face", 1.0):
            yield Mistake(("alpha",), "is 1 where face is `faced`", "leave one of the two out")
        if self.center < 0:
            yield Mistake(("center",), f"must be 0 or more, got {self.center}")

    def table(self, study: Study) -> DesignTable:
        axes = read_axes(study, least=2)
        count = len(axes)
        base, columns = self._cube(count)
        alpha = self._distance(study, count, 2**base)
        # The model's rank falls by one where all points are equally far from the centre.
        if math.isclose(alpha * alpha, count):
            refuse_no_center(study, self.center)
        unit = 1 / alpha if self.face == "inscribed" and alpha > 1 else 1.0
        star = 1.0 if self.face == "inscribed" and alpha > 1 else alpha
        refuse_fractions(axes, (0.0, -unit, unit, -star, star))

        def make() -> list[Assignment]:
            cube = (tuple(unit * sign for sign in row) for row in coded_rows(base, columns))
            center = [(0.0,) * count] * self.center
            return [read_point(axes, point) for point in (*cube, *_star(count, star), *center)]

        runs = 2**base + 2 * count + self.center
        facts = {
            "rows": runs,
            "alpha": alpha,
            "cube": 2**base,
            "axial": 2 * count,
            "center": self.center,
            "ranges": {a.name: [a.at(-max(unit, star)), a.at(max(unit, star))] for a in axes},
            "rank": count_terms(count),
        }
        return number_rows(study, runs, make, facts)

    def _cube(self, count: int) -> tuple[int, list[Product]]:
        if not self.fraction:
            return count, [Product(1 << index) for index in range(count)]
        if count > MOST_FACTORS:
            raise StudyError(
                Mistake(
                    ("factors",),
                    f"the cube's fractions are listed for up to {MOST_FACTORS} factors; "
                    f"there are {count}",
                    "find those that matter first (plackett_burman), or use d_optimal",
                )
            )
        return published_fraction(count, "V")

    def _distance(self, study: Study, count: int, cube: int) -> float:
        """`alpha` as a number; square roots only, which are the same on every machine."""
        if self.alpha == "face" or self.face == "faced":
            return 1.0
        if self.alpha == "rotatable":
            return math.sqrt(math.sqrt(cube))
        if self.alpha == "spherical":
            return math.sqrt(count)
        if self.alpha == "orthogonal":
            spec = study.design_spec
            runs = cube + 2 * count + self.center + spec.center_points / spec.replicates
            return math.sqrt((math.sqrt(cube * runs) - cube) / 2)
        assert isinstance(self.alpha, float)
        return self.alpha


@dataclass(frozen=True, slots=True)
class BoxBehnken(Record):
    """Points in the middle of edges or faces of the cube, and runs in its centre; no corners.

    Three levels of each factor: its smallest, its largest, and halfway. Good where all factors at
    an extreme at once would be too expensive or impossible. For 3 to 7, 9 to 12 and 16 factors.

    center: runs in the centre; by default as many as published: 3 to 12, by the number of factors
    """

    center: int | None = None

    def _mistakes(self) -> Iterator[Mistake]:
        if self.center is not None and self.center < 0:
            yield Mistake(("center",), f"must be 0 or more, got {self.center}")

    def table(self, study: Study) -> DesignTable:
        axes = read_axes(study, least=3)
        count = len(axes)
        if count not in PUBLISHED:
            raise StudyError(
                Mistake(
                    ("factors",),
                    f"Box-Behnken designs exist for 3 to 7, 9 to 12 and 16 factors, not {count}",
                    "use central_composite, with face: faced for three levels",
                )
            )
        groups, published_center = PUBLISHED[count]
        center = published_center if self.center is None else self.center
        refuse_no_center(study, center)
        refuse_fractions(axes, (-1.0, 0.0, 1.0))

        def make() -> list[Assignment]:
            points = [*edge_points(count, groups.split()), *[(0.0,) * count] * center]
            return [read_point(axes, point) for point in points]

        edges = sum(2 ** min(len(group), 4) for group in groups.split())
        facts = {
            "rows": edges + center,
            "edges": edges,
            "center": center,
            "rank": count_terms(count),
        }
        return number_rows(study, edges + center, make, facts)


def edge_points(count: int, groups: Sequence[str]) -> Iterator[Point]:
    """For each group of factors its combinations of low and high, all others in the middle."""
    for group in groups:
        members = [LETTERS.index(letter) for letter in group]
        # Half of the combinations of five factors: the last is the product of the others.
        base = min(len(members), 4)
        for signs in itertools.product((-1.0, 1.0), repeat=base):
            point = [0.0] * count
            for member, sign in zip(members, (*signs, math.prod(signs)), strict=False):
                point[member] = sign
            yield tuple(point)


def _star(count: int, distance: float) -> Iterator[Point]:
    for index in range(count):
        for value in (-distance, distance):
            yield tuple(value if other == index else 0.0 for other in range(count))


def count_terms(count: int) -> int:
    """Terms of the full quadratic model: a constant, lines, squares and products of two.

    It is the model's rank too, in every design here: where it would be less, the design is refused.
    """
    return (count + 1) * (count + 2) // 2


def refuse_no_center(study: Study, center: int) -> None:
    """Refuse a design whose points are all equally far from the centre and none in it."""
    if center + study.design_spec.center_points == 0:
        raise StudyError(
            Mistake(
                ("design_spec", "options", "center"),
                "without runs in the centre the quadratic model can't be fitted here",
                "1 will do, 3 or more measure error too",
            )
        )
