"""What is planted in histories of single records: each anomaly in several ways, and its twins."""

from collections.abc import Callable, Sequence
from random import Random

from harness.history.schema import record_id
from tests.planted.generator import (
    END,
    FOLLOWED,
    LAG,
    MEMBERS,
    MS,
    STEP,
    STRAY_MEMBER,
    UNKNOWN_WORKER,
    UNREAD,
    Place,
    Planted,
    Plot,
    Row,
    Subject,
    World,
    begin,
    carry_out,
    delete_first,
    deliver,
    end_of,
    lane_of,
    number,
    read_finally,
    remove,
    settle,
    tell,
)

Act = Callable[[World, Row], Sequence[Subject] | None]

_ABORTED, _COMMITTED = ("abort", "ok"), ("commit", "ok")
_TRANSACTIONAL_WORKER = 2


def _seen(**how: object) -> Act:
    """The record's place looks otherwise to those who read it."""

    def act(world: World, send: Row) -> list[Subject] | None:
        if "replica" in how and send["partition"] != FOLLOWED:
            return None
        for name, value in how.items():
            setattr(world.places[send["record_id"]], name, value)
        return []

    return act


def _amid(act: Act) -> Act:
    """As ``act``, of a record that others stand before and behind of."""

    def of(world: World, send: Row) -> Sequence[Subject] | None:
        index, length = world.index_of(send), len(world.log_of(send))
        return act(world, send) if 20 <= index < length - 20 else None

    return of


def _nothing(_: World, __: Row) -> list[Subject]:
    return []


def _absent(world: World, send: Row) -> list[Subject]:
    remove(world, send)
    return []


def _in_flight(_: World, send: Row) -> list[Subject]:
    send["completed_ns"] = None
    return []


def _twice(acknowledged: int = 0) -> Act:
    """A second copy some records later; which of them was acknowledged, or -1 for a place where neither stands."""

    def act(world: World, send: Row) -> list[Subject]:
        record, log, index = send["record_id"], world.log_of(send), world.index_of(send)
        first = log[index]
        again = Place(record, first.at_ns)
        world.insert(log, index + world.random.randint(1, 8), again)
        world.acknowledged_at[record] = [first, again, _gap_before(world, send) if acknowledged < 0 else first][
            acknowledged
        ]
        return []

    return act


def _gap_before(world: World, send: Row) -> Place:
    place = world.places[send["record_id"]]
    return world.insert(world.log_of(send), world.index_of(send), Place(None, place.at_ns, final=0, live=False))


def _acknowledged_before(world: World, send: Row) -> list[Subject]:
    world.acknowledged_at[send["record_id"]] = _gap_before(world, send)
    return []


def _acknowledged_nowhere(world: World, send: Row) -> list[Subject]:
    world.acknowledged_at[send["record_id"]] = None
    return []


def _unread_and_acknowledged_nowhere(world: World, send: Row) -> list[Subject]:
    world.places[send["record_id"]].live = False
    return _acknowledged_nowhere(world, send)


def _gap_after(world: World, send: Row) -> list[Subject]:
    place = world.places[send["record_id"]]
    gap = Place(None, place.at_ns, final=0, live=False)
    return [world.insert(world.log_of(send), world.index_of(send) + 1, gap)]


def _beside(stranger: Callable[[World, Row], int | None]) -> Act:
    """A record that nobody sent, after one that somebody did."""

    def act(world: World, send: Row) -> list[Subject]:
        record = stranger(world, send)
        place = Place(record, world.places[send["record_id"]].at_ns)
        world.insert(world.log_of(send), world.index_of(send) + 1, place)
        return [place if record is None else record]

    return act


def _of_nobody(world: World, _: Row) -> int:
    return record_id(world.first_worker + UNKNOWN_WORKER, world.random.randrange(1 << 20))


def _never_sent(world: World, send: Row) -> int:
    return record_id(send["worker"], world.random.randrange(1 << 20, 1 << 21))


def _no_id(_: World, __: Row) -> None:
    return None


