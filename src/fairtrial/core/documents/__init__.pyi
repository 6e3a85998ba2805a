"""The names of `fairtrial.core.documents`; `_facade.attach` reads them from here."""

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
