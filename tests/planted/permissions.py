"""Each row of the permission table (harness.core.guarantees) planted three ways: what it excuses reaches the record, or
does not reach it, or nobody can tell.

It can miss a record in five ways: it is over before the record, or comes when the record is gone; it is of another
partition, or of another broker's disk; or what is missing is a hole, which nothing excuses. Where a row has no such
way, it is said why.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.core.verdict import Standing
from harness.history.run_file import Origin

BEFORE, AFTER, PARTITION, DISK, HOLE = "before", "after", "another partition", "another disk", "a hole"

#: How what a row excuses may miss a record.
WAYS = (BEFORE, AFTER, PARTITION, DISK, HOLE)


@dataclass(frozen=True)
class Plant:
    """A hand history (tests.checkers.notation), and how what is found in it stands. ``settings``: besides the row's.
    ``anomaly``: what is found there, where it is another one than the row's."""

    lines: tuple[str, ...]
    standing: Standing = Standing.VIOLATION
    settings: Mapping[str, Any] = field(default_factory=dict)
    anomaly: str | None = None


@dataclass(frozen=True)
class Never:
    """Why a row cannot be planted in some way."""

    why: str


@dataclass(frozen=True)
class PlantedRow:
    """The plants of a row: all are of ``anomaly``, under ``settings``."""

    anomaly: str
    settings: Mapping[str, Any]
    reaches: tuple[str, ...] | Never
    misses: Mapping[str, Plant | Never]
    undecided: Plant | Never


def _undecided(*lines: str) -> Plant:
    return Plant(lines, Standing.UNDECIDED)


# What is gone: r, at 5, acknowledged at 11 s.

_R = "send r ok @5 t10..11"
_LATE = ("send late ok @6 t55..56", "final late @6 e1", "end 0..7")

#: The log goes on at r's place under the next leader's epoch; or under r's own, before that leader was elected; or r
#: alone is missing in it; or it ends there, and nothing else became of it.
_CUT = ("final a @4 e0", "final b @5 e1", *_LATE)
_REPLACED = ("final a @4 e0", "send x ok @5 t15..16", "final x @5 e0", *_LATE)
_HOLE = ("final a @4 e0", "final c @6 e0", "send late ok @7 t55..56", "final late @7 e1", "end 0..8")
_ENDED = ("final a @4 e0", "send late ok @4 t55..56", "end 0..5")
#: r itself was sent under the next leader, which went on at its place.
_OF_THE_NEXT = ("send r ok @5 t40..41", "final a @3 e0", "final b @4 e1", "final c @5 e1", *_LATE)
#: Nothing of the first leader is left.
_ANEW = ("final b @0 e1", *_LATE)


def _saw(by: str, when: str, what: str) -> tuple[str, ...]:
    return tuple(f"saw {one} @{when} {what}" for one in by.split(","))


def _led(isr: str, by: str = "b1,b2,b3") -> tuple[str, ...]:
    """b1 led from the beginning, with this ISR, until it reported nothing more at 20 s."""
    others = ",".join(one for one in by.split(",") if one != "b1")
    return (
        *_saw("b1", "0..20", f"leader=1 epoch=0 isr={isr}"),
        *_saw(others, "0..25", f"leader=1 epoch=0 isr={isr}"),
    )


_KILLED = "fault killed b1 20..40 kind=kill"
_B2_ALONE = _saw("b2,b3", "26..60", "leader=2 epoch=1 isr=2")
_B2_OF_ISR = _saw("b2,b3", "26..60", "leader=2 epoch=1 isr=2,3")
_B3_ALONE = _saw("b2,b3", "26..60", "leader=3 epoch=1 isr=3")
_NOBODY_ELSE = _saw("b1,b2,b3", "0..60", "leader=1 epoch=0 isr=1,2,3")
#: Of partition 1, where b1 leads alone and then b2.
_ELSEWHERE = tuple(
    line.replace("leader=", "p1 leader=") for line in (*_led("1"), *_saw("b2,b3", "26..60", "leader=2 epoch=1 isr=2"))
)
#: b2, of the ISR, was elected, and must have had r. The disk of b3, which was not in the ISR, was wiped. (Where it is
#: b2's disk, r is lost with it.)
_B3_WIPED = (*_led("1,2"), _KILLED, "fault w b3 20..24 kind=wipe", *_B2_ALONE)

