"""The table of samples: complete, exact, and sufficient for every verdict."""

import csv
import math
import random
import sys
from dataclasses import replace

import pytest

from fairtrial.arena import Measurement, Sample, Session, Verdict
from fairtrial.arena.timing import samples_table as samples
from fairtrial.arena.timing.summary import summarize
from fairtrial.core import StudyError, table_files

RULES = {"alpha": 0.05, "min_effect": 0.02}


def session(number, ratio=1.0, *, benchmark="sort", seed=0, cpu=True, rounds=5):
    """A session whose candidate takes `ratio` times as long as the base, by a noisy clock."""
    noise = random.Random(f"{seed}/{benchmark}/{number}")
    drift = noise.gauss(0, 0.01)
    taken = [Sample(0, 0, "base", 0, 1e-5, 1e-5 if cpu else None, is_kept=False)]  # an empty one
    for item in range(rounds):
        for position, arm in enumerate(("base", "candidate")):
            factor = ratio * math.exp(drift) if arm == "candidate" else 1.0
            wall_s = 2e-3 * factor * math.exp(noise.gauss(0, 0.02))
            cpu_s = wall_s * 0.9 if cpu else None
            taken.append(Sample(item, position, arm, 7, wall_s, cpu_s, is_kept=item > 0))
    return Session(benchmark, number, tuple(taken), 0.3)


def measure(*ratios, sessions=10, **others):
    """A candidate with a benchmark for each ratio."""
    replicates = [
        [session(n, ratio, benchmark=f"b{i}", **others) for i, ratio in enumerate(ratios)]
        for n in range(sessions)
    ]
    return summarize(replicates, **RULES)


@pytest.fixture(scope="module")
def measurements():
    return {
        'faster, and "quoted"\nover two lines': measure(0.8),
        "slower": measure(1.3, seed=1),
        "mixed": measure(0.7, 1.1, seed=2),
        "same": measure(1.0, seed=3, sessions=46, cpu=False),
        "few": measure(1.0, seed=4, sessions=3),
    }


@pytest.fixture(params=["samples.csv", "samples.parquet"])
def written(request, tmp_path, measurements):
    path = tmp_path / "new" / request.param
    samples.write_samples(path, measurements)
    return path


def test_every_sample_comes_back_as_it_was(written, measurements):
    expected = [
        samples.SampleRow(name, item.benchmark, item.number, sample)
        for name, measurement in measurements.items()
        for item in measurement.sessions
        for sample in item.samples
    ]
    assert samples.read_samples(written) == expected
    assert len(list(written.parent.iterdir())) == 1  # nothing beside it


def test_verdicts_can_be_recomputed_from_the_table_alone(written, measurements):
    found = samples.recompute(written, **RULES)
    assert list(found) == list(measurements)
    claims = {name: each.overall.claim.value for name, each in found.items()}
    assert claims == {name: each.verdict.value for name, each in measurements.items()}
    assert claims["slower"] == "slower"
    assert claims["same"] == "equivalent"
    for name, measurement in measurements.items():
        again = found[name]
        if measurement.estimate is None:
            assert again.overall.sessions == 3
            continue
        told = measurement.estimate
        assert again.overall.speedup == told.ratio  # the same to the last bit
        assert (again.overall.speedup_low, again.overall.speedup_high) == (told.low, told.high)
        assert [timing.estimate.ratio for timing in measurement.timings] == [
            benchmark.speedup for benchmark in again.benchmarks.values()
        ]


def test_each_candidate_may_have_a_level_of_its_own(written, measurements):
    levels = {name: 0.05 if name == "slower" else 0.01 for name in measurements}
    found = samples.recompute(written, alpha=levels, min_effect=0.02)
    plain = samples.recompute(written, **RULES)
    assert found["slower"] == plain["slower"]
    assert found["mixed"].overall.low < plain["mixed"].overall.low


def test_cpu_time_has_statistics_of_its_own_where_it_is_known(written):
    rows = samples.read_samples(written)
    walls, cpus = samples.session_statistics(rows), samples.session_statistics(rows, "cpu")
    assert cpus["same"]["b0"] == {}
    assert cpus["slower"]["b0"].keys() == walls["slower"]["b0"].keys()
    assert cpus["slower"] != walls["slower"]


def test_a_session_that_was_broken_off_does_not_count(tmp_path):
    broken = Session("b0", 10, session(0).samples[:3], 0.1)
    whole = measure(1.3)
    path = tmp_path / "s.csv"
    both = Measurement(Verdict.SLOWER, None, sessions=(*whole.sessions, broken))
    samples.write_samples(path, {"one": both})
    assert samples.recompute(path, **RULES)["one"].overall.sessions == 10


def test_sessions_count_in_their_order_whatever_the_order_of_lines(tmp_path, measurements):
    path = tmp_path / "s.csv"
    samples.write_samples(path, {"mixed": measurements["mixed"]})
    before = samples.recompute(path, **RULES)
    header, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, *reversed(lines)]))
    after = samples.recompute(path, **RULES)["mixed"].overall
    assert after.mean == pytest.approx(before["mixed"].overall.mean, rel=1e-12)


def test_the_columns_are_those_that_were_promised(tmp_path, measurements):
    path = tmp_path / "s.csv"
    count = samples.write_samples(path, {"slower": measurements["slower"]})
    header, first, *rest = csv.reader(path.read_text("utf-8").splitlines())
    assert header == [
        "candidate", "benchmark", "session", "round", "position", "arm", "calls", "wall_s",
        "cpu_s", "is_kept", "host",
    ]  # fmt: skip
    assert first == ["slower", "b0", "0", "0", "0", "base", "0", "1e-05", "1e-05", "False", ""]
    assert count == 1 + len(rest) == 110


