"""The names of `fairtrial.study.page`; `_facade.attach` reads them from here."""

from fairtrial.study.page.document import (
    render_page as render_page,
)
from fairtrial.study.page.page_data import (
    collect_page as collect_page,
)
from fairtrial.study.page.page_files import (
    write_page as write_page,
)