#: b1, alone in the ISR, was killed; b2, which lacked r, was elected.
_ALONE = (*_led("1"), _KILLED, *_B2_ALONE)

#: b1 led with b2 in the ISR; both were faulted, and b3 was elected.
_BOTH = (*_led("1,2"), _KILLED, "fault cut b2 21..40 kind=isolate", *_B3_ALONE)

#: The ISR of b1 shrank to it alone between 4 and 5 s.
_SHRANK = (
    *_saw("b1,b2,b3", "0..4", "leader=1 epoch=0 isr=1,2,3"),
    *_saw("b1", "5..20", "leader=1 epoch=0 isr=1"),
    *_saw("b2,b3", "5..25", "leader=1 epoch=0 isr=1"),
    _KILLED,
    *_B2_ALONE,
)
_WHILE_IT_SHRANK = "send r ok @5 t4.2..4.8"

#: b1, cut off, goes on until 40 s; b2 leads since 20 s.
_TWO_LED = (
    *_saw("b1", "0..40", "leader=1 epoch=0 isr=1,2,3"),
    *_saw("b2,b3", "0..19", "leader=1 epoch=0 isr=1,2,3"),
    *_saw("b2,b3", "20..60", "leader=2 epoch=1 isr=2,3"),
    *_saw("b1", "41..60", "leader=2 epoch=1 isr=2,3"),
)

_ALL_KILLED = (*_led("1,2,3"), *_B3_ALONE)

#: b1 is the only replica, and led until 20 s and since 32 s.
_ONLY = (
    *_saw("b1", "0..20", "leader=1 epoch=0 isr=1 replicas=1"),
    *_saw("b1", "32..60", "leader=1 epoch=1 isr=1 replicas=1"),
)

#: b1 was restarted and came back without r, of which nobody wiped anything; b2 leads at last.
_LOST_BY_A_RESTART = (
    *_saw("b1,b2,b3", "0..20", "leader=1 epoch=0 isr=1"),
    "fault k b1 20..24 kind=kill",
    "saw b2 @25 leader=-1 epoch=1 isr=1",
    *_saw("b1,b2,b3", "26..48", "leader=1 epoch=2 isr=1"),
    *_saw("b2,b3", "50..60", "leader=2 epoch=3 isr=2,3"),
    *("final a @4 e0", "final b @5 e2", "send late ok @6 t40..41", "final late @6 e2", "end 0..7"),
)

#: b1 was alone in the ISR at last, was down from 20 to 24 s, and leads again; r is of the time of the whole ISR.
_LAST = (
    "send r ok @5 t2..3",
    *_saw("b1,b2,b3", "0..9", "leader=1 epoch=0 isr=1,2,3"),
    *_saw("b1", "10..20", "leader=1 epoch=0 isr=1"),
    *_saw("b2,b3", "10..25", "leader=1 epoch=0 isr=1"),
    "fault k b1 20..24 kind=kill",
    "saw b2 @25 leader=-1 epoch=1 isr=1",
    *_saw("b1,b2,b3", "26..60", "leader=1 epoch=2 isr=1"),
)
#: The same, where nobody was in sync or eligible when b1 came back.
_LAST_KNOWN = (
    *(line for line in _LAST if not line.startswith(("saw b2 @25", "saw b2 @10", "saw b3 @10"))),
    *_saw("b2,b3", "10..20", "leader=1 epoch=0 isr=1"),
    *_saw("b2,b3", "21..23", "leader=-1 epoch=1 isr= elr=1"),
    *_saw("b2,b3", "24..25", "leader=-1 epoch=1 isr= elr="),
)
_OF_THE_LAST = ("final b @5 e2", "send late ok @6 t55..56", "final late @6 e2", "end 0..7")


# What is there twice, or late: a, in flight from 30 to 32 s.

