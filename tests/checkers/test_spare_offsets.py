"""How many offsets unknown writes may have taken."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence.causes import decided
from checkers.evidence.intervals import NEVER
from checkers.evidence.neighbours import attached
from checkers.evidence.record_ranges import COLUMNS as RANGES
from checkers.evidence.record_ranges import record_ranges
from checkers.evidence.spare_offsets import COLUMNS, InFlight, disturbed, last_window, spare_offsets, unacknowledged
from harness.core.anomalies import LOST
from harness.core.guarantees import Configuration
from harness.core.verdict import Standing
from harness.history.schema import SENDS
from tests.checkers.notation import SECOND, by_hand
from tests.checkers.test_holders import evidence, saw

ONE, OTHER = ("trial", 0), ("trial", 1)


def writes(*partitions: int | None) -> list[pa.Table]:
    return [pa.Table.from_pylist([{"topic": "trial", "partition": one}], COLUMNS) for one in partitions]


def test_a_write_was_across_an_election_from_its_first_moment_to_its_last() -> None:
    begins, overs, sent, until = map(np.array, ([10], [20], [5, 5, 20, 21], [9, 10, 25, 25]))
    assert last_window(begins, overs, sent, until).tolist() == [0, 1, 1, 0]


NOTHING = {(ONE, 0): 0, (OTHER, 0): 0}


@pytest.mark.parametrize(
    ("silent", "elsewhere", "found"),
    [((), (), [0, 0]), ((0, 0, 1), (), [2, 1]), ((0,), (0, 1), [2, 1]), ((None, 1), (), [1, 2])],
    ids=["none", "nobody acknowledged them", "elsewhere, too", "of any partition"],
)
def test_a_write_that_is_not_known_takes_an_offset(
    silent: Sequence[int | None], elsewhere: Sequence[int | None], found: list[int]
) -> None:
    reported = spare_offsets(writes(*silent), writes(*elsewhere), NOTHING, Configuration(version="4.3.1"))
    assert [reported[ONE, 0], reported[OTHER, 0]] == found


def test_without_idempotence_it_may_have_been_appended_more_than_once() -> None:
    plain = Configuration(version="4.3.1", idempotence=False)
    none, one = (spare_offsets(writes(*of), [], NOTHING, plain)[ONE, 0] for of in ((), (0,)))
    assert (none, one > 1) == (0, True)
    sent_again = spare_offsets([], [], {(ONE, 0): 1200}, plain)[ONE, 0]
    assert sent_again > 1200
    assert spare_offsets([], [], {(ONE, 0): 1200}, Configuration(version="4.3.1")) == {(ONE, 0): 1200}


#: b1 leads to 19 s, b2 from 22 s, and b3 from 40 s on; b2 is heard to know of it at 45 s.
ELECTED = [
    *[*saw("b1,b2,b3", "0..19", 1, 0, "1,2,3"), "fault k b1 20..90 kind=kill", *saw("b2,b3", "22..39", 2, 1, "2,3")],
    *[*saw("b2", "40..44", 2, 1, "2,3"), *saw("b2", "45..60", 3, 2, "3"), *saw("b3", "40..60", 3, 2, "3")],
]


@pytest.mark.parametrize(
    ("times", "after"),
    [
        ("10..11", [0, 0, 0]),
        ("10..21", [1, 0, 0]),
        ("21..23", [1, 0, 0]),
        ("25..36", [0, 0, 0]),
        ("25..41", [1, 1, 0]),
        ("10..41", [1, 1, 0]),
        ("44..47", [1, 1, 0]),
        ("50..51", [0, 0, 0]),
        ("50..70", [1, 1, 1]),
    ],
    ids=[
        *("before", "across the first", "sent as nobody knew yet", "between", "across the second", "across both"),
        *("sent to who does not know yet", "after", "acknowledged when nobody reported any more"),
    ],
)
def test_a_write_in_flight_at_an_election_may_stand_in_the_log_of_the_old_leader(times: str, after: list[int]) -> None:
    """(No broker reported on the other partition.)"""
    recorded = by_hand(f"send a ok @5 t{times}", *ELECTED)
    known = evidence(recorded)
    in_flight = InFlight(known.elections, known.acting)
    [row] = recorded.rows["sends"]
    pieces = [pa.Table.from_pylist([{**row, "partition": partition}], SENDS) for partition in (0, 1)]
    assert [*in_flight.counting(pieces)] == pieces
    assert in_flight.after() == {(ONE, term): count for term, count in enumerate(after)}


def test_a_partition_of_which_only_no_leader_was_reported_has_no_log_to_count_for() -> None:
    recorded = by_hand("send a ok @0 t10..41", "saw b1 @0..10 leader=-1 epoch=0 isr= p1", *ELECTED)
    known = evidence(recorded)
    in_flight = InFlight(known.elections, known.acting, 5)
    pieces = [pa.Table.from_pylist([{**recorded.rows["sends"][0], "partition": n}], SENDS) for n in (0, 1)]
    assert [*in_flight.counting(pieces)] == pieces
    assert {of for of, _ in in_flight.after()} == {ONE}
    assert disturbed(known.elections[OTHER], known.acting(known.elections[OTHER]), known.configuration) == []


@pytest.mark.parametrize(
    ("times", "timeout", "after"),
    [
        ("10..15", 5, [1, 0, 0]),
        ("10..14.9", 5, [0, 0, 0]),
        ("10..15", NEVER, [0, 0, 0]),
        ("25..36", 5, [0, 1, 0]),
        ("50..56", 5, [0, 0, 1]),
        ("10..21", 5, [2, 1, 0]),
    ],
    ids=["for long", "not so long", "by who sends nothing twice", "in the second", "in the last", "and across one"],
)
def test_a_write_without_an_answer_for_long_was_sent_again_to_the_same_leader(
    times: str, timeout: int, after: list[int]
) -> None:
    recorded = by_hand(f"send a ok @5 t{times}", *ELECTED)
    known = evidence(recorded)
    in_flight = InFlight(known.elections, known.acting, min(timeout * SECOND, NEVER))
    assert [*in_flight.counting([pa.Table.from_pylist(recorded.rows["sends"], SENDS)])]
    assert in_flight.after() == {(ONE, term): count for term, count in enumerate(after)}


#: b1 leads until b2 does, from 26 s on.
LED = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b1,b2,b3", "21..60", 2, 1, "2,3")]


@pytest.mark.parametrize(
    ("fault", "settings", "terms"),
    [
        ("b2 30..40 kind=slow plane=client", {}, [1]),
        ("b2 30..40 kind=pause", {}, [1]),
        ("b2 30..40 kind=slow plane=client", {"idempotence": True}, []),
        ("b2 30..40 kind=slow plane=replication", {}, []),
        ("b2 30..40 kind=isolate plane=controller", {}, []),
        ("b2,b3 30..40 from=b2 to=b3 plane=all", {}, []),
        ("b2,clients 30..40 from=b2 to=clients plane=all", {}, [1]),
        ("b2 5..6 kind=pause", {}, []),
        ("b2 5..15 kind=pause", {}, [1]),
        ("b1 10..11 kind=pause", {}, [0]),
        ("b3 30..40 kind=pause", {}, []),
        ("b3 30..40 kind=pause", {"acks": "all"}, []),
        ("b3 30..40 kind=pause", {"acks": "all", "min_insync_replicas": 2}, [1]),
        ("b3 30..40 kind=pause", {"min_insync_replicas": 2}, []),
        ("b2 30..40 kind=pause missed", {}, []),
    ],
    ids=[
        *("its clients are late", "it is halted", "idempotent", "followers are late", "it hears no controller"),
        *("cut from a follower", "cut from clients", "over long before", "felt still", "of the one before"),
        *("of another", "of another, alone in the end", "of a follower that is waited for", "that is not waited for"),
        "in vain",
    ],
)
def test_after_a_fault_that_kept_answers_back_the_number_of_resends_is_unknown(
    fault: str, settings: dict[str, Any], terms: list[int]
) -> None:
    configuration = Configuration(**{"version": "4.3.1", "acks": "1", "idempotence": False, **settings})
    recorded = by_hand(*LED, f"fault f {fault}")
    known = evidence(recorded)
    own = known.elections[ONE]
    assert disturbed(own, known.acting(own), configuration) == terms
    in_flight = {(ONE, n): 3 for n in range(2)}
    left = spare_offsets([], [], in_flight, configuration, {(ONE, n) for n in terms})
    assert {n for _, n in left} == {0, 1} - {*terms}


@pytest.mark.parametrize("idempotence", [True, False])
@pytest.mark.parametrize("count", [5, 1100])
def test_resends_to_the_next_leader_do_not_show_how_far_the_old_leader_wrote(count: int, idempotence: bool) -> None:
    """b2 leads from offset 5 on, while b1 does not know yet. Its records from 10 on stand where b3 wrote them again,
    and above them stood r, which only b2 can have lost, if b2 wrote it."""
    end = 10 + count
    lines = [
        *[*saw("b1", "0..40", 1, 0, "1"), *saw("b2,b3", "0..19", 1, 0, "1"), "fault c b1 16..40 kind=isolate"],
        *[*saw("b2,b3", "20..44", 2, 1, "2,3"), *saw("b1", "41..44", 2, 1, "2,3"), "fault k b2 44..70 kind=kill"],
        *[*saw("b1,b3", "46..60", 3, 2, "3"), "final a @4 e0"],
        *[f"send l{n} ok @{n} t{10 + n / 1000}..{10.05 + n / 1000}" for n in range(5, end)],
        *[f"send k{n} ok @{n} w1 t{21 + n / 10}..{21.05 + n / 10}" for n in range(5, 10)],
        *[f"final k{n} @{n} e1" for n in range(5, 10)],
        *[f"send x{n} ok @{n} w1 t{24 + n / 100000}..47" for n in range(10, end)],
        *[f"final x{n} @{n} e2" for n in range(10, end)],
        *[f"send r ok @{end} w2 t24.5..25", f"send late ok @{end} w1 t50..51"],
        *[f"final late @{end} e2", f"end 0..{end + 1}"],
    ]
    recorded = by_hand(*lines)
    known = evidence(recorded, unclean_election=True, idempotence=idempotence)
    in_flight = InFlight(known.elections, known.acting)
    assert [*in_flight.counting([pa.Table.from_pylist(recorded.rows["sends"], SENDS)])]
    spare = spare_offsets([], [], in_flight.after(), known.configuration)
    lost = [row for row in recorded.rows["sends"] if row["record_id"] in {recorded.ids[f"l{n}"] for n in range(5, end)}]
    lost += [row for row in recorded.rows["sends"] if row["record_id"] == recorded.ids["r"]]
    rows = [{**row, "sent_ns": row["invoked_ns"], "acknowledged_ns": row["completed_ns"]} for row in lost]
    table = pa.Table.from_pylist([{name: row.get(name) for name in RANGES.names} for row in rows], RANGES)
    parts = decided(record_ranges([table], {}, 64, {}, known), LOST, known)
    standings = [part.decision.standing for part in attached(parts, 64, known.logs, (), spare) if part.decision]
    assert {*standings[:-1]} == {Standing.PERMITTED}
    assert standings[-1] is Standing.UNDECIDED
    few = [
        part.decision.standing for part in attached(parts, 64, known.logs, (), dict.fromkeys(spare, 0)) if part.decision
    ]
    assert few[-1] is Standing.PERMITTED


def test_unacknowledged_is_what_has_no_answer_or_no_offset() -> None:
    recorded = by_hand("send a ok @5 t1..2", "send b ok t1..2", "send c info t1..2", "send d fail t1..2")
    sends = pa.Table.from_pylist(recorded.rows["sends"], SENDS)
    left = sends.filter(unacknowledged())["record_id"].to_pylist()
    assert left == [recorded.ids[name] for name in ("b", "c", "d")]
