"""Where a command's first process of ours starts: reads its orders, takes its place, watches.

Run as ``python -I -S launch.py DESCRIPTOR``; the orders are what `marshal` reads from there, as
`fairtrial.sandbox.init_process` makes them.
"""

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


def main() -> None:
    with open(int(sys.argv[1]), "rb") as file:
        orders = marshal.load(file)
    for descriptor in (orders["report"], orders["life"]):
        os.set_inheritable(descriptor, False)
    joining = start_joining(orders["joins"])
    # Under a name that nobody else has; nothing of ours goes on sys.path.
    package = type(sys)("_fairtrial_harness")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["_fairtrial_harness"] = package
    from _fairtrial_harness import init, namespaces  # type: ignore[import-not-found]

    if joining and os.waitpid(joining, 0)[1] != 0:
        sys.exit("the control group can't be joined")
    if orders["plan"]:
        namespaces.enter(orders["plan"])
    is_wanted = init.supervise(
        init.execution(orders["argv"], orders["cwd"], orders["env"]),
        orders["limits"],
        report=orders["report"],
        life=orders["life"],
        is_first=orders["is_first"],
        private=orders["private"],
        cores=orders["cores"],
    )
    if not is_wanted and orders["scratch"]:
        remove_scratch(orders)
    os._exit(0)


def start_joining(descriptors: "List[int]") -> int:
    """The process that moves this one into its control groups: the kernel takes its time."""
    own = os.getpid()
    pid = os.fork() if descriptors else 0
    if pid == 0 and descriptors:
        try:
            for descriptor in descriptors:
                os.write(descriptor, str(own).encode())
            os._exit(0)
        finally:
            os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def remove_scratch(orders: "Dict[str, Any]") -> None:
    import shutil

    shutil.rmtree(orders["scratch"], ignore_errors=True)  # nobody else is left to do it


if __name__ == "__main__":
    main()
