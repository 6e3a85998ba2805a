"""The names of `fairtrial.study.tables`; `_facade.attach` reads them from here."""

from fairtrial.study.exports.inspect_logs import (
    export_inspect as export_inspect,
)
from fairtrial.study.exports.mlflow_runs import (
    export_mlflow as export_mlflow,
)
from fairtrial.study.exports.otel import (
    export_otel as export_otel,
)
from fairtrial.study.tables.bundle import (
    verify_bundle as verify_bundle,
)
from fairtrial.study.tables.export import (
    COMPLETE_CASES_FOLDER as COMPLETE_CASES_FOLDER,
    export_tables as export_tables,
)
from fairtrial.study.tables.rows import (
    Row as Row,
    as_cell as as_cell,
    as_json as as_json,
)
from fairtrial.study.tables.run_listing import (
    ListedRun as ListedRun,
    list_runs as list_runs,
)
