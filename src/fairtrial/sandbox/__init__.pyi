"""The names of `fairtrial.sandbox`; `_facade.attach` reads them from here."""

from fairtrial.sandbox import (
    capabilities as capabilities,
    cgroup as cgroup,
    system as system,
    warm_start as warm_start,
    wire as wire,
)
from fairtrial.sandbox.commands import (
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
)
from fairtrial.sandbox.host_lock import (
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
from fairtrial.sandbox.timing_conditions import (
    survey_timing as survey_timing,
    usable_cores as usable_cores,
)
from fairtrial.sandbox.trusted import (
    run_trusted as run_trusted,
)