_TWICE = ("send a ok @0 t30..32", "send b ok @1 t31.5..34", "final a @0", "final b @1", "final a @2", "end 0..3")
_LATER = ("send a ok @0 t30..32", "send b ok @1 t31.5..34", "final b @1", "final a @2", "end 0..3")
_GIVEN_UP_LATER = tuple(line.replace("a ok @0", "a info") for line in _LATER)
#: b is sent when a was acknowledged.
_TWICE_AFTERWARDS = tuple(line.replace("t31.5..34", "t33..34") for line in _TWICE)
_QUIET = _saw("b1,b2,b3", "0..60", "leader=1 epoch=0 isr=1,2,3")
#: Another leader is elected from the one time to the other.
_MOVED = (
    *_saw("b1,b2,b3", "0..30", "leader=1 epoch=0 isr=1,2,3"),
    *_saw("b1,b2,b3", "31..60", "leader=2 epoch=1 isr=1,2,3"),
)
_MOVED_BEFORE = tuple(line.replace("0..30", "0..9").replace("31..60", "10..60") for line in _MOVED)
_MOVED_AFTER = tuple(line.replace("0..30", "0..45").replace("31..60", "46..60") for line in _MOVED)
_MOVED_ELSEWHERE = (*_QUIET, *(line.replace("leader=", "p1 leader=") for line in _MOVED))
_CUT_THEN = "fault cut b1,b2,b3 28..36 kind=isolate clients=cut"
_ANOTHER_REPLICA = (
    *_saw("b1,b2", "0..60", "leader=1 epoch=0 isr=1,2 replicas=1,2"),
    "fault cut b3 28..36 kind=isolate clients=cut",
)

_NOTHING_IS_MISSING = dict.fromkeys((DISK, HOLE), Never("no log lacks anything: it is no matter of a disk"))


def _resent(copied: tuple[str, ...]) -> dict[str, Plant | Never]:
    """A fault that can have made nobody send again what is in ``copied``."""
    return {
        BEFORE: Plant((*copied, *_QUIET, "fault cut b1,b2,b3 1..5 kind=isolate clients=cut")),
        AFTER: Plant((*copied, *_QUIET, "fault cut b1,b2,b3 33..36 kind=isolate clients=cut")),
        PARTITION: Plant((*copied, *_ANOTHER_REPLICA)),
        **_NOTHING_IS_MISSING,
    }


def _refused(copied: tuple[str, ...]) -> dict[str, Plant | Never]:
    """An election that refused nothing of what is in ``copied``."""
    return {
        BEFORE: Plant((*copied, *_MOVED_BEFORE)),
        AFTER: Plant((*copied, *_MOVED_AFTER)),
        PARTITION: Plant((*copied, *_MOVED_ELSEWHERE)),
        **_NOTHING_IS_MISSING,
    }


#: b is there twice, and was in flight from 10 to 40 s.
_COPIED = ("send b ok @1 t10..40", "final b @1", "final b @2", "end 0..3")

# What a group reads: three records, of two members.

_ABC = (
    *("send a ok @0 t1..2", "send b ok @1 t2..3", "send c ok @2 t3..4"),
    *("final a @0", "final b @1", "final c @2", "end 0..3", "place assign r1 @0 t1"),
)
#: b was committed past and never processed.
_PASSED = (*_ABC, "live a @0 r1 t5", "place committing r1 @2 t6", "place commit r1 @2 t6")
#: The same, by the next incarnation of that member.
_PASSED_BY_THE_NEXT = (
    *(*_ABC, "live a @0 r1 t5", "place committing r1 @1 t6", "place commit r1 @1 t6"),
    *("place assign r1 i1 @1 t8", "live c @2 r1 i1 t9", "place committing r1 i1 @3 t10", "place commit r1 i1 @3 t10"),
)
#: Two members are given the partition by turns from 107 s on.
_BY_TURNS = (
    *_ABC,
    *("live a @0 r1 t105", "place assign r2 t106", "live a @0 r2 t107", "live b @1 r1 t108"),
)
#: The same, and b1 coordinates the group.
_COORDINATED = (*_BY_TURNS, *(f"saw b{n} @0..120 leader=1 isr=1,2,3 coordinator=1" for n in (1, 2)))
#: A cut from all others, clients among them.
_ISOLATED = "kind=isolate plane=all kind=isolate clients=cut"
#: Reader 1 was given a, and then c; no final read tells what stands between.
_GAP = ("send a ok @0 t1..2", "send b ok @1 t2..3", "send c ok @2 t3..4", "live a @0 r1 t5", "live c @2 r1 t7")
_B_WAS_READ = "live b @1 r2 t6"
#: The group may have moved the partition unseen, right before the poll that gave it c.
_MOVED_UNSEEN = "place r1 may-have-moved t7"

