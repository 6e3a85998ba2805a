"""The names of `fairtrial.study.problems`; `_facade.attach` reads them from here."""

from fairtrial.study.problems.hooks import (
    Parcel as Parcel,
    ProblemHooks as ProblemHooks,
    ProblemReference as ProblemReference,
)
from fairtrial.study.problems.moved_paths import (
    find_moved as find_moved,
)
from fairtrial.study.protocols import (
    Problem as Problem,
)
