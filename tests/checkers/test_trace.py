"""The trace of a record, from all rows about it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.archive import Archive
from checkers.trace import by_offset, by_record, range_texts
from harness.core.errors import HistoryError
from harness.core.trace import Answer, BrokerReport, FinalLog, InLog, Instead, Reading, Sending
from harness.history.run_file import Origin
from harness.history.schema import record_id
from harness.report import record_trace
from tests.checkers.notation import SECOND, by_hand, without_keys, write

STORY = (
    "send a ok @0 t1..2",
    "send b ok @1 t4..5",
    "send c info t9..",
    "send d fail t7..8",
    "live b @1",
    "final a @0",
    "final c @1",
    "final ? @2",
    "end 0..3",
    "fault cut b1,b2,b3 3..6",
    "saw b1 @1 leader=1 epoch=0 isr=1,2,3",
    "saw b1 @4 leader=1 epoch=0 isr=1",
    "saw b2 @4 leader=-1 epoch=1 isr=1,2",
)


def fates(archive: Archive, record: int) -> list[str]:
    """The sentences for what became of a record."""
    return [record_trace.ended(fate) for fate in by_record(archive, record).ended]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    write(tmp_path, [by_hand(*STORY)])
    return Archive.open(tmp_path)


def test_a_record_was_sent_acknowledged_read_and_is_gone(archive: Archive) -> None:
    trace = by_record(archive, 1)
    assert [(moment.event, moment.at_ns // SECOND) for moment in trace.moments] == [
        ("sent", 4),
        ("acknowledged", 5),
        ("read live", 50),
    ]
    assert [moment.facts for moment in trace.moments] == [
        Sending(worker=0, incarnation=0, key=None),
        Answer(error=None),
        Reading(100, 0, replica=None, leader_epoch=None, key=None, other_key=False, intact=True),
    ]
    assert record_trace.said(trace.moments[1]) == "acknowledged at offset 1"
    assert trace.moments[0].faults == ["cut"]
    assert trace.moments[0].views == [BrokerReport("b1", "b1", 0, ["b1"]), BrokerReport("b2", None, 1, ["b1", "b2"])]
    assert trace.moments[2].views == []
    log = FinalLog(start=0, end=3, read_to=3, complete=True)
    assert trace.ended == [InLog("trial", 0, log, offsets=[], instead=Instead(1, record_id=2))]
    assert fates(archive, 1) == [
        "not in the final log of trial-0 (from 0, ends before 3, read completely); offset 1 has worker 0 #2"
    ]


def test_a_record_s_transaction_and_its_group_s_places_are_a_part_of_its_life(tmp_path: Path) -> None:
    story = (
        *("send a ok @3 t1..2 x7", "txn 7 commit info 1..3..4", "txn 8 abort ok 5..6..7", "end 0..9"),
        *("place r1 assign @0 t0", "place r1 commit @3 t5", "place r1 commit @5 t6 failed", "place r1 commit @5 t7"),
        *("place r1 commit @6 t8", "place r1 revoke t9", "place r2 assign @6 t10", "place r2 assign @1 t10 p1"),
        "place r2 seek @-2 t11",
    )
    write(tmp_path, [by_hand(*story)])
    trace = by_record(Archive.open(tmp_path), 0)
    assert [(moment.at_ns // SECOND, moment.event, record_trace.said(moment)) for moment in trace.moments] == [
        (1, "sent", "sent by worker 0 (incarnation 0) to trial-0"),
        (1, "began", "transaction 7 of worker 0 (incarnation 0) began"),
        (2, "acknowledged", "acknowledged at offset 3"),
        (3, "ending", "transaction 7 of worker 0 (incarnation 0): its commit was requested"),
        (4, "ended", "transaction 7 of worker 0 (incarnation 0): its commit was abandoned, outcome unknown"),
        (7, "commit", "reader 101 (incarnation 0) committed trial-0 to offset 5: past it"),
        (9, "revoke", "trial-0 was revoked from reader 101 (incarnation 0)"),
        (10, "assign", "reader 102 (incarnation 0) was assigned trial-0 from offset 6"),
        (11, "seek", "reader 102 (incarnation 0) went to the beginning of trial-0"),
    ]


def test_an_assignment_without_an_offset_is_not_shown_as_the_beginning(tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @3 t1..2", "place r1 assign t2", "place r1 seek t3", "end 0..9")], grouped=True)
    assert [record_trace.said(moment) for moment in by_record(Archive.open(tmp_path), 0).moments[2:]] == [
        "reader 101 (incarnation 0) was assigned trial-0 from where its group had committed, or the beginning",
        "reader 101 (incarnation 0) went to the beginning of trial-0",
    ]


def test_of_an_imported_history_only_what_it_has_is_shown(tmp_path: Path) -> None:
    story = (
        *("send a ok @3 t1..2", "send b ok t1..2", "send c ok @4 t1..2", "send d ok @9 t1..2"),
        *("place r1 assign t2", "place r1 seek t3", "place r1 seek @0 t4"),
        *("live a @3 r1 t5", "live b @-1 r1 t6", "live c @4 r1 t6", "live c @5 r2 t7"),
    )
    write(tmp_path, [by_hand(*story)], origin=Origin.JEPSEN)
    imported = Archive.open(tmp_path)
    assert [record_trace.said(moment) for moment in by_record(imported, 0).moments[2:5]] == [
        "reader 101 (incarnation 0) was assigned trial-0 from an unknown offset",
        "reader 101 (incarnation 0) went to an unknown offset of trial-0",
        "reader 101 (incarnation 0) went to offset 0 of trial-0",
    ]
    assert [fates(imported, record) for record in range(4)] == [
        ["read in trial-0, at offset 3 (no log was read to its end)"],
        ["read in trial-0, at an unknown offset (no log was read to its end)"],
        ["read in trial-0, at offset 4, 5 (no log was read to its end)"],
        ["not read in trial-0 (no log was read to its end)"],
    ]


def test_of_a_log_that_was_not_read_nothing_is_said_of_what_is_in_it(tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0", "send b ok @0 p1", "final a @0", "end 0..1")])
    assert fates(Archive.open(tmp_path), 1) == ["not known to be in the final log of trial-1 (which was not read)"]


@pytest.mark.parametrize(
    ("found", "ended"),
    [
        ("final a @1 damaged", "in the final log of trial-0 (from 0, ends before 3, read completely), at offset 1"),
        (
            "final a @2 damaged",
            "not in the final log of trial-0 (from 0, ends before 3, read completely); offset 1 has no record of ours",
        ),
    ],
)
def test_damaged_bytes_tell_where_a_record_ended_only_at_its_own_offset(found: str, ended: str, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @1", found, "end 0..3")])
    assert fates(Archive.open(tmp_path), 0) == [ended]


def test_a_key_that_a_record_was_not_sent_with_is_named(tmp_path: Path) -> None:
    reads = ("live a @0 k2 t5", "live a @0 keyless t6", "live a @0 t7", "final a @0 k2 damaged t8", "final x @1 k2 t9")
    write(tmp_path, [recorded := by_hand("send a ok @0 k1 t1..2", *reads, "end 0..2")])

    def said(record: int) -> list[str]:
        moments = by_record(Archive.open(tmp_path), record).moments
        sentences = [record_trace.said(moment) for moment in moments if "read" in moment.event]
        return [sentence.partition("(incarnation 0)")[2] for sentence in sentences]

    assert said(0) == [", under the key k2", ", without a key", "", ", under the key k2, its checksum wrong"]
    assert said(recorded.ids["x"]) == [""]
    without_keys(tmp_path)
    assert said(0) == ["", "", "", ", its checksum wrong"]


def test_the_log_of_a_replica_is_that_of_a_broker_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0", "replica a @0 r902 t3", "final a @0", "end 0..1")])
    [moment] = [one for one in by_record(Archive.open(tmp_path), 0).moments if one.event == "read replica"]
    assert record_trace.said(moment).startswith("found in the log of b2 at trial-0:0 by reader 1002 ")


def test_a_record_that_was_never_acknowledged_may_be_there(archive: Archive) -> None:
    trace = by_record(archive, 2)
    assert [moment.event for moment in trace.moments] == ["sent", "read final"]
    assert fates(archive, 2)[0].endswith("read completely), at offset 1")


def test_a_failed_record_ends_nowhere(archive: Archive) -> None:
    trace = by_record(archive, 3)
    assert trace.moments[1].event == "failed"
    assert fates(archive, 3) == ["not in the final log of trial-0 (from 0, ends before 3, read completely)"]


@pytest.mark.parametrize(
    ("stable", "log"),
    [
        ("stable @1 high=4", "ends before 4, read to 1 only)"),
        ("stable @4 high=4", "ends before 1, read completely)"),
    ],
)
def test_of_what_stands_behind_a_transaction_that_hangs_the_final_log_does_not_tell(
    stable: str, log: str, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand("send a ok @2 t1..2", "end 0..1", stable)], isolation_level="read_committed")
    assert fates(Archive.open(tmp_path), 0) == [f"not in the final log of trial-0 (from 0, {log}"]


def test_the_final_log_does_not_tell_what_stands_behind_the_offset_it_was_read_to(tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @2 t1..2", "end 0..4 read 1")])
    [ended] = fates(Archive.open(tmp_path), 0)
    assert ended == "not in the final log of trial-0 (from 0, ends before 4, read to 1 only)"


def test_records_at_one_offset_are_listed_in_order_of_arrival(archive: Archive) -> None:
    assert [trace.record_id for trace in by_offset(archive, ("trial", 0), 1)] == [1, 2]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda a: by_record(a, record_id(0, 9)), "worker 0 #9; worker 0 sent #0–#3"),
        (lambda a: by_record(a, record_id(5, 0)), "the workers that sent: 0"),
        (lambda a: by_offset(a, ("trial", 0), 77), "read at trial-0:77; offsets 0–2 are known there"),
        (lambda a: by_offset(a, ("trial", 4), 0), "the run has trial-0"),
        (lambda a: by_offset(a, ("trial", 0), 2), "trial-0:2 was read, but is not a record of ours"),
        (range_texts, "not judged yet"),
    ],
)
def test_an_unknown_record_is_reported_with_the_known_ones(archive: Archive, ask, says: str) -> None:
    with pytest.raises(HistoryError, match=says):
        ask(archive)


def test_a_history_that_is_not_sealed_is_named(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run.json").write_text((tmp_path / "run.json").read_text())
    with pytest.raises(HistoryError, match="no history here yet"):
        Archive.open(tmp_path / "elsewhere")


@pytest.mark.parametrize("table", ["sends", "reads", "faults", "observations", "log_ends"])
def test_without_a_table_there_is_no_story(table: str, archive: Archive, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "history" / table)
    with pytest.raises(HistoryError, match=f"history/{table}: no Parquet here"):
        Archive.open(tmp_path)


@pytest.mark.parametrize("table", ["positions", "transactions"])
def test_a_run_need_not_have_groups_or_transactions(table: str, archive: Archive, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "history" / table, ignore_errors=True)
    assert by_record(Archive.open(tmp_path), 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "whole file"),
        (b"\xff", "whole file"),
        (b"[]", "whole file"),
        (b'{"anomalies": ["lost"]}', "anomalies"),
        (b'{"anomalies": {"lost": 3}}', "anomalies.lost"),
        (b'{"anomalies": {"lost": {"runs": ["why"]}}}', "anomalies.lost.runs.0"),
    ],
)
def test_a_verdict_that_is_none_is_refused_in_one_line(text: bytes, why: str, archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_bytes(text)
    with pytest.raises(HistoryError, match=rf"verdict\.json: not a verdict \({why}: .*kafka-trial check") as raised:
        range_texts(archive)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_parquet_is_named(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "history" / "sends" / "part.parquet").write_bytes(b"no")
    with pytest.raises(HistoryError, match="history/sends"):
        by_record(archive, 1)


def test_a_trace_has_the_anomalies_of_its_record_and_their_runs(archive: Archive, tmp_path: Path) -> None:
    kept = tmp_path / "anomalies" / "lost"
    kept.mkdir(parents=True)
    row = {"topic": "trial", "partition": 0, "offset": 1, "record_id": 1, "acknowledged_ns": 5 * SECOND}
    pq.write_table(pa.Table.from_pylist([row]), kept / "part.parquet")
    run = {"text": "why", "topic": "trial", "partition": 0, "first_offset": 1, "last_offset": 1}
    other = {**run, "text": "not this", "first_ns": 6 * SECOND, "last_ns": 9 * SECOND}
    mine = {**run, "first_ns": 5 * SECOND, "last_ns": 5 * SECOND}
    judged = {"anomalies": {"lost": {"standing": "permitted", "runs": [other, mine]}}}
    (tmp_path / "verdict.json").write_text(json.dumps(judged))
    found = {"name": "lost", "standing": "permitted", "run": "why", "finding": None}
    assert by_record(archive, 1).anomalies == [found]
    assert (by_record(archive, 0).anomalies, by_record(archive, 0).not_known) == ([], [])
    assert range_texts(archive) == {"lost": ["not this", "why"]}


def test_a_record_has_the_standing_of_its_own_run_and_the_number_of_its_finding(
    archive: Archive, tmp_path: Path
) -> None:
    row = {"topic": "trial", "partition": 0, "offset": 1, "record_id": 1}
    entry = {"count": 9, "standing": "violation", "examples": [row]}
    hole = {"topic": "trial", "partition": 0, "first_offset": 5, "last_offset": 9, "standing": "violation"}
    mine = {**hole, "first_offset": 0, "last_offset": 3, "standing": "permitted"}
    findings = [
        {"anomalies": {"lost": 5}, "standing": "violation", "runs": [{**hole, "anomalies": {"lost": 5}}]},
        {
            "anomalies": {"lost": 4, "vanished": 4},
            "standing": "permitted",
            "runs": [{**mine, "anomalies": {"lost": 4, "vanished": 4}}],
        },
    ]
    judged = {"anomalies": {"lost": entry, "vanished": entry}, "findings": findings}
    (tmp_path / "verdict.json").write_text(json.dumps(judged))
    reported = [(one["name"], one["standing"], one["finding"]) for one in by_record(archive, 1).anomalies]
    assert reported == [("lost", "permitted", 1), ("vanished", "permitted", 1)]


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "of the examples"])
def test_every_record_of_a_rewritten_offset_is_in_that_anomaly(kept: bool, archive: Archive, tmp_path: Path) -> None:
    of = {"topic": "trial", "partition": 0}
    rows = [
        {**of, "offset": 9, "record_id": None, "records": [-1, 5], "stands": 5},
        {**of, "offset": 1, "record_id": 1, "records": [0, 1, 2], "stands": 2},
    ]
    if kept:
        place = tmp_path / "anomalies" / "rewritten_offset"
        place.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), place / "part.parquet")
    judged = {"anomalies": {"rewritten_offset": {"count": 2, "standing": "violation", "examples": rows}}}
    (tmp_path / "verdict.json").write_text(json.dumps(judged))
    named = [[one["name"] for one in by_record(archive, record).anomalies] for record in range(4)]
    assert named == [["rewritten_offset"], ["rewritten_offset"], ["rewritten_offset"], []]


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "of the examples"])
def test_a_missing_record_of_a_transaction_is_named_with_the_number_of_its_records(
    kept: bool, archive: Archive, tmp_path: Path
) -> None:
    of = {"topic": "trial", "partition": 0, "transaction": 7, "outcome": "ok", "records": 3, "found": 1}
    rows = [{**of, "offset": n, "record_id": n, "nth": n} for n in (1, 2)]
    if kept:
        place = tmp_path / "anomalies" / "fractured"
        place.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), place / "part.parquet")
    judged = {"anomalies": {"fractured": {"count": 1, "standing": "violation", "examples": rows[:1]}}}
    (tmp_path / "verdict.json").write_text(json.dumps(judged))
    traces = [by_record(archive, record) for record in range(4)]
    named = [[one["name"] for one in trace.anomalies] for trace in traces]
    not_known = [trace.not_known for trace in traces]
    if kept:
        assert (named, not_known) == ([[], ["fractured"], ["fractured"], []], [[]] * 4)
    else:
        assert (named, not_known) == ([[], ["fractured"], [], []], [["fractured"], [], ["fractured"], ["fractured"]])


@pytest.mark.parametrize(("count", "not_known"), [(1, []), (2, ["lost"])])
def test_the_examples_are_used_if_the_rows_of_an_anomaly_are_not_kept(
    count: int, not_known: list[str], archive: Archive, tmp_path: Path
) -> None:
    example = {"topic": "trial", "partition": 0, "offset": 1, "record_id": 1, "acknowledged_ns": 5 * SECOND}
    judged = {"anomalies": {"lost": {"count": count, "standing": "permitted", "examples": [example]}}}
    (tmp_path / "verdict.json").write_text(json.dumps(judged))
    (tmp_path / "anomalies" / "lost").mkdir(parents=True)
    trace, other = by_record(archive, 1), by_record(archive, 0)
    found = {"name": "lost", "standing": "permitted", "run": None, "finding": None}
    assert (trace.anomalies, trace.not_known) == ([found], [])
    assert (other.anomalies, other.not_known) == ([], not_known)


def test_a_trace_is_made_without_spark() -> None:
    script = "import sys, checkers.trace; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_anomaly_with_a_missing_part_is_not_known(archive: Archive, tmp_path: Path) -> None:
    stored = tmp_path / "anomalies" / "lost"
    stored.mkdir(parents=True)
    for record in (700, 701):
        row = {"topic": "trial", "partition": 0, "offset": record, "record_id": record, "sent_ns": 1}
        pq.write_table(pa.Table.from_pylist([row]), stored / f"part-{record}.parquet")
    judged = {"anomalies": {"lost": {"count": 2, "standing": "permitted", "examples": []}}}
    (tmp_path / "verdict.json").write_text(json.dumps(judged))
    assert by_record(Archive.open(tmp_path), 0).not_known == []
    (stored / "part-701.parquet").unlink()
    assert by_record(Archive.open(tmp_path), 0).not_known == ["lost"]
    (stored / "part-700.parquet").write_bytes(b"PAR1")
    torn = Archive.open(tmp_path)
    with pytest.raises(HistoryError, match="lost: cannot be read: `kafka-trial check"):
        by_record(torn, 0)