_OF_OTHERS = {"origin": Origin.JEPSEN}

_GIVEN_EACH_OTHERS = (
    *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "send a ok @0 x1 t1..2"),
    *("send b ok @0 p1 x2 w1 t1..2", "live b @0 p1 w0 x1 t5", "live a @0 w1 x2 t5"),
    *("final a @0", "final b @0 p1", "end 0..1", "end 0..1 p1"),
)
#: A write that was given up may have come to offset 2 after the end of its transaction.
_HANGS = (
    *("txn 1 abort ok 0..5..6", "send a ok @0 x1 t1..2", "send x info x1 t1..5"),
    *("end 0..2", "stable @2 high=3", *_QUIET),
)
#: The write at offset 0 was acknowledged before anybody asked for the end of its transaction.
_LACKS_ITS_END = ("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..2", "end 0..0", "stable @0 high=1")
#: The same of a second transaction, while the end of the first was on its way through a fault.
_ENDED_LATE = (
    *("txn 1 commit ok 0..5..6", "txn 2 commit ok 7..9..10", "send a ok @0 x1 t1..2", "send b ok @2 x2 t7..8"),
    *("final a @0", "end 0..2", "stable @2 high=3"),
)
_ALWAYS = Never("it holds by the setting alone: no event excuses anything")

