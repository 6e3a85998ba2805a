"""Names and rows without repetitions."""


def squeeze(name):
    """A name without needless blanks."""
    return " ".join(name.split())


def unique(names):
    """Each name once, in the order in which they come first."""
    kept = []
    for name in names:
        if name not in kept:
            kept.append(name)
    return kept


def unique_rows(rows):
    """The same for rows of a table, which are lists of cells."""
    kept = []
    for row in rows:
        if row not in kept:
            kept.append(row)
    return kept
