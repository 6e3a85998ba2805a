"""Where imports go that transformations need."""

import json
import subprocess
from pathlib import Path

import pytest

from fairtrial_codemod import ruff
from fairtrial_codemod.catalog import transform

DRAIN = """def f(xs):
    queue = list(xs)
    out = []
    while queue:
        out.append(queue.pop(0))
    return out
"""
# (what stands at the top, and what stands there afterwards): a `deque` is needed, and `heapq`
LAYOUTS = {
    "nothing": ("", "from collections import deque\n\n\n"),
    "docstring": ('"""Doc."""\n\n\n', '"""Doc."""\n\nfrom collections import deque\n\n\n'),
    "future": (
        '"""Doc."""\n\nfrom __future__ import annotations\n\n\n',
        '"""Doc."""\n\nfrom __future__ import annotations\n\nfrom collections import deque\n\n\n',
    ),
    "only local ones": (
        "from tidy.cleaning import clean\n\n\n",
        "from collections import deque\n\nfrom tidy.cleaning import clean\n\n\n",
    ),
    "local ones after future": (
        "from __future__ import annotations\n\nfrom . import clean\n\n\n",
        "from __future__ import annotations\n\nfrom collections import deque\n\n"
        "from . import clean\n\n\n",
    ),
    "all groups": (
        "import os\nfrom abc import ABC\nfrom pathlib import Path\n\nimport numpy\n\n"
        "from tidy import clean\n\n\n",
        "import os\nfrom abc import ABC\nfrom collections import deque\n"
        "from pathlib import Path\n\nimport numpy\n\nfrom tidy import clean\n\n\n",
    ),
    "first of its group": (
        '"""Doc."""\n\nfrom pathlib import Path\n\nimport numpy\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n'
        "from pathlib import Path\n\nimport numpy\n\n\n",
    ),
    "by module alone": (
        "from abc import ABC\nimport os\nfrom typing import Any\n\n\n",
        "from abc import ABC\nfrom collections import deque\n"
        "import os\nfrom typing import Any\n\n\n",
    ),
    "not sorted": (
        "import sys\nfrom typing import Any\nimport os\n\nimport numpy\n\n\n",
        "import sys\nfrom typing import Any\nimport os\nfrom collections import deque\n\n"
        "import numpy\n\n\n",
    ),
    "comments between groups": (
        "# Standard\nimport os\n\n# Ours\nfrom tidy import clean\n\n\n",
        "# Standard\nimport os\nfrom collections import deque\n\n"
        "# Ours\nfrom tidy import clean\n\n\n",
    ),
    "comment above the group": (
        '"""Doc."""\n\n# Standard\nfrom typing import Any\n\n\n',
        '"""Doc."""\n\n# Standard\nfrom collections import deque\nfrom typing import Any\n\n\n',
    ),
    "comment above local ones": (
        '"""Doc."""\n\n# Ours\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n\n# Ours\nfrom tidy import clean\n\n\n',
    ),
    "two lines above local ones": (
        '"""Doc."""\n\n\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\n\nfrom collections import deque\n\nfrom tidy import clean\n\n\n',
    ),
    "no line above local ones": (
        '"""Doc."""\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n\nfrom tidy import clean\n\n\n',
    ),
    "no line above anything": (
        '"""Doc."""\nX = 1\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n\nX = 1\n\n\n',
    ),
    "comment that stands by itself": (
        '"""Doc."""\n\n# All of it\n\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\n# All of it\n\nfrom collections import deque\n\n'
        "from tidy import clean\n\n\n",
    ),
    "program": (
        "#!/usr/bin/env python\n# Licence\n\nimport numpy\n\n\n",
        "#!/usr/bin/env python\n# Licence\n\nfrom collections import deque\n\nimport numpy\n\n\n",
    ),
    "try": (
        '"""Doc."""\n\ntry:\n    import numpy\nexcept ImportError:\n    numpy = None\n'
        "from tidy import clean\n\n\n",
        '"""Doc."""\n\nfrom collections import deque\n\n'
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "from tidy import clean\n\n\n",
    ),
    "try after imports": (
        "import os\n\ntry:\n    import numpy\nexcept ImportError:\n    numpy = None\n\n\n",
        "import os\nfrom collections import deque\n\n"
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n\n\n",
    ),
    "several in a line": (
        "import abc, os\nimport numpy, re\n\n\n",
        "import abc, os\nfrom collections import deque\nimport numpy, re\n\n\n",
    ),
    "several statements in a line": (
        "import abc; import os\n\n\n",
        "import abc; import os\nfrom collections import deque\n\n\n",
    ),
    "one name more": (
        "from collections import ChainMap, OrderedDict, namedtuple\n\n\n",
        "from collections import ChainMap, OrderedDict, deque, namedtuple\n\n\n",
    ),
    "one name more, last": (
        "from collections import (\n    ChainMap,\n    Counter,\n)\n\n\n",
        "from collections import (\n    ChainMap,\n    Counter,\n    deque,\n)\n\n\n",
    ),
    "one name more, beside comments": (
        "from collections import (  # some\n    ChainMap,  # one\n    namedtuple,  # two\n)\n\n\n",
        "from collections import (  # some\n    ChainMap,  # one\n    deque,\n"
        "    namedtuple,  # two\n)\n\n\n",
    ),
    "one name more, and a comment on the last": (
        "from collections import (\n    ChainMap,\n    Counter,  # last\n)\n\n\n",
        "from collections import (\n    ChainMap,\n    deque,\n    Counter,  # last\n)\n\n\n",
    ),
    "one name more, not sorted": (
        "from collections import namedtuple, ChainMap\n\n\n",
        "from collections import namedtuple, ChainMap, deque\n\n\n",
    ),
    "there already": ("from collections import deque\n\n\n",) * 2,
    "relative of that name": (
        "from .collections import OrderedDict\n\n\n",
        "from collections import deque\n\nfrom .collections import OrderedDict\n\n\n",
    ),
    "not at the top": (
        "X = 1\nfrom collections import OrderedDict\n\n\n",
        "from collections import deque\n\nX = 1\nfrom collections import OrderedDict\n\n\n",
    ),
    "under a condition": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from tidy import Any\n\n\n",
        "from collections import deque\nfrom typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from tidy import Any\n\n\n",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_import_goes_to_the_standard_librarys_group(layout):
    top, wanted = LAYOUTS[layout]
    text = transform(top + DRAIN, "deque").text
    assert text[: text.index("def f")] == wanted
    assert "queue.popleft()" in text
    # As many lines of another kind of end.
    dos = transform((top + DRAIN).replace("\n", "\r\n"), "deque").text
    assert dos == text.replace("\n", "\r\n")


@pytest.mark.skipif(ruff.find_ruff() is None, reason="ruff isn't here")
def test_linters_have_nothing_to_say_about_imports_that_were_sorted(tmp_path):
    """Where imports were sorted before, they are so afterwards, by the usual rules."""
    before = {layout: top + DRAIN for layout, (top, _) in LAYOUTS.items()}
    after = {layout: transform(text, "deque").text for layout, text in before.items()}
    found = find_unsorted(tmp_path / "before", before)
    tidy = [each for each in LAYOUTS if each not in found and "on the last" not in each]
    assert len(tidy) >= 12
    assert not find_unsorted(tmp_path / "after", after) & {*tidy}


def find_unsorted(folder, texts):
    """Those whose imports ruff would sort."""
    folder.mkdir()
    names = {f"text_{place}.py": each for place, each in enumerate(texts)}
    for name, each in names.items():
        (folder / name).write_bytes(texts[each].encode())
    command = [ruff.find_ruff(), "check", "--isolated", "--no-cache", "-q", "--select", "I001"]
    command += ["--output-format", "json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    return {names[Path(each["filename"]).name] for each in json.loads(done.stdout)}


@pytest.mark.skipif(ruff.find_ruff() is None, reason="ruff isn't here")
def test_imports_that_ruff_adds_go_there_too():
    text = (
        "import os\n\nfrom tidy import clean\n\n\n"
        "def f(xs):\n    xs = sorted(xs, key=lambda x: x[1])\n"
        "    return [os.path.join(a, b) for a, b in xs]\n"
    )
    fixed = transform(text, "ruff").text
    assert "operator.itemgetter(1)" in fixed
    assert "starmap(os.path.join, xs)" in fixed
    assert fixed.startswith(
        "import operator\nimport os\nfrom itertools import starmap\n\n"
        "from tidy import clean\n\n\ndef"
    )