def _elsewhere(stays: bool) -> Act:
    """The record stands in another partition; where it ``stays``, its acknowledgement names its own."""

    def act(world: World, send: Row) -> list[Subject]:
        place = world.places[send["record_id"]]
        if stays:
            world.acknowledged_at[send["record_id"]] = _gap_before(world, send)
        world.log_of(send).remove(place)
        other = world.logs[1 - send["partition"]]
        later = [n for n, one in enumerate(other) if n >= world.times and one.at_ns > place.at_ns]
        world.insert(other, later[0] if later else len(other), Place(place.record, place.at_ns))
        return []

    return act


def _keyed(sent: str | None, *phases: str, read: str | None, **how: object) -> Act:
    """The record was sent under one key, and is read under another by those who read it in these phases."""

    def act(world: World, send: Row) -> Sequence[Subject] | None:
        seen = _seen(keys=dict.fromkeys(phases, read), **how)(world, send)
        if seen is not None:
            send["key"] = sent
        return seen

    return act


def _twice_keyed(world: World, send: Row) -> list[Subject]:
    """Only its second copy is read under another key."""
    _twice()(world, send)
    log, own = world.log_of(send), world.places[send["record_id"]]
    [again] = (place for place in log if place.record == own.record and place is not own)
    again.keys = dict.fromkeys(_ALL, _OTHER)
    return []


def _sent_again_elsewhere(world: World, send: Row) -> list[Subject] | None:
    """The application gives up a record, and sends its payload to another partition: that is another record."""
    again = next(
        (
            other
            for record in sorted(world.untouched)
            for other in [world.sends[record]]
            if other["worker"] == send["worker"]
            and other["sequence"] > send["sequence"]
            and other["partition"] != send["partition"]
            and other["outcome"] == "ok"
        ),
        None,
    )
    if again is None:
        return None
    send["key"] = again["key"] = f"order-{send['sequence']}"
    remove(world, send)
    return [again["record_id"]]


def _beyond_recognition(world: World, send: Row) -> list[Subject]:
    """The bytes are there, and their checksum fails, and so does all that says whose they are."""
    place = world.places[send["record_id"]]
    damaged = Place(None, place.at_ns, damaged=frozenset({"live", "final"}))
    world.insert(world.log_of(send), world.index_of(send), damaged)
    world.log_of(send).remove(place)
    world.acknowledged_at[send["record_id"]] = damaged
    return [damaged]


def _damaged_elsewhere(*, remains: bool) -> Act:
    """Damaged bytes behind its place show its id; whether it stands there itself, too."""

    def act(world: World, send: Row) -> list[Subject]:
        log, index = world.log_of(send), world.index_of(send)
        world.insert(log, index + 1, Place(send["record_id"], log[index].at_ns, damaged=_DAMAGED))
        if not remains:
            world.acknowledged_at[send["record_id"]] = _gap_before(world, send)
            remove(world, send)
        return []

    return act


def _twice_and_damaged(world: World, send: Row) -> list[Subject]:
    """Of two copies, the one that was acknowledged is damaged."""
    _twice()(world, send)
    world.places[send["record_id"]].damaged = _DAMAGED
    return []


def _written_over(*, remains: bool, read: bool, replica: bool = False) -> Act:
    """Its offset is another record's in the end, but for one ``replica`` or for none. It ``remains`` elsewhere or not,
    and was ``read`` there or not."""

    def act(world: World, send: Row) -> list[Subject] | None:
        if replica and send["partition"] != FOLLOWED:
            return None
        record, log = send["record_id"], world.log_of(send)
        own = world.places[record]
        heirs = [place for place in log if place is not own and _is_free(world, place)]
        if not heirs:
            return None
        heir = world.random.choice(heirs)
        ghost = Place(record, heir.at_ns, final=0, live=read, replica=replica, shares=True)
        log.insert(log.index(heir), ghost)
        heir.live = heir.live and not read
        if not remains:
            remove(world, send)
        world.acknowledged_at[record] = own if remains else ghost
        return [heir.record]

    return act


