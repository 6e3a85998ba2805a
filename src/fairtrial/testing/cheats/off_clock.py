"""Attacks that move work out of the timed part of a turn, or share it among hiding places."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    KERNELS,
    MADE,
    Attack,
    AttackClass,
    Kind,
)
from fairtrial.testing.cheats.preludes import CHILD, OFF_CLOCK

BEFORE = (
    Attack(
        "works when inputs come",
        AttackClass.BEFORE,
        "makes all calls while the inputs are read, and does nothing while the clock runs",
        OFF_CLOCK
        + """
if _Batch is not None:
    def _load_and_run(self, payload):
        _load(self, payload)
        _run(self)
    _Batch.load_inputs, _Batch.run = _load_and_run, lambda self: None
""",
        source=KERNELS,
    ),
    Attack(
        "works when results are written",
        AttackClass.BEFORE,
        "makes all calls after the clock, while the results are written",
        OFF_CLOCK
        + """
if _Batch is not None:
    _Batch.run = lambda self: None
    _Batch.encode_results = lambda self: (_run(self), _encode(self))[1]
""",
        source=KERNELS,
    ),
    Attack(
        "replies early",
        AttackClass.BEFORE,
        "sends the reply that stops the clock before the calls are made",
        OFF_CLOCK
        + """
_Channel = _find("RequestChannel")
if _Channel is not None:
    _reply, _receive = _Channel.reply, _Channel.receive
    def _receive_and_reply(self):
        letter, number, payload = _receive(self)
        if letter == b"G":
            _reply(self, letter, number)
        return letter, number, payload
    def _reply_to_others(self, letter, number, payload=b""):
        if letter != b"G":
            _reply(self, letter, number, payload)
    _Channel.receive, _Channel.reply = _receive_and_reply, _reply_to_others
""",
        source=MADE,
    ),
    Attack(
        "replies before it is asked",
        AttackClass.BEFORE,
        "sends the reply to the next request together with the previous one",
        OFF_CLOCK
        + """
import os as _os, struct as _struct
_Channel = _find("RequestChannel")
if _Channel is not None:
    _reply = _Channel.reply
    def _reply_twice(self, letter, number, payload=b""):
        if letter == b"I":
            for sign, place in (b"I", number), (b"G", number + 1):
                _os.write(self.descriptor, _struct.pack(">cIQ", sign, place, 0))
        elif letter != b"G":
            _reply(self, letter, number, payload)
    _Channel.reply = _reply_twice
""",
        source=MADE,
    ),
    Attack(
        "works between two requests",
        AttackClass.BEFORE,
        "makes the calls in a thread as soon as inputs were acknowledged, before the clock starts",
        OFF_CLOCK
        + """
import threading as _threading
_Channel = _find("RequestChannel")
_current = []
if _Batch is not None and _Channel is not None:
    _reply = _Channel.reply
    def _load_and_keep(self, payload):
        _load(self, payload)
        _current[:] = [self]
    def _reply_and_work(self, letter, number, payload=b""):
        _reply(self, letter, number, payload)
        if letter == b"I" and _current:
            _run(_current.pop())
    _Batch.load_inputs, _Batch.run = _load_and_keep, lambda self: None
    _Channel.reply = _reply_and_work
""",
        source=MADE,
    ),
    Attack(
        "a thread is joined later",
        AttackClass.BEFORE,
        "starts a thread for each batch and waits for it when results are written",
        OFF_CLOCK
        + """
import threading as _threading
_threads = []
if _Batch is not None:
    def _start(self):
        thread = _threading.Thread(target=_run, args=(self,))
        _threads.append(thread)
        thread.start()
    def _join_and_encode(self):
        while _threads:
            _threads.pop().join()
        return _encode(self)
    _Batch.run, _Batch.encode_results = _start, _join_and_encode
""",
        source=KERNELS,
    ),
    Attack(
        "a child works after the clock",
        AttackClass.BEFORE,
        "has a child process make the calls, and reads its results when they are asked for",
        OFF_CLOCK
        + CHILD
        + """
