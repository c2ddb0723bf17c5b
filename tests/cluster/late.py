"""A transactional write that comes to its leader after the end of its transaction, in Kafka's own protocol.

As in KAFKA-14402: a producer aborts, and a request of its that some network held back arrives behind the marker.
"""

from collections.abc import Mapping
from typing import Any

from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from harness.cluster.wire import Wire
from harness.core.topology import Partition
from harness.core.waiting import wait_for

#: A broker has no better answer (INVALID_TXN_STATE to a client that does not know it): "abort this transaction".
TRANSACTION_ABORTABLE = 120

_ID = "kafka-trial-late"
_WITHIN_S = 30.0
_TIMEOUT_MS = 10_000

#: The last versions before KIP-890's part 2, where a write adds its partition itself, and each end takes a new epoch.
_PRODUCE, _ADD, _END = 11, 3, 4


def write_late(brokers: Mapping[int, str], tp: Partition, payload: bytes) -> tuple[int, int]:
    """Begin a transaction with a partition in it, abort it, await the marker, and only then write, as if before that.

    ``brokers``: endpoints by node id. Returns the leader's answer: an error code (0: none) and an offset.
    """
    topic, partition = tp
    with Wire(next(iter(brokers.values())), timeout=_WITHIN_S) as wire:
        coordinator = wait_for(lambda: wire.coordinator(_ID), "a coordinator", _WITHIN_S)
        [reported] = wire.metadata([topic]).topics
        leader = next(p.leader_id for p in reported.partitions if p.partition_index == partition)
    assert coordinator is not None
    with Wire(brokers[coordinator], timeout=_WITHIN_S) as wire:
        producer_id, epoch = _aborted(wire, tp)
    with Wire(brokers[leader], timeout=_WITHIN_S) as wire:
        return _write(wire, tp, _batch(producer_id, epoch, payload))


def _aborted(coordinator: Wire, tp: Partition) -> tuple[int, int]:
    """A producer's id and epoch, which has written nothing in its only transaction; every marker of its end stands."""
    began = wait_for(
        lambda: coordinator.ask(
            InitProducerIdRequest, most=4, transactional_id=_ID, transaction_timeout_ms=_TIMEOUT_MS
        ),
        "a producer id",
        _WITHIN_S,
        good=lambda answer: answer.error_code == 0,
    )
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=tp[0], partitions=[tp[1]])
    added = coordinator.ask(
        AddPartitionsToTxnRequest,
        most=_ADD,
        v3_and_below_transactional_id=_ID,
        v3_and_below_producer_id=began.producer_id,
        v3_and_below_producer_epoch=began.producer_epoch,
        v3_and_below_topics=[topic],
    )
    [[error]] = [[p.partition_error_code for p in t.results_by_partition] for t in added.results_by_topic_v3_and_below]
    assert error == 0
    ended = coordinator.ask(
        EndTxnRequest,
        most=_END,
        transactional_id=_ID,
        producer_id=began.producer_id,
        producer_epoch=began.producer_epoch,
        committed=False,
    )
    assert ended.error_code == 0
    wait_for(lambda: _state(coordinator), "the end of the transaction", _WITHIN_S, good=lambda s: s == "CompleteAbort")
    return began.producer_id, began.producer_epoch


def _state(coordinator: Wire) -> str:
    answer = coordinator.ask(DescribeTransactionsRequest, most=0, transactional_ids=[_ID])
    [reported] = answer.transaction_states
    return str(reported.transaction_state)


def _batch(producer_id: int, epoch: int, payload: bytes) -> bytes:
    """The first batch of a producer, of one record."""
    batch = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        batch_size=1 << 20,
    )
    batch.append(0, None, None, payload, [])
    return bytes(batch.build())


def _write(leader: Wire, tp: Partition, batch: bytes) -> tuple[int, int]:
    topic = ProduceRequest.TopicProduceData
    answer: Any = leader.ask(
        ProduceRequest,
        most=_PRODUCE,
        transactional_id=_ID,
        acks=-1,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[topic(name=tp[0], partition_data=[topic.PartitionProduceData(index=tp[1], records=batch)])],
    )
    [[reported]] = [list(t.partition_responses) for t in answer.responses]
    return reported.error_code, reported.base_offset
