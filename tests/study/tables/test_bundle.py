"""Bundles: the same content gives the same bytes, and changes are detected by checksums."""

import gzip
import hashlib
import io
import os
import tarfile

import pytest
from small_ledger_kit import LedgerLab, evaluation, make_small_study, success

from fairtrial import StudyError
from fairtrial.core import LedgerError
from fairtrial.study import bundle_results, open_results
from fairtrial.study.tables import export_tables, verify_bundle
from fairtrial.study.tables.integrity import validate_artifacts


@pytest.fixture
def folder(tmp_path):
    lab = LedgerLab(tmp_path / "out", make_small_study()).run(
        run0=success(evaluations=[evaluation(1)])
    )
    export_tables(lab.reader, lab.folder, sqlite=True, complete_cases=True)
    lab.close()
    for name in ("reports/summary.md", "workspaces/run-1/note.txt", "owner.lock", "x.part"):
        path = lab.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return lab.folder


def names(path):
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_a_bundle_has_tables_and_reports_and_nothing_else(folder, tmp_path):
    path = bundle_results(folder)
    assert path == tmp_path / "out.tar.gz"
    tables = "analysis_plan.json conditions.csv evaluations.csv events.csv hypotheses.json"
    rest = "manifest.json outputs.csv runs.csv study.sqlite study.yaml"
    below = [f"complete-cases/{name}" for name in f"{tables} {rest}".split()]
    inside = sorted([*f"{tables} {rest}".split(), *below, "reports/summary.md"])
    assert names(path) == [f"s/{name}" for name in ["CHECKSUMS.sha256", *inside]]
    assert verify_bundle(path) == []


def test_ledger_and_workspaces_are_added_on_request(folder, tmp_path):
    path = bundle_results(folder, tmp_path / "all.tgz", with_ledger=True, with_workspaces=True)
    assert {"s/ledger.sqlite", "s/workspaces/run-1/note.txt"} <= set(names(path))
    assert verify_bundle(path) == []
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    unpacked = tmp_path / "unpacked" / "s"
    assert validate_artifacts(unpacked) == []
    with open_results(unpacked) as results:
        assert len(results) == 4
        export_tables(results, unpacked)  # the unpacked files count as our own and are replaced
    assert (unpacked / "study.sqlite").is_symlink()  # all formats are exported again
    for line in (unpacked / "CHECKSUMS.sha256").read_text().splitlines():
        digest, name = line.split("  ")
        if name.rpartition("/")[2] not in ("manifest.json", "study.sqlite"):  # written anew
            assert hashlib.sha256((unpacked / name).read_bytes()).hexdigest() == digest


def test_opening_a_bundle_without_its_ledger_says_how_to_include_it(folder, tmp_path):
    with tarfile.open(bundle_results(folder)) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    with pytest.raises(LedgerError, match=r"no ledger.sqlite in it; `fairtrial bundle --with-led"):
        open_results(tmp_path / "unpacked" / "s")


