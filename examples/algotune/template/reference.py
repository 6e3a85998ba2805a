"""The task of this problem: `generate_problem`, `solve`, `is_solution`."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import task_base
from task_name import NAME

# Tasks import their base class from AlgoTune's package; here it has that module only.
_package = types.ModuleType("AlgoTuneTasks")
_package.__path__ = []
sys.modules.setdefault("AlgoTuneTasks", _package)
sys.modules.setdefault("AlgoTuneTasks.base", task_base)

importlib.import_module(f"tasks.{NAME}.{NAME}")
TASK: Any = task_base.TASK_REGISTRY[NAME]()
