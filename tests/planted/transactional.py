"""What is planted in histories of transactions, read with read_committed: anomalies in several ways, and twins."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from harness.history.schema import record_id
from tests.planted.generator import (
    END,
    LAG,
    MS,
    STEP,
    UNREAD,
    WORKERS,
    WORKERS_OF_A_SEED,
    Place,
    Planted,
    Row,
    World,
    deliver,
    end_of,
    number,
    read_finally,
    tell,
)

COMMITTED_READER, UNCOMMITTED_READER = 53, 60
_MOST_SEEDS = 200
#: Of each seed the producers may read, too, in their transactions.
CLIENTS = {
    **{
        f"polling {seed * WORKERS_OF_A_SEED + worker}": {"isolation.level": "read_committed"}
        for seed in range(_MOST_SEEDS)
        for worker in range(WORKERS)
    },
    f"consumer {COMMITTED_READER}": {"isolation.level": "read_committed"},
    f"consumer {UNCOMMITTED_READER}": {"isolation.level": "read_uncommitted"},
}
_PLAIN_WORKER = WORKERS
_HANGING_WORKER = WORKERS + 1
_PER_WORKER = 26


@dataclass(eq=False)
class Transaction:
    """One transaction: its row, and what it sent. ``asked_after_read``: its commit is asked for so many ns after the
    first of it was read."""

    row: Row
    sends: list[Row] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    asked_after_read: int | None = None

    def ends(self, intent: str, outcome: str) -> None:
        """It was to end so, and this is what its producer was told."""
        self.row.update(intent=intent, outcome=outcome)
        if outcome == "info":
            self.row["ended_ns"] = None


@dataclass(frozen=True)
class Plot:
    """Something that happens to a transaction of at least ``size`` records: ``act`` does it, and tells in which of its
    records that can be seen. ``finds``, ``twin_of``: as of the plots of single records."""

    name: str
    act: Callable[[Transaction, Random], Iterable[Place]]
    finds: tuple[str, ...] = ()
    twin_of: tuple[str, ...] = ()
    size: int = 1


def _ended(intent: str, outcome: str, *, asked: bool = True) -> Callable[[Transaction, Random], list[Place]]:
    """It ends like that, and read_committed shows nothing of it."""

    def act(transaction: Transaction, _: Random) -> list[Place]:
        transaction.ends(intent, outcome)
        if not asked:
            transaction.row["ending_ns"] = None
        _hide(transaction.places)
        return transaction.places

    return act


def _shown_of(
    end: Callable[[Transaction, Random], list[Place]], *, final: bool = True
) -> Callable[[Transaction, Random], list[Place]]:
    """As ``end``, but one record of it is read with read_committed, and is in the final log or not."""

    def act(transaction: Transaction, random: Random) -> list[Place]:
        shown = random.choice(end(transaction, random))
        shown.live, shown.final = True, int(final)
        return [shown]

    return act


def _without_one(outcome: str, *, read: bool = False) -> Callable[[Transaction, Random], list[Place]]:
    def act(transaction: Transaction, random: Random) -> list[Place]:
        transaction.ends("commit", outcome)
        missing = random.choice(transaction.places)
        _hide([missing], live=read)
        return [missing]

    return act


def _unknown_and_whole(transaction: Transaction, _: Random) -> list[Place]:
    transaction.ends("commit", "info")
    return transaction.places


def _asked_after_read(ns: int) -> Callable[[Transaction, Random], list[Place]]:
    def act(transaction: Transaction, _: Random) -> list[Place]:
        transaction.asked_after_read = ns
        return []  # which is the first to be read is seen when they are

    return act


def _hide(places: Iterable[Place], live: bool = False) -> None:
    for place in places:
        place.final, place.live = 0, live


_GIVEN_UP = _ended("commit", "fail")
_NEVER_ASKED = _ended("commit", "info", asked=False)

PLOTS: tuple[Plot, ...] = (
    Plot("aborted, but read", _shown_of(_ended("abort", "ok")), ("aborted_read",)),
    Plot(
        "aborted, read and gone",
        _shown_of(_ended("abort", "ok"), final=False),
        ("aborted_read",),
        twin_of=("vanished",),
    ),
    Plot("abort unanswered, but read", _shown_of(_ended("abort", "info")), ("aborted_read",)),
    Plot("commit never asked for, but read", _shown_of(_NEVER_ASKED), ("aborted_read",)),
    Plot("given up, but read", _shown_of(_GIVEN_UP), ("aborted_read",)),
    Plot("aborted, read uncommitted only", _ended("abort", "ok"), twin_of=("aborted_read", "vanished", "lost")),
    Plot("abort unanswered, absent", _ended("abort", "info"), twin_of=("aborted_read", "committed_lost")),
    Plot("commit never asked for, absent", _NEVER_ASKED, twin_of=("aborted_read", "committed_lost")),
    Plot("given up, absent", _GIVEN_UP, twin_of=("aborted_read", "committed_lost")),
    Plot("read before its commit", _asked_after_read(1), ("early_read",)),
    Plot("read as its commit was asked for", _asked_after_read(0), twin_of=("early_read",)),
    Plot("in part", _without_one("ok"), ("fractured", "lost"), size=2),
    Plot("in part, whole when read", _without_one("ok", read=True), ("fractured", "lost", "vanished"), size=2),
    Plot("unknown, in part", _without_one("info"), ("fractured",), size=2),
    Plot("unknown, whole", _unknown_and_whole, twin_of=("fractured", "aborted_read"), size=2),
    Plot("unknown, absent", _ended("commit", "info"), twin_of=("fractured", "committed_lost"), size=2),
    Plot("committed, absent", _ended("commit", "ok"), ("committed_lost", "lost")),
)
PLAIN_LOST = Plot("lost outside of transactions, read uncommitted", lambda *_: [], ("lost", "vanished"))
DELETED = Plot("deleted by retention in part", lambda *_: [], twin_of=("fractured", "committed_lost"))
NOT_READ = Plot("beyond the final read in part", lambda *_: [], twin_of=("fractured", "committed_lost"))
EACH_OTHER = Plot("given each other's", lambda *_: [], ("read_cycle",))
ONE_WAY = Plot("given the other's alone", lambda *_: [], twin_of=("read_cycle", "early_read"))
OWN = Plot("given its own", lambda *_: [], ("early_read",))
NEXT = Plot("given what its worker had committed", lambda *_: [], twin_of=("early_read",))
SENT_LATER = Plot("given what was sent after it was read", lambda *_: [], ("early_read",))
HANGING = Plot("hanging", lambda *_: [], ("hanging_transaction",))
LONG = Plot("open for long, then ended", lambda *_: [], twin_of=("hanging_transaction",))


def plant_transactions(topic: str, first_worker: int, random: Random, times: int = 2) -> Planted:
    """One history with a final read of isolation level read_committed: each of PLOTS ``times`` times."""
    world = World(topic, first_worker, random, times)
    world.logs = [[] for _ in range(UNREAD + 1 + times)]
    transactions = [one for worker in range(WORKERS) for one in _transactions_of(world, worker)]
    _without_transactions(world)
    for log in world.logs:
        log.sort(key=lambda place: place.at_ns)
    start = _delete_first(world, transactions)
    untouched = _apart_from_unread(world, transactions)
    random.shuffle(untouched)
    reading = [(plot, *_pair(untouched, fits)) for plot, fits in READING.items() for _ in range(times)]
    chosen = {plot.name: [_take(untouched, plot.size) for _ in range(times)] for plot in PLOTS}
    for plot in PLOTS:
        for one in chosen[plot.name]:
            _plot(world, plot, one)
    for one in untouched:
        if random.random() < 0.2:
            _ended("abort", "ok")(one, random)
    _hang(world)
    number(world)
    ended = {id(place): one.row["ended_ns"] for one in transactions for place in one.places}
    for partition in range(len(world.logs)):
        _consume(world, partition, ended)
    for plot in PLOTS:
        for one in chosen[plot.name]:
            if one.asked_after_read is not None:
                _ask_late(world, plot, one)
    for plot, one, other in reading:
        _read_in(world, plot, one, other)
    read_finally(world, {0: start})
    _tell_of_ends(world)
    world.tables["sends"] = [*world.sends.values()]
    return world.planted()


def _transactions_of(world: World, worker: int) -> list[Transaction]:
    """A worker's transactions, one after another, committed all of them."""
    random, clock, sequence, made = world.random, world.random.randrange(MS), 0, []
    for n in range(_PER_WORKER):
        one = Transaction({"worker": world.first_worker + worker, "incarnation": 0, "transaction": n})
        one.row["began_ns"] = clock
        # The first of each worker are those that retention deletes, whole or in part.
        partitions = [0] * (3 - worker) + [1] * worker if n == 0 else _somewhere(random)
        for partition in partitions:
            clock += random.randint(1 * MS, 3 * MS)
            _send(world, worker, sequence, partition, clock, one)
            sequence += 1
        clock = one.row["ending_ns"] = max(send["completed_ns"] for send in one.sends) + MS
        clock = one.row["ended_ns"] = clock + random.randint(1 * MS, 5 * MS)
        clock += MS
        one.ends("commit", "ok")
        world.tables["transactions"].append(one.row)
        for partition in {*partitions}:  # what tells readers of its end takes an offset of its own
            world.logs[partition].append(Place(None, one.row["ended_ns"], final=0, live=False))
        made.append(one)
    return made


