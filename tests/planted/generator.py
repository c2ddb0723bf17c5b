"""Realistic histories with known anomalies at seeded places, and beside each the nearest legal history, its twin.

A history begins legal: workers that send several records at a time, of which some time out and some fail; a leader
change in which many time out at once; workers that are replaced; logs in which what was in flight together
stands in any order. Then each plot changes what became of a few records. What is seen of the logs follows from that.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness.history.schema import record_id

Row = dict[str, Any]
#: What tells one finding from another in a topic: the record's id or, where it has none, its partition and offset.
Identity = int | tuple[int, int]

MS = 1_000_000
STEP = 1_000
LAG = 60 * MS
END = 10_000 * MS
WORKERS = 3
_REPLACED = 4
#: Records of a worker have so many keys in turn, one of which is none.
_KEYS = 4
#: Of this many, the last is not read to its end.
PARTITIONS = 3
UNREAD = PARTITIONS - 1
#: Of this one the log of a follower is read, too.
FOLLOWED = 1
WORKERS_OF_A_SEED = 16
UNKNOWN_WORKER = 9
MEMBERS = (50, 51)
STRAY_MEMBER = 59
FINAL_READER, REPLICA_READER = 100, 200


@dataclass(eq=False)
class Place:
    """A place in a log: whose record stood there, and who saw it. ``shares`` the offset of the next place.

    ``reading``: what happens as the consumer gets there. ``damaged``: the phases in which its checksum fails.
    ``has_offset``: whether those who read it say at which offset. ``committed``: whether the group commits past it.
    ``keys``: under which key it is read, by phase, where that is not the one that it was sent with.
    ``replica``: whether a follower's log has it; None: as the final log does, where that follower's log was read.
    ``fallen``: the phases in which it is read under a leader epoch that had ended before.
    """

    record: int | None
    at_ns: int
    final: int = 1
    live: bool = True
    replica: bool | None = None
    damaged: frozenset[str] = frozenset()
    shares: bool = False
    has_offset: bool = True
    reading: str = ""
    committed: bool = False
    fallen: frozenset[str] = frozenset()
    keys: Mapping[str, str | None] = field(default_factory=dict)
    offset: int = -1


#: What a finding is about; a place without a record has an offset only in the end.
Subject = Identity | Place


@dataclass(eq=False)
class World:
    """One history while it is made. ``acknowledged_at``: of records that were acknowledged at another place than where
    they first stand, that place, or None for none. ``untouched``: records that no plot has changed."""

    topic: str
    first_worker: int
    random: Random
    times: int
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in _TABLES})
    logs: list[list[Place]] = field(default_factory=list)
    sends: dict[int, Row] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    acknowledged_at: dict[int, Place | None] = field(default_factory=dict)
    untouched: set[int] = field(default_factory=set)
    subjects: dict[str, list[Subject]] = field(default_factory=dict)
    findings: list[tuple[str, str, Subject]] = field(default_factory=list)
    times_planted: Counter[str] = field(default_factory=Counter)

    def log_of(self, send: Row) -> list[Place]:
        """The log that a record was sent to."""
        return self.logs[send["partition"]]

    def index_of(self, send: Row) -> int:
        """Where in its log a record first stands."""
        return self.log_of(send).index(self.places[send["record_id"]])

    def insert(self, log: list[Place], index: int, place: Place) -> Place:
        """Put ``place`` into ``log`` from ``index`` on, but not between two that share an offset."""
        while 0 < index < len(log) and log[index - 1].shares:
            index += 1
        log.insert(index, place)
        return place

    def found(self, plot: str, anomalies: Iterable[str], *subjects: Subject) -> None:
        """What the checkers are to find of ``plot``, in each of ``subjects``."""
        self.findings += [(plot, anomaly, subject) for anomaly in anomalies for subject in subjects]

    def own(self, plot: str, *subjects: Subject) -> None:
        """These are ``plot``'s: whatever is found in them is this plot's, and no other may have them."""
        self.times_planted[plot] += 1
        self.subjects.setdefault(plot, []).extend(subjects)
        self.untouched.difference_update(subject for subject in subjects if isinstance(subject, int))

    def planted(self) -> "Planted":
        """The history as its recorders would have recorded it."""
        named = Counter((plot, anomaly, _identity(self, subject)) for plot, anomaly, subject in self.findings)
        owned = {_identity(self, subject): plot for plot, subjects in self.subjects.items() for subject in subjects}
        return Planted(self.topic, self.tables, owned, named, self.times_planted)


@dataclass(frozen=True)
class Planted:
    """The rows of one history, the plot that each finding would be of, what the checkers are to find, and how often
    each plot was planted."""

    topic: str
    tables: dict[str, list[Row]]
    owned: dict[Identity, str]
    expected: Counter[tuple[str, str, Identity]]
    times: Counter[str]


@dataclass(frozen=True)
class Plot:
    """Something that happens to a record with the outcome ``of``.

    ``act`` does it, and tells what else of the history is now part of it; None where this record does not suit.
    ``finds``: the anomalies that the record then is in, by the rules, and ``finds_beside`` those that the rest is in.
    Neither for a twin, the nearest history that is legal, of the anomalies ``twin_of``.
    """

    name: str
    of: str
    act: Callable[[World, Row], Sequence[Subject] | None]
    finds: tuple[str, ...] = ()
    finds_beside: tuple[str, ...] = ()
    twin_of: tuple[str, ...] = ()


_TABLES = ("sends", "reads", "positions", "transactions", "log_ends")


def begin(topic: str, first_worker: int, random: Random, records: int, times: int) -> World:
    """A legal history: what was sent, and the logs in which all of it stands."""
    world = World(topic, first_worker, random, times)
    replaced = [random.sample(range(records), _REPLACED) for _ in range(WORKERS)]
    for n in range(records):
        changing = records // 2 <= n < records // 2 + 20
        worker = n % WORKERS
        send = _send(world, worker, n, incarnation=sum(n >= at for at in replaced[worker]), changing=changing)
        world.sends[send["record_id"]] = send
    world.logs = [[] for _ in range(PARTITIONS)]
    last: dict[tuple[int, ...], int] = {}
    for send in world.sends.values():
        # A producer's records of one partition are appended in the order they were sent.
        lane = lane_of(send)
        answered = send["completed_ns"] or send["invoked_ns"] + 50 * MS
        at_ns = max(random.randrange(send["invoked_ns"] + 1, answered), last.get(lane, 0) + 1)
        last[lane] = at_ns
        if send["completed_ns"] is not None:
            send["completed_ns"] = max(answered, at_ns + 1)
        world.places[send["record_id"]] = place = Place(send["record_id"], at_ns)
        world.logs[send["partition"]].append(place)
    for log in world.logs:
        log.sort(key=lambda place: place.at_ns)
    world.untouched = {record for record, send in world.sends.items() if send["partition"] != UNREAD}
    world.tables["sends"] = [*world.sends.values()]
    return world


def carry_out(world: World, plots: Iterable[Plot]) -> None:
    """Each of ``plots`` as often as the history wants. Raises AssertionError where too few records suit."""
    for plot in plots:
        suited = sorted(record for record in world.untouched if world.sends[record]["outcome"] == plot.of)
        world.random.shuffle(suited)
        done = 0
        while done < world.times:
            assert suited, f"too few records for {plot.name}"
            record = suited.pop()
            others = plot.act(world, world.sends[record]) if record in world.untouched else None
            if others is not None:
                world.own(plot.name, record, *others)
                world.found(plot.name, plot.finds, record)
                world.found(plot.name, plot.finds_beside, *others)
                done += 1


def settle(world: World) -> None:
    """Of what nobody was told the end of, some is in the log; of what failed, none."""
    for record in sorted(world.untouched):
        outcome = world.sends[record]["outcome"]
        if outcome == "fail" or (outcome == "info" and world.random.random() < 0.5):
            remove(world, world.sends[record])
    for place in [*world.logs[UNREAD]]:
        if place.record is not None and world.sends[place.record]["outcome"] == "fail":
            world.logs[UNREAD].remove(place)


def remove(world: World, send: Row) -> None:
    """A record that never came into the log."""
    world.log_of(send).remove(world.places.pop(send["record_id"]))


def lane_of(send: Row) -> tuple[int, ...]:
    """Whose order a record's place is bound to."""
    return send["worker"], send["incarnation"], send["partition"]


