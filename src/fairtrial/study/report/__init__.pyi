"""The names of `fairtrial.study.report`; `_facade.attach` reads them from here."""

from fairtrial.study.report.markdown_text import (
    format_code as format_code,
    format_count as format_count,
)
from fairtrial.study.report.outcome_monitor import (
    OutcomeMonitor as OutcomeMonitor,
)
from fairtrial.study.report.plan_line import (
    PlanLine as PlanLine,
)
from fairtrial.study.report.plan_summary import (
    PlanSummary as PlanSummary,
    summarize_plan as summarize_plan,
)
from fairtrial.study.report.plan_text import (
    PlanText as PlanText,
    format_plan as format_plan,
)
from fairtrial.study.report.pull_request_summary import (
    render_pull_request_summary as render_pull_request_summary,
    write_pull_request_summary as write_pull_request_summary,
)
from fairtrial.study.report.report_document import (
    report_facts as report_facts,
)
from fairtrial.study.report.stale_files import (
    find_stale_files as find_stale_files,
)
from fairtrial.study.report.study_list import (
    ListedStudy as ListedStudy,
    list_studies as list_studies,
)
from fairtrial.study.report.study_pairs import (
    compare_studies as compare_studies,
)
from fairtrial.study.report.study_reports import (
    compare_levels as compare_levels,
    read_report_facts as read_report_facts,
    write_report as write_report,
)
