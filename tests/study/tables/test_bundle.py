"""One archive for the same content, with checksums that tell what was done to it."""

import gzip
import hashlib
import io
import os
import tarfile

import pytest
from small_ledger_kit import Lab, small_study, success, verdict

from fairtrial import StudyError
from fairtrial.core import LedgerError
from fairtrial.study import bundle_results, export_tables, open_results, verify_bundle
from fairtrial.study.tables.integrity import validate_artifacts


@pytest.fixture
def folder(tmp_path):
    lab = Lab(tmp_path / "out", small_study()).run(run0=success(evaluations=[verdict(1)]))
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


def test_a_bundle_holds_tables_and_reports_and_nothing_else(folder, tmp_path):  # spec 26
    path = bundle_results(folder)
    assert path == tmp_path / "out.tar.gz"
    tables = "analysis_plan.json conditions.csv evaluations.csv events.csv hypotheses.json"
    rest = "manifest.json runs.csv study.sqlite study.yaml"
    below = [f"complete-cases/{name}" for name in f"{tables} {rest}".split()]
    inside = sorted([*f"{tables} {rest}".split(), *below, "reports/summary.md"])
    assert names(path) == [f"s/{name}" for name in ["CHECKSUMS.sha256", *inside]]
    assert verify_bundle(path) == []


def test_what_is_asked_for_is_added(folder, tmp_path):
    path = bundle_results(folder, tmp_path / "all.tgz", with_ledger=True, with_workspaces=True)
    assert {"s/ledger.sqlite", "s/workspaces/run-1/note.txt"} <= set(names(path))
    assert verify_bundle(path) == []
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    unpacked = tmp_path / "unpacked" / "s"
    assert validate_artifacts(unpacked) == []
    with open_results(unpacked) as results:
        assert len(results) == 4
        export_tables(results, unpacked)  # what it holds is ours, and is replaced
    assert (unpacked / "study.sqlite").is_symlink()  # in every form that was there
    for line in (unpacked / "CHECKSUMS.sha256").read_text().splitlines():
        digest, name = line.split("  ")
        if name.rpartition("/")[2] not in ("manifest.json", "study.sqlite"):  # written anew
            assert hashlib.sha256((unpacked / name).read_bytes()).hexdigest() == digest


def test_where_one_is_unpacked_without_its_ledger_it_is_said_how_to_have_it(folder, tmp_path):
    with tarfile.open(bundle_results(folder)) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    with pytest.raises(LedgerError, match=r"no ledger.sqlite in it; `fairtrial bundle --with-led"):
        open_results(tmp_path / "unpacked" / "s")


@pytest.mark.parametrize("with_ledger", [False, True])
def test_the_same_content_gives_the_same_bytes(folder, tmp_path, with_ledger):  # spec 26
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


def test_links_lead_nowhere_outside(folder, tmp_path):
    (tmp_path / "secret").write_text("s")
    (folder / "reports" / "link.md").symlink_to(tmp_path / "secret")
    (folder / "reports" / "outside").symlink_to(tmp_path)
    (folder / "reports" / "inside.md").symlink_to("summary.md")
    found = names(bundle_results(folder))
    assert "s/reports/inside.md" in found
    assert not any("link.md" in name or "outside" in name for name in found)


def test_tables_that_do_not_hold_together_are_not_bundled(folder):
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
    with pytest.raises(StudyError, match="is no name for a bundle"):
        bundle_results(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- bundles that were tampered with --


def rewritten(path, change):
    """The archive again, with its members (name -> bytes) as `change` leaves them."""
    with tarfile.open(path) as archive:
        members = {each.name: archive.extractfile(each).read() for each in archive}
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
    ("change", "told"),
    [
        (changed, "runs.csv: differs from its checksum"),
        (fewer, "events.csv: is missing"),
        (more, "more.txt: is not in CHECKSUMS.sha256"),
        (climbing, "'s/../../more.txt': is no name that a bundle may hold"),
        (absolute, "'/etc/more.txt': is no name that a bundle may hold"),
        (two_roots, "expected one folder, found s, t"),
        (without_sums, "CHECKSUMS.sha256 is missing"),
        (odd_sums, "the archive is damaged or cut off: CHECKSUMS.sha256 holds the line 'what?'"),
        (with_matching_sums, "runs.csv: differs from what manifest.json says"),
    ],
)
def test_what_was_done_to_a_bundle_is_found_out(folder, change, told):
    path = bundle_results(folder)
    rewritten(path, change)
    assert told in verify_bundle(path)


def test_links_and_twins_in_an_archive_are_refused(folder):
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
    assert "'s/link': is no plain file" in problems
    assert "'s/runs.csv': is there twice" in problems


def test_a_bundle_cut_off_anywhere_is_found_out(folder):
    path = bundle_results(folder)
    content = path.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:length])
        assert verify_bundle(path), length
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    assert verify_bundle(path)
    path.write_bytes(content + gzip.compress(b"more"))
    assert "something follows the end of the archive" in verify_bundle(path)


def test_what_is_no_bundle_is_told(tmp_path):
    assert "can't be read: No such file" in verify_bundle(tmp_path / "none")[0]
    (tmp_path / "text").write_text("hello")
    assert "damaged" in verify_bundle(tmp_path / "text")[0]
