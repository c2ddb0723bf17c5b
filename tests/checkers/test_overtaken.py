"""Records that stand behind later ones of their producer though no broker acknowledged them: whether they came late."""

from pathlib import Path
from typing import Any

import pytest

from checkers.evidence.overtaken import may_have_come_late
from harness.history.run_file import Origin
from tests.checkers.notation import SECOND
from tests.checkers.test_holders import saw
from tests.checkers.test_reach import history

LED = saw("b1,b2,b3", "0..60", 1, 0, "1,2,3")
#: b2 leads from 8 s on, or before.
MOVED = [*saw("b1,b2,b3", "0..6", 1, 0, "1,2,3"), *saw("b1,b2,b3", "8..60", 2, 1, "1,2,3")]
PAUSED = "fault p b1 1..6 kind=pause"


def late(run: Path, *lines: str, led: list[str] = LED, **settings: Any) -> bool:
    """Whether a may have come late: it stands behind b, and behind c if that is there. ``lines``: when each was sent
    and reported, and faults."""
    sends = [line for line in lines if line.startswith("send")]
    log = [line.split()[1] for line in sends[1:]] + ["a"]
    final = [f"final {name} @{n}" for n, name in enumerate(log)]
    recorded, _ = history(run / "told", [{}], *lines, *final, f"end 0..{len(log)}", *led)
    ids = {row["record_id"]: row for row in recorded.stored.table("sends").to_pylist()}
    rows = sorted(ids.values(), key=lambda row: row["sequence"])
    a, last = rows[0], rows[-1]
    found = {
        **{name: a[name] for name in ("topic", "partition", "worker", "record_id", "sequence")},
        **{"offset": len(log) - 1, "sent_ns": a["invoked_ns"], "acknowledged_ns": None},
        **{"after_record": last["record_id"], "after_sequence": last["sequence"]},
    }
    known, stored = history(
        run / "found",
        [found],
        *lines,
        *final,
        f"end 0..{len(log)}",
        *led,
        **{"idempotence": False, "max_in_flight": 1, **settings},
    )
    return may_have_come_late(known, known.faults, stored)


@pytest.mark.parametrize(
    ("lines", "came"),
    [
        (("send a info t0..4", "send b ok @0 t4.5..5", PAUSED), True),
        (("send a info t0..4", "send b info t4.5..5", PAUSED), True),
        (("send a info t0..4", "send b ok @0 t4.5..5", "fault k b1 1..6 kind=kill"), False),
        (("send a info t0..4", "send b ok @0 t4.5..5", "fault p b1 4.1..6 kind=pause"), False),
        (("send a info t0..4", "send b ok @0 t1..4", PAUSED), True),
        (("send a info t0..4", "send b ok @0 t1..3.9", PAUSED), False),
        (("send a info t0..4", "send b info t1..3.9", PAUSED), True),
        (("send a info t0..4", "send b ok @0 t1..3.9", "send c ok @1 t4..5", PAUSED), False),
        (("send a info t0..4", "send b ok @0 t1..4.1", "send c ok @1 t4..5", PAUSED), True),
        (("send a info t0..4", "send b ok @9 t1..3.9", "send c ok @1 t4..5", PAUSED), True),
        (("send a info t0..4", "send b ok @0 t15.9..17", PAUSED), True),
        (("send a info t0..4", "send b ok @0 t16.1..17", PAUSED), False),
        (("send a info t0..4", "send b ok @0 t4.5..5"), False),
        (("send a info t0..30", "send b ok @0 t30..31"), True),
        (("send a info t0..29.9", "send b ok @0 t30..31"), False),
        (("send a info t0..30", "send b ok @0 t40..41"), True),
        (("send a info t0..30", "send b ok @0 t40.1..41"), False),
        (("send a info t0..", "send b ok @0 t4.5..5", PAUSED), False),
    ],
    ids=[
        *("held back", "the other is not acknowledged, either", "its process died", "a fault when it was given up"),
        *("acknowledged when it was given up", "acknowledged before", "reported before"),
        *("another one acknowledged before", "none acknowledged before", "one behind it acknowledged before"),
        *("as long as its leader is late", "longer", "nothing held it"),
        *("timed out", "not yet", "soon after that", "long after that", "it was never given up"),
    ],
)
def test_it_may_come_late_only_when_nobody_waits_for_it(lines: tuple[str, ...], came: bool, tmp_path: Path) -> None:
    assert late(tmp_path, *lines) is came