@pytest.mark.parametrize("with_ledger", [False, True])
def test_the_same_content_gives_the_same_bytes(folder, tmp_path, with_ledger):
    first = bundle_results(folder, tmp_path / "a" / "1.tar.gz", with_ledger=with_ledger)
    for path in (folder / "reports", folder / "reports" / "summary.md"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    folder.rename(tmp_path / "renamed")
    again = tmp_path / "renamed"
    second = bundle_results(again, tmp_path / "2.tar.gz", with_ledger=with_ledger)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == bytes(4)  # gzip's own time
    (again / "reports" / "summary.md").write_text("other")
    third = bundle_results(again, tmp_path / "3.tar.gz", with_ledger=with_ledger)
    assert first.read_bytes() != third.read_bytes()


def test_links_out_of_the_folder_are_left_out(folder, tmp_path):
    (tmp_path / "secret").write_text("s")
    (folder / "reports" / "link.md").symlink_to(tmp_path / "secret")
    (folder / "reports" / "outside").symlink_to(tmp_path)
    (folder / "reports" / "inside.md").symlink_to("summary.md")
    names_in_bundle = names(bundle_results(folder))
    assert "s/reports/inside.md" in names_in_bundle
    assert not any("link.md" in name or "outside" in name for name in names_in_bundle)


def test_inconsistent_tables_are_not_bundled(folder):
    (folder / "runs.csv").write_text("study_id\n")
    with pytest.raises(StudyError, match=r"runs\.csv: .*; `fairtrial export "):
        bundle_results(folder)


def test_wrong_targets_are_refused(folder, tmp_path):
    with pytest.raises(StudyError, match="put it beside the folder"):
        bundle_results(folder, folder / "bundle.tar.gz")
    with pytest.raises(StudyError, match="is not a folder"):
        bundle_results(tmp_path / "none")
    (folder / "ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match="has no ledger"):
        bundle_results(folder, with_ledger=True)
    (folder / "reports" / "a\nb").write_text("")
    with pytest.raises(StudyError, match="is not a valid name in a bundle"):
        bundle_results(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- changed bundles --


def rewrite(path, change):
    """Write the archive again with its members (name -> bytes) changed by `change`."""
    with tarfile.open(path) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive}
    members = change(members) or members
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def changed(members):
    members["s/runs.csv"] += b"\n"


def fewer(members):
    del members["s/events.csv"]


def more(members):
    members["s/more.txt"] = b""


def climbing(members):
    members["s/../../more.txt"] = b""


def absolute(members):
    members["/etc/more.txt"] = b""


def two_roots(members):
    members["t/runs.csv"] = b""


def without_sums(members):
    del members["s/CHECKSUMS.sha256"]


def odd_sums(members):
    members["s/CHECKSUMS.sha256"] = b"what?\n"


def with_matching_sums(members):
    old = hashlib.sha256(members["s/runs.csv"]).hexdigest()
    members["s/runs.csv"] += b"\n"
    new = hashlib.sha256(members["s/runs.csv"]).hexdigest()
    sums = members["s/CHECKSUMS.sha256"].decode().replace(f"{old}  runs.csv", f"{new}  runs.csv")
    members["s/CHECKSUMS.sha256"] = sums.encode()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed, "runs.csv: differs from its checksum"),
        (fewer, "events.csv: is missing"),
        (more, "more.txt: is not in CHECKSUMS.sha256"),
        (climbing, "'s/../../more.txt': is not a valid name in a bundle"),
        (absolute, "'/etc/more.txt': is not a valid name in a bundle"),
        (two_roots, "expected one folder, found s, t"),
        (without_sums, "CHECKSUMS.sha256 is missing"),
        (
            odd_sums,
            "the archive is damaged or cut off: CHECKSUMS.sha256 has the invalid line 'what?'",
        ),
        (with_matching_sums, "runs.csv: differs from what manifest.json says"),
    ],
)
def test_changes_of_a_bundle_are_detected(folder, change, expected):
    path = bundle_results(folder)
    rewrite(path, change)
    assert expected in verify_bundle(path)


def test_links_and_duplicates_in_an_archive_are_refused(folder):
    path = bundle_results(folder)
    with gzip.open(path) as packed:
        content = packed.read()
    buffer = io.BytesIO(content)
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        link = tarfile.TarInfo("s/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        twin = tarfile.TarInfo("s/runs.csv")
        archive.addfile(twin, io.BytesIO(b""))
    path.write_bytes(gzip.compress(buffer.getvalue()))
    problems = verify_bundle(path)
    assert "'s/link': is not a plain file" in problems
    assert "'s/runs.csv': occurs twice" in problems


def test_a_truncated_bundle_is_detected(folder):
    path = bundle_results(folder)
    content = path.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:length])
        assert verify_bundle(path), length
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    assert verify_bundle(path)
    path.write_bytes(content + gzip.compress(b"more"))
    assert "something follows the end of the archive" in verify_bundle(path)


def test_a_file_that_is_not_a_bundle_is_reported(tmp_path):
    assert "can't be read: No such file" in verify_bundle(tmp_path / "none")[0]
    (tmp_path / "text").write_text("hello")
    assert "damaged" in verify_bundle(tmp_path / "text")[0]
