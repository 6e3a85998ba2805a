"""The names of `fairtrial.study.page`; `_facade.attach` reads them from here."""

from fairtrial.study.page.code_lines import (
    color_diff as color_diff,
)
from fairtrial.study.page.document import (
    render_page as render_page,
)
from fairtrial.study.page.markdown_tree import (
    parse_markdown as parse_markdown,
)
from fairtrial.study.page.page_data import (
    collect_page as collect_page,
)
from fairtrial.study.page.page_files import (
    write_page as write_page,
)
from fairtrial.study.page.plain_data import (
    clean_data as clean_data,
    clean_text as clean_text,
    round_number as round_number,
)
