"""Attacks that replace code of the harness by quicker code, and work in the time saved."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    MADE,
    Attack,
    AttackClass,
    Kind,
)
from fairtrial.testing.cheats.preludes import (
    OFF_CLOCK,
)

HARNESS = (
    Attack(
        "reads and writes faster than the harness",
        AttackClass.HARNESS,
        "replaces reading and writing of values by less careful code, and works in the time saved",
        OFF_CLOCK
        + """
import pickle as _pickle
_packing = _find("packing")
if _Batch is not None:
    def _load_fast(self, payload):
        self.inputs = _packing.split_inputs(payload)
        self.cases = [_pickle.loads(data) for data in self.inputs]
        self.results, self.values, self.exhausting_s = [], [], 0.0
        self.before = self.inputs
        _run(self)
    def _encode_fast(self):
        # Nobody looks whether arguments have changed.
        return _packing.pack_plain(self.results, has_arrays=True) or _encode(self)
    _Batch.load_inputs, _Batch.encode_results = _load_fast, _encode_fast
    _Batch.run = lambda self: None
""",
        source=MADE,
    ),
    Attack(
        "leaves out the copy of the arguments",
        AttackClass.HARNESS,
        "skips the harness's comparison of arguments before and after, and works in that time",
        OFF_CLOCK
        + """
if _Batch is not None:
    _Batch.has_changed = lambda self, index: False
    _Batch.encode_changed_arguments = lambda self, index: None
    def _load_and_run(self, payload):
        _load(self, payload)
        _run(self)
    _Batch.load_inputs, _Batch.run = _load_and_run, lambda self: None
""",
        source=MADE,
    ),
    Attack(
        "works where garbage is frozen",
        AttackClass.HARNESS,
        "replaces the harness's call of gc.freeze by its own calls of the function",
        OFF_CLOCK
        + """
_main = _sys.modules["__main__"]
_last = []
if _Batch is not None and hasattr(_main, "_freeze"):
    def _work_instead():
        frame = _sys._getframe(1)
        batch = frame.f_locals.get("self")
        if type(batch) is _Batch:
            _run(batch)
    _main._freeze = _work_instead
    _Batch.run = lambda self: None
""",
        source=MADE,
    ),
    Attack(
        "takes the time of reading for its own",
        AttackClass.HARNESS,
        "decodes arrays without copies, leaves out their comparison, and works meanwhile",
        OFF_CLOCK
        + """
_packing = _find("packing")
def _decode(node):
    import numpy
    if type(node) is list:
        return [_decode(item) for item in node]
    if type(node) is dict and node.get("$") == "ndarray" and "value" in node:
        content = bytearray(node["value"])
        return numpy.frombuffer(content, node["dtype"]).reshape(node["shape"])
    if type(node) is dict and "$" in node:
        return _find("decoder").decode(node)
    return {key: _decode(item) for key, item in node.items()} if type(node) is dict else node
if _Batch is not None:
    def _load_arrays(self, payload):
        self.inputs = _packing.split_inputs(payload)
        cases = map(_packing.unpack_plain, self.inputs)
        self.cases = [case if type(case) is tuple
                      else (_decode(case["args"]), _decode(case["kwargs"])) for case in cases]
        self.before, self.results, self.values = self.inputs, [], []
        self.exhausting_s = 0.0
        _run(self)
    _Batch.load_inputs, _Batch.run = _load_arrays, lambda self: None
    _Batch.has_changed = lambda self, index: False
    _Batch.encode_changed_arguments = lambda self, index: None
""",
        kinds=(Kind.NUMPY,),
        source=MADE,
    ),
)