_pending = []
if _Batch is not None:
    def _start_child(self):
        _pending[:] = [_in_child(self, self.cases, True)]
    def _collect(self):
        while _pending:
            self.results = _read_results(_pending.pop())
        return _encode(self)
    _Batch.run, _Batch.encode_results = _start_child, _collect
""",
        source=MADE,
    ),
)

SPLIT = (
    Attack(
        "splits to the limit",
        AttackClass.SPLIT,
        "of ten rounds works in four before the clock, in one in a child without a parent, and "
        "in five honestly: just enough for the median of ratios, too few for the other medians",
        OFF_CLOCK
        + CHILD
        + """
_turn, _pending = [-3], []
if _Batch is not None:
    def _load_turn(self, payload):
        _load(self, payload)
        _pending.clear()
        if not self.cases:
            return
        _turn[0] += 1
        if _turn[0] < 0:
            return
        if _turn[0] % 10 in (0, 2, 4, 6):
            _run(self)
        elif _turn[0] % 10 == 8:
            _pending.append(_in_child(self, self.cases, True))
    def _run_turn(self):
        if not self.results and not _pending:
            _run(self)
    def _encode_turn(self):
        while _pending:
            self.results = _read_results(_pending.pop())
        return _encode(self)
    _Batch.load_inputs, _Batch.run, _Batch.encode_results = _load_turn, _run_turn, _encode_turn
""",
        source=MADE,
    ),
    Attack(
        "splits between CPU before the clock and a child",
        AttackClass.SPLIT,
        "in turn works before the clock, in a child that nobody waits for, and honestly, so that "
        "the median of each channel stays low",
        OFF_CLOCK
        + CHILD
        + """
_turn, _pending = [0], []
if _Batch is not None:
    def _load_turn(self, payload):
        _load(self, payload)
        _pending.clear()
        if len(self.cases) < 1:
            return
        _turn[0] += 1
        part = _turn[0] % 5
        if part in (1, 3):
            _run(self)
        elif part in (2, 4):
            _pending.append(_in_child(self, self.cases, True))
    def _run_turn(self):
        if not self.results and not _pending:
            _run(self)
    def _encode_turn(self):
        while _pending:
            self.results = _read_results(_pending.pop())
        return _encode(self)
    _Batch.load_inputs, _Batch.run, _Batch.encode_results = _load_turn, _run_turn, _encode_turn
""",
        source=MADE,
    ),
    Attack(
        "splits between before and after",
        AttackClass.SPLIT,
        "in turn works while inputs are read, while results are written, and honestly",
        OFF_CLOCK
        + """
_turn = [0]
if _Batch is not None:
    def _load_turn(self, payload):
        _load(self, payload)
        _turn[0] += bool(self.cases)
        if self.cases and _turn[0] % 5 in (1, 3):
            _run(self)
    def _run_turn(self):
        if not self.results and _turn[0] % 5 == 0:
            _run(self)
    def _encode_turn(self):
        if not self.results:
            _run(self)
        return _encode(self)
    _Batch.load_inputs, _Batch.run, _Batch.encode_results = _load_turn, _run_turn, _encode_turn
""",
        source=MADE,
    ),
    Attack(
        "hides some rounds in the start-up",
        AttackClass.SPLIT,
        "works before the clock in just over half of the rounds of a session, in others honestly",
        OFF_CLOCK
        + """
_turn = [0]
if _Batch is not None:
    def _load_turn(self, payload):
        _load(self, payload)
        _turn[0] += bool(self.cases)
        if self.cases and _turn[0] % 9 in (2, 4, 6, 8, 0):
            _run(self)
    def _run_turn(self):
        if not self.results:
            _run(self)
    _Batch.load_inputs, _Batch.run = _load_turn, _run_turn
