"""The names of `fairtrial.view`; `_facade.attach` reads them from here."""

from fairtrial.view.serving import (
    Viewer as Viewer,
)
