"""The names of `fairtrial.study.files`; `_facade.attach` reads them from here."""

from fairtrial.study.files.json_schema import (
    study_schema as study_schema,
)
from fairtrial.study.files.overrides import (
    override as override,
)
from fairtrial.study.files.reading import (
    LoadedStudy as LoadedStudy,
    read_study as read_study,
)
from fairtrial.study.files.writing import (
    write_study as write_study,
)
