"""The end of each log, as its leader reports it in the newest known leader epoch."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from harness.cluster.observer import Observer, Sight, by_topic
from harness.cluster.wire import CONSUMER, EARLIEST, LATEST, Wire
from harness.core.errors import ClusterError
from harness.core.topology import Partition, Topology
from workloads.clients.settings import Isolation
from workloads.readback.final_read import LogEnd, LogEnds

#: Long enough for thousands of partitions on a busy machine.
_ANSWER_S = 5.0


def leading(held: Sight | None, reported: Iterable[Sight]) -> Sight | None:
    """``held``, the prevailing sight, if it names a leader and no broker ever reported a newer epoch. Pure.

    If only a deposed leader can be reached, its own sight prevails; but some broker reported its successor earlier.
    """
    if held is None or held.leader < 0:
        return None
    newest = max((sight.leader_epoch for sight in reported if sight.leader_epoch is not None), default=None)
    return held if newest is None or held.leader_epoch == newest else None


def ask_log_ends(
    observer: Observer,
    topology: Topology,
    isolation_level: Isolation,
    partitions: Collection[Partition],
    connect: Callable[[str], Wire] = lambda endpoint: Wire(endpoint, timeout=_ANSWER_S),
) -> dict[Partition, LogEnd]:
    """The present ends of the logs of ``partitions``. A partition is missing if its leader is unknown, did not answer,
    or changed while it was asked."""
    before = _leaders(observer, partitions)
    found: dict[Partition, LogEnd] = {}
    for leader in {sight.leader for sight in before.values()}:
        node = topology.broker(leader)
        led = {tp: sight.leader_epoch for tp, sight in before.items() if sight.leader == leader}
        if node is None:
            continue
        try:
            with connect(node.endpoint) as wire:
                found |= _ends(wire, leader, node.endpoint, led, isolation_level)
        except ClusterError:
            # The caller asks again: the partitions of this leader are unknown until it answers.
            continue
    after = _leaders(observer, found)
    return {
        tp: end
        for tp, end in found.items()
        if tp in after and (after[tp].leader, after[tp].leader_epoch) == (end.leader, end.epoch)
    }


def log_ends(observer: Observer, topology: Topology, isolation_level: Isolation) -> LogEnds:
    """``ask_log_ends`` of this cluster, for the final read."""
    return partial(ask_log_ends, observer, topology, isolation_level)


def _ends(
    wire: Wire, leader: int, endpoint: str, epochs: Mapping[Partition, int | None], isolation_level: Isolation
) -> dict[Partition, LogEnd]:
    def offsets(at: int, replica: int = CONSUMER, committed: bool = False) -> dict[Partition, int]:
        found = wire.offsets(by_topic(epochs), at, replica=replica, committed=committed, epochs=epochs)
        return {tp: offset for tp, (offset, _) in found.items()}

    starts = offsets(EARLIEST)
    # In this order: records appended meanwhile can make the committed or stable part look shorter only, never longer.
    readable = offsets(LATEST, committed=isolation_level == "read_committed")
    high = offsets(LATEST)
    ends = offsets(LATEST, replica=leader)
    whole = starts.keys() & readable.keys() & high.keys() & ends.keys()
    return {tp: LogEnd(leader, endpoint, epochs[tp], starts[tp], readable[tp], high[tp], ends[tp]) for tp in whole}


def _leaders(observer: Observer, partitions: Collection[Partition]) -> dict[Partition, Sight]:
    held = observer.partitions()
    found = {tp: leading(held.get(tp), observer.sights(*tp)) for tp in partitions}
    return {tp: sight for tp, sight in found.items() if sight is not None}