def _somewhere(random: Random) -> list[int]:
    return random.choices(range(UNREAD + 1), (15, 15, 1), k=random.randint(1, 4))


def _send(
    world: World, worker: int, sequence: int, partition: int, clock: int, transaction: Transaction | None = None
) -> Place:
    at_ns = clock + world.random.randrange(1, MS)
    record = record_id(world.first_worker + worker, sequence)
    send = world.sends[record] = {
        "worker": world.first_worker + worker,
        "incarnation": 0,
        "sequence": sequence,
        "topic": world.topic,
        "partition": partition,
        "record_id": record,
        "invoked_ns": clock,
        "completed_ns": at_ns + world.random.randint(1, 10 * MS),
        "outcome": "ok",
    }
    place = world.places[record] = Place(record, at_ns)
    world.logs[partition].append(place)
    if transaction is not None:
        send["transaction"] = transaction.row["transaction"]
        transaction.sends.append(send)
        transaction.places.append(place)
    return place


def _without_transactions(world: World) -> None:
    for sequence in range(6 * world.times):
        place = _send(world, _PLAIN_WORKER, sequence, sequence % 2, (20 + sequence) * 10 * MS)
        if sequence % 6 == 0:
            _hide([place])
            world.own(PLAIN_LOST.name, place.record)
            world.found(PLAIN_LOST.name, PLAIN_LOST.finds, place.record)