@pytest.mark.parametrize(
    ("lines", "came"),
    [
        (("send a info t5..20", "send b ok @0 t9..10"), True),
        (("send a info t15..29", "send b ok @0 t16..17"), False),
        (("send a info t1..20", "send b ok @0 t2..3"), False),
        (("send a info t5..20", "send b ok @0 t30.1..31"), False),
    ],
    ids=["in between", "before", "after", "long before the other was sent"],
)
def test_another_leader_has_another_connection(lines: tuple[str, ...], came: bool, tmp_path: Path) -> None:
    assert late(tmp_path, *lines, led=MOVED) is came


@pytest.mark.parametrize("acks", ["0", "1"])
def test_only_with_acks_0_may_a_record_come_late_from_the_connection(acks: str, tmp_path: Path) -> None:
    lines = ("send a info t0..4", "send b info t4.5..5", "fault p b1 9..13 kind=pause")
    assert late(tmp_path, *lines, acks=acks) is (acks == "0")


@pytest.mark.parametrize("acks", ["0", "1"])
def test_without_acknowledgements_a_report_says_that_it_was_written_to_the_connection(
    acks: str, tmp_path: Path
) -> None:
    lines = ("send a info t0..4", "send b info t1..3.9", PAUSED)
    assert late(tmp_path, *lines, acks=acks) is (acks == "1")


@pytest.mark.parametrize(
    ("lines", "led", "settings", "came"),
    [
        (("send a info t0..4", "send b ok @0 t1..3.9", PAUSED), LED, {}, True),
        (("send a info t0..4", "send b ok @0 t1..3.9"), LED, {}, False),
        (("send a info t0..4", "send b ok @0 t1..3.9", PAUSED), LED, {"retries": 0}, False),
        (("send a info t5..8", "send b ok @0 t7..7.5"), MOVED, {"retries": 0}, True),
        (("send a info t0..4", "send b ok @0 t1..3.9", "send c ok @1 t400..401", PAUSED), LED, {}, False),
    ],
    ids=["sent again", "nothing was in the way", "no retries", "refused", "the last was sent long after"],
)
def test_with_several_in_flight_it_may_be_sent_again_behind_others(
    lines: tuple[str, ...], led: list[str], settings: dict[str, Any], came: bool, tmp_path: Path
) -> None:
    assert late(tmp_path, *lines, led=led, max_in_flight=5, **settings) is came


@pytest.mark.parametrize(("sent", "came"), [("59.9..61", True), ("62.1..63", False)])
def test_a_connection_sends_again_what_was_lost_after_as_long_as_it_was_lost(
    sent: str, came: bool, tmp_path: Path
) -> None:
    """b1 is cut off for 30 s from 1 s on: the request may leave until 61 s."""
    cut = "fault c b1 1..31 kind=isolate clients=cut"
    assert late(tmp_path, "send a info t0..29", f"send b ok @0 t{sent}", cut) is came


def test_others_do_not_say_what_was_in_the_way(tmp_path: Path) -> None:
    assert late(tmp_path, "send a info t0..4", "send b ok @0 t1..2", origin=Origin.JEPSEN)


def test_a_record_that_was_never_sent_cannot_have_come_late(tmp_path: Path) -> None:
    row = dict.fromkeys(("partition", "worker", "record_id", "sequence", "offset", "after_record"), 0)
    found = {**row, "topic": "trial", "after_sequence": SECOND, "sent_ns": None, "acknowledged_ns": None}
    recorded, stored = history(tmp_path, [found], "send b ok @0", "end 0..1", *LED)
    assert not may_have_come_late(recorded, recorded.faults, stored)
