"""A record of an aborted transaction may be read if an election or a wiped disk took the marker that aborted it."""

from pathlib import Path
from typing import Any

import pytest

from checkers.evidence.markers import marker_may_be_gone
from checkers.evidence.store import NO_ROWS, AnomalyStore
from harness.core.anomalies import ABORTED_READ
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND
from tests.checkers.test_reach import history

#: A record that was sent at 10 s, and read at 40 s.
READ = {"topic": "trial", "partition": 0, "sent_ns": 10 * SECOND, "read_ns": 40 * SECOND}
UNDECIDED = Standing.UNDECIDED


def led(until: int, replicas: str = "1,2", partition: str = "") -> list[str]:
    """b1 leads until a time; b2, from then on."""
    return [
        f"saw b1 @0..{until} {partition} leader=1 epoch=0 isr=1 replicas={replicas}",
        f"saw b2 @{until + 1}..60 {partition} leader=2 epoch=1 isr=2 replicas={replicas}",
    ]


def ruled(run: Path, rows: list[dict[str, Any]], *lines: str, unclean: bool = True) -> Standing | None:
    settings = {"unclean_election": unclean, "min_insync_replicas": 1}
    recorded, found = history(run, rows, "send a ok @0", "end 0..1", *lines, **settings)
    ruling = marker_may_be_gone(recorded, AnomalyStore({ABORTED_READ.name: found}), None)
    return None if ruling is None else ruling.standing


@pytest.mark.parametrize(
    ("lines", "unclean", "standing"),
    [
        (led(20), True, UNDECIDED),
        (led(20), False, None),
        ([*led(20), "fault elect-1 - 20..20 p0 unclean"], False, UNDECIDED),
        ([*led(20), "fault elect-1 - 20..20 p1 unclean"], False, None),
        (led(4), True, None),
        (led(44), True, None),
        ([*led(60), *led(20, partition="p1")], True, None),
        (["saw b1 @12..60 leader=1 epoch=0 isr=1 replicas=1,2"], True, None),
        ([], True, None),
        (["fault f b1 20..22 kind=kill"], True, UNDECIDED),
        ([led(20)[0].replace("isr=1", "isr=1,2"), led(20)[1]], True, None),
        ([*led(60), "fault f b1 20..22 kind=wipe"], False, UNDECIDED),
        ([*led(4), "fault f b1 20..22 kind=wipe"], False, None),
        ([*led(60), "fault f b2 20..22 kind=wipe"], False, None),
        ([*led(60), "fault f b3 20..22 kind=wipe"], False, None),
        ([*led(60), "fault f b1 4..6 kind=wipe"], False, None),
        ([*led(60), "fault f b1 44..46 kind=wipe"], False, None),
        ([*led(60), "fault f b1 20..22 kind=kill"], False, None),
        ([*led(60), "fault f b1 20..22 kind=wipe missed"], False, None),
    ],
    ids=[
        *("an election", "that must be clean", "asked for", "asked for elsewhere", "before it was sent"),
        *("after it was read", "of another partition"),
        *("the first leader", "no report", "no report, a fault", "from the ISR"),
        *("a disk", "when it led no more", "of a follower"),
        *("of no replica", "wiped before", "wiped after", "not wiped", "in vain"),
    ],
)
def test_an_event_between_send_and_delivery_may_have_taken_the_marker(
    lines: list[str], unclean: bool, standing: Standing | None, tmp_path: Path
) -> None:
    assert ruled(tmp_path, [READ], *lines, unclean=unclean) is standing


def test_each_record_has_to_have_had_such_an_event(tmp_path: Path) -> None:
    assert ruled(tmp_path / "both", [READ, READ], *led(20)) is UNDECIDED
    assert ruled(tmp_path / "one", [READ, READ | {"read_ns": 15 * SECOND}], *led(20)) is None


def test_without_such_records_nothing_is_ruled(tmp_path: Path) -> None:
    recorded, _ = history(tmp_path, [READ], "send a ok @0", "end 0..1", *led(20), unclean_election=True)
    assert marker_may_be_gone(recorded, AnomalyStore({ABORTED_READ.name: NO_ROWS}), None) is None
