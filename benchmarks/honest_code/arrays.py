"""Honest candidates for a function on arrays: each computes what the base does, in its own way."""

ARRAYS = {
    "in place on its own copy": """
def smooth(values):
    import numpy
    values = values.copy()
    for width in (2, 3, 4, 5):
        values.sort()
        numpy.cumsum(values, out=values)
        values = (values[width:] - values[:-width]) / width
    return values
""",
    "reciprocals": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) * (1 / width)
    return values
""",
    "buffers that are kept": """
_room = {}
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        room = _room.setdefault(len(values), numpy.empty(len(values)))
        numpy.cumsum(numpy.sort(values), out=room)
        values = (room[width:] - room[:-width]) / width
    return values
""",
    "another sorting algorithm": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.sort(values, kind="stable").cumsum()
        values = numpy.divide(numpy.subtract(sums[width:], sums[:-width]), width)
    return values
""",
    "error handling that is restored": """
def smooth(values):
    import numpy
    with numpy.errstate(all="raise"):
        for width in (2, 3, 4, 5):
            sums = numpy.cumsum(numpy.sort(values))
            values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "sorted once": """
def smooth(values):
    import numpy
    values = numpy.sort(values)
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(values)
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "strides": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = numpy.subtract(sums[width:], sums[:-width])
        values /= width
    return values
""",
    "an import at the top": """
import numpy as np
def smooth(values):
    for width in (2, 3, 4, 5):
        sums = np.sort(values).cumsum()
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "lists of floats": """
import itertools
def smooth(values):
    import numpy
    items = values.tolist()
    for width in (2, 3, 4, 5):
        sums = list(itertools.accumulate(sorted(items)))
        items = [(b - a) / width for a, b in zip(sums, sums[width:])]
    return numpy.array(items)
""",
    "one large room": """
def smooth(values):
    import numpy
    room = numpy.empty((2, len(values)))
    items = values
    for width in (2, 3, 4, 5):
        sums = room[0, :len(items)]
        numpy.cumsum(numpy.sort(items), out=sums)
        items = (sums[width:] - sums[:-width]) / width
    return items
""",
    "a contiguous copy": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.add.accumulate(numpy.sort(numpy.ascontiguousarray(values)))
        values = (sums[width:] - sums[:-width]) / width
    return numpy.ascontiguousarray(values)
""",
    "threads for arrays": """
from concurrent.futures import ThreadPoolExecutor
def smooth(values):
    import numpy
    with ThreadPoolExecutor(1) as pool:
        for width in (2, 3, 4, 5):
            sums = pool.submit(numpy.cumsum, numpy.sort(values)).result()
            values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "a mask": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values[numpy.ones(len(values), dtype=bool)]))
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "indices": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(values[numpy.argsort(values)])
        places = numpy.arange(width, len(sums))
        values = (sums[places] - sums[places - width]) / width
    return values
""",
    "seeded chance that is its own": """
def smooth(values):
    import numpy
    rng = numpy.random.default_rng(1)
    values = rng.permutation(values)
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "a partition first": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        values = numpy.partition(values, len(values) // 2)
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "bytes and back": """
def smooth(values):
    import numpy
    values = numpy.frombuffer(values.tobytes())
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "two axes": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values)[None, :], axis=1)
        values = (sums[0, width:] - sums[0, :-width]) / width
    return values
""",
}