def _over_its_successor(*, read: bool) -> Act:
    """It was given out, or only acknowledged, at the offset that the record behind it has for all others."""

    def act(world: World, send: Row) -> list[Subject] | None:
        log, index = world.log_of(send), world.index_of(send)
        heir = log[index + 1] if index + 1 < len(log) else None
        if heir is None or not _is_free(world, heir) or heir.record < send["record_id"]:
            return None  # of those who share an offset the least is reported
        _seen(shares=True, live=read, reading="left to another")(world, send)
        return [heir.record]

    return act


def _is_free(world: World, place: Place) -> bool:
    return place.record in world.untouched and world.sends[place.record]["outcome"] == "ok"


def _behind_its_own(world: World, send: Row) -> list[Subject] | None:
    """It stands after the next record of its producer, though both were in flight."""
    log, index = world.log_of(send), world.index_of(send)
    after = next((n for n in range(index + 1, len(log)) if _of_lane(world, log[n], send)), None)
    if after is None or not _is_free(world, log[after]):
        return None
    _move(world, send, after)
    return [log[after - 1].record]


def _behind_another(late_by: int | None) -> Act:
    """It stands after a record of another producer, whose send came ``late_by`` ns after its acknowledgement; with
    None both were in flight."""

    def act(world: World, send: Row) -> list[Subject] | None:
        log, index = world.log_of(send), world.index_of(send)
        latest = max((world.sends[place.record]["invoked_ns"] for place in log[: index + 1] if place.record), default=0)
        for after in range(index + 1, len(log)):
            if _of_lane(world, log[after], send):
                return None
            other = world.sends[log[after].record]
            latest = max(latest, other["invoked_ns"])
            if not _is_free(world, log[after]) or other["worker"] == send["worker"]:
                continue
            if other["invoked_ns"] == latest > send["invoked_ns"] + MS:
                _move(world, send, after)
                if late_by is not None:
                    send["completed_ns"] = latest - late_by
                return [other["record_id"]]
        return None

    return act


def _behind_its_successor(world: World, send: Row) -> list[Subject] | None:
    """What a producer had in flight when it died stands after the first record of the one that replaced it."""
    log, index = world.log_of(send), world.index_of(send)
    if any(_of_lane(world, place, send) for place in log[index + 1 :]):
        return None
    successor = {**send, "incarnation": send["incarnation"] + 1}
    after = next((n for n in range(index + 1, len(log)) if _of_lane(world, log[n], successor)), None)
    if after is None or not _is_free(world, log[after]):
        return None
    _move(world, send, after)
    send.update(outcome="info", error="_PURGE_INFLIGHT")
    return [log[after - 1].record]


def _of_lane(world: World, place: Place, send: Row) -> bool:
    return place.record is not None and lane_of(world.sends[place.record]) == lane_of(send)


def _move(world: World, send: Row, after: int) -> None:
    log, index = world.log_of(send), world.index_of(send)
    place = log[index]
    place.at_ns = log[after].at_ns + 1
    log.insert(after, log.pop(index))
    if send["completed_ns"] is not None:
        send["completed_ns"] = max(send["completed_ns"], place.at_ns + 1)


def _reading(happens: str) -> Act:
    return _seen(reading=happens)


def _inside_a_stay(happens: str) -> Act:
    def act(world: World, send: Row) -> list[Subject] | None:
        log, index = world.log_of(send), world.index_of(send)
        near = log[max(index - 1, 0) : index + 2]
        if len(near) < 3 or not all(_is_free(world, place) for place in near):
            return None
        near[1].reading = happens
        return [near[0].record, near[2].record]  # nothing else may happen to them

    return act


def _of_transaction(*ends: tuple[str, str], act: Act = _nothing) -> Act:
    """As ``act``, of a record whose transaction ended in one of these ways."""

    def of(world: World, send: Row) -> Sequence[Subject] | None:
        return act(world, send) if _ending(world, send) in ends else None

    return of


def _ending(world: World, send: Row) -> tuple[str, str] | None:
    key = (send["worker"], send.get("transaction"))
    return next(
        ((t["intent"], t["outcome"]) for t in world.tables["transactions"] if (t["worker"], t["transaction"]) == key),
        None,
    )


