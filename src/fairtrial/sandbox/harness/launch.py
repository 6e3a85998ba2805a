"""Entry point of the init process: reads its orders, enters namespaces, and runs the command.

Run as ``python -I -S launch.py DESCRIPTOR``; the orders are read from there by `marshal`, as
`fairtrial.sandbox.cold_start` writes them.
"""

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


def main() -> None:
    """Run the command of the orders, and exit when all of its processes have ended."""
    with open(int(sys.argv[1]), "rb") as file:
        orders = marshal.load(file)
    for descriptor in (orders["report"], orders["life"]):
        os.set_inheritable(descriptor, False)
    joining = start_joining(orders["joins"])
    # Under a unique name, so that no folder of ours has to be on sys.path.
    package = type(sys)("_fairtrial_harness")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["_fairtrial_harness"] = package
    from _fairtrial_harness import init, namespaces  # type: ignore[import-not-found]

    if joining and os.waitpid(joining, 0)[1] != 0:
        sys.exit("the control group can't be joined")
    if orders["plan"]:
        namespaces.enter(orders["plan"])
    is_wanted = init.supervise(
        init.make_exec_start(orders["argv"], orders["cwd"], orders["env"]),
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
    """Fork a process that moves this one into its control groups, since that takes the kernel long.

    Returns its pid; 0 if there are no groups to join.
    """
    own_pid = os.getpid()
    pid = os.fork() if descriptors else 0
    if pid == 0 and descriptors:
        try:
            for descriptor in descriptors:
                os.write(descriptor, str(own_pid).encode())
            os._exit(0)
        finally:
            os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def remove_scratch(orders: "Dict[str, Any]") -> None:
    """Remove the command's scratch folder, since the process that made it is gone."""
    import shutil

    shutil.rmtree(orders["scratch"], ignore_errors=True)


if __name__ == "__main__":
    main()
