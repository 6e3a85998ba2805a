"""The worker that uses results like callers do: keeps them, changes them, and calls again.

Run by path in the project's Python; the job on stdin is that of `call_worker`, with ``uses``:
whether results are used, or the calls only made. One line of JSON for each step goes to the
channel, numbered through:

- each call, with ``shares``: which arguments the result shares objects with, and ``aliased``: how
  often an object occurs again in the result
- for each result, when all calls are made: ``kept``: the result if it has changed since, and, after
  the worker has changed the results, ``after``: the arguments if they have changed with them
- each call again, in the opposite order, with ``still``: the result of the first call if it is not
  what the worker made of it

The base goes through the same steps.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from typing import Any, Callable, NoReturn

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own
_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    call_worker,
    codec,
    import_record,
    object_graph,
)

_exit = os._exit
SWITCH_S = 1e-6
"""How long a thread may run while others wait: a result that a thread fills after the call has
returned is then looked at before it is full."""


def main() -> NoReturn:
    """Read the job, go through the steps, and exit at once."""
    reporter = call_worker.CallReporter(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    job = codec.load_encoded(sys.stdin.buffer.read().decode("utf-8"))
    output = call_worker.CapturedStdout(job["output_bytes"])
    list_recorded = import_record.record_imports()
    call_worker.hide_harness()
    try:
        called = call_worker.load_called(job)
    except BaseException as error:
        failed = codec.encode_raised(error)
        reporter.send({"failed": failed, "traceback": call_worker.format_error(error)})
        _exit(1)
    sys.setswitchinterval(SWITCH_S)
    caller = Caller(called, codec.Caps(*job["caps"]), output)
    reports = caller.use(job["cases"]) if job["uses"] else caller.make_calls(job["cases"])
    for number, report in enumerate(reports):
        reporter.send({"case": number, **report})
    reporter.send({"done": len(reports), "files": list_recorded()})
    _exit(0)


class Caller:
    """Calls a function, and uses its results.

    called: the function
    caps: limits of encoded values
    output: captures what calls print
    """

    def __init__(self, called: Any, caps: Any, output: Any) -> None:
        self.called = called
        self.view = called.view
        self.caps = caps
        self.output = output

    def make_calls(self, cases: list[Any]) -> list[dict[str, Any]]:
        """Make the calls, and return their reports."""
        return [self.call(case).report for case in cases]

    def use(self, cases: list[Any]) -> list[dict[str, Any]]:
        """Go through all steps, and return their reports."""
        calls, looks = [], []
        for case in cases:
            call = self.call_and_compare_objects(case)
            calls.append(call)
            looks.append(self.look(call))
        kept = [self.find_change(call, look) for call, look in zip(calls, looks)]
        after = self.change_results(calls)
        looks = [self.look(call) for call in calls]
        again = [self.call(case) for case in reversed(cases)]
        still = [self.find_change(call, look) for call, look in zip(calls, looks)]
        used = [{"kept": one, "after": other} for one, other in zip(kept, after)]
        last = [{**call.report, "still": one} for call, one in zip(again, reversed(still))]
        return [call.report for call in calls] + used + last

    def call(self, case: Any, watch: Callable[[Any], None] | None = None) -> Any:
        """Make one call."""
        return call_worker.run_case(self.called, case, self.caps, self.output, watch)

    def call_and_compare_objects(self, case: Any) -> Any:
        """Make one call, and find out which objects its result shares."""
        owned: list[tuple[str, list[Any]]] = []

        def list_owned(call: Any) -> None:
            named = [(f"args[{index}]", item) for index, item in enumerate(call.args)]
            named += [(f"kwargs[{name!r}]", item) for name, item in call.kwargs.items()]
            owned.extend((name, object_graph.list_mutable(item)) for name, item in named)

        call = self.call(case, list_owned)
        parts = object_graph.list_mutable(call.result)
        ids = {id(part) for part in parts}
        shares = [name for name, items in owned if any(id(item) in ids for item in items)]
        call.report.update(shares=shares, aliased=len(parts) - len(ids))
        return call

    def look(self, call: Any) -> Any:
        """Return the text of a result as it is now; None if it can't be looked at again."""
        if "result" not in call.report or object_graph.is_iterator(call.result):
            return None
        return codec.dump_encoded(self.encode(call))

    def encode(self, call: Any) -> Any:
        """Encode a result as it is now, or the exception that its view raises."""
        self.output.begin()
        try:
            shown = call_worker.await_result(self.view(call.result)) if self.view else call.result
        except BaseException as error:
            return call_worker.encode_raised(error, self.caps)
        return codec.encode(shown, self.caps)

    def find_change(self, call: Any, look: Any) -> Any:
        """Return the result as it is now, if it has changed; None if it hasn't."""
        if look is None or self.look(call) == look:
            return None
        return self.encode(call)

    def change_results(self, calls: list[Any]) -> list[Any]:
        """Change all results; return the arguments of calls that have changed with them."""
        before = [
            codec.dump_encoded(call_worker.encode_arguments(call, self.caps)) for call in calls
        ]
        for call in calls:
            object_graph.change(call.result)
        after = [call_worker.encode_arguments(call, self.caps) for call in calls]
        return [
            None if codec.dump_encoded(now) == text else now for now, text in zip(after, before)
        ]


if __name__ == "__main__":
    main()
