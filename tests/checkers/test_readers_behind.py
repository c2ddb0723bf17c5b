"""Consumers that had a partition and did not come to the end of its records, by hand, each beside its twins."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkers.evidence.readers import behind
from checkers.history import History
from checkers.scan.polls import polls
from tests.checkers.notation import apart, by_hand, write

LOG = ("send a ok @0", "send b ok @1", "final a @0", "final b @1", "end 0..2")
GIVEN = ("live a @0 r1 t5", "live b @1 r1 t6")

ALONE = {
    "who got nothing": ((*LOG, "place r1 assign t1"), ["got nothing of {}-0, before 2 records"]),
    "who got nothing, wherever the log began": (
        (*LOG, "place r1 assign @1 t1"),
        ["got nothing of {}-0, before 2 records"],
    ),
    "who stopped early": (
        (*LOG, "place r1 assign @0 t1", "live a @0 r1 t5"),
        ["stopped at 1 of {}-0, before 1 records"],
    ),
    "who was given all": ((*LOG, "place r1 assign @0 t1", *GIVEN), []),
    "who came to the end and got nothing": (
        (*LOG, "place r1 assign t1", "place r1 end-of-partition @2 t6"),
        ["got nothing of {}-0, before 2 records"],
    ),
    "who began at the end": ((*LOG, "place r1 assign @2 t7"), ["got nothing of {}-0, before 2 records"]),
    "who began within and got the rest": ((*LOG, "place r1 assign @1 t1", GIVEN[1]), []),
    "who was given all there is: markers stand behind it": (
        (*LOG[:-1], "end 0..9", "place r1 assign t1", *GIVEN),
        [],
    ),
    "who had a partition without records": (("end 0..0", "place r1 assign t1"), []),
    "one of another partition": (
        (*LOG, "end 0..0 p1", "place r1 assign t1", "place r1 assign p1 t1", *GIVEN),
        [],
    ),
    "who read one partition, and not the other": (
        (
            *LOG,
            "send c ok @0 p1",
            "final c @0 p1",
            "end 0..1 p1",
            "place r1 assign t1",
            "place r1 assign p1 t1",
            *GIVEN,
        ),
        ["got nothing of {}-1, before 1 records"],
    ),
    "what was not read to its end proves nothing": ((*LOG[:-1], "end 0..2 read 1", "place r1 assign t1"), []),
    "each reader for himself": (
        (*LOG, "place r1 assign t1", *GIVEN, "place r2 assign t1"),
        ["got nothing of {}-0, before 2 records"],
    ),
    "who was killed": ((*LOG, "place r1 assign t1", "killed r1"), []),
    "whose earlier life was killed": (
        (*LOG, "place r1 assign t1", "killed r1", "place r1 i1 assign t2"),
        ["got nothing of {}-0, before 2 records"],
    ),
    "whose earlier life had read all": (
        (*LOG, "place r1 assign t1", *GIVEN, "place r1 i1 assign t8"),
        ["stopped at 0 of {}-0, before 2 records"],
    ),
    "whose next life reads all again": (
        (*LOG, "place r1 assign t1", *GIVEN, "place r1 i1 assign t8", "live a @0 r1 i1 t9", "live b @1 r1 i1 t9"),
        [],
    ),
    "who was sent back and stopped early": (
        (*LOG, "place r1 assign t1", *GIVEN, "place r1 seek t8", "live a @0 r1 t9"),
        ["stopped at 1 of {}-0, before 1 records"],
    ),
    "who was sent back and read all": ((*LOG, "place r1 assign t1", GIVEN[0], "place r1 seek t5.5", *GIVEN), []),
}
GROUPED = {
    "one of a group, while another had the partition after it": (
        (*LOG, "place r2 assign t1", "place r2 revoke t2", "place r1 assign t3", *GIVEN),
        [],
    ),
    "one of a group that had the partition last, and what another had read": (
        (*LOG, "place r1 assign t1", *GIVEN, "place r1 revoke t7", "place r2 assign t8"),
        [],
    ),
    "one of a group that had the partition last": (
        (*LOG, "place r1 assign t1", GIVEN[0], "place r1 revoke t7", "place r2 assign t8"),
        ["stopped at 1 of {}-0, before 1 records"],
    ),
    "one of a group that was placed before what another had read": (
        (*LOG, "place r1 assign @0 t1", *GIVEN, "killed r1", "place r2 assign @0 t8"),
        ["stopped at 0 of {}-0, before 2 records"],
    ),
    "one of a group that was placed so, and reads it again": (
        (*LOG, "place r1 assign @0 t1", *GIVEN, "place r2 assign @0 t8", "live a @0 r2 t9", "live b @1 r2 t9"),
        [],
    ),
    "one of a group that was placed within, and came to the end": (
        (*LOG, "place r1 assign @0 t1", *GIVEN, "place r2 assign @1 t8", "live b @1 r2 t9"),
        [],
    ),
    "one of a group that was placed at the end of what another had read": (
        (*LOG, "place r1 assign @0 t1", *GIVEN, "place r1 revoke t7", "place r2 assign @2 t8"),
        [],
    ),
    "one of a group that was placed there after it had owned the partition before": (
        (*LOG, "place r1 assign @0 t1", *GIVEN, "place r1 revoke t7", "place r1 assign @1 t8"),
        ["stopped at 1 of {}-0, before 1 records"],
    ),
    "one of a group that was killed, and nobody had the partition after it": (
        (*LOG, "place r1 assign t1", GIVEN[0], "place r1 revoke t7", "place r2 assign t8", "killed r2"),
        [],
    ),
    "another of a group that was killed": (
        (*LOG, "place r1 assign t1", GIVEN[0], "place r1 revoke t7", "place r2 assign t8", "killed r1"),
        ["stopped at 1 of {}-0, before 1 records"],
    ),
    **{
        f"one of a group that had given it up ({event}) when it was killed": (
            (*LOG, "place r1 assign @0 t1", GIVEN[0], f"place r1 {event} @1 t7", "killed r1"),
            ["stopped at 1 of {}-0, before 1 records"],
        )
        for event in ("revoke", "lost")
    },
    "one that had given it up when it was killed, and had got nothing": (
        (*LOG, "place r1 assign @0 t1", "place r1 revoke @0 t7", "killed r1"),
        ["got nothing of {}-0, before 2 records"],
    ),
    "one that had given it up, and had it again when it was killed": (
        (*LOG, "place r1 assign @0 t1", GIVEN[0], "place r1 revoke @1 t7", "place r1 assign @1 t8", "killed r1"),
        [],
    ),
    "one that had read all when it gave it up": (
        (*LOG, "place r1 assign @0 t1", *GIVEN, "place r1 revoke @2 t7", "killed r1"),
        [],
    ),
    **{
        f"one that was told the end of what it had given up ({event})": (
            (*LOG, "place r1 assign @0 t1", GIVEN[0], f"place r1 {event} @1 t7", "place r1 end-of-partition @2 t8"),
            ["stopped at 1 of {}-0, before 1 records"],
        )
        for event in ("revoke", "lost")
    },
    "one that was told the end before it gave it up": (
        (*LOG, "place r1 assign @0 t1", GIVEN[0], "place r1 end-of-partition @2 t6", "place r1 revoke @2 t7"),
        [],
    ),
    "one that follows, from a place that nobody knows, who was told the end of what it had given up": (
        (
            *(*LOG, "place r1 assign @0 t1", GIVEN[0], "place r1 revoke @1 t7", "place r1 end-of-partition @2 t8"),
            "place r2 assign t9",
        ),
        ["stopped at 1 of {}-0, before 1 records"],
    ),
    "one that was told it so, had it again, and read all": (
        (
            *(*LOG, "place r1 assign @0 t1", GIVEN[0], "place r1 revoke @1 t5.5", "place r1 end-of-partition @2 t5.6"),
            *("place r1 assign @1 t5.8", GIVEN[1]),
        ),
        [],
    ),
}

#: Where a fault stays as it is.
STAYING = {
    "who was given some": ((*LOG, "place r1 assign @0 t1", "live a @0 r1 t5"), []),
    "who got nothing": (
        (*LOG, "place r1 assign @0 t1", "place r1 end-of-partition @0 t2"),
        ["got nothing of {}-0, before 2 records"],
    ),
}


def of_each(run: Path, spark: SparkSession, cases: dict[str, Any], **settings: Any) -> list[list[str]]:
    """The lines that report each case, without the number of the consumer; all cases are judged as one run."""
    write(run, apart(lines for lines, _ in cases.values()), **settings)
    history = History.read(run, spark)
    lines = [line.split(maxsplit=2)[2] for line in behind(history, polls(history))]
    return [[line for line in lines if f" case-{n}-" in line] for n, _ in enumerate(cases)]


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ((), []),
        (("place r2 assign @0 p1 t1",), ["consumer 101 stopped at 1 of trial-0, before 1 records"]),
        (("place r2 assign @0 p1 t1", "killed r2"), []),
    ],
    ids=["no other", "another lives", "another was killed"],
)
def test_nobody_could_take_a_partition_that_the_last_live_member_revoked(
    other: tuple[str, ...], wanted: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    lines = (*LOG, "end 0..0 p1", "place r1 assign @0 t1", GIVEN[0], "place r1 revoke @1 t7", "killed r1")
    write(tmp_path, [by_hand(*lines, *other)], grouped=True)
    history = History.read(tmp_path, spark)
    assert behind(history, polls(history)) == wanted


#: Of a group of two: each log has a record, and a member that was killed need not have got it.
EACH = ("send a ok @0", "send b ok @0 p1", "final a @0", "final b @0 p1", "end 0..1", "end 0..1 p1", "killed r1")
NEVER_OWNED = {
    "by members that were all killed": (EACH, ["any of {}-0, before 1 records", "any of {}-1, before 1 records"]),
    "by a member that was killed and lives again": (
        (*EACH, "place r1 i1 assign @0 p1 t6", "live b @0 p1 r1 i1 t7"),
        ["any of {}-0, before 1 records"],
    ),
    "but by a member that was killed": ((*EACH, "place r1 assign @0 t1", "place r1 assign @0 p1 t1"), []),
    "and without records": (("end 0..0", "killed r1"), []),
}


@pytest.mark.parametrize("says", NEVER_OWNED)
def test_a_partition_that_no_group_member_ever_owned_is_reported(
    says: str, spark: SparkSession, tmp_path: Path
) -> None:
    lines, wanted = NEVER_OWNED[says]
    write(tmp_path, [by_hand(*lines)], grouped=True, clients={"consumer 101": {}})
    history = History.read(tmp_path, spark)
    reported = behind(history, polls(history))
    assert reported == [f"no consumer was ever assigned {line.format('trial')}" for line in wanted]


@pytest.mark.parametrize(
    ("cases", "settings"),
    [(ALONE, {}), (GROUPED, {"grouped": True}), (STAYING, {"lasting": {"cut": ["b1"]}})],
    ids=["alone", "grouped", "staying"],
)
def test_consumers_that_stopped_before_the_end_are_reported(
    cases: dict[str, Any], settings: dict[str, Any], spark: SparkSession, tmp_path: Path
) -> None:
    reported = of_each(tmp_path, spark, cases, **settings)
    wanted = [[line.format(f"case-{n}") for line in lines] for n, (_, lines) in enumerate(cases.values())]
    assert dict(zip(cases, reported, strict=True)) == dict(zip(cases, wanted, strict=True))