def _unless_taken_back(act: Act) -> Act:
    """As ``act``, of a record that was not in a transaction, or in one that was committed."""
    return _of_transaction(_COMMITTED, None, act=act)


_OWN, _OTHER, _ALL = "its-own", "another", ("live", "final")
_EVERYBODY = {"final": 2, "live": True, "replica": True, "reading": "redelivered"}
_DAMAGED, _AT_LAST = frozenset({"live", "final"}), frozenset({"final"})

#: In histories with a final read (read_uncommitted) and a group. Those that few records suit come first.
PLOTS: tuple[Plot, ...] = (
    Plot(
        "missing from an aborted transaction",
        "info",
        _of_transaction(_ABORTED, act=_absent),
        twin_of=("fractured", "committed_lost"),
    ),
    Plot("skipped, but aborted", "ok", _of_transaction(_ABORTED, act=_inside_a_stay("skipped")), twin_of=("skipped",)),
    Plot("skipped", "ok", _unless_taken_back(_inside_a_stay("skipped")), ("skipped",)),
    Plot("reordered", "ok", _behind_its_own, ("reordered",)),
    Plot("reordered, undecided", "info", _behind_its_own, ("reordered",)),
    Plot("behind its successor", "ok", _behind_its_successor, twin_of=("reordered",)),
    Plot("behind another, in flight", "ok", _behind_another(None), twin_of=("reordered", "real_time_order")),
    Plot("real-time order", "ok", _behind_another(1), ("real_time_order",)),
    Plot("acknowledged as the other was sent", "ok", _behind_another(0), twin_of=("real_time_order",)),
    Plot("two owners", "ok", _inside_a_stay("two owners"), ("two_owners",)),
    Plot(
        "on one replica in another's place",
        "info",
        _written_over(remains=True, read=False, replica=True),
        ("rewritten_offset", "diverged"),
    ),
    Plot(
        "on one replica only, in another's place",
        "info",
        _written_over(remains=False, read=False, replica=True),
        ("rewritten_offset", "diverged"),
    ),
    Plot(
        "rewritten",
        "info",
        _written_over(remains=True, read=True),
        ("rewritten_offset", "vanished", "duplicated"),
        twin_of=("diverged",),
    ),
    Plot("a hole of a follower", "ok", _amid(_seen(replica=False)), ("diverged",)),
    Plot("a hole of a follower, undecided", "info", _amid(_seen(replica=False)), ("diverged",)),
    Plot("of an epoch that had ended", "ok", _amid(_seen(fallen=frozenset({"final"}))), ("epoch_fell",)),
    Plot("read under another epoch", "ok", _amid(_seen(fallen=frozenset({"live"}))), twin_of=("epoch_fell",)),
    Plot("rewritten, gone", "info", _written_over(remains=False, read=True), ("rewritten_offset", "vanished")),
    Plot("rewritten, lost", "ok", _written_over(remains=False, read=False), ("rewritten_offset", "lost")),
    Plot(
        "rewritten, lost after it was read",
        "ok",
        _written_over(remains=False, read=True),
        ("rewritten_offset", "lost", "vanished"),
    ),
    Plot("aborted, read uncommitted", "ok", _of_transaction(_ABORTED), twin_of=("aborted_read",)),
    Plot("read before its commit", "ok", _of_transaction(_COMMITTED), twin_of=("early_read",)),
    Plot("lost", "ok", _seen(final=0, live=False), ("lost",)),
    Plot("lost after it was read", "ok", _seen(final=0), ("lost", "vanished")),
    Plot("lost but for one replica", "ok", _seen(final=0, live=False, replica=True), ("lost", "diverged")),
    Plot("undecided, absent", "info", _absent, twin_of=("lost",)),
    Plot("vanished", "info", _seen(final=0), ("vanished",)),
    Plot(
        "undecided, on one replica",
        "info",
        _seen(final=0, live=False, replica=True),
        ("diverged",),
        twin_of=("vanished",),
    ),
    Plot("failed but present", "fail", _nothing, ("failed_but_present",)),
    Plot("failed but read", "fail", _seen(final=0), ("failed_but_present", "vanished")),
    Plot("failed, absent", "fail", _absent, twin_of=("failed_but_present",)),
    Plot("undecided, present", "info", _nothing, twin_of=("failed_but_present",)),
    Plot("duplicated", "ok", _twice(), ("duplicated",)),
    Plot("duplicated, undecided", "info", _twice(), ("duplicated",)),
    Plot("duplicated, acknowledged second", "ok", _twice(1), ("duplicated",), twin_of=("acknowledged_elsewhere",)),
    Plot("duplicated, acknowledged at neither", "ok", _twice(-1), ("duplicated", "acknowledged_elsewhere")),
    Plot("redelivered", "ok", _reading("redelivered"), twin_of=("duplicated", "went_back")),
    Plot("read finally twice", "ok", _seen(final=2), twin_of=("duplicated",)),
    Plot("phantom of nobody", "ok", _beside(_of_nobody), finds_beside=("phantom",)),
    Plot("phantom of a worker", "ok", _beside(_never_sent), finds_beside=("phantom",)),
    Plot("phantom without an id", "ok", _beside(_no_id), finds_beside=("phantom",)),
    Plot("in flight, present", "info", _in_flight, twin_of=("phantom",)),
    Plot("misplaced", "info", _elsewhere(stays=False), ("misplaced",)),
    Plot("misplaced, acknowledged", "ok", _elsewhere(stays=True), ("misplaced", "lost")),
    Plot("sent again elsewhere", "info", _sent_again_elsewhere, twin_of=("misplaced", "duplicated")),
    Plot("under another key", "ok", _keyed(_OWN, *_ALL, read=_OTHER), ("misplaced",)),
    Plot("under another key, undecided", "info", _keyed(_OWN, *_ALL, read=_OTHER), ("misplaced",)),
    Plot("under another key, gone", "info", _keyed(_OWN, "live", read=_OTHER, final=0), ("misplaced", "vanished")),
    Plot("under another key to one reader", "ok", _keyed(_OWN, "live", read=_OTHER), ("misplaced",)),
    Plot("under another key to two", "ok", _keyed(_OWN, "live", read=_OTHER, reading="redelivered"), ("misplaced",)),
    Plot("under another key, found twice", "ok", _keyed(_OWN, "final", read=_OTHER, final=2), ("misplaced",)),
    Plot("under another key on a replica", "ok", _keyed(_OWN, "replica", read=_OTHER, replica=True), ("misplaced",)),
    Plot("without its key", "ok", _keyed(_OWN, *_ALL, read=None), ("misplaced",)),
    Plot("with a key, sent without", "ok", _keyed(None, *_ALL, read=_OTHER), ("misplaced",)),
    Plot("a copy under another key", "ok", _twice_keyed, ("misplaced", "duplicated")),
    Plot("its key, delivered again", "ok", _keyed(_OWN, read=None, **_EVERYBODY), twin_of=("misplaced",)),
    Plot("without a key, delivered again", "ok", _keyed(None, read=None, **_EVERYBODY), twin_of=("misplaced",)),
    Plot(
        "corrupted, and its key",
        "ok",
        _keyed(_OWN, *_ALL, read=_OTHER, damaged=_DAMAGED),
        ("corrupted",),
        twin_of=("misplaced",),
    ),
    Plot("corrupted", "ok", _seen(damaged=_DAMAGED), ("corrupted",)),
    Plot("corrupted to one reader", "ok", _seen(damaged=frozenset({"live"})), ("corrupted",)),
    Plot("corrupted beyond recognition", "ok", _beyond_recognition, ("lost",), finds_beside=("corrupted",)),
    Plot("damaged elsewhere", "ok", _damaged_elsewhere(remains=False), ("lost", "corrupted")),
    Plot("damaged beside it", "ok", _damaged_elsewhere(remains=True), ("corrupted",), twin_of=("duplicated",)),
    Plot("one of two copies damaged", "ok", _twice_and_damaged, ("duplicated", "corrupted")),
    Plot("failed, damaged", "fail", _seen(damaged=_DAMAGED), ("corrupted",), twin_of=("failed_but_present",)),
    Plot("read damaged, and gone", "info", _seen(final=0, damaged=_DAMAGED), ("corrupted",), twin_of=("vanished",)),
    Plot("read, then damaged", "ok", _seen(damaged=_AT_LAST), ("corrupted",), twin_of=("lost", "vanished")),
    Plot("read, then damaged, undecided", "info", _seen(damaged=_AT_LAST), ("vanished", "corrupted")),
    Plot(
        "read by everybody",
        "ok",
        _seen(**_EVERYBODY),
        twin_of=("corrupted", "rewritten_offset", "diverged", "duplicated"),
    ),
    Plot("acknowledged elsewhere", "ok", _acknowledged_before, ("acknowledged_elsewhere",)),
    Plot("acknowledged without an offset", "ok", _acknowledged_nowhere, twin_of=("acknowledged_elsewhere",)),
    Plot("assigned beyond it", "ok", _reading("assigned beyond it"), twin_of=("skipped",)),
    Plot("a gap in the log", "ok", _gap_after, twin_of=("skipped",)),
    Plot("went back", "ok", _reading("went back"), ("went_back",)),
    Plot("sought the log start", "ok", _reading("sought the log start"), twin_of=("went_back", "skipped")),
    Plot("handed over", "ok", _reading("handed over"), twin_of=("two_owners",)),
    Plot("its owner died", "ok", _reading("its owner died"), twin_of=("two_owners",)),
)

