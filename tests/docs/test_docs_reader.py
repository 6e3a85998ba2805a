"""What somebody who follows the guides word by word stumbles over."""

import ast
import csv
import importlib
import re
from pathlib import Path

import pytest
from simulated_study_kit import make_study, simulate

from fairtrial import Optimizer, StudyError
from fairtrial.arena import Arena, ArenaSettings
from fairtrial.optimize.candidates_table import COLUMNS
from fairtrial.study.report.codebook import RUNS
from fairtrial.study.tables.rows import UNKNOWN, RunRows

ROOT = Path(__file__).parents[2]
GUIDES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
PUBLIC_MODULES = ("fairtrial.study.executors", "fairtrial.testing", "fairtrial.compat")
FACADES = (
    "fairtrial",
    "fairtrial.study",
    "fairtrial.study.executors",
    "fairtrial.arena",
    "fairtrial.optimize",
)


def read(name):
    return (ROOT / "docs" / name).read_text("utf-8")


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_guides_import_what_is_public(guide):
    for block in python_blocks(guide.read_text("utf-8")):
        for node in ast.walk(ast.parse(block)):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            if node.module in FACADES:
                names = set(importlib.import_module(node.module).__all__)
                assert {alias.name for alias in node.names} <= names
            elif node.module.startswith("fairtrial."):
                assert node.module.startswith(PUBLIC_MODULES), node.module
    assert all(f"`{module}`" in read("api.md") for module in PUBLIC_MODULES)


def test_no_two_guides_copy_a_project_to_the_same_place():
    """`cp -r` into a folder that is there already nests it."""
    found = [
        target
        for guide in GUIDES
        for target in re.findall(r"^cp -r \S+ (\S+)", guide.read_text("utf-8"), re.M)
    ]
    assert len(found) > 1
    assert len(set(found)) == len(found)


def test_the_api_guide_explains_how_to_receive_progress_events():
    assert "emit" in ArenaSettings.__dataclass_fields__
    for guide in ("api.md", "tutorial-builder.md"):
        assert "`ArenaSettings(emit=print)`" in read(guide)


def test_the_api_lists_what_an_arena_has():
    listed = read("api.md").split("What an `Arena` has")[1].partition("All but the properties")[0]
    told = set(re.findall(r"^- `(\w+)|; `(\w+)", listed, re.M))
    names = {first or second for first, second in told}
    # What hands the winner over, and reads diffs for it, is our own affair.
    own = {name for name in vars(Arena) if not name.startswith("_")} - {"make_workshop", "read_all"}
    assert names == own


def test_a_function_is_no_option_and_the_api_says_so():
    with pytest.raises(StudyError, match=r"proposer_options\.use: a value of type function can't"):
        Optimizer(proposer="function", proposer_options={"use": lambda brief, request: None})
    assert '`{"use": propose}` is refused' in read("api.md")


def test_what_is_not_known_is_reported_as_the_contract_says():
    study = make_study()
    _, results = simulate(study, lambda spec, condition, rng: 1.0)
    rows = RunRows(study)
    told = dict(zip(rows.columns, rows.row(results[0]), strict=False))
    contract = read("artifacts.md")
    unknown = [name for name, _, _ in RUNS if told[name] == UNKNOWN]
    assert f"{', '.join(f'`{name}`' for name in unknown[:-1])} and `{unknown[-1]}` are" in contract
    assert told["input_tokens"] == told["output_tokens"] == 0
    assert "`input_tokens`, `output_tokens` and `cost_usd` are 0" in contract


def test_ids_of_candidates_stay_texts_in_pandas_as_the_contract_shows(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    with Path("candidates.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(COLUMNS))
        writer.writeheader()
        writer.writerow({"candidate_id": "0.1"})
        writer.writerow({"candidate_id": "0.10", "parent_id": "0.1", "duplicate_of": "0.1"})
    (block,) = [each for each in python_blocks(read("artifacts.md")) if "import pandas" in each]
    names = {}
    exec(compile(block, "artifacts.md", "exec"), names)
    read_back = names["candidates"]
    assert list(read_back["candidate_id"]) == ["0.1", "0.10"]
    assert list(read_back["parent_id"])[1] == list(read_back["duplicate_of"])[1] == "0.1"
