"""The names of `fairtrial.core`; `_facade.attach` reads them from here."""

from fairtrial.core import (
    canonical as canonical,
    documents as documents,
    events as events,
    fields as fields,
    json_schema as json_schema,
    notebook_html as notebook_html,
    plugins as plugins,
    sequential as sequential,
    syntax_checks as syntax_checks,
    table_files as table_files,
)
from fairtrial.core.atomic_files import (
    atomic_write as atomic_write,
)
from fairtrial.core.blocking import (
    run_blocking as run_blocking,
)
from fairtrial.core.canonical import (
    canonical_json as canonical_json,
)
from fairtrial.core.errors import (
    AccessError as AccessError,
    Broken as Broken,
    FairtrialError as FairtrialError,
    FieldPath as FieldPath,
    LabError as LabError,
    LedgerError as LedgerError,
    MisfitError as MisfitError,
    Mistake as Mistake,
    PluginError as PluginError,
    StudyError as StudyError,
    did_you_mean as did_you_mean,
    on_one_line as on_one_line,
)
from fairtrial.core.record import (
    Record as Record,
    build_record as build_record,
    convert_value as convert_value,
    describe_value as describe_value,
    dump_record as dump_record,
)
from fairtrial.core.scalars import (
    is_scalar as is_scalar,
    plain_number as plain_number,
    scalar_text as scalar_text,
)
from fairtrial.core.task_groups import (
    run_all as run_all,
    single_cause as single_cause,
)