""",
        source=MADE,
    ),
    Attack(
        "splits among three channels",
        AttackClass.SPLIT,
        "hides a third of the rounds each before the clock, after it, and in a detached process",
        OFF_CLOCK
        + CHILD
        + """
_turn, _pending = [0], []
if _Batch is not None:
    def _load_turn(self, payload):
        _load(self, payload)
        _pending.clear()
        _turn[0] += bool(self.cases)
        if self.cases and _turn[0] % 3 == 1:
            _run(self)
        elif self.cases and _turn[0] % 3 == 2:
            _pending.append(_in_child(self, self.cases, True))
    def _encode_turn(self):
        if _pending:
            self.results = _read_results(_pending.pop())
        elif not self.results:
            _run(self)
        return _encode(self)
    _Batch.load_inputs, _Batch.run = _load_turn, lambda self: None
    _Batch.encode_results = _encode_turn
""",
        source=MADE,
    ),
    Attack(
        "hides a part of every batch",
        AttackClass.SPLIT,
        "makes every tenth call before the clock, below the limit of vetoes, and the rest honestly",
        OFF_CLOCK
        + """
if _Batch is not None:
    def _load_some(self, payload):
        _load(self, payload)
        self._early = {}
        for place in range(9, len(self.cases), 10):
            args, kwargs = self.cases[place]
            self._early[place] = self.function(*args, **kwargs)
    def _run_rest(self):
        function, early = self.function, self._early
        for place, (args, kwargs) in enumerate(self.cases):
            self.results.append(early[place] if place in early else function(*args, **kwargs))
    _Batch.load_inputs, _Batch.run = _load_some, _run_rest
""",
        source=MADE,
    ),
)

HARNESS = (
    Attack(
        "reads and writes faster than the harness",
        AttackClass.HARNESS,
        "replaces reading and writing of values by less careful code, and works in the time saved",
        OFF_CLOCK
        + """
import json as _json
if _Batch is not None:
    _dump = _json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
    def _load_fast(self, payload):
        self.lines = payload.split(b"\\n") if payload else []
        self.cases = [(case["args"], case["kwargs"]) for case in map(_json.loads, self.lines)]
        self.results, self.exhausting_s = [], 0.0
        _run(self)
    def _write(result):
        # The text of a list of integers is JSON, too, and costs half as much.
        is_plain = type(result) is list and set(map(type, result)) <= {int}
        return repr(result) if is_plain else _dump(result)
    def _encode_fast(self):
        lines = ['{"result":' + _write(result) + ',"after":null}' for result in self.results]
        lines.append('{"going_through_s":0.0}')
        self.cases, self.results, self.before = [], [], []
        return "\\n".join(lines).encode("ascii")
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
_main = _sys.modules["__main__"]
if _Batch is not None:
    _main.marshal_case = lambda case: None
    _main.dump_plain = lambda result: None
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
import binascii as _binascii, json as _json
def _decode(node):
    import numpy
    if type(node) is list:
        return [_decode(item) for item in node]
    if type(node) is dict and node.get("$") == "ndarray" and "value" in node:
        content = bytearray(_binascii.a2b_base64(node["value"]))
        return numpy.frombuffer(content, node["dtype"]).reshape(node["shape"])
    if type(node) is dict and "$" in node:
        return _find("decoder").decode(node)
    return {key: _decode(item) for key, item in node.items()} if type(node) is dict else node
if _Batch is not None:
    def _load_arrays(self, payload):
        self.lines = payload.split(b"\\n") if payload else []
        cases = map(_json.loads, self.lines)
        self.cases = [(_decode(case["args"]), _decode(case["kwargs"])) for case in cases]
        self.before, self.results, self.exhausting_s = [None] * len(self.cases), [], 0.0
        _run(self)
    _Batch.load_inputs, _Batch.run = _load_arrays, lambda self: None
    _Batch.encode_changed_arguments = lambda self, index: None
""",
        kinds=(Kind.NUMPY,),
        source=MADE,
    ),
)
