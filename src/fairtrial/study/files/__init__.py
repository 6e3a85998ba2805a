"""Study and problem files in and out: YAML, JSON; all mistakes at once, with the line of each.

Follow a file: `files` reads it, `yaml_nodes` or `json_nodes` makes a tree of nodes with lines,
`document` makes plain data of the tree, `fairtrial.core.record.build` makes a study of the data.
`problems` does the same for code problems. `writing` goes the other way; `schema` tells editors
what a file may hold.
"""

from fairtrial.arena.problem_files import load_problem
from fairtrial.study.files.reading import LoadedStudy, StudyWarning, load_study, read_study
from fairtrial.study.files.schema import problem_schema, study_schema
from fairtrial.study.files.writing import write_study

__all__ = [
    "LoadedStudy",
    "StudyWarning",
    "load_problem",
    "load_study",
    "problem_schema",
    "read_study",
    "study_schema",
    "write_study",
]