#: In a partition that is not read to its end.
PARTLY_READ: tuple[Plot, ...] = (
    Plot("absent, but not all was read", "ok", _seen(final=0), twin_of=("lost", "vanished")),
    Plot("elsewhere, but not all was read", "ok", _acknowledged_before, twin_of=("acknowledged_elsewhere",)),
)
#: Found where the log begins and where it was not read, not at places of one's choosing.
DELETED = Plot("deleted by retention", "ok", _nothing, twin_of=("lost", "vanished"))
NOT_READ = Plot("beyond the final read", "ok", _nothing, twin_of=("lost", "vanished"))

#: In histories without a final read, as they are imported.
IMPORTED: tuple[Plot, ...] = (
    Plot("skipped, read by another", "ok", _inside_a_stay("left to another"), ("skipped",)),
    Plot("sought over, read by another", "ok", _inside_a_stay("sought over for another"), twin_of=("skipped",)),
    Plot("reordered", "ok", _behind_its_own, ("reordered",)),
    Plot("reordered, undecided", "info", _behind_its_own, ("reordered",)),
    Plot("behind another, in flight", "ok", _behind_another(None), twin_of=("reordered", "real_time_order")),
    Plot("real-time order", "ok", _behind_another(1), ("real_time_order",)),
    Plot("acknowledged as the other was sent", "ok", _behind_another(0), twin_of=("real_time_order",)),
    Plot("rewritten", "ok", _over_its_successor(read=True), ("rewritten_offset",)),
    Plot("rewritten, undecided", "info", _over_its_successor(read=True), ("rewritten_offset",)),
    Plot("rewritten, not read", "ok", _over_its_successor(read=False), ("rewritten_offset", "lost")),
    Plot("went back", "ok", _reading("went back"), ("went_back",)),
    Plot("sought back", "ok", _reading("sought back"), twin_of=("went_back",)),
    Plot("passed over", "ok", _seen(live=False), ("lost",)),
    Plot("undecided, not read", "info", _seen(live=False), twin_of=("lost", "unseen")),
    Plot("not read, offset unknown", "ok", _unread_and_acknowledged_nowhere, ("unseen",), twin_of=("lost",)),
    Plot("read twice", "ok", _twice(), ("duplicated",)),
    Plot("read elsewhere than acknowledged", "ok", _acknowledged_before, ("duplicated",)),
    Plot("read by two", "ok", _reading("redelivered"), twin_of=("duplicated",)),
    Plot("read, offset unknown", "ok", _seen(has_offset=False), twin_of=("duplicated", "unseen", "lost")),
    Plot("failed but read", "fail", _nothing, ("failed_but_present",)),
    Plot("failed, read damaged", "fail", _seen(damaged=_DAMAGED), ("corrupted",), twin_of=("failed_but_present",)),
    Plot("read damaged elsewhere", "ok", _damaged_elsewhere(remains=False), ("lost", "corrupted")),
    Plot("read damaged beside it", "ok", _damaged_elsewhere(remains=True), ("corrupted",), twin_of=("duplicated",)),
    Plot("failed, not read", "fail", _absent, twin_of=("failed_but_present",)),
    Plot("phantom of nobody", "ok", _beside(_of_nobody), finds_beside=("phantom",)),
    Plot("phantom without an id", "ok", _beside(_no_id), finds_beside=("phantom",)),
    Plot("in flight, read", "info", _in_flight, twin_of=("phantom",)),
    Plot("misplaced", "info", _elsewhere(stays=False), ("misplaced",)),
    Plot("misplaced, acknowledged", "ok", _elsewhere(stays=True), ("misplaced", "lost")),
    Plot("sent again elsewhere", "info", _sent_again_elsewhere, twin_of=("misplaced",)),
    Plot("under another key", "ok", _keyed(_OWN, "live", read=_OTHER), ("misplaced",)),
    Plot("under another key, undecided", "info", _keyed(_OWN, "live", read=_OTHER), ("misplaced",)),
    Plot("under another key to two", "ok", _keyed(_OWN, "live", read=_OTHER, reading="redelivered"), ("misplaced",)),
    Plot("its key, read by two", "ok", _keyed(_OWN, read=None, reading="redelivered"), twin_of=("misplaced",)),
    Plot("corrupted", "ok", _seen(damaged=_DAMAGED), ("corrupted",)),
    Plot("read by two, whole", "ok", _reading("redelivered"), twin_of=("corrupted", "rewritten_offset")),
)
#: In histories whose group commits.
COMMITTED: tuple[Plot, ...] = (
    Plot("committed, and not processed", "ok", _seen(reading="assigned beyond it", committed=True), ("missed",)),
    Plot("committed, and given to another", "ok", _seen(reading="redelivered", committed=True), twin_of=("missed",)),
)
BEYOND = Plot("beyond all readers", "ok", _nothing, ("unseen",), twin_of=("lost",))


