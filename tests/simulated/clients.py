"""Producers and a reader, as the harness has them: what each operation became is a row of the history."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.history.schema import Outcome, Phase, record_id
from tests.simulated.chronicle import Place
from tests.simulated.controller import NOBODY
from tests.simulated.log import Record
from tests.simulated.replication import NOT_ENOUGH, Cluster, Fetched, Produced
from tests.simulated.settings import Settings
from tests.simulated.world import MS, SECOND, Process, World

Row = dict[str, Any]

_REQUEST_TIMEOUT = 1 * SECOND
_MESSAGE_TIMEOUT = 3 * SECOND


@dataclass(eq=False)
class Client:
    """Who leads, as a client knows it: asked of any broker that answers, and again when something fails."""

    cluster: Cluster
    process: Process
    refresh_ns: int
    leaders: dict[Place, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refresh()
        self.world.every(self.refresh_ns // 2, self.refresh_ns, self.process, self.refresh)

    @property
    def world(self) -> World:
        """The world that it is in."""
        return self.cluster.world

    def refresh(self) -> None:
        """Ask a broker who leads what."""
        broker = self.world.random.choice(list(self.cluster.brokers.values()))

        def ask() -> None:
            image = broker.image
            if image is not None:
                epochs = self.cluster.settings.tells_epochs
                reports = {place: (state.epoch * epochs, state.leader) for place, state in image.reported.items()}
                self.world.send(broker.process, self.process, partial(self._learn, reports))

        self.world.send(self.process, broker.process, ask)

    def _learn(self, reports: dict[Place, tuple[int, int]]) -> None:
        for place, (epoch, leader) in reports.items():
            if leader != NOBODY and epoch >= self.leaders.get(place, (-1, NOBODY))[0]:
                self.leaders[place] = (epoch, leader)


class Producer:
    """Sends records at a rate, each on its own, and sends those again that failed and may be."""

    def __init__(self, client: Client, worker: int, places: list[Place], acks: str, retries: int, pause: int) -> None:
        self.rows: list[Row] = []
        self.sending = True
        self._client, self._worker, self._places = client, worker, places
        self._acks, self._retries = acks, retries
        client.world.every(pause // 2, pause * 3 // 2, client.process, self._send)

    def _send(self) -> None:
        if not self.sending:
            return
        world, sequence = self._client.world, len(self.rows)
        topic, partition = world.random.choice(self._places)
        row: Row = {
            "worker": self._worker,
            "incarnation": 0,
            "sequence": sequence,
            "topic": topic,
            "partition": partition,
            "record_id": record_id(self._worker, sequence),
            "invoked_ns": world.now,
            "completed_ns": None,
            "outcome": Outcome.INFO,
        }
        self.rows.append(row)
        world.after(_MESSAGE_TIMEOUT, partial(self._complete, row, Outcome.INFO, "_MSG_TIMED_OUT"))
        self._attempt(row, 0)

    def _attempt(self, row: Row, attempt: int) -> None:
        """Hand the record to its leader, and wait for one answer."""
        if row["completed_ns"] is not None:
            return
        world, client = self._client.world, self._client
        known = client.leaders.get((row["topic"], row["partition"]))
        if known is None:
            client.refresh()
            world.after(100 * MS, partial(self._attempt, row, attempt))
            return
        answered: list[bool] = []
        replica = client.cluster.replica((row["topic"], row["partition"]), known[1])
        there = replica.broker.process

        def answered_once(produced: Produced) -> None:
            if not answered:
                answered.append(True)
                self._answered(row, attempt, produced)

        def timed_out() -> None:
            answered_once(Produced(error="REQUEST_TIMED_OUT"))

        def reply(produced: Produced) -> None:
            world.send(there, client.process, partial(answered_once, produced))

        world.send(client.process, there, partial(replica.produce, row["record_id"], self._acks, reply))
        world.after(_REQUEST_TIMEOUT, timed_out)
        if self._acks == "0":
            self._complete(row, Outcome.INFO, None)

    def _answered(self, row: Row, attempt: int, produced: Produced) -> None:
        if produced.offset is not None:
            self._complete(row, Outcome.OK, None, produced.offset)
            return
        self._client.refresh()
        if attempt < self._retries:
            pause = self._client.world.random.randint(100 * MS, 300 * MS)
            self._client.world.after(pause, partial(self._attempt, row, attempt + 1))
        elif produced.error == NOT_ENOUGH and attempt == 0:
            self._complete(row, Outcome.FAIL, NOT_ENOUGH)
        else:
            self._complete(row, Outcome.INFO, produced.error)

    def _complete(self, row: Row, outcome: Outcome, error: str | None, offset: int | None = None) -> None:
        if row["completed_ns"] is None:
            row |= {"completed_ns": self._client.world.now, "outcome": outcome, "error": error, "offset": offset}


class Reader:
    """A consumer that is assigned every partition from its start on, and reads what is committed."""

    def __init__(self, client: Client, number: int, places: list[Place], begin_ns: int) -> None:
        self.rows: list[Row] = []
        self.positions: list[Row] = []
        self._client, self._number = client, number
        self._polls = 0
        for place in places:
            client.world.after(begin_ns, partial(self._begin, place))

    def _begin(self, place: Place) -> None:
        seat = _Seat(place)
        self._position(place, "assign", 0)
        self._client.world.every(40 * MS, 120 * MS, self._client.process, partial(self._poll, seat))

    def _poll(self, seat: "_Seat") -> None:
        client, world = self._client, self._client.world
        known = client.leaders.get(seat.place)
        if known is None or (seat.asked_at is not None and world.now - seat.asked_at < _REQUEST_TIMEOUT):
            return
        if seat.asked_at is not None:
            client.refresh()
        seat.asked_at = asked_at = world.now
        replica = client.cluster.replica(seat.place, known[1])
        there = replica.broker.process

        def ask() -> None:
            fetched = replica.read(seat.offset, seat.epoch)
            world.send(there, client.process, partial(self._fetched, seat, asked_at, fetched))

        world.send(client.process, there, ask)

    def _fetched(self, seat: "_Seat", asked_at: int, fetched: Fetched) -> None:
        if seat.asked_at != asked_at:
            return
        seat.asked_at = None
        known = self._client.leaders.get(seat.place, (-1, NOBODY))
        if fetched.error is not None or fetched.epoch < known[0]:
            self._client.refresh()
        elif fetched.diverging is not None or fetched.reset is not None:
            epoch, offset = fetched.diverging or (seat.epoch, fetched.reset or 0)
            seat.offset, seat.epoch = min(offset, seat.offset), epoch
            self._position(seat.place, "error", None, "_LOG_TRUNCATION")
            self._position(seat.place, "seek", seat.offset)
        elif fetched.records:
            self._deliver(seat, fetched.records)

    def _deliver(self, seat: "_Seat", records: tuple[Record, ...]) -> None:
        self._polls += 1
        delivered = self._client.cluster.chronicles[seat.place].delivered
        now, settings = self._client.world.now, self._client.cluster.settings
        for one in records:
            self.rows.append(read_row(self._number, Phase.LIVE, self._polls, seat.place, one, now, settings))
        for record in records:
            delivered.setdefault(record, now)
        seat.offset, seat.epoch = records[-1].offset + 1, records[-1].epoch if settings.tells_epochs else None

    def _position(self, place: Place, event: str, offset: int | None, error: str | None = None) -> None:
        row = {"reader": self._number, "incarnation": 0, "at_ns": self._client.world.now, "event": event}
        self.positions.append(row | {"topic": place[0], "partition": place[1], "offset": offset, "error": error})


@dataclass(eq=False)
class _Seat:
    """How far a reader has come in a partition, and under which epoch; and when it asked for more."""

    place: Place
    offset: int = 0
    epoch: int | None = None
    asked_at: int | None = None


def read_row(reader: int, phase: Phase, poll: int, place: Place, record: Record, now: int, settings: Settings) -> Row:
    """A row of ``reads``."""
    return {
        "reader": reader,
        "incarnation": 0,
        "phase": phase,
        "poll": poll,
        "topic": place[0],
        "partition": place[1],
        "offset": record.offset,
        "leader_epoch": record.epoch if settings.consumers_see_epochs else None,
        "record_id": record.id,
        "intact": True,
        "read_ns": now,
    }
