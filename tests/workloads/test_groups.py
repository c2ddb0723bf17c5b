"""Members of a group on librdkafka's mock cluster: what is journalled around a commit, and what a kill leaves.

(While it rebalances the mock cluster refuses every commit. A broker does so only while members get their assignment.)
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for
from harness.history.journal import Journal, journal_path
from harness.history.run_file import Process
from harness.history.schema import POSITIONS, READS, Phase
from tests.workloads.begun import begun
from workloads import members
from workloads.clients.consuming import Consuming
from workloads.clients.payload import Encoder
from workloads.clients.recorder import PositionRecorder, ReadRecorder
from workloads.clients.specs import ConsumerSpec
from workloads.groups import Groups
from workloads.workload import Surroundings

Journalled = Callable[[str], pa.Table]
Rows = list[dict]


def live(journalled: Journalled) -> Rows:
    return journalled("reads").to_pylist()


def commits(journalled: Journalled) -> Rows:
    return [row for row in journalled("positions").to_pylist() if row["event"] == "commit"]


def places(rows: Rows) -> set[tuple[int, int]]:
    return {(row["partition"], row["offset"]) for row in rows}


def owned(journalled: Journalled) -> dict[int, tuple[int, int]]:
    """Who was assigned each partition last."""
    assigned = [row for row in journalled("positions").to_pylist() if row["event"] == "assign"]
    return {row["partition"]: (row["reader"], row["incarnation"]) for row in sorted(assigned, key=lambda r: r["at_ns"])}


def owners(journalled: Journalled) -> set[tuple[int, int]]:
    """Who was assigned some partition last."""
    return set(owned(journalled).values())


def wait_until_both_process(journalled: Journalled) -> None:
    wait_for(lambda: {row["reader"] for row in live(journalled)} == {2, 3}, "both members process", 120)


def shared(surroundings: Surroundings, journalled: Journalled) -> bool:
    """Whether both members own partitions, each partition has one owner, and the owner has committed there since."""
    held: dict[tuple[int, int], int] = {}
    committed: set[tuple[int, int]] = set()
    for row in sorted(journalled("positions").to_pylist(), key=lambda row: row["at_ns"]):
        place = row["reader"], row["partition"]
        if row["event"] == "commit" and row["error"] is None and row["offset"] > held.get(place, row["offset"]):
            committed.add(place)
        elif row["event"] in {"assign", "revoke", "lost"}:
            committed.discard(place)
            held.pop(place, None)
            if row["event"] == "assign":
                held[place] = row["offset"]
    return (
        {reader for reader, _ in held} == {2, 3}
        and sorted(partition for _, partition in held) == list(range(*surroundings.topics.values()))
        and committed == set(held)
    )


def test_members_get_when_to_commit_and_how_long_processing_takes(surroundings: Surroundings) -> None:
    specs = Groups(members=2, commit="before-processing", processing=0.5, session_timeout_ms=7000).worker_specs(
        surroundings
    )
    members = [spec for spec in specs if isinstance(spec, ConsumerSpec)]
    assert [spec.worker for spec in members] == [3, 4]
    assert {(spec.grouped, spec.commits_first, spec.processing) for spec in members} == {(True, True, 0.5)}
    assert {(s.config["session.timeout.ms"], s.config["heartbeat.interval.ms"]) for s in members} == {(7000, 1400)}
    assert len({spec.config["group.id"] for spec in members}) == 1


def test_librdkafka_takes_the_settings_of_a_member(surroundings: Surroundings, capfd: pytest.CaptureFixture) -> None:
    for shortest in (1_000, 6_000):
        member = Groups(session_timeout_ms=shortest).worker_specs(surroundings)[-1]
        Consumer({**member.config, "bootstrap.servers": "127.0.0.1:9"}).close()
    assert "CONFWARN" not in capfd.readouterr().err


def test_a_killed_member_that_commits_first_has_committed_unprocessed_records(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    groups = Groups(rate=500, producers=1, members=1, commit="before-processing", processing=5)
    with begun(groups, surroundings) as workload:
        assert re.fullmatch(r"killed process \d+, in the middle of a poll", members.kill(workload, 1))
    committed = {row["partition"]: row["offset"] for row in commits(journalled)}
    assert 0 < len(live(journalled)) < sum(committed.values())


def test_a_killed_member_that_commits_last_has_processed_uncommitted_records(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with begun(Groups(rate=500, producers=1, members=1, processing=5), surroundings) as workload:
        members.kill(workload, 1)
    assert not commits(journalled)
    assert live(journalled)


def test_a_member_that_is_never_in_the_middle_of_a_poll_is_killed_all_the_same(surroundings: Surroundings) -> None:
    with begun(Groups(rate=1, producers=1, members=1, processing=0), surroundings) as workload:
        assert members.kill(workload, 1, within=0.1).endswith(", not in the middle of a poll")


def test_a_member_that_dies_by_itself_was_not_killed(surroundings: Surroundings) -> None:
    with begun(Groups(rate=1, producers=1, members=1, processing=0), surroundings) as workload:
        member = workload.workers[1]
        # It ends while the test waits for it, for this line is no command.
        member.say("no command")
        with pytest.raises(ClusterError, match=r"ended before it was killed: consumer 2 died \(exit status 1\)"):
            members.kill(workload, 1)
        assert workload.killed == frozenset()
        assert workload.killed_members == []
        assert workload.deaths() == [member.death]
        assert workload.died_members == [Process(worker=2, incarnation=0)]


def test_a_member_that_had_to_be_killed_at_the_end_is_reported_as_one_that_died(surroundings: Surroundings) -> None:
    """What it had committed and not processed, Kafka did not lose."""
    with begun(Groups(rate=100, producers=1, members=2, commit="before-processing"), surroundings) as workload:
        hangs = workload.workers[1]
        psutil.Process(hangs.pid).suspend()
        assert f"{hangs.name} did not finish within 0 s and was ended" in workload.finish(within=0)
    assert workload.died_members == [Process(worker=2, incarnation=0)]
    assert workload.killed_members == []


def test_a_member_that_another_kills_while_the_step_waits_was_not_killed_by_it(surroundings: Surroundings) -> None:
    with begun(Groups(rate=1, producers=1, members=1, processing=0), surroundings) as workload:
        psutil.Process(workload.workers[1].pid).kill()
        with pytest.raises(ClusterError, match=r"consumer 2 died \(exit status -9\)"):
            members.kill(workload, 1)
        assert workload.killed == frozenset()


def test_the_next_incarnation_of_a_killed_member_processes_its_records(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    groups = Groups(rate=500, producers=1, members=2, processing=0.05)
    with begun(groups, surroundings) as workload:
        wait_until_both_process(journalled)
        killed, stays = workload.workers[1:]
        members.kill(workload, 1)
        assert not psutil.pid_exists(killed.pid)
        assert workload.killed_members == [Process(worker=2, incarnation=0)]
        members.join(workload, 1)
        assert workload.workers[1:] == [stays, workload.workers[-1]]
        wait_for(lambda: owners(journalled) == {(3, 0), (2, 1)}, "both own partitions", 120)
        assert workload.deaths() == []
        assert workload.finish(within=60) == []
        sent = workload.counts().acknowledged
    assert {(row["reader"], row["incarnation"]) for row in live(journalled)} == {(2, 0), (3, 0), (2, 1)}
    assert len(places(live(journalled))) == sent
    assert {row["incarnation"] for row in journalled("positions").to_pylist() if row["reader"] == 2} == {0, 1}


def test_records_of_a_killed_member_are_processed_before_the_workload_ends(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    groups = Groups(rate=500, producers=1, members=2, processing=0.05, session_timeout_ms=6000)
    with begun(groups, surroundings) as workload:
        wait_until_both_process(journalled)
        members.kill(workload, 1)
        assert workload.finish(within=60) == []
        sent = workload.counts().acknowledged
    assert len(places(live(journalled))) == sent


@pytest.mark.parametrize("commit", ["before-processing", "after-processing"])
def test_a_member_that_leaves_has_processed_exactly_the_records_it_committed(
    commit: str, surroundings: Surroundings, journalled: Journalled
) -> None:
    with begun(Groups(rate=500, producers=1, members=2, commit=commit, processing=0.05), surroundings) as workload:
        # (While the group rebalances, a member processes what it cannot commit: only its last assignment counts.)
        wait_for(lambda: shared(surroundings, journalled), "the members share the partitions", 120)
        assert "left" in members.leave(workload, 2)
        own = [row for row in journalled("positions").to_pylist() if row["reader"] == 3]
        since = max(row["at_ns"] for row in own if row["event"] == "assign")
        left = [row for row in live(journalled) if row["reader"] == 3 and row["read_ns"] >= since]
        ends = {p: max(row["offset"] for row in left if row["partition"] == p) + 1 for p, _ in places(left)}
        answered = [row for row in own if row["event"] == "commit" and row["at_ns"] >= since]
        assert {row["error"] for row in answered} == {None}
        assert {row["partition"]: row["offset"] for row in answered} == ends
        wait_for(lambda: owners(journalled) == {(2, 0)}, "one member owns all partitions", 120)
        assert workload.finish(within=60) == []
        sent = workload.counts().acknowledged
    assert len(places(live(journalled))) == sent
    assert commit == "after-processing" or len(live(journalled)) == sent, "at most once"


def test_only_members_that_are_there_go_and_only_those_that_went_come(surroundings: Surroundings) -> None:
    with begun(Groups(rate=100, members=2), surroundings) as workload:
        for act, says in (
            (lambda: members.kill(workload, 3), "there is no member 3: they are 1 to 2"),
            (lambda: members.join(workload, 1), "member 1 has not gone"),
            (lambda: members.kill(workload, 1) and members.leave(workload, 1), "member 1 is not in the group"),
            (lambda: members.join(workload, 1) and members.join(workload, 1), "member 1 has not gone"),
        ):
            with pytest.raises(ClusterError, match=says):
                act()


class Scripted:
    """A consumer of one partition that follows a script of polls and of answers to commits. ``hangs``: a commit that
    the member waits for is never answered before ``over``."""

    def __init__(self, config: dict) -> None:
        self.polls: list[list[Polled]] = []
        self.refused: list[bool] = []
        self.hangs = False
        self.over = threading.Event()
        self.asked: list[tuple[int, int | None]] = []
        self.assigned: list[tuple[int, int | None]] = []
        self.processed: list[float] = []
        self.log_start: int | None = 0
        self.log_end = 9
        self.group_is_at: tuple[int, int] = (0, -1)
        self.rebalanced: Callable[[], None] = lambda: None
        self.rebalanced_after_first: Callable[[], None] = lambda: None
        self.journalled_when_asked: list[str] = []
        self.look: Callable[[], list[str]] = list

    def subscribe(self, topics: list[str], on_assign: Callable, on_revoke: Callable, on_lost: Callable) -> None:
        self.on_assign, self.on_revoke = on_assign, on_revoke

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        offset, epoch = self.group_is_at
        return [TopicPartition(p.topic, p.partition, offset, leader_epoch=epoch) for p in partitions]

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned += [(p.offset, p.leader_epoch) for p in partitions]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float, cached: bool) -> tuple[int, int]:
        if self.log_start is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return self.log_start, self.log_end

    def poll(self, timeout: float) -> "Polled | None":
        self.rebalanced()
        if not self.polls or not self.polls[0]:
            del self.polls[:1]
            return None
        return self.polls[0].pop(0)

    def consume(self, most: int, timeout: float) -> "list[Polled]":
        assert timeout == 0
        self.rebalanced_after_first()
        return self.polls.pop(0)

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition] | None:
        self.asked += [(place.offset, place.leader_epoch) for place in offsets]
        self.journalled_when_asked += self.look()
        if asynchronous:
            return None
        if self.hangs:
            self.over.wait(60)
        elif self.refused and self.refused.pop(0):
            raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
        return offsets


class Polled:
    """The result of a poll: a record at ``offset``, or an ``error`` at that offset."""

    def __init__(self, offset: int, error: KafkaError | None = None, *, epoch: int = 0, partition: int = 0) -> None:
        self.offset, self.error = lambda: offset, lambda: error
        self.value = lambda: Encoder(64)(offset, 1)[0]
        self.leader_epoch, self.partition = lambda: epoch, lambda: partition

    topic = staticmethod(lambda: "t")
    key = staticmethod(lambda: None)


@contextmanager
def member(
    surroundings: Surroundings, *, commits_first: bool = True, commit_within: float = 60
) -> Iterator[tuple[Consuming, Scripted, list[float]]]:
    """A member of a group with a scripted consumer, that commits first or last; and how long it worked."""
    spec = ConsumerSpec(
        worker=2,
        config={},
        partitions=[("t", 0)],
        journals=surroundings.journals,
        origin_ns=surroundings.clock.origin_ns,
        grouped=True,
        processing=1.0,
        commits_first=commits_first,
    )
    made: list[Scripted] = []
    worked: list[float] = []

    def processed(part: float) -> None:
        made[0].processed.append(part)

    def client(config: dict) -> Consumer:
        made.append(Scripted(config))
        return made[0]  # type: ignore[return-value]

    with (
        Journal(journal_path(surroundings.journals, "reads", "2"), READS) as reads,
        Journal(journal_path(surroundings.journals, "positions", "2"), POSITIONS) as positions,
    ):
        recorders = ReadRecorder(reads, 2, Phase.LIVE), PositionRecorder(positions, 2)
        consuming = Consuming(spec, *recorders, surroundings.clock, client, worked.append, processed, commit_within)
        made[0].on_assign(made[0], [TopicPartition("t", 0)])
        yield consuming, made[0], worked
        made[0].over.set()


def events(journalled: Journalled) -> list[tuple[str, int | None, str | None]]:
    return [(row["event"], row["offset"], row["error"]) for row in journalled("positions").to_pylist()]


def test_nothing_is_processed_until_its_commit_was_answered(surroundings: Surroundings, journalled: Journalled) -> None:
    end = Polled(3, KafkaError(KafkaError._PARTITION_EOF))
    with member(surroundings) as (consuming, consumer, worked):
        consumer.polls, consumer.refused = [[Polled(0), Polled(1)], [Polled(2), end]], [True, False]
        consuming.step(0)
        assert (places(live(journalled)), worked, consumer.processed) == (set(), [], [])
        consuming.step(0)
        assert places(live(journalled)) == {(0, 0), (0, 1), (0, 2)}
        assert sum(worked) == pytest.approx(1.0)
        assert consumer.processed == [0, pytest.approx(1 / 3), pytest.approx(2 / 3)]
        consuming.flush()
    assert events(journalled) == [
        ("assign", 0, None),
        ("committing", 2, None),
        ("error", None, "REBALANCE_IN_PROGRESS"),
        ("committing", 3, None),
        ("commit", 3, None),
        ("end-of-partition", 3, None),
    ]


def test_no_rebalance_comes_between_a_commit_answer_and_the_processing(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with member(surroundings) as (consuming, consumer, _):
        consumer.polls = [[Polled(0)], []]
        consuming.step(0)
        consumer.rebalanced = lambda: consumer.on_revoke(consumer, [TopicPartition("t", 0)])
        consuming.step(0)
    assert places(live(journalled)) == {(0, 0)}
    assert [event for event, _, _ in events(journalled)] == ["assign", "committing", "commit", "revoke"]


@pytest.mark.parametrize("log_start", [7, 0, None])
def test_a_member_that_begins_at_the_log_start_is_recorded_there(
    log_start: int | None, surroundings: Surroundings, journalled: Journalled
) -> None:
    with member(surroundings) as (consuming, consumer, _):
        consumer.log_start = log_start
        consumer.group_is_at = (OFFSET_INVALID, -1)
        consumer.on_revoke(consumer, [TopicPartition("t", 0)])
        consumer.on_assign(consumer, [TopicPartition("t", 0)])
        consumer.on_revoke(consumer, [TopicPartition("t", 0)])
        consuming.flush()
    assert consumer.assigned[-1][0] == OFFSET_BEGINNING
    assert events(journalled)[-2:] == [("assign", log_start, None), ("revoke", None, None)]


@pytest.mark.parametrize("commits_first", [True, False])
def test_assignments_and_commits_are_journalled_before_the_commit_is_sent(
    commits_first: bool, surroundings: Surroundings, journalled: Journalled
) -> None:
    with member(surroundings, commits_first=commits_first) as (consuming, consumer, _):
        consumer.look = lambda: [event for event, _, _ in events(journalled)]
        consumer.polls = [[Polled(0)]]
        consuming.step(0)
    assert consumer.journalled_when_asked == ["assign", "committing"]


def test_a_commit_that_is_not_answered_is_asked_for_again_and_nothing_is_processed_meanwhile(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with member(surroundings, commit_within=0.05) as (consuming, consumer, worked):
        consumer.hangs = True
        consumer.polls = [[Polled(0)]]
        consuming.step(0)
        assert (consumer.asked, worked) == ([(1, 0)], [])
        consumer.hangs = False
        consumer.over.set()
        wait_for(lambda: consuming.step(0) or bool(worked), "what is held to be processed", 60, every=0.01)
        assert consumer.asked[-1] == (1, 0)
    assert [event for event, _, _ in events(journalled)][:3] == ["assign", "committing", "error"]
    assert ("error", None, "_TIMED_OUT") in events(journalled)
    assert places(live(journalled)) == {(0, 0)}


@pytest.mark.parametrize("commits_first", [True, False])
def test_commits_and_assignments_carry_the_leader_epoch(commits_first: bool, surroundings: Surroundings) -> None:
    with member(surroundings, commits_first=commits_first) as (consuming, consumer, _):
        consumer.polls = [[Polled(0, epoch=4), Polled(1, epoch=5)]]
        consuming.step(0)
        consumer.group_is_at = (2, 5)
        consumer.on_assign(consumer, [TopicPartition("t", 0)])
    assert consumer.asked == [(2, 5)]
    assert consumer.assigned == [(0, None), (2, 5)]


def test_a_position_behind_markers_has_no_epoch_to_be_checked_by(surroundings: Surroundings) -> None:
    end = Polled(3, KafkaError(KafkaError._PARTITION_EOF))
    gone = Polled(3, KafkaError(KafkaError._AUTO_OFFSET_RESET), partition=1)
    with member(surroundings, commits_first=False) as (consuming, consumer, _):
        consumer.on_assign(consumer, [TopicPartition("t", 0), TopicPartition("t", 1)])
        consumer.polls = [[Polled(0, epoch=4), end, gone]]
        consuming.step(0)
    assert consumer.assigned[-2:] == [(3, None), (OFFSET_BEGINNING, None)]


def test_records_held_back_are_dropped_when_their_partition_is_revoked(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with member(surroundings) as (consuming, consumer, worked):
        consumer.polls, consumer.refused = [[Polled(0), Polled(1)], []], [True]
        consuming.step(0)
        consumer.rebalanced = lambda: consumer.on_revoke(consumer, [TopicPartition("t", 0)])
        consuming.step(0)
    assert (worked, live(journalled), len(consumer.asked)) == ([], [], 1)


@pytest.mark.parametrize("commits_first", [True, False])
def test_nothing_that_came_before_a_rebalance_is_kept_for_a_partition_that_it_took(
    commits_first: bool, surroundings: Surroundings, journalled: Journalled
) -> None:
    """A member that gets the partition back would commit records that it got before the rebalance."""
    lost, kept = TopicPartition("t", 0), TopicPartition("t", 1)
    with member(surroundings, commits_first=commits_first) as (consuming, consumer, _):
        consumer.on_assign(consumer, [lost, kept])
        consumer.polls = [[Polled(0), Polled(1), Polled(0, partition=1)]]
        consumer.rebalanced_after_first = lambda: consumer.on_revoke(consumer, [lost])
        consuming.step(0)
    assert places(live(journalled)) == {(1, 0)}
    assert consumer.asked == [(1, 0)]


def test_a_member_has_caught_up_with_nothing_while_the_group_rebalances(surroundings: Surroundings) -> None:
    partitions = [TopicPartition("t", 0)]
    with member(surroundings) as (consuming, consumer, _):
        consumer.log_end = 0
        assert consuming.caught_up()
        consumer.on_revoke(consumer, partitions)
        assert not consuming.caught_up()
        consumer.on_assign(consumer, [])
        assert consuming.caught_up()


def test_a_record_is_stamped_when_it_arrives(surroundings: Surroundings) -> None:
    """A poll waits for one record, not for a batch to fill or for its time to be over."""
    waited: list[float] = []
    with member(surroundings, commits_first=False) as (consuming, consumer, _):
        poll = consumer.poll
        consumer.poll = lambda timeout: waited.append(timeout) or poll(timeout)  # type: ignore[method-assign]
        consumer.polls = [[Polled(0), Polled(1)]]
        consuming.step(0.05)
    assert waited == [0.05]
