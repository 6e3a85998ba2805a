"""The exported names are those that the documentation lists, and no more."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import fairtrial

ROOT = Path(__file__).parents[2]


GUIDE = (ROOT / "docs" / "api.md").read_text("utf-8")


def test_the_tables_of_names_are_those_of_the_facades():
    made = subprocess.run([sys.executable, ROOT / "tools" / "api_docs.py", "--check"], check=False)
    assert made.returncode == 0, "run python tools/api_docs.py"


def test_the_docs_list_every_argument_of_run_study():
    listed = GUIDE.split("`run_study` takes, beside the study:\n\n")[1].partition("\n\n")[0]
    told = re.findall(r"`(\w+)`(?=[,:])", re.sub(r"(: .*?)(?=;|$)", ":", listed, flags=re.M))
    assert sorted(told) == sorted(
        inspect.signature(fairtrial.run_study).parameters.keys() - {"study"}
    )


def test_every_exported_name_can_be_imported():
    for name in fairtrial.__all__:
        assert getattr(fairtrial, name) is not None
    assert set(dir(fairtrial)) >= set(fairtrial.__all__)


def test_type_checkers_see_the_same_names():
    stub = ast.parse((ROOT / "src/fairtrial/__init__.pyi").read_text("utf-8"))
    names = set()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names}
    assert names == set(fairtrial.__all__)


def test_type_checkers_see_the_fields_of_a_factor():
    """Its constructor is written out for them, so that bare levels are no type errors."""
    tree = ast.parse((ROOT / "src/fairtrial/study/model/factors.py").read_text("utf-8"))
    (factor,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Factor")
    (made,) = (n for n in ast.walk(factor) if getattr(n, "name", "") == "__init__")
    fields = [field.name for field in dataclasses.fields(fairtrial.Factor)]
    assert [argument.arg for argument in made.args.args] == ["self", *fields]
    assert len(made.args.defaults) == len(fields) - 1


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(fairtrial, "no_such_name")


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, fairtrial; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for module in ("msgspec", "yaml", "rich", "anyio", "httpx", "numpy", "scipy", "dataclasses"):
        assert f"'{module}'" not in loaded
