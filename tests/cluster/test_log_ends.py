"""The end of each log, as its current leader reports it: answers of other brokers and of old leaders do not count."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from harness.cluster.log_ends import ask_log_ends, leading
from harness.cluster.observer import Observer, Sight
from harness.cluster.wire import EARLIEST, Wire
from harness.core.errors import ClusterError
from harness.core.topology import Node, Partition, Role, Topology
from workloads.readback.final_read import LogEnd

BROKERS = tuple(Node(f"b{i}", Role.BROKER, i, f"10.0.0.{i}") for i in (1, 2, 3))
TOPOLOGY = Topology(BROKERS, Node("clients", Role.CLIENTS, 0, "10.0.0.254"))
SLOT = ("t", 0)


def sight(observer: str, leader: int, epoch: int | None, topic: str = "t", partition: int = 0) -> Sight:
    return Sight(observer, 0, topic, partition, leader, epoch, (1, 2, 3), (1, 2, 3))


LEADING = {
    "nobody reported": (None, [], None),
    "no leader": (sight("b1", -1, 4), [sight("b1", -1, 4)], None),
    "the leader of the newest epoch": (sight("b1", 1, 4), [sight("b1", 1, 4), sight("b2", 2, 3)], 1),
    "one that was deposed, and alone answers": (sight("b1", 1, 4), [sight("b1", 1, 4), sight("b2", 2, 5)], None),
    "one whose successor is not known": (sight("b1", 1, 4), [sight("b1", 1, 4), sight("b2", -1, 5)], None),
    "before there were epochs": (sight("b1", 1, None), [sight("b1", 1, None), sight("b2", 2, None)], 1),
}


@pytest.mark.parametrize(("held", "reported", "leader"), LEADING.values(), ids=LEADING)
def test_a_broker_counts_as_leader_only_if_no_newer_epoch_is_known(
    held: Sight | None, reported: list[Sight], leader: int | None
) -> None:
    found = leading(held, reported)
    assert (found.leader if found else None) == leader


class Seen:
    """An observer that has seen ``before``, and from the next question on ``after``."""

    def __init__(self, before: Iterable[Sight], after: Iterable[Sight] | None = None) -> None:
        self._answers = [list(before), list(before if after is None else after)]

    def partitions(self) -> dict[Partition, Sight]:
        self._now = self._answers.pop(0)
        return {(sight.topic, sight.partition): sight for sight in self._now}

    def sights(self, topic: str, partition: int) -> list[Sight]:
        return [sight for sight in self._now if (sight.topic, sight.partition) == (topic, partition)]


class Broker:
    """What one broker answers: its log starts at 1, is stable to 5, committed to 7, and ends at 9."""

    def __init__(self, endpoint: str, silent: bool, hides: str) -> None:
        self.number = int(endpoint.split(":", maxsplit=1)[0][-1])
        self._silent, self._hides = silent, hides
        self.asked: list[dict[Partition, int | None]] = []

    def __enter__(self) -> "Broker":
        if self._silent:
            raise ClusterError("no connection")
        return self

    def __exit__(self, *_: object) -> None: ...

    def offsets(
        self,
        wanted: Mapping[str, Iterable[int]],
        at: int,
        *,
        replica: int = -1,
        committed: bool = False,
        epochs: dict[Partition, int | None],
    ) -> dict[Partition, tuple[int, None]]:
        self.asked.append(epochs)
        assert replica in {-1, self.number}
        what = "start" if at == EARLIEST else "end" if replica >= 0 else "stable" if committed else "high"
        if what == self._hides:
            return {}
        offset = {"start": 1, "stable": 5, "high": 7, "end": 9}[what]
        return {(topic, partition): (offset, None) for topic, partitions in wanted.items() for partition in partitions}


def ask(seen: Seen, *partitions: Partition, level: Any = "read_uncommitted", silent: int = 0, hides: str = "") -> Any:
    def connect(endpoint: str) -> Wire:
        made.append(Broker(endpoint, endpoint.startswith(f"10.0.0.{silent}:"), hides))
        return cast("Wire", made[-1])

    made: list[Broker] = []
    return ask_log_ends(cast("Observer", seen), TOPOLOGY, level, partitions, connect), made


@pytest.mark.parametrize(("level", "readable"), [("read_uncommitted", 7), ("read_committed", 5)])
def test_a_leader_is_asked_in_its_epoch_where_its_log_starts_and_ends(level: str, readable: int) -> None:
    found, [broker] = ask(Seen([sight("b1", 2, 4)]), SLOT, level=level)
    assert found == {SLOT: LogEnd(2, "10.0.0.2:9092", 4, 1, readable, 7, 9)}
    assert not found[SLOT].settled
    assert broker.asked == [{SLOT: 4}] * 4


def test_each_partition_is_asked_of_its_own_leader() -> None:
    found, brokers = ask(Seen([sight("b1", 2, 4), sight("b1", 3, 1, partition=1)]), SLOT, ("t", 1), ("t", 2))
    assert {tp: (end.leader, end.epoch) for tp, end in found.items()} == {SLOT: (2, 4), ("t", 1): (3, 1)}
    assert sorted(broker.number for broker in brokers) == [2, 3]


def test_a_leader_that_does_not_answer_leaves_the_others() -> None:
    found, _ = ask(Seen([sight("b1", 2, 4), sight("b1", 3, 1, partition=1)]), SLOT, ("t", 1), silent=2)
    assert found.keys() == {("t", 1)}


@pytest.mark.parametrize("hides", ["start", "high", "stable", "end"])
def test_a_log_that_is_not_fully_reported_is_left_out(hides: str) -> None:
    assert ask(Seen([sight("b1", 2, 4)]), SLOT, level="read_committed", hides=hides)[0] == {}


@pytest.mark.parametrize("after", [[sight("b1", 3, 5)], [sight("b1", 2, 5)], [sight("b1", -1, 5)], []])
def test_a_log_that_another_leads_after_the_answer_is_left_out(after: list[Sight]) -> None:
    assert ask(Seen([sight("b1", 2, 4)], after), SLOT)[0] == {}


def test_a_leader_that_is_no_node_of_ours_is_not_asked() -> None:
    assert ask(Seen([sight("b1", 9, 4)]), SLOT)[0] == {}
