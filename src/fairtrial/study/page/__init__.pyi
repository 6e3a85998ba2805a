"""The names of `fairtrial.study.page`; `_facade.attach` reads them from here."""

from fairtrial.study.page.code_lines import (
    color_diff as color_diff,
)
from fairtrial.study.page.document import (
    page_headers as page_headers,
    render_document as render_document,
    render_live_page as render_live_page,
    render_page as render_page,
)
from fairtrial.study.page.live_study import (
    LiveStudy as LiveStudy,
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
    dump_data as dump_data,
    round_number as round_number,
)
from fairtrial.study.page.results_plot import (
    ResultsPlot as ResultsPlot,
    write_figures as write_figures,
)
from fairtrial.study.page.study_comparison import (
    compare_studies as compare_studies,
    read_verdicts as read_verdicts,
)