def _delete_first(world: World, transactions: list[Transaction]) -> int:
    """Retention deletes what stands in the first partition before all but the first of a worker's transactions."""
    log = world.logs[0]
    firsts = {id(place) for one in transactions if one.row["transaction"] == 0 for place in one.places}
    start = 1 + max(n for n, place in enumerate(log) if id(place) in firsts)
    deleted = {id(place) for place in log[:start]}
    for place in log[:start]:
        place.final = 0
    for one in transactions:
        if any(id(place) in deleted for place in one.places):
            world.own(DELETED.name, *(send["record_id"] for send in one.sends))
    return start


def _apart_from_unread(world: World, transactions: list[Transaction]) -> list[Transaction]:
    """Those that may be plotted with: not touched by retention, nor by a final read that stops early."""
    free = []
    for one in transactions:
        owned = [record for records in world.subjects.values() for record in records]
        if any(send["record_id"] in owned for send in one.sends):
            continue
        if any(send["partition"] == UNREAD for send in one.sends):
            world.own(NOT_READ.name, *(send["record_id"] for send in one.sends))
        else:
            free.append(one)
    return free


def _take(untouched: list[Transaction], size: int) -> Transaction:
    index = next(n for n, one in enumerate(untouched) if len(one.sends) >= size)
    return untouched.pop(index)


def _overlap(one: Transaction, other: Transaction) -> bool:
    apart = one.row["worker"] != other.row["worker"]
    return apart and one.row["began_ns"] <= other.row["began_ns"] <= one.row["ending_ns"]


def _follows(one: Transaction, other: Transaction) -> bool:
    return bool(one.row["worker"] == other.row["worker"] and one.row["began_ns"] < other.row["began_ns"])


def _begins_later(one: Transaction, other: Transaction) -> bool:
    apart = one.row["worker"] != other.row["worker"]
    return apart and other.row["began_ns"] > one.row["ended_ns"] + 2 * LAG


#: What happens between two transactions that poll, and how these stand to each other.
READING = {EACH_OTHER: _overlap, ONE_WAY: _overlap, OWN: _follows, NEXT: _follows, SENT_LATER: _begins_later}