def plant(topic: str, first_worker: int, random: Random, records: int = 300, times: int = 2) -> Planted:
    """One history with a final read of isolation level read_uncommitted, read by a group while it was written: each of
    PLOTS ``times`` times. One of its workers is transactional."""
    world = begin(topic, first_worker, random, records, times)
    _make_transactional(world)
    delete_first(world, 0, DELETED.name)
    carry_out(world, PLOTS)
    settle(world)
    world.untouched = {place.record for place in world.logs[UNREAD]}
    carry_out(world, PARTLY_READ)
    number(world)
    for partition in range(len(world.logs)):
        _consume(world, partition)
        end = end_of(world.logs[partition])
        for event in ("last-stable", "high-watermark"):
            tell(world, partition, STRAY_MEMBER, END, event, end)
    read_finally(world, {0: times})
    read_to = world.tables["log_ends"][UNREAD]["read_to"]
    beyond = (place.record for place in world.logs[UNREAD] if place.offset >= read_to)
    world.own(NOT_READ.name, *(record for record in beyond if record in world.untouched))
    return world.planted()


def plant_committed(topic: str, first_worker: int, random: Random, records: int = 100, times: int = 2) -> Planted:
    """One history with a final read, of a group that commits: each of COMMITTED ``times`` times."""
    world = begin(topic, first_worker, random, records, times)
    carry_out(world, COMMITTED)
    settle(world)
    number(world)
    for partition, log in enumerate(world.logs):
        _consume(world, partition)
        for place in log:
            if place.committed:
                tell(world, partition, MEMBERS[0], END, "commit", place.offset + 1)
    read_finally(world)
    return world.planted()


