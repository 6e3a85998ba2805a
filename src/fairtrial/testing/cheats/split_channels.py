"""Attacks that share hidden work among several places, so that each hides little."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    MADE,
    Attack,
    AttackClass,
)
from fairtrial.testing.cheats.preludes import (
    CHILD,
    OFF_CLOCK,
)

SPLIT = (
    Attack(
        "splits to the limit",
        AttackClass.SPLIT,
        "of ten rounds works in four before the clock, in two in a child, and idles in four: "
        "medians see none of it, and idle time excuses the child's CPU time",
        OFF_CLOCK
        + CHILD
        + """
import struct as _struct, time as _time
_turn, _pending = [-3], []
def _send(descriptor, value):
    content = _pickle.dumps(value)
    content = memoryview(_struct.pack("Q", len(content)) + content)
    while content:
        content = content[_os.write(descriptor, content):]
def _receive(file):
    return _pickle.loads(file.read(_struct.unpack("Q", file.read(8))[0]))
def _serve():
    # A process that is forked once: forking in every round would be seen.
    (its, ours), (inbox, outbox) = _os.pipe(), _os.pipe()
    if _os.fork() == 0:
        _os.close(ours)
        with open(its, "rb") as file:
            while True:
                _send(outbox, [BASE(*args, **kwargs) for args, kwargs in _receive(file)])
    _os.close(outbox)
    return ours, open(inbox, "rb")
if _Batch is not None:
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    _ours, _inbox = _serve()
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
        elif _turn[0] % 10 in (5, 8):
            _send(_ours, self.cases)
            _pending.append(1)
    def _run_turn(self):
        if not self.results and not _pending:
            began = _time.monotonic()
            _run(self)
            if _turn[0] >= 0:
                _time.sleep(2 * (_time.monotonic() - began))
    def _encode_turn(self):
        while _pending:
            _pending.clear()
            self.results = _receive(_inbox)
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
