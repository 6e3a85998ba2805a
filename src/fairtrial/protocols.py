"""The seams: what a plug-in has to be.

A plug-in is a frozen dataclass. Its fields are the options that a study may set; they are checked
when the study is loaded.
"""

from __future__ import annotations

from typing import Protocol

from fairtrial.model.conditions import DesignTable
from fairtrial.model.study import Study


class Design(Protocol):
    """Factors in, rows out: a function of the study and its seed alone."""

    def table(self, study: Study) -> DesignTable:
        """The design's rows for this study.

        Says how many there are without making them, so that a plan of a billion is refused at
        once. Raises `StudyError` where the study's factors don't fit the design.
        """
        ...
