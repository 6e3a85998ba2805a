"""What studies and agents written for *design-research-experiments* need, as an extension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.compat.keyword_arguments import KEYWORDS
from fairtrial.compat.legacy_keys import modernise
from fairtrial.core import Mistake, Place
from fairtrial.study import KeywordArgument, StudyExtension


@dataclass(frozen=True, slots=True)
class CompatExtension(StudyExtension):
    """Accepts keys of older study files, and agents that take keyword arguments."""

    def modernize(
        self, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        """Return a study's data with its legacy keys replaced."""
        return modernise(data, path, mistakes)

    def keyword_arguments(self) -> Mapping[str, KeywordArgument]:
        """Return the ten keywords and what each gets."""
        return KEYWORDS
