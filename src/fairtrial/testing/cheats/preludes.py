"""Code that several templates share: finding parts of the harness, repeating the base's work."""

from __future__ import annotations

FIND = '''
import sys as _sys

def _find(name):
    """Find a part of the harness: in modules, in the frames above, among all objects."""
    places = [vars(module) for key, module in list(_sys.modules.items())
              if key == "__main__" or key.startswith("_fairtrial_harness")]
    frame = _sys._getframe()
    while frame is not None:
        places.append(frame.f_globals)
        frame = frame.f_back
    for place in places:
        if name in place:
            return place[name]
    import gc
    for item in gc.get_objects():
        if getattr(type(item), "__name__", "") in ("type", "function") and item.__name__ == name:
            return item
    return None

_Batch = _find("CallBatch")
'''
"""Defines `_find`, and `_Batch`: the class that holds a timed worker's calls, or None."""

MORE = """
import copy as _copy

def _more(*args, **kwargs):
    BASE(*_copy.deepcopy(args), **_copy.deepcopy(kwargs))
    return BASE(*args, **kwargs)
"""
"""Defines `_more`, which gives the base's results and takes more than twice as long."""

OFF_CLOCK = (
    FIND
    + """
def _run_all(batch):
    batch.results = []
    _run(batch)

if _Batch is not None:
    _load, _run, _encode = _Batch.load_inputs, _Batch.run, _Batch.encode_results
ATTACK = BASE
"""
)
"""Defines `_load`, `_run` and `_encode`, the steps of a turn, for code that moves work between."""

CHILD = """
import os as _os, pickle as _pickle, signal as _signal

def _in_child(batch, cases, uncounted):
    # Start a process that makes these calls; returns the descriptor of its results.
    if uncounted:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    ours, its = _os.pipe()
    if _os.fork() == 0:
        try:
            results = [batch.function(*args, **kwargs) for args, kwargs in cases]
            content = memoryview(_pickle.dumps(results))
            while content:
                content = content[_os.write(its, content):]
        finally:
            _os._exit(0)
    _os.close(its)
    return ours

def _read_results(descriptor):
    with open(descriptor, "rb") as file:
        return _pickle.loads(file.read())
"""
"""Defines `_in_child`, which has calls made by another process, and `_read_results`."""