def plant_imported(topic: str, first_worker: int, random: Random, records: int = 200, times: int = 2) -> Planted:
    """One history without a final read: each of IMPORTED ``times`` times."""
    world = begin(topic, first_worker, random, records, times)
    beyond = [log.pop() for log in world.logs[:UNREAD] for _ in range(times)]
    for place in beyond:
        world.sends[place.record].update(outcome="ok", error=None, completed_ns=END)
        world.own(BEYOND.name, place.record)
        world.found(BEYOND.name, BEYOND.finds, place.record)
        place.live = False
    for log in world.logs[:UNREAD]:  # the last that was read tells of all before it that it was not beyond
        world.sends[log[-1].record].update(outcome="ok", error=None, completed_ns=END)
        world.untouched.discard(log[-1].record)
    carry_out(world, IMPORTED)
    settle(world)
    for place in reversed(beyond):
        world.log_of(world.sends[place.record]).append(place)
    number(world)
    for partition in range(len(world.logs)):
        _consume(world, partition)
    return world.planted()


def _make_transactional(world: World) -> None:
    worker = world.first_worker + _TRANSACTIONAL_WORKER
    sent = [send for send in world.tables["sends"] if send["worker"] == worker]
    size = 3
    for number_, first in enumerate(range(0, len(sent), size)):
        records = sent[first : first + size]
        intent, outcome = world.random.choices([_COMMITTED, _ABORTED, ("commit", "info")], (5, 6, 1))[0]
        ending_ns = records[-1]["invoked_ns"] + 1000 * MS
        world.tables["transactions"].append(
            {
                "worker": worker,
                "incarnation": records[-1]["incarnation"],
                "transaction": number_,
                "intent": intent,
                "began_ns": records[0]["invoked_ns"] - 1,
                "ending_ns": ending_ns,
                "ended_ns": ending_ns + MS if outcome == "ok" else None,
                "outcome": outcome,
            }
        )
        for send in records:
            send["transaction"] = number_


