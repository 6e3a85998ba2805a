"""The names of `fairtrial.arena.suites`; `_facade.attach` reads them from here."""

from fairtrial.arena.suites.pytest_json import (
    FileComparison as FileComparison,
    compare_files as compare_files,
    is_pytest_json as is_pytest_json,
    write_pytest_json as write_pytest_json,
)
from fairtrial.arena.suites.targets import (
    is_suite as is_suite,
    suite_problem as suite_problem,
)
