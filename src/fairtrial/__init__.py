"""fairtrial: every candidate gets a fair trial.

The names that most users need; the rest is in the packages below. Names are imported when they are
first used, so `import fairtrial` costs next to nothing.

    fairtrial
    ├ core        errors, records, documents, plug-ins
    ├ llm         a client for chat-completions endpoints
    ├ sandbox     run untrusted commands
    ├ study       designed studies: plan, run, tables, tests, report
    ├ arena       judge code candidates: checks, timing, delivery
    ├ optimize    search for faster code
    ├ compat      what moves over from design-research-experiments
    ├ testing     conformance suites for plug-ins
    └ cli         the `fairtrial` command
"""

from fairtrial._facade import attach

__version__ = "0.1.0"

__getattr__, __dir__ = attach(__name__, __file__)
