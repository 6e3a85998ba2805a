"""The names of `fairtrial.core`; `_facade.attach` reads them from here."""

from fairtrial.core import (
    plugins as plugins,
)
from fairtrial.core.canonical import (
    DEPTH_LIMIT as DEPTH_LIMIT,
    SAME_KEY as SAME_KEY,
    TOO_DEEP as TOO_DEEP,
    canonical_json as canonical_json,
    key_text as key_text,
    plain as plain,
    same_text as same_text,
)
from fairtrial.core.documents.document import (
    Document as Document,
    parse as parse,
)
from fairtrial.core.documents.files import (
    StudyWarning as StudyWarning,
    format_of as format_of,
    is_problem as is_problem,
    is_study as is_study,
    read_text as read_text,
)
from fairtrial.core.documents.json_nodes import (
    compose_json as compose_json,
)
from fairtrial.core.documents.nodes import (
    SIZE_LIMIT_BYTES as SIZE_LIMIT_BYTES,
    VALUE_LIMIT as VALUE_LIMIT,
    printable as printable,
)
from fairtrial.core.documents.surprises import (
    looks_like_number as looks_like_number,
)
from fairtrial.core.errors import (
    Broken as Broken,
    FairtrialError as FairtrialError,
    LabError as LabError,
    LedgerError as LedgerError,
    MisfitError as MisfitError,
    Mistake as Mistake,
    Place as Place,
    PluginError as PluginError,
    StudyError as StudyError,
    blaming_nobody as blaming_nobody,
    did_you_mean as did_you_mean,
    on_one_line as on_one_line,
    spell_count as spell_count,
    spell_path as spell_path,
)
from fairtrial.core.events import (
    Emit as Emit,
    Event as Event,
    HostWaitEnded as HostWaitEnded,
    HostWaitStarted as HostWaitStarted,
    Phase as Phase,
    PhaseStarted as PhaseStarted,
    Remark as Remark,
    emit_to_all as emit_to_all,
    ignore_event as ignore_event,
)
from fairtrial.core.fields import (
    NOT_IN_FILES as NOT_IN_FILES,
    field_docs as field_docs,
    field_types as field_types,
    required_fields as required_fields,
)
from fairtrial.core.files import (
    expand as expand,
    keep_out_of_git as keep_out_of_git,
    replacing as replacing,
)
from fairtrial.core.foreign import (
    fields_of as fields_of,
    plain_number as plain_number,
)
from fairtrial.core.json_schema import (
    Schema as Schema,
    SchemaRules as SchemaRules,
    file_schema as file_schema,
    record_schema as record_schema,
    requires as requires,
)
from fairtrial.core.notation import (
    OUR_PREFIX as OUR_PREFIX,
    OURS as OURS,
    command_mistakes as command_mistakes,
    function_mistakes as function_mistakes,
    maker_mistakes as maker_mistakes,
    path_mistakes as path_mistakes,
    spell_words as spell_words,
    split_pattern as split_pattern,
    take_misspelt_commands as take_misspelt_commands,
    variable_mistakes as variable_mistakes,
)
from fairtrial.core.plugins import (
    load_reference as load_reference,
)
from fairtrial.core.record import (
    Record as Record,
    blank as blank,
    build as build,
    convert as convert,
    describe as describe,
    dump as dump,
)
from fairtrial.core.scalars import (
    is_scalar as is_scalar,
    scalar_text as scalar_text,
)
from fairtrial.core.table_files import (
    any_field_size as any_field_size,
    cell as cell,
    check_format as check_format,
    has_pyarrow as has_pyarrow,
    require_pyarrow as require_pyarrow,
    spell_rows as spell_rows,
    write_table as write_table,
)
