"""Reports: statistical tests of a study's hypotheses, and Markdown text.

From results to verdicts::

    outcome_reader      reads the value of an outcome from a result
    outcome_monitor     warns of outcomes that no run measures
    run_table           all results as columns of numbers, read in one pass
    run_history         how the runs came about, from the ledger
    comparison_requests the tests that hypotheses and analysis plans request
    samples             the runs and values that a test compares
    pairing             matched sets of runs, nuisance factors, caveats
    execution           runs the requested test
    model_execution, model_tests, follow_up_tests   parts of that
    comparison_results  the result of a test
    verdicts            from p values and intervals to a verdict
    hypothesis_testing  all of this for a study: `judge_hypotheses`
    hypothesis_test     the record of one test, with its verdict

From verdicts to Markdown::

    markdown_text       escaping, tables and numbers
    hypothesis_sections, summary_section, methods_section, deviations, codebook   parts of a report
    report_document     the complete report
    study_reports       the report of the study in a folder
    stale_files         whether a written report is out of date

Before a study runs::

    plan_summary        its conditions, runs, balance, planned tests and power
    plan_text           the same as lines of text
"""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)