def test_times_of_several_machines_are_not_compared(tmp_path, measurements):
    slower = measurements["slower"]
    there = [replace(session, host="there") for session in slower.sessions[:2]]
    mixed = replace(slower, sessions=(*there, *slower.sessions[2:]))
    samples.write_samples(tmp_path / "s.csv", {"slower": mixed})
    with pytest.raises(StudyError, match="times of several machines for slower"):
        samples.recompute(tmp_path / "s.csv", **RULES)


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_tables_of_earlier_versions_are_read_without_the_machine(tmp_path, measurements, name):
    import pyarrow.parquet as pq

    samples.write_samples(tmp_path / name, {"slower": measurements["slower"]})
    before = samples.recompute(tmp_path / name, **RULES)
    if name.endswith(".csv"):
        lines = (tmp_path / name).read_text("utf-8").splitlines()
        text = "\n".join(line.rpartition(",")[0] for line in lines)
        (tmp_path / name).write_text(text, "utf-8")
    else:
        table = pq.read_table(tmp_path / name)
        pq.write_table(table.drop_columns(["host"]), tmp_path / name)
    assert samples.recompute(tmp_path / name, **RULES) == before


def test_parquet_has_types(tmp_path, measurements):
    import pyarrow.parquet as pq

    path = tmp_path / "s.parquet"
    samples.write_samples(path, measurements)
    types = {field.name: str(field.type) for field in pq.read_schema(path)}
    assert types["session"] == types["calls"] == "int64"
    assert types["wall_s"] == types["cpu_s"] == "double"
    assert types["is_kept"] == "bool"


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_no_samples_make_a_table_without_rows(tmp_path, name):
    path = tmp_path / name
    assert samples.write_samples(path, {"few": Measurement(Verdict.INCONCLUSIVE, None)}) == 0
    assert samples.read_samples(path) == []
    assert samples.recompute(path, **RULES) == {}


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_a_name_that_is_no_text_is_spelled_out(tmp_path, name):
    samples.write_samples(tmp_path / name, {"bad\udcff": measure(1.0, sessions=1)})
    assert {read_sample.candidate for read_sample in samples.read_samples(tmp_path / name)} == {
        "bad\\udcff"
    }


# -- bad input --


def test_a_write_that_fails_leaves_the_table_before(tmp_path, measurements, monkeypatch):
    path = tmp_path / "s.csv"
    path.write_text("before")
    monkeypatch.setattr(table_files, "format_csv", lambda rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        samples.write_samples(path, measurements)
    assert path.read_text() == "before"
    assert [item.name for item in tmp_path.iterdir()] == ["s.csv"]


@pytest.mark.parametrize("name", ["s.json", "samples", "s.CSV"])
def test_another_format_is_refused_before_any_work(tmp_path, name):
    with pytest.raises(StudyError, match=r"end the name in \.csv or \.parquet"):
        samples.check_samples_path(tmp_path / name)


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "s.csv").mkdir()
    with pytest.raises(StudyError, match="is a directory"):
        samples.write_samples(tmp_path / "s.csv", {})


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "has_pyarrow", lambda: False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for use in (lambda path: samples.write_samples(path, {}), samples.read_samples):
        with pytest.raises(StudyError, match=r'pip install "fairtrial\[parquet\]"'):
            use(tmp_path / "s.parquet")


LINE = "a,b,0,0,0,base,1,0.5,0.5,True,here"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINE.replace("base", "other"), "arm must be base or candidate, got 'other'"),
        (LINE.replace("True", "yes"), "is_kept must be True or False, got 'yes'"),
        (LINE.replace("0.5", "nan"), "seconds must be 0 or more, got nan"),
        (LINE.replace("0.5", "-1"), "seconds must be 0 or more, got -1"),
        (LINE.replace(",1,", ",-1,"), "calls must be 0 or more, got -1"),
        (LINE.replace("0.5", "soon"), "could not convert string to float: 'soon'"),
        ("a,b,0", "it has 3 cells, the header 11"),
    ],
)
def test_a_line_that_is_no_sample_is_named(tmp_path, line, message):
    path = tmp_path / "s.csv"
    path.write_text("\n".join([",".join(samples.COLUMNS), LINE, line]))
    with pytest.raises(StudyError) as caught:
        samples.read_samples(path)
    assert message in str(caught.value)
    assert (caught.value.source, caught.value.mistakes[0].line) == (str(path), 3)


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00"])
def test_what_is_no_such_table_is_said(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        samples.read_samples(path)
    assert caught.value.source == str(path)


def test_a_table_that_is_not_there_is_said(tmp_path):
    for name in ("s.csv", "s.parquet"):
        with pytest.raises(StudyError, match="can't be read: No such file"):
            samples.read_samples(tmp_path / name)


def test_a_row_of_parquet_that_is_no_sample_is_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = dict(zip(samples.COLUMNS, LINE.replace("base", "other").split(","), strict=True))
    pq.write_table(pa.Table.from_pylist([cells]), tmp_path / "s.parquet")
    with pytest.raises(StudyError, match="row 1 is no sample: arm must be base or candidate"):
        samples.read_samples(tmp_path / "s.parquet")