def _pair(
    untouched: list[Transaction], fits: Callable[[Transaction, Transaction], bool]
) -> tuple[Transaction, Transaction]:
    one, other = next((one, other) for one in untouched for other in untouched if fits(one, other))
    untouched.remove(one)
    untouched.remove(other)
    return one, other


def _read_in(world: World, plot: Plot, one: Transaction, other: Transaction) -> None:
    """The transactions of a plot poll."""
    world.own(plot.name, *(send["record_id"] for send in (*one.sends, *other.sends)))
    early = [r for r in world.tables["reads"] if r["reader"] == COMMITTED_READER and _sent_in(one, r)]
    if plot is OWN:
        _poll(world, one, one)
    elif plot is NEXT:
        _poll(world, other, one)
    else:
        _poll(world, one, other)
    if plot is EACH_OTHER:
        _poll(world, other, one)
    seen = [r["record_id"] for r in early if r["read_ns"] < other.row["began_ns"]]
    world.found(plot.name, plot.finds, *(seen if plot is SENT_LATER else [one.sends[0]["record_id"]]))


def _sent_in(transaction: Transaction, read: Row) -> bool:
    return read["record_id"] in {send["record_id"] for send in transaction.sends}


def _poll(world: World, reading: Transaction, of: Transaction) -> None:
    """A transaction is given the first record of another, after that was committed."""
    worker, partition, place = reading.row["worker"], of.sends[0]["partition"], of.places[0]
    at_ns = max(reading.row["ended_ns"], of.row["ended_ns"]) + LAG
    tell(world, partition, worker, at_ns - 1, "revoke", place.offset)
    deliver(world, place, partition, worker, at_ns)
    world.tables["reads"][-1]["transaction"] = reading.row["transaction"]


def _plot(world: World, plot: Plot, one: Transaction) -> None:
    seen = sorted(place.record for place in plot.act(one, world.random))
    world.own(plot.name, *(send["record_id"] for send in one.sends))
    world.found(plot.name, plot.finds, *seen)


def _hang(world: World) -> None:
    """Partitions of their own, each with a transaction whose producer died in the middle."""
    for n in range(world.times):
        worker, partition = _HANGING_WORKER + n, UNREAD + 1 + n
        one = Transaction({"worker": world.first_worker + worker, "incarnation": 0, "transaction": 0, "began_ns": 0})
        place = _send(world, worker, 0, partition, MS, one)
        _NEVER_ASKED(one, world.random)
        world.tables["transactions"].append(one.row)
        world.own(HANGING.name, place)
        world.found(HANGING.name, HANGING.finds, place)


def _tell_of_ends(world: World) -> None:
    """The final reader asks where each log is stable to, and where it ends, and asks again until it need not."""
    for partition, log in enumerate(world.logs):
        hangs = partition > UNREAD
        end = end_of(log)
        reported = [(0, end)] if hangs else [(end - 1, end), (end, end)] if partition == 0 else [(end, end)]
        for n, (stable, high) in enumerate(reported):
            tell(world, partition, 1000, END + n, "last-stable", stable)
            tell(world, partition, 1000, END + n, "high-watermark", high)
        if hangs:
            world.tables["log_ends"][partition].update(log_end=0, read_to=0, complete=True)
        elif partition == 0:
            world.own(LONG.name, (partition, end - 1), (partition, end))


def _consume(world: World, partition: int, ended: dict[int, int | None]) -> None:
    """One reader is given records as they come, the other when the transaction is over, and all before it."""
    committed = uncommitted = 0
    for place in world.logs[partition]:
        if place.record is None:
            continue
        uncommitted = max(uncommitted + STEP, place.at_ns + LAG)
        deliver(world, place, partition, UNCOMMITTED_READER, uncommitted)
        if place.live:
            committed = max(committed + STEP, place.at_ns + LAG, (ended.get(id(place)) or 0) + LAG)
            deliver(world, place, partition, COMMITTED_READER, committed)


def _ask_late(world: World, plot: Plot, one: Transaction) -> None:
    """The commit is asked for when the first of the records have been read already."""
    records = {send["record_id"] for send in one.sends}
    given = [r for r in world.tables["reads"] if r["record_id"] in records and r["reader"] == COMMITTED_READER]
    ending_ns = min(row["read_ns"] for row in given) + one.asked_after_read
    one.row.update(ending_ns=ending_ns, ended_ns=ending_ns + MS)
    world.found(plot.name, plot.finds, *(row["record_id"] for row in given if row["read_ns"] < ending_ns))