ROWS: Mapping[str, PlantedRow] = {
    "one replica": PlantedRow(
        "lost",
        {"replication": 1, "min_insync_replicas": 1, "unclean_election": False},
        (_R, *_ONLY, "fault w b1 20..30 kind=wipe", *_ANEW),
        {
            BEFORE: Plant((_R, *_ONLY, "fault w b1 2..4 kind=wipe", *_ENDED)),
            AFTER: Plant((_R, *_ONLY, "fault w b1 20..30 kind=wipe", *_REPLACED)),
            PARTITION: Plant(
                (
                    *(_R, *_saw("b1", "0..60", "leader=1 epoch=0 isr=1 replicas=1"), "fault w b2 20..30 kind=wipe"),
                    *(*_saw("b2", "0..60", "p1 leader=2 epoch=0 isr=2 replicas=2"), *_ENDED),
                )
            ),
            "written again before": Plant(
                (
                    *(_R, *_saw("b1", "0..20", "leader=1 epoch=0 isr=1 replicas=1"), "fault k b1 20..24 kind=kill"),
                    *_saw("b1", "26..40", "leader=1 epoch=1 isr=1 replicas=1"),
                    *("send x ok @5 t30..31", "fault w b1 41..43 kind=wipe"),
                    *_saw("b1", "45..60", "leader=1 epoch=2 isr=1 replicas=1"),
                    *("final b @0 e2", "send late ok @1 t50..51", "final late @1 e2", "end 0..2"),
                ),
                Standing.UNDECIDED,
            ),
            DISK: Plant((_R, *_ONLY, "fault w b3 20..30 kind=wipe", *_ANEW)),
            HOLE: Plant((_R, *_ONLY, "fault w b1 20..30 kind=wipe", *_HOLE)),
        },
        _undecided(_R, *_ONLY, "fault w b1 20..30 kind=wipe unknown=b1", *_ANEW),
    ),
    "acks without replication": PlantedRow(
        "lost",
        {"acks": "1", "unclean_election": False},
        (_R, *_led("1,2,3"), _KILLED, *_B2_OF_ISR, *_CUT),
        {
            BEFORE: Plant((*_led("1,2,3"), _KILLED, *_B2_OF_ISR, *_OF_THE_NEXT)),
            AFTER: Plant((_R, *_led("1,2,3"), _KILLED, *_B2_OF_ISR, *_REPLACED)),
            PARTITION: Plant((_R, *_NOBODY_ELSE, *_ELSEWHERE, _KILLED, *_ENDED)),
            DISK: Plant((_R, *_NOBODY_ELSE, "fault w b2,b3 20..24 kind=wipe", *_ENDED)),
            HOLE: Plant((_R, *_led("1,2,3"), _KILLED, *_B2_OF_ISR, *_HOLE)),
        },
        _undecided("send r ok @5 t30..31", *_TWO_LED, *_CUT),
    ),
    "unclean election, one in-sync replica": PlantedRow(
        "lost",
        {"unclean_election": True, "min_insync_replicas": 1},
        (_R, *_ALONE, *_CUT),
        {
            BEFORE: Plant((*_ALONE, *_OF_THE_NEXT)),
            AFTER: Plant((_R, *_ALONE, *_REPLACED)),
            PARTITION: Plant((_R, *_NOBODY_ELSE, *_ELSEWHERE, _KILLED, *_ENDED)),
            DISK: Plant((_R, *_B3_WIPED, *_CUT)),
            HOLE: Plant((_R, *_ALONE, *_HOLE)),
        },
        _undecided(_WHILE_IT_SHRANK, *_SHRANK, *_CUT),
    ),
    "unclean election, whole ISR faulted": PlantedRow(
        "lost",
        {"unclean_election": True, "min_insync_replicas": 2},
        (_R, *_BOTH, *_CUT),
        {
            BEFORE: Plant((*_BOTH, *_OF_THE_NEXT)),
            AFTER: Plant((_R, *_BOTH, *_REPLACED)),
            PARTITION: Plant((_R, *_NOBODY_ELSE, *_ELSEWHERE, _KILLED, *_ENDED)),
            DISK: Plant((_R, *_B3_WIPED, *_CUT)),
            HOLE: Plant((_R, *_BOTH, *_HOLE)),
        },
        _undecided(_R, *_led("1,2"), _KILLED, "fault cut b2 21..40 kind=isolate unknown=b2", *_B3_ALONE, *_CUT),
    ),
    "unclean election by hand": PlantedRow(
        "lost",
        {"unclean_election": False, "min_insync_replicas": 1},
        (_R, *_ALONE, "fault elect-1 - 25..26 unclean", *_CUT),
        {
            BEFORE: Plant((_R, *_ALONE, "fault elect-1 - 2..3 unclean", *_CUT)),
            AFTER: Plant((_R, *_ALONE, "fault elect-1 - 50..51 unclean", *_CUT)),
            PARTITION: Plant((_R, *_ALONE, "fault elect-1 - 25..26 p1 unclean", *_CUT)),
            DISK: Plant((_R, *_B3_WIPED, "fault elect-1 - 25..26 unclean", *_CUT)),
            HOLE: Plant((_R, *_ALONE, "fault elect-1 - 25..26 unclean", *_HOLE)),
        },
        _undecided(_R, *_ALONE, "fault elect-1 - 25..26 unclean unknown", *_CUT),
    ),
    "every disk lost": PlantedRow(
        "lost",
        {"unclean_election": False, "min_insync_replicas": 1},
        (_R, *_ALL_KILLED, "fault w b1,b2,b3 20..24 kind=wipe", *_ANEW),
        {
            BEFORE: Plant((_R, *_ALL_KILLED, "fault w b1,b2,b3 2..4 kind=wipe", *_ANEW)),
            AFTER: Plant((_R, *_LOST_BY_A_RESTART, "fault w b1 49..52 kind=wipe")),
            PARTITION: Plant(
                (
                    *(_R, *_ALL_KILLED, "fault w b4,b5 20..24 kind=wipe", *_ANEW),
                    *_saw("b2,b3", "0..60", "p1 leader=4 epoch=0 isr=4,5 replicas=4,5"),
                )
            ),
            DISK: Plant((_R, *_ALL_KILLED, "fault w b1,b2 20..24 kind=wipe", *_ANEW)),
            HOLE: Plant((_R, *_ALL_KILLED, "fault w b1,b2,b3 20..24 kind=wipe", *_HOLE)),
        },
        _undecided(_R, *_ALL_KILLED, "fault w b1,b2,b3 20..24 kind=wipe unknown=b3", *_ANEW),
    ),
    "last replica standing": PlantedRow(
        "lost",
        {"unclean_election": False, "min_insync_replicas": 1},
        (*_LAST, "fault w b1 21..22 kind=wipe", *_OF_THE_LAST),
        {
            BEFORE: Plant((*_LAST, "fault w b1 0.5..1 kind=wipe", *_OF_THE_LAST)),
            AFTER: Plant((_R, *_LOST_BY_A_RESTART, "fault w b1 49..52 kind=wipe")),
            PARTITION: Plant(
                (
                    *(*_LAST, "fault w b4 21..22 kind=wipe", *_OF_THE_LAST),
                    *_saw("b2,b3", "0..60", "p1 leader=4 epoch=0 isr=4 replicas=4"),
                )
            ),
            DISK: Plant((*_LAST, "fault w b3 21..22 kind=wipe", *_OF_THE_LAST)),
            HOLE: Plant((*_LAST, "fault w b1 21..22 kind=wipe", *_HOLE)),
        },
        _undecided(*_LAST, "fault w b1 21..22 kind=wipe unknown=b1", *_OF_THE_LAST),
    ),
    "last known leader": PlantedRow(
        "lost",
        {"unclean_election": False, "min_insync_replicas": 1, "features": {"eligible.leader.replicas.version": 1}},
        (*_LAST_KNOWN, "fault w b1 21..22 kind=wipe", *_OF_THE_LAST),
        {
            BEFORE: Plant((*_LAST_KNOWN, "fault w b1 0.5..1 kind=wipe", *_OF_THE_LAST)),
            AFTER: Plant((_R, *_LOST_BY_A_RESTART, "fault w b1 49..52 kind=wipe")),
            PARTITION: Plant(
                (
                    *(*_LAST_KNOWN, "fault w b4 21..22 kind=wipe", *_OF_THE_LAST),
                    *_saw("b2,b3", "0..60", "p1 leader=4 epoch=0 isr=4 replicas=4"),
                )
            ),
            DISK: Plant((*_LAST_KNOWN, "fault w b3 21..22 kind=wipe", *_OF_THE_LAST)),
            HOLE: Plant((*_LAST_KNOWN, "fault w b1 21..22 kind=wipe", *_HOLE)),
            "another is eligible": Plant(
                (
                    *(line.replace("isr= elr=", "isr= elr=2") for line in _LAST_KNOWN if line.endswith("elr=")),
                    *(line for line in _LAST_KNOWN if not line.endswith("elr=")),
                    *("fault w b1 21..22 kind=wipe", *_OF_THE_LAST),
                )
            ),
        },
        _undecided(*_LAST_KNOWN, "fault w b1 21..22 kind=wipe unknown=b1", *_OF_THE_LAST),
    ),
    "retries without idempotence": PlantedRow(
        "duplicated",
        {"idempotence": False, "retries": 5},
        (*_TWICE, *_QUIET, _CUT_THEN),
        _resent(_TWICE),
        _undecided(*_TWICE, *_QUIET, f"{_CUT_THEN} unknown"),
    ),
    "sent again to another leader": PlantedRow(
        "duplicated",
        {"idempotence": False, "retries": 0},
        (*_TWICE, *_MOVED),
        _refused(_TWICE),
        _undecided(*_TWICE_AFTERWARDS, *_MOVED, _CUT_THEN),
    ),
    "another given up beside it": PlantedRow(
        "duplicated",
        {"idempotence": True},
        ("send x info t9..39", *_COPIED),
        {
            BEFORE: Plant(("send x info t1..9", *_COPIED)),
            AFTER: Plant((*_COPIED, "send x info t20..50")),
            PARTITION: Never("the producer's epoch is that of all partitions it writes to"),
            "another producer": Plant(("send x info w1 t9..39", *_COPIED)),
            "a late copy": Plant(
                (
                    *("send x info t9..39", "send b ok @1 t10..40", "send c ok @2 t41..42"),
                    *("final b @1", "final c @2", "final b @3", "end 0..4"),
                )
            ),
            **_NOTHING_IS_MISSING,
        },
        Never("a producer tells what it gives up; one that was killed begins no new epoch"),
    ),
    "no final read": PlantedRow(
        "unseen",
        _OF_OTHERS,
        ("send a ok @0 t1..2", "live a @0 t5", "send b ok @1 t7..8"),
        {
            BEFORE: Plant(
                ("send a ok @0 t1..2", "send b ok @1 t7..8", "send c ok @2 t8..9", "live a @0 t5", "live c @2 t10"),
                anomaly="lost",
            ),
            AFTER: _ALWAYS,
            PARTITION: Plant(
                (
                    *("send a ok @0 t1..2", "send b ok @1 t7..8", "live a @0 t5", "live b @1 t9"),
                    *("send c ok @0 p1 t1..2", "send d ok @1 p1 t7..8", "live d @1 p1 t9"),
                ),
                anomaly="lost",
            ),
            DISK: _ALWAYS,
            HOLE: Plant(
                ("send a ok @0 t1..2", "send b ok @1 t1..2", "send c ok @2 t1..2", "live a @0 t5", "live c @2 t5"),
                anomaly="lost",
            ),
        },
        Never("what the history tells of its final read is the harness's own word"),
    ),
    "retries of several in flight": PlantedRow(
        "reordered",
        {"idempotence": False, "retries": 5, "max_in_flight": 5},
        (*_LATER, *_QUIET, _CUT_THEN),
        _resent(_LATER),
        _undecided(*_LATER, *_QUIET, f"{_CUT_THEN} unknown"),
    ),
    "sent again to another leader, several in flight": PlantedRow(
        "reordered",
        {"idempotence": False, "retries": 0, "max_in_flight": 5},
        (*_LATER, *_MOVED),
        _refused(_LATER),
        Never("a leader that nobody reports is no election: what nothing reached is a violation"),
    ),
    "given up, and written late": PlantedRow(
        "reordered",
        {"idempotence": False, "retries": 5, "max_in_flight": 1},
        (*_GIVEN_UP_LATER, *_QUIET, _CUT_THEN),
        {**_resent(_GIVEN_UP_LATER), "acknowledged": Plant((*_LATER, *_QUIET, _CUT_THEN))},
        _undecided(*_GIVEN_UP_LATER, *_QUIET, f"{_CUT_THEN} unknown"),
    ),
    "moved by a group": PlantedRow(
        "skipped",
        {**_OF_OTHERS, "grouped": True},
        Never("all that such a history tells is that the group may have moved it"),
        {
            BEFORE: Plant((*_GAP, _B_WAS_READ, _MOVED_UNSEEN.replace("t7", "t5"))),
            AFTER: Plant((*_GAP, _B_WAS_READ, _MOVED_UNSEEN.replace("t7", "t9"))),
            PARTITION: Plant((*_GAP, _B_WAS_READ, f"{_MOVED_UNSEEN} p1")),
            "another reader": Plant((*_GAP, _B_WAS_READ, _MOVED_UNSEEN.replace("r1", "r2"))),
            **_NOTHING_IS_MISSING,
        },
        _undecided(*_GAP, _B_WAS_READ, _MOVED_UNSEEN),
    ),
    "read before they are committed": PlantedRow(
        "read_cycle",
        {"isolation_level": "read_uncommitted"},
        _GIVEN_EACH_OTHERS,
        dict.fromkeys(WAYS, _ALWAYS),
        _ALWAYS,
    ),
    "partitions of transactions not verified": PlantedRow(
        "hanging_transaction",
        {"partition_verification": False},
        _HANGS,
        {
            **dict.fromkeys(WAYS, _ALWAYS),
            BEFORE: Plant(_LACKS_ITS_END),
            AFTER: Plant((*_ENDED_LATE, "fault f b1 9..15 kind=pause")),
            PARTITION: Plant((*_HANGS, "send b ok @0 p1 x1 t1..2", "end 0..0 p1", "stable @0 p1 high=1")),
            "nobody asked for its end": Plant(("txn 1 commit info 0..", *_LACKS_ITS_END[1:])),
            "no fault held an end back": Plant(_ENDED_LATE),
            "nothing was given up": Plant(tuple(line for line in _HANGS if "info" not in line)),
            "the log went on in time": Plant((*_HANGS, "send y ok @3 x1 t3..4")),
            "its producer's next transaction was ended": Plant(
                (*_HANGS, "txn 2 commit ok 10..15..16", "send y ok @3 x2 t11..12")
            ),
            "nothing of its producer stands below": _undecided(
                *(line.replace("@0 x1", "@0 p1 x1") for line in _HANGS), "end 0..1 p1", "stable @1 p1 high=1"
            ),
            "its timeout was over": _undecided(
                *("txn 1 commit ok 0..70..71", "send a ok @0 x1 t1..61", "end 0..0", "stable @0 high=1")
            ),
        },
        _undecided(*_ENDED_LATE, "fault f b1 4..6 kind=pause"),
    ),
    "commit before processing": PlantedRow(
        "missed",
        {"grouped": True, "commits_first": True},
        (*_PASSED, "killed r1"),
        {
            BEFORE: Plant((*_PASSED_BY_THE_NEXT, "killed r1")),
            AFTER: Plant((*_PASSED, "killed r1 i1")),
            PARTITION: Plant(
                (
                    *(
                        "send a ok @0 p0",
                        "send b ok @0 p1",
                        "final a @0 p0",
                        "final b @0 p1",
                        "end 0..1",
                        "end 0..1 p1",
                    ),
                    *("place assign r1 @0 t1", "live a @0 r1 t5", "place commit r1 @1 t6", "killed r1"),
                    *("place assign r2 @0 p1 t1", "place commit r2 @1 p1 t6"),
                )
            ),
            "another member": Plant((*_PASSED, "killed r2")),
            **_NOTHING_IS_MISSING,
        },
        Never("the harness knows whom it killed, and who died; the row itself excuses a commit that nobody answered"),
    ),
    "a member cut off from its coordinator": PlantedRow(
        "two_owners",
        {"grouped": True},
        (*_COORDINATED, f"fault i b1 60..106.5 {_ISOLATED}"),
        {
            BEFORE: Plant((*_COORDINATED, f"fault i b1 2..40 {_ISOLATED}")),
            AFTER: Plant((*_COORDINATED, f"fault i b1 111..160 {_ISOLATED}")),
            PARTITION: Never("a coordinator is cut off, whichever partition the group reads"),
            "no coordinator": Plant((*_COORDINATED, f"fault i b2 60..106.5 {_ISOLATED}"), Standing.UNDECIDED),
            "for less than a session": Plant((*_COORDINATED, f"fault i b1 99..106.5 {_ISOLATED}"), Standing.UNDECIDED),
            "an end too early": Plant((*_COORDINATED, f"fault i b1 20..95 {_ISOLATED}"), Standing.UNDECIDED),
            "still cut off": Plant((*_COORDINATED, f"fault i b1 20..109 {_ISOLATED}"), Standing.UNDECIDED),
            "a dead coordinator": Plant((*_COORDINATED, "fault k b1 60..106.5 kind=kill"), Standing.UNDECIDED),
            "late heartbeats": Plant(
                (*_COORDINATED, "fault s b1 60..106.5 kind=slow plane=client"), Standing.UNDECIDED
            ),
            **_NOTHING_IS_MISSING,
        },
        _undecided(*_BY_TURNS, f"fault i b1 60..106.5 {_ISOLATED}"),
    ),
}
