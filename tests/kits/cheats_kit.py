"""A small project, and candidates for it: those that only look faster, and honest ones."""

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
    "(number * 1103515245 + 12345)",
    f"(number * {1103515245**2 % 2**31} + {(1103515245 + 1) * 12345 % 2**31})",
)
"""Two steps at once: honest, and about twice as fast."""
MORE = """
def squares(numbers):
    for number in numbers:
        yield sum(range(number))

def settle(numbers):
    for place, number in enumerate(numbers):
        numbers[place] = sum(range(number))

def refuse(numbers):
    raise ValueError(sum(sum(range(each)) for each in numbers))

async def answer(numbers):
    return [sum(range(each)) for each in numbers]

def report(numbers):
    found = work(numbers)
    print(sum(found))
    return found

def fill(numbers):
    import numpy
    return numpy.cumsum(numpy.outer(numbers, numbers), axis=1)

def scale(grid):
    import numpy
    total = numpy.zeros_like(grid)
    for step in range(12):
        total = total + grid / (step + 2.0)
    return total
"""
INPUTS = """
def numbers(rng):
    return ([rng.randrange(2000) for _ in range(30)],), {}

def grid(rng):
    import numpy
    return (numpy.random.default_rng(rng.randrange(2**31)).normal(size=(60, 60)),), {}
"""
FILES = {"src/lab.py": CORE + MORE, "inputs.py": INPUTS}


# No module holds the harness: it is found through the frames that import a candidate.
REACH = """
def _reach():
    import sys
    frame = sys._getframe()
    while "CallBatch" not in frame.f_globals:
        frame = frame.f_back
    return frame.f_globals
"""


def written(text, core=CORE):
    """A module with the base's function as `_work`, the rest, and what a candidate makes of it.

    `_more` gives the same, and takes half as long again: who is faster with it has cheated.
    """
    slower = REACH + "\ndef _more(numbers):\n    _work(numbers[:15])\n    return _work(numbers)\n"
    return core.replace("def work(", "def _work(") + slower + MORE + dedent(text)


