"""Study files in and out: YAML and JSON, with all mistakes at once and the line of each.

Follow a file: `files` reads it, `yaml_nodes` or `json_nodes` makes a tree of nodes with lines,
`document` makes plain data of the tree, `fairtrial.model.record.build` makes a study of the data.
`writing` goes the other way; `schema` tells editors what a file may hold.
"""

from fairtrial.loading.files import LoadedStudy, StudyWarning, load_study, read_study
from fairtrial.loading.schema import study_schema
from fairtrial.loading.writing import write_study

__all__ = [
    "LoadedStudy",
    "StudyWarning",
    "load_study",
    "read_study",
    "study_schema",
    "write_study",
]
