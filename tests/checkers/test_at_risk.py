"""How many writes were acknowledged while a fault could take them, and by how few brokers: pure, on small timelines."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.at_risk import NOT_KNOWN, at_risk
from checkers.evidence.elections import elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.standing import possible_faults
from checkers.leadership import spans
from checkers.stretches import Timeline
from harness.core.guarantees import Configuration
from harness.history.schema import OBSERVATIONS

SECOND = 1_000_000_000
BROKERS = {1: "b1", 2: "b2", 3: "b3", 4: "b4"}
OF = ("t", 0)


def acknowledged(*bins: tuple[float, float, int]) -> Timeline:
    """Bins: when the first of their writes was sent, when the last was acknowledged, and how many were."""
    sent, ended, number = (np.array(column) for column in zip(*bins, strict=True))
    times = [(column * SECOND).astype(np.int64) for column in (sent, ended)]
    return Timeline(np.arange(len(bins)), times[0], times[1], times[0], times[1], times[1], number.astype(np.int64))


def isr(observer: str, since: float, until: float, leader: int, *brokers: int, epoch: int = 0) -> list[dict[str, Any]]:
    """What a broker reported each second, and at the end."""
    ats = [*np.arange(since, until), until]
    reported = {"topic": OF[0], "partition": OF[1], "leader": leader, "leader_epoch": epoch, "isr": list(brokers)}
    return [{"observer": observer, "at_ns": int(at * SECOND), "replicas": [1, 2, 3], **reported} for at in ats]


def fault(since: float, until: float | None, *nodes: str, **more: Any) -> dict[str, Any]:
    healed = None if until is None else int(until * SECOND)
    times = {"injecting_ns": int(since * SECOND), "injected_ns": int(since * SECOND), "healed_ns": healed}
    return {"fault": "f", "kind": "kill", "nodes": list(nodes), "effective": True, "evidence": "{}", **times, **more}


WHOLE = isr("b1", 0, 100, 1, 1, 2, 3)
SHRUNK = isr("b1", 0, 10, 1, 1, 2, 3) + isr("b1", 10.25, 100, 1, 1)
#: Each second from 0 to 39 one write is sent, and acknowledged half a second later.
EACH_SECOND = acknowledged(*((n, n + 0.5, 1) for n in range(40)))


def risked(
    rows: list[dict[str, Any]],
    *faults: dict[str, Any],
    acks: str = "all",
    own: Timeline = EACH_SECOND,
    controllers: frozenset[str] = frozenset(),
    metadata: str = "kraft",
) -> Counter[int]:
    observations = pa.Table.from_pylist(rows, OBSERVATIONS)
    configuration = Configuration(version="3.9.1", acks=acks, metadata=metadata)
    known = elections(observations, spans(observations), BROKERS, configuration, faults)
    evidence = Evidence(configuration, known, BROKERS, possible_faults(faults), controllers=controllers)
    return Counter(at_risk({OF: own}, evidence))


@pytest.mark.parametrize(
    ("faults", "found"),
    [
        ([], {}),
        ([fault(5, 8, "b1")], {3: 3}),
        ([fault(5, 8, "b1"), fault(7, 10, "b2")], {3: 5}),
        ([fault(35, None, "b3")], {3: 5}),
        ([fault(50, 60, "b1")], {}),
        ([fault(5, 8, "b4")], {}),
        ([fault(5, 8, "b4", "b2")], {3: 3}),
        ([fault(5, 8, "c1")], {3: 3}),
        ([fault(5, 8, "b1", effective=False)], {}),
        ([fault(5, 8, "b1", "b4", effective=True, nodes_without_effect=["b1"])], {}),
        ([fault(8, 8, "b1", destroys_data=True)], {3: 8}),
        ([fault(8, 8, "b4", destroys_data=True)], {}),
        ([fault(5, 8, "b1", kind="isolate", plane="client", cuts=True)], {}),
        ([fault(5, 8, "b1", "clients", kind="partition", cut_from=["b1"], cut_to=["clients"])], {}),
        ([fault(5, 8, "b1", "b2", "clients", kind="partition", cut_from=["b1"], cut_to=["b2", "clients"])], {3: 3}),
        ([fault(8, 8, kind="elect", evidence=json.dumps({"topic": "t", "partition": 0}))], {3: 8}),
        ([fault(8, 8, kind="elect", evidence=json.dumps({"topic": "t", "partition": 1}))], {}),
    ],
)
def test_writes_acknowledged_while_a_fault_hits_a_replica_are_at_risk(
    faults: list[dict[str, Any]], found: dict[int, int]
) -> None:
    assert risked(WHOLE, *faults) == found


def cut(one: list[str], other: list[str], **more: Any) -> dict[str, Any]:
    """A cut between two groups from 5 to 8 s."""
    sides = {"cut_from": one, "cut_to": other, "both_ways": True, "plane": "all"}
    return fault(5, 8, *one, *other, kind="partition", **{**sides, **more})


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (cut(["b1"], ["b2"]), 3),
        (cut(["b4"], ["b1"]), 0),
        (cut(["b4"], ["b1", "b2", "b3"]), 0),
        (cut(["b4", "clients"], ["b1"]), 0),
        (cut(["b4"], ["c1"]), 0),
        (cut(["b1"], ["c1"]), 3),
        (cut(["b1"], ["c1"], plane="replication"), 0),
        (cut(["c1"], ["c2"]), 0),
        (cut(["c1"], ["c2", "c3"]), 0),
        (cut(["b1", "c1"], ["b4", "c2", "c3"]), 3),
        (fault(5, 8, "c1"), 3),
        (fault(5, 8, "c1", "c2"), 3),
        (fault(5, 8, "b4", "c1", kind="isolate", plane="all"), 3),
        (fault(5, 8, "b4", kind="isolate", plane="all"), 0),
    ],
)
def test_a_cut_reaches_whom_it_cuts_from_replicas_or_controllers(row: dict[str, Any], found: int) -> None:
    """Of three controllers."""
    assert risked(WHOLE, row, controllers=frozenset({"c1", "c2", "c3"})).total() == found


def test_two_controllers_that_are_cut_apart_decide_nothing() -> None:
    assert risked(WHOLE, cut(["c1"], ["c2"]), controllers=frozenset({"c1", "c2"})).total() == 3


def test_with_zookeeper_any_broker_may_decide() -> None:
    row = cut(["b4"], ["b1"])
    assert [risked(WHOLE, row, metadata=one).total() for one in ("kraft", "zookeeper")] == [0, 3]
    assert risked(WHOLE, {**row, "plane": "replication"}, metadata="zookeeper").total() == 0


def test_it_is_counted_by_the_brokers_of_every_isr_from_its_sending_until_a_second_after() -> None:
    # The ISR was last seen whole at 10 s: a second after the acknowledgement at 9 s.
    assert risked(SHRUNK, fault(5, 20, "b1")) == {1: 11, 3: 4}
    late = acknowledged((8.7, 8.99, 1), (8.7, 9.01, 1))
    assert risked(SHRUNK, fault(5, 20, "b1"), own=late) == {1: 1, 3: 1}


def test_with_acks_1_the_leader_alone_had_to_have_it() -> None:
    assert risked(WHOLE, fault(5, 8, "b1"), acks="1") == {1: 3}
    assert risked(WHOLE, fault(5, 8, "b2"), acks="1") == {}


def test_a_replica_that_was_in_no_isr_had_nothing() -> None:
    two = isr("b1", 0, 100, 1, 1, 2)
    assert risked(two, fault(5, 8, "b3")) == risked(two, fault(8, 8, "b3", destroys_data=True)) == {}
    joined = isr("b1", 0, 10, 1, 1, 2) + isr("b1", 10, 100, 1, 1, 2, 3)
    assert risked(joined, fault(5, 8, "b3")) == {}
    assert risked(joined, fault(5, 12, "b3")) == {2: 5, 3: 2}


#: b3 left the ISR at 3 s; and b1 ceased to lead at 6 s.
LEFT = isr("b1", 0, 2, 1, 1, 2, 3) + isr("b1", 3, 100, 1, 1, 2)
LED = isr("b1", 0, 5, 1, 1, 2, 3) + isr("b2", 6, 100, 2, 2, 3, epoch=1)
LATE = acknowledged((20, 21, 1), (22, 23, 1), (35, 36, 1))


@pytest.mark.parametrize("kind", ["kill", "wipe"])
def test_a_replica_that_left_long_ago_had_to_have_none_of_what_was_sent_since(kind: str) -> None:
    hit = fault(19, 30, "b3", kind=kind)
    assert risked(LEFT, hit, own=LATE) == risked(LEFT, fault(19, 30, "b4", hit["nodes"][0], kind=kind), own=LATE) == {}
    assert risked(LEFT, fault(19, 30, "b2", "b3", kind=kind), own=LATE) == {2: 2}
    # It joined again by the end of the fault; and later.
    again = LEFT[:30] + isr("b1", 29, 100, 1, 1, 2, 3)
    assert risked(again, hit, own=LATE) == {2: 2}
    assert risked(again, fault(19, 25, "b3", kind=kind), own=LATE) == {}


def test_a_leader_that_was_deposed_long_ago_had_to_have_none_of_what_was_sent_since() -> None:
    assert risked(LED, fault(19, 30, "b1"), own=LATE, acks="1") == risked(LED, fault(19, 30, "b1"), own=LATE) == {}
    assert risked(LED, fault(19, 30, "b2"), own=LATE, acks="1") == {1: 2}
    assert risked(LED, fault(19, 30, "b3"), own=LATE, acks="1") == {}


def test_a_write_is_at_risk_if_a_replica_was_in_sync_at_its_send_and_left_before_the_fault() -> None:
    """A report counts for 3 s: b3 may have been in the ISR until 5 s."""
    pending = acknowledged((5.0, 20, 1), (5.01, 20, 1))
    assert risked(LEFT, fault(19, 30, "b3"), own=pending) == {2: 1}


def test_a_wiped_replica_may_still_have_what_it_had_when_it_left() -> None:
    """b3 may have been in the ISR until 5 s: writes that were sent later are not at risk."""
    own = acknowledged((1, 1.5, 1), (2.5, 3.5, 1), (4.9, 5.2, 1), (5.1, 5.3, 1), (20, 21, 1))
    assert risked(LEFT, fault(19, 30, "b3", kind="wipe"), own=own) == {2: 3}
    assert risked(LEFT, fault(19, 30, "b3"), own=own) == {}


def test_a_replica_that_the_fault_itself_took_out_counts_if_it_had_anything() -> None:
    """It is stopped: it has left the ISR before it has ended. With acks=1 another one leads before anything is sent."""
    stopped = {**fault(19, 30, "b3", kind="stop"), "injecting_ns": 2 * SECOND}
    before = acknowledged((1, 1.5, 1), (20, 21, 1))
    assert risked(LEFT, stopped, own=before) == {2: 1}
    assert risked(LEFT, stopped, own=LATE) == {}
    assert risked(LED, {**fault(7, 30, "b1"), "injecting_ns": 4 * SECOND}, own=before, acks="1") == {1: 1}
    assert risked(LEFT, {**stopped, "injecting_ns": 6 * SECOND}, own=before) == {}


def test_it_is_in_sync_until_another_report_says_otherwise() -> None:
    silent = isr("b1", 0, 2, 1, 1, 2, 3) + isr("b1", 19.5, 100, 1, 1, 2)
    own = acknowledged((1, 1.5, 1), (20, 21, 1))
    assert risked(silent, fault(19, 30, "b3"), own=own) == {2: 1}
    # b2 reported another ISR all the time.
    assert risked(silent + isr("b2", 0, 100, 1, 1, 2), fault(19, 30, "b3"), own=own) == {}


def test_reports_of_a_broker_that_was_cut_off_keep_nobody_in_sync_but_those_of_the_leader_do() -> None:
    stale, hit = isr("b4", 0, 40, 1, 1, 2, 3), fault(19, 30, "b3")
    own = acknowledged((1, 1.5, 1), (20, 21, 1))
    assert risked(LEFT + stale, hit, own=own) == {2: 1}
    assert risked(LEFT + stale, hit, fault(2.5, 60, "b4", kind="isolate", plane="all", cuts=True), own=own) == {}
    deposed = isr("b1", 0, 100, 1, 1, 2, 3) + isr("b2", 6, 100, 2, 2, 3, epoch=1)
    assert risked(deposed, fault(5, 60, "b1", kind="isolate"), own=own, acks="1") == {1: 1}


def test_the_leader_s_word_counts_and_no_stale_one() -> None:
    deposed = isr("b1", 0, 10, 1, 1) + isr("b2", 10, 100, 2, 2, 3, epoch=1) + isr("b3", 0, 100, 1, 1, 2, 3)
    assert risked(deposed + isr("b1", 12, 100, 2, 2, 3, epoch=1), fault(20, 25, "b1")) == {2: 5}
    # (Nobody knows when it ceased to lead, before it was killed.)
    assert risked(deposed, fault(20, 25, "b1")) == {1: 1, 2: 4}
    assert risked(isr("b3", 0, 100, 1, 1, 2, 3), fault(20, 25, "b1")) == {3: 5}


def test_the_isr_is_unknown_if_only_an_isolated_broker_reported_it() -> None:
    stale = isr("b3", 0, 100, 1, 1, 2, 3)
    assert risked(stale, fault(20, 25, "b3", kind="isolate")) == {NOT_KNOWN: 5}


def test_with_two_leaders_the_smaller_isr_counts() -> None:
    """b1 was last heard at 22 s: its ISR is known for writes that were acknowledged up to 21 s."""
    both = isr("b1", 0, 22, 1, 1) + isr("b2", 20, 100, 2, 2, 3, epoch=1)
    assert risked(both, fault(15, 30, "b1")) == {1: 6, 2: 9}


def test_an_isr_that_nobody_reported_is_not_known() -> None:
    assert risked(isr("b1", 0, 10, 1, 1, 2, 3), fault(20, 25, "b1")) == {NOT_KNOWN: 5}
    assert risked([], fault(20, 25, "c1")) == {NOT_KNOWN: 5}


def test_a_write_that_failed_puts_nothing_at_risk_that_was_sent_later_and_acknowledged() -> None:
    """One that was sent when b3 was still in sync ends beside each of those acknowledged."""
    beside = replace(LATE, earliest=LATE.earliest - 19 * SECOND)
    assert risked(LEFT, fault(19, 30, "b3"), own=beside) == {}
    assert risked(LEFT, fault(19, 30, "b2"), own=beside) == {2: 2}
