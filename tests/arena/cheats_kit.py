"""A small project, and the candidates that try to look faster than they are."""

from textwrap import dedent

CORE = """
M = 2147483648

def work(numbers):
    found = []
    for number in numbers:
        for _ in range(150):
            number = (number * 1103515245 + 12345) % M
        found.append(number)
    return found
"""
TWICE = CORE.replace("range(150)", "range(75)").replace(
    "number = (number * 1103515245 + 12345) % M",
    "number = (number * 1216606304409110025 + 13616867786870) % M",
)
"""Two steps at once: honest, and about twice as fast."""
MORE = """
def squares(numbers):
    for number in numbers:
        yield sum(each * each for each in range(number))

def settle(numbers):
    for place, number in enumerate(numbers):
        numbers[place] = sum(range(number))

def refuse(numbers):
    raise ValueError(sum(sum(range(each)) for each in numbers))

async def answer(numbers):
    return [sum(range(each)) for each in numbers]

def fill(numbers):
    import numpy
    return numpy.cumsum(numpy.outer(numbers, numbers), axis=1)
"""
INPUTS = """
def numbers(rng):
    return ([rng.randrange(1000) for _ in range(30)],), {}
"""
FILES = {"src/lab.py": CORE + MORE, "inputs.py": INPUTS}


def written(text, core=CORE):
    """A module with the base's function as `_work`, what a candidate makes of it, and the rest."""
    return core.replace("def work(", "def _work(") + dedent(text) + MORE