def delete_first(world: World, partition: int, name: str) -> None:
    """Retention: the first records of a log were acknowledged, and read, and are deleted."""
    for place in world.logs[partition][: world.times]:
        place.final = 0
        world.sends[place.record].update(outcome="ok", error=None, completed_ns=place.at_ns + MS)
        world.own(name, place.record)


def number(world: World) -> None:
    """Give every place its offset, and every acknowledgement the place that it reported."""
    for log in world.logs:
        offset = 0
        for place in log:
            place.offset = offset
            offset += not place.shares
    for record, send in world.sends.items():
        place = world.acknowledged_at.get(record, world.places.get(record))
        if send["outcome"] == "ok" and place is not None:
            send["offset"] = place.offset


def read_finally(world: World, starts: dict[int, int] | None = None) -> None:
    """The final read of every log, but for the end of the last one; and what was read of a replica."""
    for partition, log in enumerate(world.logs):
        length = end_of(log)
        read_to = length * 2 // 3 if partition == UNREAD else length
        followed = any(place.replica for place in log)
        for place in log:
            given = place.final if place.offset < read_to else 0
            for phase, times in (("final", given), ("replica", int(bool(place.replica)))):
                reader = FINAL_READER if phase == "final" else REPLICA_READER
                for _ in range(times):
                    deliver(world, place, partition, reader, END + len(world.tables["reads"]) * STEP, phase=phase)
            if followed and place.replica is None and given:
                as_found = {"phase": "replica", "reader": REPLICA_READER, "leader_epoch": _epoch(place, "replica")}
                world.tables["reads"].append({**world.tables["reads"][-1], **as_found})
        end = {"log_start": (starts or {}).get(partition, 0), "log_end": length, "read_to": read_to}
        complete = read_to == length
        world.tables["log_ends"].append({"topic": world.topic, "partition": partition, **end, "complete": complete})


