"""Targets: problems drafted from a function's name, and the functions that take most time.

- `lookup` finds the function, its project and module; `functions` lists the functions of a file and
  puts recorders on them.
- `suites` finds the commands that run a project's tests; `recording` runs them on a copy of the
  base with recorders.
- `replay` makes recorded calls again and chooses a sample; `growth` looks for larger inputs.
- `drafting` writes the files of the problem; `drafts` is the whole way from a name to these files.
- `hot_spots` ranks functions by the time that they take in tests or a command (`commands`).
"""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)
