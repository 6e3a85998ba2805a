"""The names of `fairtrial.sandbox`; `_facade.attach` reads them from here."""

from fairtrial.sandbox import (
    warm_start as warm_start,
    wire as wire,
)
from fairtrial.sandbox.capabilities import (
    HostFact as HostFact,
    HostSurvey as HostSurvey,
    survey_host as survey_host,
)
from fairtrial.sandbox.cgroup import (
    remove_finished_groups as remove_finished_groups,
    remove_orphaned_groups as remove_orphaned_groups,
)
from fairtrial.sandbox.commands import (
    CHANNEL_VARIABLE as CHANNEL_VARIABLE,
    Captured as Captured,
    Command as Command,
    Completed as Completed,
    Ending as Ending,
    Limits as Limits,
    Mount as Mount,
    View as View,
)
from fairtrial.sandbox.harness.watcher import (
    MAX_WALL_FACTOR as MAX_WALL_FACTOR,
)
from fairtrial.sandbox.host_busy import (
    HostBusy as HostBusy,
    describe_timing_process as describe_timing_process,
)
from fairtrial.sandbox.host_lock import (
    WAITING as WAITING,
    HostLock as HostLock,
    Lease as Lease,
)
from fairtrial.sandbox.plain import (
    Plain as Plain,
)
from fairtrial.sandbox.process import (
    run_command as run_command,
)
from fairtrial.sandbox.protocol import (
    Sandbox as Sandbox,
)
from fairtrial.sandbox.remedies import (
    install_hint as install_hint,
)
from fairtrial.sandbox.selection import (
    find_sandbox as find_sandbox,
)
from fairtrial.sandbox.system import (
    own_python as own_python,
    own_python_mounts as own_python_mounts,
    system_mounts as system_mounts,
)
from fairtrial.sandbox.timing_conditions import (
    survey_timing as survey_timing,
    usable_cores as usable_cores,
)
from fairtrial.sandbox.trusted import (
    run_trusted as run_trusted,
)
