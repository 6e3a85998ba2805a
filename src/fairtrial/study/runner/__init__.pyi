"""The names of `fairtrial.study.runner`; `_facade.attach` reads them from here."""

from fairtrial.study.runner.bindings import (
    find_plugin_mistakes as find_plugin_mistakes,
)
from fairtrial.study.runner.control import (
    control_study as control_study,
)
from fairtrial.study.runner.preparation import (
    prepare as prepare,
)
from fairtrial.study.runner.run import (
    execute_study as execute_study,
)
from fairtrial.study.runner.run_settings import (
    RunSettings as RunSettings,
)
from fairtrial.study.runner.session_settings import (
    restore_settings as restore_settings,
)
from fairtrial.study.runner.study_status import (
    StudyStatus as StudyStatus,
    read_status as read_status,
)