def end_of(log: list[Place]) -> int:
    """The offset after the last."""
    return log[-1].offset + 1 if log else 0


def deliver(
    world: World, place: Place, partition: int, reader: int, at_ns: int, incarnation: int = 0, phase: str = "live"
) -> None:
    """A record is given to a reader."""
    world.tables["reads"].append(
        {
            "reader": reader,
            "incarnation": incarnation,
            "phase": phase,
            "topic": world.topic,
            "partition": partition,
            "offset": place.offset if place.has_offset else -1,
            "leader_epoch": _epoch(place, phase),
            "record_id": place.record,
            "key": place.keys[phase] if phase in place.keys else _key_of(world, place),
            "intact": phase not in place.damaged,
            "read_ns": at_ns,
        }
    )


def _epoch(place: Place, phase: str) -> int:
    """Each epoch of a log has 64 offsets, and is two above the one before."""
    return 10 + 2 * (place.offset // 64) - (3 if phase in place.fallen else 0)


def tell(world: World, partition: int, reader: int, at_ns: int, event: str, offset: int) -> None:
    """Something happens to a reader's place in a partition."""
    seat = {"reader": reader, "incarnation": 0, "topic": world.topic, "partition": partition}
    world.tables["positions"].append({**seat, "at_ns": at_ns, "event": event, "offset": offset})


def _send(world: World, worker: int, n: int, incarnation: int, changing: bool) -> Row:
    random = world.random
    weights = (0.2, 0.7, 0.1) if changing else (0.72, 0.18, 0.1)
    outcome = random.choices(("ok", "info", "fail"), weights)[0]
    in_flight = outcome == "info" and random.random() < 0.2
    sequence = n // WORKERS
    invoked_ns = n * MS + random.randrange(MS // 2)
    return {
        "worker": world.first_worker + worker,
        "incarnation": incarnation,
        "sequence": sequence,
        "topic": world.topic,
        "partition": random.choices(range(PARTITIONS), (9, 9, 2))[0],
        "record_id": record_id(world.first_worker + worker, sequence),
        "key": None if sequence % _KEYS == 0 else f"key-{sequence % _KEYS}",
        "invoked_ns": invoked_ns,
        "completed_ns": None if in_flight else invoked_ns + random.randint(1 * MS, 50 * MS),
        "outcome": outcome,
        "error": {"ok": None, "info": "_MSG_TIMED_OUT", "fail": "_QUEUE_FULL"}[outcome],
    }


def _key_of(world: World, place: Place) -> str | None:
    key: str | None = world.sends[place.record].get("key") if place.record in world.sends else None
    return key


def _identity(world: World, subject: Subject) -> Identity:
    if not isinstance(subject, Place):
        return subject
    return next((n, subject.offset) for n, log in enumerate(world.logs) if subject in log)
