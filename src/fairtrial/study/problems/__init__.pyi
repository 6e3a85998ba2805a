"""The names of `fairtrial.study.problems`; `_facade.attach` reads them from here."""

from fairtrial.study.problems.hooks import (
    ProblemHooks as ProblemHooks,
    ProblemReference as ProblemReference,
)
from fairtrial.study.protocols import (
    Problem as Problem,
)
