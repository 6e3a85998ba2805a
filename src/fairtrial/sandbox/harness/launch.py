"""Entry point of the init process: reads its orders, enters namespaces, and runs the command.

Run as ``python -I -S launch.py DESCRIPTOR``; the orders are read from there by `marshal`, as
`fairtrial.sandbox.cold_start` writes them.
"""

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, NoReturn


def main() -> None:
    """Run the command of the orders, and exit when all of its processes have ended."""
    with open(int(sys.argv[1]), "rb") as file:
        orders = marshal.load(file)
    for name in ("report", "life", "usage"):
        if orders[name] is not None:
            os.set_inheritable(orders[name], False)
    # Under a unique name, so that the harness's folder need not be on sys.path.
    package = type(sys)("_fairtrial_harness")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["_fairtrial_harness"] = package
    from _fairtrial_harness.group_joining import (  # type: ignore[import-not-found]
        await_joined,
        start_joining,
    )

    joiner = start_joining(orders["joins"])
    if joiner is not None and not orders["plan"]:
        joiner.join(os.getpid())
    from _fairtrial_harness import init  # type: ignore[import-not-found]

    if orders["plan"]:
        from _fairtrial_harness import namespaces

        namespaces.enter(orders["plan"], joiner)
    elif joiner is not None:
        joiner.finish()
    if orders["joined"] is not None:
        await_joined(orders["joined"])
    run(init, orders)


def run(init: "Any", orders: "Dict[str, Any]") -> "NoReturn":
    """Run the command in this process's sandbox, and exit when all of its processes have ended.

    init: the module
    """
    is_wanted = init.supervise(
        init.make_exec_start(orders["argv"], orders["cwd"], orders["env"]),
        orders["limits"],
        report=orders["report"],
        life=orders["life"],
        is_first=orders["is_first"],
        private=orders["private"],
        cores=orders["cores"],
        usage=orders["usage"],
    )
    if not is_wanted and orders["scratch"]:
        remove_scratch(orders)
    os._exit(0)


def remove_scratch(orders: "Dict[str, Any]") -> None:
    """Remove the command's scratch folder, since the process that made it is gone."""
    import shutil

    shutil.rmtree(orders["scratch"], ignore_errors=True)


if __name__ == "__main__":
    main()
