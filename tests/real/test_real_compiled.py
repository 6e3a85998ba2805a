"""MarkupSafe: Python with an extension in C, built for each candidate; candidates in both."""

import shutil
import subprocess

import pytest
from mischief import ENDS, instead
from project import TIMEOUT_S, Project, ends, judge, surprises, unharmed
from registry import Sdist

from fairtrial import Check
from fairtrial.core import StudyError

MARKUPSAFE = Sdist(
    "MarkupSafe", "3.0.2", "ee55d3edf80167e48ea11a923c7386f4669df67d7994554387f84e7d8b0a2bf0"
)
C, NATIVE, CODE = (
    f"src/markupsafe/{name}" for name in ("_speedups.c", "_native.py", "__init__.py")
)
SWITCH = "	switch (PyUnicode_KIND(s)) {\n"
GUARD = "	if (!PyUnicode_Check(s))\n		return NULL;\n"
END4 = "	Py_UCS4 *inp_end = inp + PyUnicode_GET_LENGTH(in);\n"
ANGLES = '.replace(">", "&gt;")\n        .replace("<", "&lt;")'
# Whoever imports what he has built lets candidates loose before there is a check.
BUILD = "{python} setup.py -q build_ext --inplace && {python} -c 'import markupsafe'"
EXPECTED = {
    **ENDS,
    "deleting tests": "rejected: tampering",
    "writing into the tree": "rejected: tampering",  # of what it left there during the build
    "right in C": "passed",
    "right in Python": "passed",
    "wrong in C": "rejected: tests",
    "wrong in Python": "rejected: tests",
    "aborting in C": "rejected: crash",
    "out of bounds in C": "rejected: crash",
    "hanging in C": "rejected: timeout",
    "leaking in C": "rejected: memory",
    "not C": "rejected: build",
}


@pytest.fixture(scope="module")
def markupsafe(tmp_path_factory):
    if shutil.which("gcc") is None and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    project = Project(MARKUPSAFE, tmp_path_factory.mktemp("real") / "markupsafe")
    project.make_environment("setuptools==75.8.0")
    project.commit()
    return project


def make_candidates(project):
    text, native = project.read(C), project.read(NATIVE)
    guarded = GUARD.replace("return NULL;", 'return PyErr_Format(PyExc_TypeError, "no text");')
    swapped = '.replace("<", "&lt;")\n        .replace(">", "&gt;")'
    added = {
        "aborting in C": "	abort();\n",
        "out of bounds in C": "	*(volatile int *)8 = 1;\n",
        "hanging in C": "	for (;;) { }\n",
        "leaking in C": "	for (;;) memset(malloc(1 << 22), 1, 1 << 22);\n",
        "not C": "	}}}\n",
    }
    return [
        project.candidate("right in C", C, instead(text, GUARD, guarded)),
        project.candidate("right in Python", NATIVE, instead(native, ANGLES, swapped)),
        project.candidate("wrong in C", C, instead(text, END4, END4.replace(";", " - 1;"))),
        project.candidate("wrong in Python", NATIVE, instead(native, "&#39;", "&apos;")),
        *(
            project.candidate(name, C, instead(text, SWITCH, code + SWITCH))
            for name, code in added.items()
        ),
        *project.hostile(
            CODE, inside="if type(s) is str:", on_import="import string", test="tests/test_leak.py"
        ),
    ]


def test_each_candidates_own_extension_is_judged(markupsafe, home):
    problem = markupsafe.problem(
        editable=("src/**/*.py", "src/**/*.c"),
        build=("sh", "-c", BUILD),
        env={"CIBUILDWHEEL": "1"},  # else a failure to compile is none
        check=(Check(command=("{python}", "-m", "pytest", "-q"), timeout_s=TIMEOUT_S),),
    )
    with unharmed(markupsafe, home):
        judged = judge(problem, make_candidates(markupsafe))
    assert not surprises(ends(judged), EXPECTED)
    assert "_speedups.c" in judged["not C"].rejection.failures[0].message


def test_an_extension_that_was_built_once_is_not_taken_for_the_candidates(markupsafe, home):
    python = markupsafe.folder / ".venv" / "bin" / "python"
    words = [python, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(words, cwd=markupsafe.folder, check=True)
    problem = markupsafe.problem(
        editable=("src/**/*.py", "src/**/*.c"),
        include=("src/markupsafe/*.so",),
        check=(Check(command=("{python}", "-m", "pytest", "-q"), timeout_s=TIMEOUT_S),),
    )
    with unharmed(markupsafe, home), pytest.raises(StudyError) as caught:
        judge(problem, make_candidates(markupsafe))
    assert "no editable file can be compiled" in str(caught.value)
    assert "build:" in str(caught.value)
