"""`fairtrial hotspots` in a terminal."""

from pathlib import Path

from fairtrial.arena import targets
from fairtrial.cli import hotspots

LONG = "src/a_package_with_a_long_name/inner/module.py::SomeClassWithALongName.and_its_method"


def test_targets_are_printed_whole_so_that_they_can_be_copied(capsys):
    spots = (
        targets.HotSpot(LONG, 1.5, 20.25, 12_345, 3, 7),
        targets.HotSpot("a.py::C.size", 0.5, 0.5, 1, 0, 0, "a property"),
        targets.HotSpot("a.py::later", 0.1, 0.5, 1, 0),
    )
    hotspots.print_hot_spots(targets.HotSpots("python -m pytest", 22.0, spots, Path("/x")))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["1.500", "s", "20.250", "s", "12,345", "3", "7", LONG]
    assert lines[3].endswith("   no  a.py::C.size  # a property")
    assert lines[4].endswith("  a.py::later")
    assert lines[5] == f"next: fairtrial optimize {LONG}"
