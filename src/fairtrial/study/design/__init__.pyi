"""The names of `fairtrial.study.design`; `_facade.attach` reads them from here."""

from fairtrial.study.design.agent_options import (
    select_assignments as select_assignments,
)
from fairtrial.study.design.build import (
    design_table as design_table,
)
from fairtrial.study.design.rows import (
    number_rows as number_rows,
)
from fairtrial.study.design.runs import (
    AGENT_FACTORS as AGENT_FACTORS,
    PROBLEM_FACTORS as PROBLEM_FACTORS,
    count_runs as count_runs,
)
from fairtrial.study.model.factors import (
    DESIGN_ALIASES as DESIGN_ALIASES,
)
from fairtrial.study.protocols import (
    Design as Design,
)
