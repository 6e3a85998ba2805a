"""Count the words of a file, and print them by number."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Print each word of the file with its count, most frequent first."""
    words = Path(sys.argv[1]).read_text("utf-8").split()
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = words.count(word)
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        print(f"{counts[word]:6} {word}")


if __name__ == "__main__":
    main()
