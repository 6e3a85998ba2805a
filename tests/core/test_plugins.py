"""Designs of other packages: found by name, imported when used, and kept apart."""

import importlib
import subprocess
import sys

import pytest

from fairtrial import DesignKind, Study, StudyError, build_design, validate_study
from fairtrial.core import PluginError, plugins

LADDER = """
from dataclasses import dataclass
from fairtrial.study import DesignRow, DesignTable

@dataclass(frozen=True)
class Ladder:
    steps: int = 2

    def table(self, study):
        rows = [
            DesignRow({factor.name: factor.levels[step].value for factor in study.factors})
            for step in range(self.steps)
        ]
        return DesignTable(size=self.steps, rows=rows, facts={"steps": self.steps})

def not_a_class():
    pass
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package of one module with entry points for designs."""

    def do(package, source, **designs):
        (tmp_path / f"{package}.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}:{target}" for name, target in designs.items()]
        (info / "entry_points.txt").write_text("\n".join(["[fairtrial.designs]", *lines, ""]))
        # Python lists a folder again only when its time changes, which is too coarse for tests.
        importlib.invalidate_caches()
        plugins._find_entry_points.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield do
    plugins._find_entry_points.cache_clear()


def study(**spec):
    factors = [{"name": "x", "levels": [1, 2, 3]}, {"name": "y", "levels": ["a", "b", "c"]}]
    return Study.from_dict({"study_id": "s", "title": "t", "factors": factors, "design_spec": spec})


def test_an_installed_packages_design_is_a_kind_like_any_other(install):
    install("ladder_designs", LADDER, ladder="Ladder")
    assert set(plugins.names("designs")) == {*map(str, DesignKind), "ladder"}
    assert validate_study(study(kind="ladder")) == []
    rows = [c.factor_assignments for c in build_design(study(kind="ladder", options={"steps": 3}))]
    assert rows == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, {"x": 3, "y": "c"}]


def test_a_plug_ins_options_are_checked_like_any_others(install):
    install("ladder_options", LADDER, ladder="Ladder")
    assert validate_study(study(kind="ladder", options={"stps": 3})) == [
        "design_spec.options.stps: unknown key; did you mean 'steps'?"
    ]
    assert validate_study(study(kind="ladder", options={"steps": "3"})) == [
        "design_spec.options.steps: expected a whole number, got the text '3'; "
        "a number stands without quotes"
    ]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError('no licence')"),
        ("raise SystemExit(0)", "SystemExit(0)"),
        ("import no_such_module_anywhere", "No module named 'no_such_module_anywhere'"),
        ("", "no attribute 'Ladder'"),
    ],
)
def test_a_design_that_cannot_be_loaded_is_a_mistake_in_the_study(install, source, says, request):
    install(f"broken_{abs(hash(request.node.name))}", source, ladder="Ladder")
    (mistake,) = validate_study(study(kind="ladder"))
    assert mistake.startswith("design_spec.kind: design 'ladder' can't be loaded: ")
    assert says in mistake


def test_a_design_must_be_a_dataclass(install):
    install("ladder_function", LADDER, ladder="not_a_class")
    with pytest.raises(PluginError, match=r"is not a dataclass \(ladder_function:not_a_class\)"):
        plugins.load("designs", "ladder")


def test_no_package_can_take_the_name_of_anothers_design(install):
    install("ladder_impostor", LADDER, full_factorial="Ladder")
    with pytest.raises(StudyError, match="claimed by several packages") as caught:
        build_design(study(kind="full_factorial"))
    assert "ladder_impostor:Ladder" in str(caught.value)
    assert "fairtrial.study.design.factorial:FullFactorial" in str(caught.value)
    assert build_design(study(kind="randomized_block"))  # other designs still load


def test_a_design_that_gives_a_row_twice_without_numbering_it_is_refused(install):
    twice = LADDER.replace("factor.levels[step]", "factor.levels[0]")
    install("ladder_twice", twice, ladder="Ladder")
    with pytest.raises(StudyError, match="two conditions get the id cond-") as caught:
        build_design(study(kind="ladder"))
    assert str(caught.value).count('{"x":1,"y":"a"}') == 2


def test_replicates_that_a_design_would_ignore_are_refused(install):
    install("ladder_replicates", LADDER, ladder="Ladder")
    with pytest.raises(StudyError, match=r"use run_budget\.replicates"):
        build_design(study(kind="ladder", replicates=2))
    settled = LADDER.replace("facts=", "settled=True, facts=")
    install("ladder_settled", settled, steps="Ladder")
    assert len(build_design(study(kind="steps", replicates=2))) == 2  # the design decides


def test_listing_the_names_imports_no_plug_in():
    code = (
        "import sys; from fairtrial.core import plugins; plugins.names('designs'); "
        "print(*(m for m in sys.modules if m.startswith('fairtrial.')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(result.stdout.split()) == {
        "fairtrial._facade",
        "fairtrial.core",
        "fairtrial.core.plugins",
        "fairtrial.core.errors",
    }
