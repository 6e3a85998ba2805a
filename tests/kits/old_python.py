"""The oldest Python that projects may have, if this machine has it."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path


@cache
def find_old_python():
    """A Python 3.8 that works; None if there is none."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*sorted(root.glob("versions/3.8.*/bin/python")), shutil.which("python3.8")]
    for python in filter(None, found):  # a launcher may be there without its Python
        if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return str(python)
    return None