#: What a member that is no owner gets too, and what the owner passes over.
_ANOTHER_S = {"left to another", "sought over for another"}
_PASSED = {"skipped", "left to another"}


def _again(log: list[Place], place: Place) -> list[Place]:
    """What a member gets again up to a place. (Brokers may tell any offset of the log start that it sought.)"""
    start = 0 if place.reading == "sought the log start" else log.index(place)
    return [one for one in log[start : log.index(place) + 1] if one.final or one is place]


def _consume(world: World, partition: int) -> None:
    """What a group's members get of a log as it grows, and what becomes of their places there."""
    owner, clock = 0, 0

    def get(reader: int, *places: Place, incarnation: int = 0) -> None:
        nonlocal clock
        for place in places:
            clock += STEP
            deliver(world, place, partition, reader, clock, incarnation)

    def put(reader: int, event: str, offset: int) -> None:
        nonlocal clock
        clock += STEP
        tell(world, partition, reader, clock, event, offset)

    put(MEMBERS[owner], "assign", 0)
    for place in world.logs[partition]:
        clock = max(clock, place.at_ns + LAG)
        member, other = MEMBERS[owner], MEMBERS[1 - owner]
        here, beyond = place.offset, place.offset + 1
        if place.live and place.reading in _ANOTHER_S:
            get(STRAY_MEMBER, place, incarnation=len(world.tables["reads"]))
        if not place.live or place.reading in _PASSED:
            continue
        match place.reading:
            case "sought over for another":
                put(member, "seek", beyond)
            case "assigned beyond it":
                put(member, "revoke", here)
                put(member, "assign", beyond)
            case "went back":
                get(member, place, place)
            case "sought back" | "sought the log start":
                get(member, place)
                put(member, "seek", here)
                get(member, *_again(world.logs[partition], place))
            case "redelivered":
                get(member, place)
                put(member, "revoke", beyond)
                put(other, "assign", here)
                get(other, place)
                owner = 1 - owner
            case "two owners":
                get(STRAY_MEMBER, place, incarnation=len(world.tables["reads"]))
                get(member, place)
            case "handed over":
                get(member, place)
                put(member, "revoke", beyond)
                put(other, "assign", beyond)
                owner = 1 - owner
            case "its owner died":
                get(member, place)
                put(other, "assign", beyond)
                owner = 1 - owner
            case _:
                get(member, place)
    put(MEMBERS[owner], "end-of-partition", end_of(world.logs[partition]))
