"""What a candidate may get up to: Python that is put into a real function, or runs on import."""

from textwrap import dedent, indent

CRASHING = """
    import os
    os.abort()
"""
LEAVING = """
    import os
    os._exit(0)
"""
HANGING = """
    import time
    while True:
        time.sleep(1)
"""
LEAKING = """
    hoard = []
    while True:
        hoard.append(b"x" * (4 << 20))
"""
FORKING = """
    import os
    while True:
        os.fork()
"""
ENDS = {
    "crashing": "rejected: crash",
    "leaving": "rejected: crash",
    "hanging": "rejected: timeout",
    "leaking": "rejected: memory",
    "forking": "rejected: processes",
    "writing outside": "passed",  # it tries, to no effect
    "writing into the tree": "passed",  # which is its slot
    "deleting tests": ("rejected: tests", "rejected: missing results", "rejected: tampering"),
    "deleting tests at the end": "rejected: tampering",
    "softening tests": "rejected: tampering",
    "without a test": "rejected: outside editable",
}
"""What `hostile` candidates come to, on every project."""


def writing(places):
    """Tries to leave a file in each of these places, and keeps quiet about what doesn't work."""
    return f"""
        import os
        for place in {[str(place) for place in places]!r}:
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "w") as file:
                    file.write("a candidate was here")
            except OSError:
                pass
    """


def deleting(files):
    """Deletes what fits a pattern."""
    return f"""
        import glob, os
        for file in glob.glob({str(files)!r}, recursive=True):
            os.unlink(file)
    """


def deleting_at_the_end(files):
    """The same when all tests have passed."""
    return f"""
        import atexit, glob, os
        @atexit.register
        def delete():
            for file in glob.glob({str(files)!r}, recursive=True):
                os.unlink(file)
    """


def softening(files):
    """Leaves the tests there, but nothing that they say."""
    return f"""
        import glob
        for file in glob.glob({str(files)!r}, recursive=True):
            with open(file) as opened:
                text = opened.read()
            with open(file, "w") as opened:
                opened.write(text.replace("assert ", "assert True or "))
    """


def before(text, line, code):
    """A module's text with code of ours before a line that is in it once, as deep as that line."""
    places = [each for each in text.splitlines(keepends=True) if each.strip() == line]
    assert len(places) == 1, f"{line!r} is there {len(places)} times"
    depth = places[0][: len(places[0]) - len(places[0].lstrip())]
    return text.replace(places[0], indent(dedent(code).strip("\n"), depth) + "\n" + places[0], 1)


def instead(text, old, new):
    """A module's text with something else in a place that is there once."""
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)
