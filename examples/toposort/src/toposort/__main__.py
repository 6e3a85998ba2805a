"""`python -m toposort FILE`: each line of the file is a node and those that it needs."""

from __future__ import annotations

import sys
from pathlib import Path

from toposort.sorting import sort


def main() -> None:
    """Print the nodes in order, one to a line."""
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    rows = [[int(word) for word in line.split()] for line in lines if line.strip()]
    for node in sort({node: needs for node, *needs in rows}):
        print(node)


if __name__ == "__main__":
    main()
