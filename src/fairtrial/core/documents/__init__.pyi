"""The names of `fairtrial.core.documents`; `_facade.attach` reads them from here."""

from fairtrial.core.documents.document import (
    Document as Document,
    parse_document as parse_document,
    read_document as read_document,
)
from fairtrial.core.documents.document_files import (
    StudyWarning as StudyWarning,
    read_text as read_text,
)
from fairtrial.core.documents.document_text import (
    format_document as format_document,
)
from fairtrial.core.documents.json_nodes import (
    compose_json as compose_json,
)
