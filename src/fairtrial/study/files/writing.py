"""Write study files atomically, and only if they can be read back unchanged."""

from __future__ import annotations

import os
from pathlib import Path

from fairtrial.core import StudyError, atomic_write, canonical, documents
from fairtrial.study.files.brief import dump_brief
from fairtrial.study.model.study import Study


def write_study(
    study: Study, path: str | os.PathLike[str], format: str, *, brief: bool = False
) -> Path:
    """Write a study as ``yaml`` or ``json``, and return the path.

    All fields are written, as other programs may expect them; with `brief` only those that differ
    from their defaults. The file is replaced atomically. Raises `StudyError`, and writes nothing,
    if the study has a value that couldn't be read back, such as half of a surrogate pair.
    """
    target = Path(path)
    try:
        data = dump_brief(study) if brief else study.to_dict()
        text = documents.format_document(data, format)
    except StudyError as error:
        raise StudyError(error.mistakes, source=str(target)) from None
    except RecursionError:
        raise StudyError(canonical.TOO_DEEP, source=str(target)) from None
    with atomic_write(target) as file:
        file.write(text)
    return target
