"""Where each log ends, as the broker tells it that leads it in the newest leader epoch that anybody knows of."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from harness.cluster.observer import Observer, Sight
from harness.cluster.wire import EARLIEST, LATEST, Wire
from harness.core.errors import ClusterError
from harness.core.topology import Topology
from workloads.clients.settings import Isolation
from workloads.protocol import Slot
from workloads.readback.final_read import LogEnd, LogEnds

#: For thousands of partitions, on a machine that is busy.
_ANSWER_S = 5.0


def leading(held: Sight | None, told: Iterable[Sight]) -> Sight | None:
    """``held``, what prevails, where it names a leader and no broker has ever told of a newer epoch. Pure.

    A deposed leader that alone can be reached tells of itself, and prevails: of its successor somebody told before.
    """
    if held is None or held.leader < 0:
        return None
    newest = max((sight.leader_epoch for sight in told if sight.leader_epoch is not None), default=None)
    return held if newest is None or held.leader_epoch == newest else None


def ask_log_ends(
    observer: Observer,
    topology: Topology,
    isolation_level: Isolation,
    slots: Collection[Slot],
    connect: Callable[[str], Wire] = lambda endpoint: Wire(endpoint, timeout=_ANSWER_S),
) -> dict[Slot, LogEnd]:
    """The ends of the logs of ``slots`` now. Left out are those whose leader is not known, did not answer, or was
    another before the answer than after it."""
    before = _leaders(observer, slots)
    found: dict[Slot, LogEnd] = {}
    for leader in {sight.leader for sight in before.values()}:
        node = topology.broker(leader)
        led = {slot: sight.leader_epoch for slot, sight in before.items() if sight.leader == leader}
        if node is None:
            continue
        try:
            with connect(node.endpoint) as wire:
                found |= _told(wire, leader, node.endpoint, led, isolation_level)
        except ClusterError:
            # It is asked again: what it leads stays unknown until it answers.
            continue
    after = _leaders(observer, found)
    return {
        slot: end
        for slot, end in found.items()
        if slot in after and (after[slot].leader, after[slot].leader_epoch) == (end.leader, end.epoch)
    }


def log_ends(observer: Observer, topology: Topology, isolation_level: Isolation) -> LogEnds:
    """``ask_log_ends`` of this cluster, for the final read."""
    return partial(ask_log_ends, observer, topology, isolation_level)


def _told(
    wire: Wire, leader: int, endpoint: str, epochs: Mapping[Slot, int | None], isolation_level: Isolation
) -> dict[Slot, LogEnd]:
    places: dict[str, list[int]] = {}
    for topic, partition in epochs:
        places.setdefault(topic, []).append(partition)
    starts = wire.offsets(places, EARLIEST, epochs=epochs)
    # In this order: what is appended meanwhile makes a log look committed, or stable, less far than it is.
    readable = wire.offsets(places, LATEST, committed=isolation_level == "read_committed", epochs=epochs)
    high = wire.offsets(places, LATEST, epochs=epochs)
    ends = wire.offsets(places, LATEST, replica=leader, epochs=epochs)
    whole = starts.keys() & readable.keys() & high.keys() & ends.keys()
    return {
        slot: LogEnd(leader, endpoint, epochs[slot], starts[slot], readable[slot], high[slot], ends[slot])
        for slot in whole
    }


def _leaders(observer: Observer, slots: Collection[Slot]) -> dict[Slot, Sight]:
    held = observer.partitions()
    found = {slot: leading(held.get(slot), observer.sights(*slot)) for slot in slots}
    return {slot: sight for slot, sight in found.items() if sight is not None}
