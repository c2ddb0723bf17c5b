"""The positions of a consumer in its partitions: offsets and leader epochs in the types of confluent-kafka. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_STORED,
    Message,
    TopicPartition,
)

from harness.core.topology import Partition


@dataclass(frozen=True)
class Position:
    """A reader's position in a log: its next offset (or a logical one of librdkafka), and the leader epoch of the
    record before it, None if unknown.

    By the epoch a leader knows whether the log is still the one that was read (KIP-320). Without it, if the log was
    truncated and has grown again, a reader goes on in the middle of records that it never saw.
    """

    offset: int
    epoch: int | None = None


def behind(records: Iterable[Message]) -> dict[Partition, Position]:
    """The position behind the last of ``records`` in each partition."""
    last = {partition_of(record): record for record in records}
    return {tp: Position(_offset_of(record) + 1, record.leader_epoch()) for tp, record in last.items()}


def first_position(committed: TopicPartition) -> Position:
    """The first position of a member: the group's committed one, else the log start."""
    if committed.offset >= 0 or committed.offset == OFFSET_STORED:
        return Position(committed.offset, committed.leader_epoch)
    return Position(OFFSET_BEGINNING)


def topic_partitions(positions: Mapping[Partition, Position]) -> list[TopicPartition]:
    """Convert positions for confluent-kafka."""
    return [
        TopicPartition(*tp, at.offset) if at.epoch is None else TopicPartition(*tp, at.offset, leader_epoch=at.epoch)
        for tp, at in positions.items()
    ]


def partition_of(message: Message) -> Partition:
    """The partition of a message or an error."""
    return message.topic() or "", number_of(message)


def _offset_of(record: Message) -> int:
    offset = record.offset()
    assert offset is not None
    return offset


def number_of(message: Message) -> int:
    """The number of a message's partition; -1 for an error without one."""
    partition = message.partition()
    return -1 if partition is None else partition
