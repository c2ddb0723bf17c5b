"""Members of a group on librdkafka's mock cluster: what is journalled around a commit, and what a kill leaves.

(While it rebalances the mock cluster refuses every commit. A broker does so only while members are told theirs.)
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from harness.core.errors import ClusterError
from harness.core.history import POSITIONS, READS, Phase
from harness.core.journal import Journal, journal_path
from harness.core.run_file import Process
from harness.core.waiting import wait_for
from workloads import running
from workloads.consuming import Consuming
from workloads.groups import Groups
from workloads.payload import Encoder
from workloads.plan import Plan, worker_specs
from workloads.recorder import PositionRecorder, ReadRecorder
from workloads.running import start
from workloads.specs import ConsumerSpec

Journalled = Callable[[str], pa.Table]
Rows = list[dict]


def live(journalled: Journalled) -> Rows:
    return journalled("reads").to_pylist()


def commits(journalled: Journalled) -> Rows:
    return [row for row in journalled("positions").to_pylist() if row["event"] == "commit"]


def places(rows: Rows) -> set[tuple[int, int]]:
    return {(row["partition"], row["offset"]) for row in rows}


def owners(journalled: Journalled) -> set[tuple[int, int]]:
    """Who was assigned each partition last."""
    assigned = [row for row in journalled("positions").to_pylist() if row["event"] == "assign"]
    last = {row["partition"]: (row["reader"], row["incarnation"]) for row in sorted(assigned, key=lambda r: r["at_ns"])}
    return set(last.values())


def wait_until_both_process(journalled: Journalled) -> None:
    wait_for(lambda: {row["reader"] for row in live(journalled)} == {2, 3}, "both members process", 120)


def test_members_are_told_when_to_commit_and_how_long_processing_takes(plan: Plan) -> None:
    specs = worker_specs(Groups(members=2, commit="before-processing", processing=0.5, session_timeout_ms=7000), plan)
    members = [spec for spec in specs if isinstance(spec, ConsumerSpec)]
    assert [spec.worker for spec in members] == [3, 4]
    assert {(spec.grouped, spec.commits_first, spec.processing) for spec in members} == {(True, True, 0.5)}
    assert {(s.config["session.timeout.ms"], s.config["heartbeat.interval.ms"]) for s in members} == {(7000, 1400)}
    assert len({spec.config["group.id"] for spec in members}) == 1


def test_librdkafka_takes_the_settings_of_a_member(plan: Plan, capfd: pytest.CaptureFixture) -> None:
    for shortest in (1_000, 6_000):
        member = worker_specs(Groups(session_timeout_ms=shortest), plan)[-1]
        Consumer({**member.config, "bootstrap.servers": "127.0.0.1:9"}).close()
    assert "CONFWARN" not in capfd.readouterr().err


def test_a_member_that_commits_first_and_is_killed_has_committed_what_it_never_processed(
    plan: Plan, journalled: Journalled
) -> None:
    groups = Groups(rate=500, producers=1, members=1, commit="before-processing", processing=10)
    with start(groups, plan) as workload:
        assert re.fullmatch(r"killed process \d+, in the middle of a poll", workload.kill(1))
    committed = {row["partition"]: row["offset"] for row in commits(journalled)}
    assert 0 < len(live(journalled)) < sum(committed.values())


def test_a_member_that_commits_last_and_is_killed_has_processed_what_it_never_committed(
    plan: Plan, journalled: Journalled
) -> None:
    with start(Groups(rate=500, producers=1, members=1, processing=10), plan) as workload:
        workload.kill(1)
    assert not commits(journalled)
    assert live(journalled)


def test_a_member_that_is_never_in_the_middle_of_a_poll_is_killed_all_the_same(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_IDLE_S", 0.1)
    with start(Groups(rate=1, producers=1, members=1, processing=0), plan) as workload:
        assert workload.kill(1).endswith(", not in the middle of a poll")


def test_what_a_killed_member_had_is_processed_by_its_next_incarnation(plan: Plan, journalled: Journalled) -> None:
    groups = Groups(rate=500, producers=1, members=2, processing=0.05)
    with start(groups, plan) as workload:
        wait_until_both_process(journalled)
        killed, stays = workload.workers[1:]
        workload.kill(1)
        assert not psutil.pid_exists(killed.pid)
        assert workload.killed_members == [Process(worker=2, incarnation=0)]
        workload.join(1)
        assert workload.workers[1:] == [stays, workload.workers[-1]]
        wait_for(lambda: owners(journalled) == {(3, 0), (2, 1)}, "both own partitions", 120)
        assert workload.deaths() == []
        assert workload.finish(within=60) == []
        sent = workload.counts().acknowledged
    assert {(row["reader"], row["incarnation"]) for row in live(journalled)} == {(2, 0), (3, 0), (2, 1)}
    assert len(places(live(journalled))) == sent
    assert {row["incarnation"] for row in journalled("positions").to_pylist() if row["reader"] == 2} == {0, 1}


def test_what_a_killed_member_had_is_processed_before_all_is_over(plan: Plan, journalled: Journalled) -> None:
    groups = Groups(rate=500, producers=1, members=2, processing=0.05, session_timeout_ms=6000)
    with start(groups, plan) as workload:
        wait_until_both_process(journalled)
        workload.kill(1)
        assert workload.finish(within=60) == []
        sent = workload.counts().acknowledged
    assert len(places(live(journalled))) == sent


@pytest.mark.parametrize("commit", ["before-processing", "after-processing"])
def test_a_member_that_leaves_has_processed_what_it_committed_and_committed_what_it_processed(
    commit: str, plan: Plan, journalled: Journalled
) -> None:
    with start(Groups(rate=500, producers=1, members=2, commit=commit, processing=0.05), plan) as workload:
        wait_until_both_process(journalled)
        assert "left" in workload.leave(2)
        left = [row for row in live(journalled) if row["reader"] == 3]
        ends = {p: max(row["offset"] for row in left if row["partition"] == p) + 1 for p, _ in places(left)}
        committed = {row["partition"]: row["offset"] for row in commits(journalled) if row["reader"] == 3}
        assert committed == ends
        wait_for(lambda: owners(journalled) == {(2, 0)}, "one member owns all partitions", 120)
        assert workload.finish(within=60) == []
        sent = workload.counts().acknowledged
    assert len(places(live(journalled))) == sent
    assert commit == "after-processing" or len(live(journalled)) == sent, "at most once"


def test_only_members_that_are_there_go_and_only_those_that_went_come(plan: Plan) -> None:
    with start(Groups(rate=100, members=2), plan) as workload:
        for act, says in (
            (lambda: workload.kill(3), "there is no member 3: they are 1 to 2"),
            (lambda: workload.join(1), "member 1 has not gone"),
            (lambda: workload.kill(1) and workload.leave(1), "member 1 is not in the group"),
            (lambda: workload.join(1) and workload.join(1), "member 1 has not gone"),
        ):
            with pytest.raises(ClusterError, match=says):
                act()


class Scripted:
    """A consumer of one partition that hands out what it is given, and answers commits as it is told."""

    def __init__(self, config: dict) -> None:
        self.polls: list[list[Polled]] = []
        self.refused: list[bool] = []
        self.committed_to: list[int] = []
        self.processed: list[float] = []
        self.rebalanced: Callable[[], None] = lambda: None

    def subscribe(self, topics: list[str], on_assign: Callable, on_revoke: Callable, on_lost: Callable) -> None:
        self.on_assign, self.on_revoke = on_assign, on_revoke

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, 0) for p in partitions]

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float, cached: bool) -> tuple[int, int]:
        return 0, 0

    def consume(self, most: int, timeout: float) -> "list[Polled]":
        self.rebalanced()
        return self.polls.pop(0) if self.polls else []

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        if self.refused.pop(0):
            raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
        self.committed_to += [place.offset for place in offsets]
        return offsets


class Polled:
    """What a poll brings: a record at ``offset``, or with ``error`` what is told there."""

    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self.offset, self.error = lambda: offset, lambda: error
        self.value = lambda: Encoder(64)(offset, 1)[0]

    topic = staticmethod(lambda: "t")
    partition = staticmethod(lambda: 0)
    key = staticmethod(lambda: None)
    leader_epoch = staticmethod(lambda: 0)
    timestamp = staticmethod(lambda: (1, 0))


@contextmanager
def member(plan: Plan) -> Iterator[tuple[Consuming, Scripted, list[float]]]:
    """A member that commits first, with a scripted consumer; and how long it worked."""
    spec = ConsumerSpec(
        worker=2,
        config={},
        slots=[("t", 0)],
        journals=plan.journals,
        origin_ns=plan.clock.origin_ns,
        grouped=True,
        processing=1.0,
        commits_first=True,
    )
    made: list[Scripted] = []
    worked: list[float] = []

    def processed(part: float) -> None:
        made[0].processed.append(part)

    def client(config: dict) -> Consumer:
        made.append(Scripted(config))
        return made[0]  # type: ignore[return-value]

    with (
        Journal(journal_path(plan.journals, "reads", "2"), READS) as reads,
        Journal(journal_path(plan.journals, "positions", "2"), POSITIONS) as positions,
    ):
        recorders = ReadRecorder(reads, 2, Phase.LIVE), PositionRecorder(positions, 2)
        yield Consuming(spec, *recorders, plan.clock, client, worked.append, processed), made[0], worked


def test_nothing_is_processed_until_its_commit_was_answered(plan: Plan, journalled: Journalled) -> None:
    end = Polled(3, KafkaError(KafkaError._PARTITION_EOF))
    with member(plan) as (consuming, consumer, worked):
        consumer.polls, consumer.refused = [[Polled(0), Polled(1)], [Polled(2), end]], [True, False]
        consuming.step(0)
        assert (places(live(journalled)), worked, consumer.processed) == (set(), [], [])
        consuming.step(0)
        assert places(live(journalled)) == {(0, 0), (0, 1), (0, 2)}
        assert sum(worked) == pytest.approx(1.0)
        assert consumer.processed == [0, pytest.approx(1 / 3), pytest.approx(2 / 3)]
        consuming.flush()
    assert consumer.committed_to == [3]
    told = [(row["event"], row["offset"], row["error"]) for row in journalled("positions").to_pylist()]
    assert told == [
        ("error", None, "REBALANCE_IN_PROGRESS"),
        ("commit", 3, None),
        ("end-of-partition", 3, None),
    ]


def test_what_was_held_back_is_dropped_with_its_partition(plan: Plan, journalled: Journalled) -> None:
    with member(plan) as (consuming, consumer, worked):
        consumer.polls, consumer.refused = [[Polled(0), Polled(1)], []], [True]
        consuming.step(0)
        consumer.rebalanced = lambda: consumer.on_revoke(consumer, [TopicPartition("t", 0)])
        consuming.step(0)
    assert (consumer.committed_to, worked, live(journalled)) == ([], [], [])


def test_a_member_has_caught_up_with_nothing_while_the_group_rebalances(plan: Plan) -> None:
    partitions = [TopicPartition("t", 0)]
    with member(plan) as (consuming, consumer, _):
        assert not consuming.caught_up()
        consumer.on_assign(consumer, partitions)
        assert consuming.caught_up()
        consumer.on_revoke(consumer, partitions)
        assert not consuming.caught_up()
        consumer.on_assign(consumer, [])
        assert consuming.caught_up()
