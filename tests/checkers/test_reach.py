"""A fault, or a record that was given up, excuses what it reached: before it, after it and elsewhere it does not."""

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.evidence.reach import faulted, given_up_beside
from checkers.evidence.store import directory_of
from checkers.history import History
from harness.history.stored_run import StoredRun
from tests.checkers.notation import SECOND, tell, write


def history(run: Path, anomaly: str, rows: list[dict[str, Any]], *lines: str, **settings: Any) -> History:
    """A hand history in which an anomaly was found."""
    told = tell(*lines)
    for row in told.rows["sends"]:
        row["error"] = "_MSG_TIMED_OUT" if row["outcome"] == "info" else None
    write(run, [told], **settings)
    stored = directory_of(run, anomaly)
    stored.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), stored / "rows.parquet")
    return History(StoredRun.open(run), cast(SparkSession, None), run, one_task=True)


#: Two members had a partition from 100 to 110 s.
OWNED = {"topic": "trial", "partition": 0, "since_ns": 100 * SECOND, "other_until_ns": 110 * SECOND}


@pytest.mark.parametrize(
    ("fault", "reached"),
    [
        ("fault cut b1 95..105", True),
        ("fault cut b1 50..60", True),
        ("fault cut b1 40..54", False),
        ("fault cut b1 111..120", False),
        ("fault cut b1 105..", True),
        ("fault cut b1 95..105 missed", False),
        ("fault cut c1 95..105", False),
    ],
    ids=["then", "a session before", "longer before", "after", "for good", "in vain", "of no broker"],
)
def test_a_fault_excuses_two_owners_that_it_reached(fault: str, reached: bool, tmp_path: Path) -> None:
    found = history(tmp_path, "two_owners", [OWNED], "send a ok @0", "end 0..1", fault)
    assert faulted(found, found.faults) is reached


def test_a_fault_excuses_no_other_time_that_two_had_one_partition(tmp_path: Path) -> None:
    later = OWNED | {"since_ns": 300 * SECOND, "other_until_ns": 310 * SECOND}
    found = history(tmp_path, "two_owners", [OWNED, later], "send a ok @0", "end 0..1", "fault cut b1 95..105")
    assert not faulted(found, found.faults)


#: A record of worker 0 that was in flight from 10 to 40 s, and is there twice.
TWICE = {"worker": 0, "sent_ns": 10 * SECOND, "acknowledged_ns": 40 * SECOND}


@pytest.mark.parametrize(
    ("lines", "excused"),
    [
        (["send x info t9..39", "send r ok @1 t10..40"], True),
        (["send x info t1..9", "send r ok @1 t10..40"], False),
        (["send r ok @1 t10..40", "send x info t20..50"], False),
        (["send x info w1 t9..39", "send r ok @1 t10..40"], False),
        (["send x fail t9..39", "send r ok @1 t10..40"], False),
        (["send x info t9..", "send r ok @1 t10..40"], False),
    ],
    ids=["meanwhile", "before", "after", "another producer's", "refused", "never ended"],
)
def test_a_record_that_was_given_up_excuses_the_copies_of_what_was_in_flight(
    lines: list[str], excused: bool, tmp_path: Path
) -> None:
    assert given_up_beside(history(tmp_path, "duplicated", [TWICE], *lines, "end 0..3")) is excused


def test_it_excuses_no_record_that_was_not(tmp_path: Path) -> None:
    other = {"worker": 0, "sent_ns": 50 * SECOND, "acknowledged_ns": 51 * SECOND}
    lines = ["send x info t9..39", "send r ok @1 t10..40", "end 0..3"]
    assert not given_up_beside(history(tmp_path / "a", "duplicated", [TWICE, other], *lines))
    unanswered = TWICE | {"acknowledged_ns": None}
    assert given_up_beside(history(tmp_path / "b", "duplicated", [TWICE, unanswered], *lines))