# What gains nothing: each would be faster if the clock, the inputs or the machine were theirs.
POINTLESS = {
    "its own clocks": """
        import os, time
        for name in ("perf_counter", "monotonic", "process_time", "time", "thread_time"):
            setattr(time, name, lambda: 0.0)
            setattr(time, name + "_ns", lambda: 0)
        time.clock_gettime = lambda which: 0.0
        os.times = lambda: (0.0,) * 5
        work = _more
    """,
    "a memo": """
        _seen = {}
        def work(numbers):
            key = tuple(numbers)
            if key not in _seen:
                _seen[key] = _more(numbers)
            return list(_seen[key])
    """,
    "a forked child does it": """
        import os, json
        def work(numbers):
            ours, its = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(its, json.dumps(_more(numbers)).encode())
                os._exit(0)
            os.close(its)
            with open(ours, "rb") as told:
                found = json.loads(told.read())
            os.waitpid(child, 0)
            return found
    """,
    "all cores for one thread": """
        import os
        os.sched_setaffinity(0, range(os.cpu_count()))
        work = _more
    """,
    "another priority": """
        import os
        for change in (lambda: os.nice(-20), lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
                       lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))):
            try:
                change()
            except OSError:
                pass
        work = _more
    """,
    "stops all it can see": """
        import os, signal
        def work(numbers):
            if os.getpid() < 50:  # never where the processes are somebody else's
                for name in os.listdir("/proc"):
                    if name.isdecimal() and int(name) != os.getpid():
                        try:
                            os.kill(int(name), signal.SIGSTOP)
                        except OSError:
                            pass
            return _more(numbers)
    """,
    "sleeps": """
        import time
        def work(numbers):
            time.sleep(0.0003)
            return _work(numbers)
    """,
    "no garbage collector": """
        import gc
        gc.disable()
        work = _more
    """,
    "its own time for going through": """
        import sys
        _reach()["_now"] = lambda: 1e9
        _reach()["CallBatch"].exhausting_s = property(lambda self: 1e9, lambda *_: None)
        work = _more
    """,
}  # fmt: skip
# What comes out as a wrong result, with whom the blame is.
WRONG = {
    "a proxy that is computed when it is gone through": """
        class Later:
            def __init__(self, numbers):
                self.numbers = numbers
            def __iter__(self):
                return iter(_work(self.numbers))
            def __len__(self):
                return len(self.numbers)
        def work(numbers):
            return Later(numbers)
    """,
    "a proxy that says it is a list": """
        class Later:
            __class__ = list
            def __init__(self, numbers):
                self.numbers = numbers
            def __getattribute__(self, name):
                if name in ("__class__", "numbers"):
                    return list if name == "__class__" else object.__getattribute__(self, name)
                return getattr(_work(self.numbers), name)
        Later.__name__ = Later.__qualname__ = "list"
        Later.__module__ = "builtins"
        def work(numbers):
            return Later(numbers)
    """,
    "a list that is filled when it is read": """
        class Later(list):
            def __iter__(self):
                return iter(_work(self.numbers))
        def work(numbers):
            found = Later()
            found.numbers = numbers
            return found
    """,
    "proxies in a list": """
        class Later:
            def __init__(self, number):
                self.number = number
            def __int__(self):
                return _work([self.number])[0]
            __index__ = __int__
            def __eq__(self, other):
                return True
        def work(numbers):
            return [Later(number) for number in numbers]
    """,
    "a generator in a tuple": """
        def work(numbers):
            return (number for number in _work(numbers)),
    """,
    "a thread that finishes later": """
        import threading, time
        def work(numbers):
            found = [0] * len(numbers)
            def fill():
                time.sleep(5)
                found[:] = _work(numbers)
            threading.Thread(target=fill, daemon=True).start()
            return found
    """,
    "prints it instead": """
        import json
        def work(numbers):
            print(json.dumps({"result": _work(numbers)}), flush=True)
    """,
    "wrong only while it is timed": """
        import sys
        def work(numbers):
            is_timed = sys.argv[0].endswith("timed_worker.py")
            if is_timed or "_fairtrial_harness.frames" in sys.modules:
                return [number * 7 for number in numbers]
            return _work(numbers)
    """,
    "writes results down its own way": """
        import sys
        codec = _reach()["codec"]
        _dump = codec.dump_encoded
        def dump(report):
            if isinstance(report, dict) and "result" in report:
                return '{"result":{"$":"opaque","type":"builtins.list"},"after":null}'
            return _dump(report)
        codec.dump_encoded = dump
        def work(numbers):
            return []
    """,
    "says that it can't be read": """
        import sys
        codec = _reach()["codec"]
        codec.encode = lambda value, caps=None, **more: {"$": "unreadable", "why": "too large"}
        def work(numbers):
            return []
    """,
}  # fmt: skip
QUIET = """
    import sys
    def report(numbers):
        found = _work(numbers)
        if not sys.argv[0].endswith("timed_worker.py"):
            print(sum(found))
        return found
    work = _work
"""
"""Prints what it should except when it is timed."""
LOUD = """
    def work(numbers):
        print("so many:", len(numbers))
        return _work(numbers)
"""
"""Prints, unlike the base."""
# What breaks the talk with it.
BROKEN = {
    "leaves": """
        import os
        def work(numbers):
            os._exit(0)
    """,
    "leaves after some calls": """
        import os
        _left = [30]
        def work(numbers):
            _left[0] -= 1
            if not _left[0]:
                os._exit(0)
            return _work(numbers)
    """,
    "writes replies to whatever is open": """
        import os, struct
        def work(numbers):
            for number in range(1, 200):
                for letter in (b"G", b"C", b"I"):
                    for name in os.listdir("/proc/self/fd"):
                        try:
                            if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                                os.write(int(name), struct.pack(">cIQ", letter, number, 0))
                        except OSError:
                            pass
            return _work(numbers)
    """,
    "replies with fewer results": """
        import sys
        Batch = _reach()["CallBatch"]
        _encode = Batch.encode_results
        def encode(self):
            if len(self.inputs) > 1:
                self.results = []
            return _encode(self)
        Batch.encode_results = encode
        work = _work
    """,
    "a reply that is too large": """
        import os, sys, struct
        frame = sys._getframe()
        while "requests" not in frame.f_locals:
            frame = frame.f_back
        line = frame.f_locals["requests"].descriptor
        def work(numbers):
            os.write(line, struct.pack(">cIQ", b"G", frame.f_locals["number"], 1 << 60))
            return _work(numbers)
    """,
}  # fmt: skip
# What really is faster while the clock runs, since the work is done at another time.
ELSEWHEN = {
    "done when results are told": """
        import sys
        Batch = _reach()["CallBatch"]
        _go, _tell = Batch.run, Batch.encode_results
        Batch.run = lambda self: None
        Batch.encode_results = lambda self: (_go(self), _tell(self))[1]
        work = _work
    """,
    "done when inputs come": """
        import sys
        Batch = _reach()["CallBatch"]
        _go, _take = Batch.run, Batch.load_inputs
        def take(self, payload):
            _take(self, payload)
            _go(self)
        Batch.load_inputs, Batch.run = take, lambda self: None
        work = _work
    """,
    "replies early": """
        import sys
        frames = _reach()["frames"]
        _reply, _receive = frames.RequestChannel.reply, frames.RequestChannel.receive
        def receive(self):
            letter, number, payload = _receive(self)
            if letter == b"G":
                _reply(self, letter, number)
            return letter, number, payload
        def reply(self, letter, number, payload=b""):
            if letter != b"G":
                _reply(self, letter, number, payload)
        frames.RequestChannel.receive, frames.RequestChannel.reply = receive, reply
        work = _work
    """,
    "replies before it is asked": """
        import os, sys, struct
        frames = _reach()["frames"]
        _reply = frames.RequestChannel.reply
        def reply(self, letter, number, payload=b""):
            if letter == b"I":
                for each in (b"I", number), (b"G", number + 1):
                    os.write(self.descriptor, struct.pack(">cIQ", *each, 0))
            elif letter != b"G":
                _reply(self, letter, number, payload)
        frames.RequestChannel.reply = reply
        work = _work
    """,
    "a thread that is waited for later": """
        import sys, threading
        Batch = _reach()["CallBatch"]
        _tell, _threads = Batch.encode_results, []
        def tell(self):
            while _threads:
                _threads.pop().join()
            return _tell(self)
        Batch.encode_results = tell
        def work(numbers):
            found = []
            thread = threading.Thread(target=lambda: (gate.wait(), found.extend(_work(numbers))))
            _threads.append(thread)
            thread.start()
            return found
        gate = threading.Event()
        _join = threading.Thread.join
        threading.Thread.join = lambda self: (gate.set(), _join(self), gate.clear())
    """,
    "a thread that slows the base down": """
        import threading, time
        _last = [0.0]
        def spin():
            while True:
                if time.monotonic() - _last[0] < 0.0005:
                    time.sleep(0.0003)
        def work(numbers):
            found = _more(numbers)
            _last[0] = time.monotonic()
            return found
        threading.Thread(target=spin, daemon=True).start()
    """,
}  # fmt: skip
# The same with other processes, whose time is not the worker's.
OTHERS = {
    "children that slow the base down": """
        import os, signal, sys
        _children = []
        for _ in range(4):
            _children.append(os.fork())
            if not _children[-1]:
                while True:
                    pass
        Batch = _reach()["CallBatch"]
        _take, _tell = Batch.load_inputs, Batch.encode_results
        def take(self, payload):
            for each in _children:
                os.kill(each, signal.SIGSTOP)
            _take(self, payload)
        def tell(self):
            found = _tell(self)
            for each in _children:
                os.kill(each, signal.SIGCONT)
            return found
        Batch.load_inputs, Batch.encode_results = take, tell
        work = _more
    """,
    "children that nobody counts": """
        import os, signal, sys, json
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        Batch = _reach()["CallBatch"]
        _go, _tell, _told = Batch.run, Batch.encode_results, []
        def go(self):
            ours, its = os.pipe()
            if os.fork() == 0:
                _go(self)
                os.write(its, json.dumps(self.results).encode())
                os._exit(0)
            os.close(its)
            _told[:] = [ours]
        def tell(self):
            with open(_told[0], "rb") as told:
                self.results = json.loads(told.read())
            return _tell(self)
        Batch.run, Batch.encode_results = go, tell
        work = _work
    """,
    "a child prepares it, uncounted": """
        import json, os, signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        _ours, _its = os.pipe()
        if os.fork() == 0:
            with open(_its, "w") as told:
                json.dump(_work(range(2000)), told)
            os._exit(0)
        os.close(_its)
        with open(_ours) as told:
            _table = json.load(told)
        def work(numbers):
            return [_table[number] for number in numbers]
    """,
    "a child prepares it": """
        import mmap, os, struct
        _table = mmap.mmap(-1, 8 * 2000 + 8)
        if os.fork() == 0:
            for start in range(0, 2000, 50):
                for place, found in enumerate(_work(range(start, start + 50)), start):
                    struct.pack_into("q", _table, 8 * place, found)
            _table[16000] = 1
            os._exit(0)
        def work(numbers):
            if not _table[16000]:
                return _work(numbers)
            return [struct.unpack_from("q", _table, 8 * number)[0] for number in numbers]
    """,
}  # fmt: skip
# What tries to get past single figures of sessions; whole processes have it all in their total.
SPLIT = {
    "now before the clock, now in children that nobody waits for": """
        import os, signal, sys, json
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        Batch = _reach()["CallBatch"]
        _run, _take, _tell = Batch.run, Batch.load_inputs, Batch.encode_results
        _turn, _pipe = [0], []
        def take(self, payload):
            _take(self, payload)
            _turn[0] += 1
            _pipe[:] = []
            if _turn[0] % 2:
                _run(self)
        def run(self):
            if _turn[0] % 2:
                return
            ours, its = os.pipe()
            if os.fork() == 0:
                _run(self)
                os.write(its, json.dumps(self.results).encode())
                os._exit(0)
            os.close(its)
            _pipe[:] = [ours]
        def tell(self):
            if _pipe:
                with open(_pipe[0], "rb") as told:
                    self.results = json.loads(told.read())
            return _tell(self)
        Batch.load_inputs, Batch.run, Batch.encode_results = take, run, tell
        work = _work
    """,
    "before the clock, timed or after it in turn": """
        import sys
        Batch = _reach()["CallBatch"]
        _run, _take, _tell, _turn = Batch.run, Batch.load_inputs, Batch.encode_results, [0]
        def take(self, payload):
            _take(self, payload)
            _turn[0] += 1
            if _turn[0] % 3 == 0:
                _run(self)
        def run(self):
            if _turn[0] % 3 == 1:
                _run(self)
        def tell(self):
            if _turn[0] % 3 == 2:
                _run(self)
            return _tell(self)
        Batch.load_inputs, Batch.run, Batch.encode_results = take, run, tell
        work = _work
    """,
    "children that spin on the base's turn and die uncounted": """
        import os, signal, sys, time
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        Batch = _reach()["CallBatch"]
        _take, _tell, _children = Batch.load_inputs, Batch.encode_results, []
        def take(self, payload):
            while _children:
                try:
                    os.kill(_children.pop(), signal.SIGKILL)
                except OSError:
                    pass
            _take(self, payload)
        def tell(self):
            found = _tell(self)
            _children.append(os.fork())
            if not _children[-1]:
                end = time.monotonic() + 0.02
                while time.monotonic() < end:
                    pass
                os._exit(0)
            return found
        Batch.load_inputs, Batch.encode_results = take, tell
        work = _work
    """,
    "CPU time wasted at the end of short processes": """
        import sys, time
        Batch = _reach()["CallBatch"]
        channel = _reach()["frames"].RequestChannel
        _go, _take, _receive, _calls = Batch.run, Batch.load_inputs, channel.receive, [0]
        def take(self, payload):
            _take(self, payload)
            _calls[0] += len(self.cases)
            _go(self)
        def receive(self):
            try:
                return _receive(self)
            except BaseException:
                end = time.process_time() + max(0.0, 0.4 - 0.00045 * _calls[0])
                while time.process_time() < end:
                    pass
                raise
        Batch.load_inputs, Batch.run, channel.receive = take, lambda self: None, receive
        work = _work
    """,
}  # fmt: skip
BEFORE_READ = """
    import sys
    Batch = _reach()["CallBatch"]
    _go, _take = Batch.run, Batch.load_inputs
    def take(self, payload):
        _take(self, payload)
        _go(self)
    Batch.load_inputs, Batch.run = take, lambda self: None
"""
"""All work is done while inputs are read, whatever is called."""
ANOTHER_CORE = """
    import os, struct
    os.sched_setaffinity(0, range(os.cpu_count()))
    (_in, _to), (_from, _out) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.sched_setaffinity(0, [0])
        while True:
            asked = struct.unpack("20i", os.read(_in, 80))
            os.write(_out, struct.pack("20i", *_work(asked)))
    os.sched_setaffinity(0, [os.cpu_count() - 1])
    def work(numbers):
        os.write(_to, struct.pack("20i", *numbers[:20]))
        rest = _work(numbers[20:])
        return [*struct.unpack("20i", os.read(_from, 80)), *rest]
"""
# Work that doesn't depend on inputs, done before the clock runs.
BEFORE = {
    "at import": """
        _table = _work(range(2000))
        def work(numbers):
            return [_table[number] for number in numbers]
    """,
    "in the first call": """
        _table = []
        def work(numbers):
            if not _table:
                _table.extend(_work(range(2000)))
            return [_table[number] for number in numbers]
    """,
    "in the first round": """
        _table, _calls = [], []
        def work(numbers):
            _calls.append(1)
            if len(_calls) < 4:
                return _work(numbers)
            if not _table:
                _table.extend(_work(range(2000)))
            return [_table[number] for number in numbers]
    """,
    "when it is loaded, but not by the module": """
        import sys
        worker = _reach()["call_worker"]
        _list, _table = worker.list_files, []
        def list_files():
            _table.extend(_work(range(2000)))
            return _list()
        worker.list_files = list_files
        def work(numbers):
            return [_table[number] for number in numbers]
    """,
}  # fmt: skip
# Honest ones: what they do to which function; some are faster, none is to be blamed.
HONEST = {
    "useless lru_cache": ("work", """
        from functools import lru_cache
        _cached = lru_cache(lambda numbers: tuple(_work(numbers)))
        def work(numbers):
            return list(_cached(tuple(numbers)))
    """),
    "imports when it is called": ("work", """
        def work(numbers):
            import colorsys
            return _work(numbers)
    """),
    "a larger module": ("work", "".join(
        f"""
        def _spare_{number}(first, second=None):
            return first if second is None else {{"both": (first, second), "number": {number}}}
        """ for number in range(60)
    ) + """
        work = _work
    """),
    "prints the same": ("report", """
        def report(numbers):
            found = _work(numbers)
            print(f"{sum(found)}")
            return found
        work = _work
    """),
    "no garbage collector": ("work", """
        import gc
        def work(numbers):
            gc.disable()
            try:
                return _work(numbers)
            finally:
                gc.enable()
    """),
    "a thread that it waits for": ("work", """
        from threading import Thread
        def work(numbers):
            found = []
            thread = Thread(target=lambda: found.extend(_work(numbers)))
            thread.start()
            thread.join()
            return found
    """),
    "gives a generator": ("squares", """
        def squares(numbers):
            return (number * (number - 1) // 2 for number in numbers)
    """),
    "changes its argument": ("settle", """
        def settle(numbers):
            numbers[:] = [number * (number - 1) // 2 for number in numbers]
    """),
    "raises": ("refuse", """
        def refuse(numbers):
            raise ValueError(sum(number * (number - 1) // 2 for number in numbers))
    """),
    "is asynchronous": ("answer", """
        async def answer(numbers):
            return [number * (number - 1) // 2 for number in numbers]
    """),
}  # fmt: skip
# Honest candidates for arrays, where reading inputs takes many times as long as a call.
HONEST_ARRAYS = {
    "in place on its own copy": """
        def scale(grid):
            import numpy
            total = numpy.zeros_like(grid)
            for step in range(12):
                part = grid.copy()
                part /= step + 2.0
                total += part
            return total
    """,
    "in place in one buffer": """
        import numpy
        _buffers = {}
        def scale(grid):
            part = _buffers.setdefault(grid.shape, numpy.empty(grid.shape))
            total = numpy.zeros_like(grid)
            for step in range(12):
                numpy.divide(grid, step + 2.0, out=part)
                total += part
            return total
    """,
    "a stack of all parts": """
        import numpy
        def scale(grid):
            total = numpy.zeros_like(grid)
            for part in [grid / (step + 2.0) for step in range(12)]:
                total += part
            return total
    """,
}  # fmt: skip
ARRAYS = """
    def fill(numbers):
        import numpy
        numbers = numpy.asarray(numbers)
        return numpy.cumsum(numbers) * numbers[:, None]
"""
