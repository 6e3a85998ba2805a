"""The names of `fairtrial.core`; `_facade.attach` reads them from here."""

from fairtrial.core import (
    plugins as plugins,
)
from fairtrial.core.atomic_files import (
    atomic_write as atomic_write,
    keep_out_of_git as keep_out_of_git,
    resolve_option_path as resolve_option_path,
)
from fairtrial.core.canonical import (
    DEPTH_LIMIT as DEPTH_LIMIT,
    DUPLICATE_KEY as DUPLICATE_KEY,
    TOO_DEEP as TOO_DEEP,
    canonical_json as canonical_json,
    find_equal_values as find_equal_values,
    key_text as key_text,
    to_plain as to_plain,
)
from fairtrial.core.documents.ambiguous_scalars import (
    looks_like_number as looks_like_number,
)
from fairtrial.core.documents.document import (
    Document as Document,
    parse_document as parse_document,
)
from fairtrial.core.documents.document_files import (
    StudyWarning as StudyWarning,
    detect_format as detect_format,
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
    replace_surrogates as replace_surrogates,
)
from fairtrial.core.errors import (
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
    format_count as format_count,
    format_path as format_path,
    on_one_line as on_one_line,
    study_errors_as_misfits as study_errors_as_misfits,
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
from fairtrial.core.json_schema import (
    Schema as Schema,
    SchemaRules as SchemaRules,
    file_schema as file_schema,
    record_schema as record_schema,
    require_field as require_field,
)
from fairtrial.core.plugins import (
    load_reference as load_reference,
)
from fairtrial.core.record import (
    Record as Record,
    blank_mistakes as blank_mistakes,
    build_record as build_record,
    convert_value as convert_value,
    describe_value as describe_value,
    dump_record as dump_record,
)
from fairtrial.core.scalars import (
    is_scalar as is_scalar,
    scalar_text as scalar_text,
)
from fairtrial.core.sequential.alpha_share import (
    alpha_share as alpha_share,
)
from fairtrial.core.sequential.confidence_sequence import (
    LEAST_SPREAD as LEAST_SPREAD,
    half_width as half_width,
)
from fairtrial.core.sequential.group_sequential import (
    conditional_power as conditional_power,
    nominal_levels as nominal_levels,
    spent_levels as spent_levels,
)
from fairtrial.core.sequential.small_samples import (
    small_sample_levels as small_sample_levels,
)
from fairtrial.core.syntax_checks import (
    RESERVED_PREFIX as RESERVED_PREFIX,
    RESERVED_VARIABLES as RESERVED_VARIABLES,
    command_mistakes as command_mistakes,
    drop_malformed_commands as drop_malformed_commands,
    file_function_mistakes as file_function_mistakes,
    format_words as format_words,
    function_mistakes as function_mistakes,
    path_mistakes as path_mistakes,
    split_pattern as split_pattern,
    variable_mistakes as variable_mistakes,
)
from fairtrial.core.table_files import (
    check_format as check_format,
    format_cell as format_cell,
    format_csv as format_csv,
    has_pyarrow as has_pyarrow,
    require_pyarrow as require_pyarrow,
    unlimited_csv_fields as unlimited_csv_fields,
    write_table as write_table,
)
from fairtrial.core.task_groups import (
    run_all as run_all,
    single_cause as single_cause,
)
from fairtrial.core.third_party_values import (
    get_fields as get_fields,
    plain_number as plain_number,
)
