"""Attacks that move work out of the timed part of a turn."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    KERNELS,
    MADE,
    Attack,
    AttackClass,
)
from fairtrial.testing.cheats.preludes import (
    CHILD,
    OFF_CLOCK,
)

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
