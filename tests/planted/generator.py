"""Realistic histories with known anomalies at seeded places, and besides them what is legal though suspicious."""

from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from random import Random
from typing import Any

from harness.core.history import record_id

MS = 1_000_000
_MEMBER, _OTHER = 50, 51
WORKERS = 3
PARTITIONS = 2
UNKNOWN_WORKER = 9
ANOMALIES = (
    "lost",
    "vanished",
    "failed_but_present",
    "duplicated",
    "phantom",
    "misplaced",
    "corrupted",
    "rewritten_offset",
    "acknowledged_elsewhere",
    "reordered",
    "real_time_order",
    "skipped",
    "went_back",
    "two_owners",
)


@dataclass
class Planted:
    """The rows of one history, and the record ids that each anomaly was planted in."""

    topic: str
    sends: list[dict[str, Any]] = field(default_factory=list)
    positions: list[dict[str, Any]] = field(default_factory=list)
    reads: list[dict[str, Any]] = field(default_factory=list)
    log_ends: list[dict[str, Any]] = field(default_factory=list)
    ids: dict[str, set[int]] = field(default_factory=dict)


_READING = ("skipped", "went_back", "two_owners")
_LEGAL = ("rebalance", "seek")


@dataclass
class _Entry:
    """A place in a log: whose record, and what readers see of it. One that ``shares`` has the offset of the next.

    ``read``: what happens as the consumer gets there.
    """

    record: int
    final: bool = True
    live: bool = True
    intact: bool = True
    shares: bool = False
    read: str = ""


def plant(topic: str, first_worker: int, random: Random, records: int = 300, times: int = 3) -> Planted:
    """One run of a few workers, in which each anomaly of ANOMALIES is planted ``times`` times.

    Legal and there besides: writes that timed out, present and absent; proven failures, absent; records that a consumer
    was given more than once; writes still in flight at the end; a leader change in which many time out at once; records
    of several workers that were in flight together, appended in another order than they were sent; a consumer that is
    put back by a rebalance, and one that seeks over a record.
    """
    history = Planted(topic)
    logs: list[list[_Entry]] = [[] for _ in range(PARTITIONS)]
    pools: dict[str, list[dict[str, Any]]] = {"ok": [], "info": [], "fail": []}
    for n in range(records):
        send = _send(
            topic, first_worker + n % WORKERS, n // WORKERS, n, random, changing=records // 2 <= n < records // 2 + 20
        )
        pools[send["outcome"]].append(send)
        history.sends.append(send)
    chosen = {
        **_choose(pools["ok"], ("lost", "duplicated", "corrupted", "acknowledged_elsewhere"), times, random),
        **_choose(pools["info"], ("vanished", "misplaced", "rewritten_offset"), times, random),
        **_choose(pools["fail"], ("failed_but_present",), times, random),
    }
    fate = {send["record_id"]: anomaly for anomaly, sends in chosen.items() for send in sends}
    for send in history.sends:
        _append(send, fate.get(send["record_id"]), logs, random)
    untouched = {send["record_id"] for send in pools["ok"]} - fate.keys()
    sends = {send["record_id"]: send for send in history.sends}
    moved = {how: _displace(how, times, logs, sends, untouched, random) for how in ("reordered", "real_time_order", "")}
    for send in chosen["rewritten_offset"]:
        log = logs[send["partition"]]
        place = random.choice([n for n, entry in enumerate(log) if entry.record in untouched])
        log.insert(place, _Entry(send["record_id"], final=False, live=True, shares=True))
        log[place + 1].live = False
        untouched.discard(log[place + 1].record)
    strangers = [record_id(first_worker + UNKNOWN_WORKER, n) for n in range(times)]
    for stranger in strangers:
        log = random.choice(logs)
        places = [n for n in range(len(log) + 1) if n == 0 or not log[n - 1].shares]
        log.insert(random.choice(places), _Entry(stranger))
    history.ids = {anomaly: {send["record_id"] for send in sends} for anomaly, sends in chosen.items()}
    for happening in (*_LEGAL, *_READING):
        # One that two members get is in the middle of the stay of one of them.
        inside = {
            entry.record
            for log in logs
            for before, entry in pairwise(log)
            if happening != "two_owners" or (before.live and not before.read)
        }
        picked = random.sample(sorted(untouched & inside), times)
        untouched -= {*picked}
        for entry in (entry for log in logs for entry in log if entry.record in picked):
            entry.read = happening
        history.ids |= {happening: set(picked)} if happening in _READING else {}
    history.ids |= {how: records for how, records in moved.items() if how}
    history.ids["phantom"] = set(strangers)
    _read(history, logs, random)
    return history


def _send(topic: str, worker: int, sequence: int, n: int, random: Random, changing: bool) -> dict[str, Any]:
    weights = (0.2, 0.75, 0.05) if changing else (0.8, 0.1, 0.1)
    outcome = random.choices(("ok", "info", "fail"), weights)[0]
    in_flight = outcome == "info" and random.random() < 0.2
    return {
        "worker": worker,
        "incarnation": 0,
        "sequence": sequence,
        "topic": topic,
        "partition": random.randrange(PARTITIONS),
        "record_id": record_id(worker, sequence),
        "invoked_ns": n * MS,
        "completed_ns": None if in_flight else (n + random.randint(1, 50)) * MS,
        "outcome": outcome,
        "error": {"ok": None, "info": "_MSG_TIMED_OUT", "fail": "_QUEUE_FULL"}[outcome],
    }


def _choose(
    pool: list[dict[str, Any]], anomalies: tuple[str, ...], times: int, random: Random
) -> dict[str, list[dict[str, Any]]]:
    picked = random.sample(pool, times * len(anomalies))
    return {anomaly: picked[n * times : (n + 1) * times] for n, anomaly in enumerate(anomalies)}


def _append(send: dict[str, Any], fate: str | None, logs: list[list[_Entry]], random: Random) -> None:
    """What the cluster did with a record: its entries in the logs."""
    log = logs[send["partition"]]
    entry = _Entry(send["record_id"])
    match fate:
        case "lost":
            log.append(_Entry(send["record_id"], final=False, live=False))
        case "vanished":
            log.append(_Entry(send["record_id"], final=False, live=True))
        case "misplaced":
            logs[(send["partition"] + 1) % PARTITIONS].append(entry)
        case "acknowledged_elsewhere":
            log += [_Entry(send["record_id"], final=False, live=False), entry]
        case "rewritten_offset":
            log.append(entry)
        case "corrupted":
            log.append(_Entry(send["record_id"], intact=False))
        case "duplicated":
            log += [entry, _Entry(send["record_id"])]
        case "failed_but_present":
            log.append(entry)
        case None if send["outcome"] == "ok" or (send["outcome"] == "info" and random.random() < 0.5):
            log.append(entry)


def _displace(
    how: str,
    times: int,
    logs: list[list[_Entry]],
    sends: dict[int, dict[str, Any]],
    untouched: set[int],
    random: Random,
) -> set[int]:
    """Move records behind one that came later: of their own worker while in flight (``reordered``), of another after
    they were acknowledged (``real_time_order``), or of another while in flight, which is legal."""
    moved: set[int] = set()
    for record in random.sample(sorted(untouched), len(untouched)):
        if record not in untouched:
            continue
        log = logs[(send := sends[record])["partition"]]
        place = next(n for n, entry in enumerate(log) if entry.record == record)
        in_flight = 1 * MS if how == "real_time_order" else 50 * MS
        passed: list[_Entry] = []
        for entry in log[place + 1 :]:
            passed.append(entry)
            other = sends[entry.record]
            own = other["worker"] == send["worker"]
            late = other["invoked_ns"] > send["invoked_ns"] + in_flight
            if entry.record in untouched and own == (how == "reordered") and late == (how == "real_time_order"):
                log.insert(place + len(passed), log.pop(place))
                send["completed_ns"] = send["invoked_ns"] + in_flight
                moved.add(record)
                untouched -= {record, entry.record}
                break
            if own or late:
                break
        if len(moved) == times:
            return moved
    raise AssertionError(f"too few records to plant {how}")


def _read(history: Planted, logs: list[list[_Entry]], random: Random) -> None:
    sends = {send["record_id"]: send for send in history.sends}
    for partition, log in enumerate(logs):
        offsets = [0, *accumulate(int(not entry.shares) for entry in log)]
        for offset, entry in zip(offsets, log, strict=False):
            send = sends.get(entry.record)
            if send is not None and send["outcome"] == "ok":
                send.setdefault("offset", offset)
            if entry.live:
                _consume(history, partition, offset, entry)
            if entry.final:
                history.reads.append(_delivery(history, partition, offset, entry, 100, phase="final"))
        _tell(history, partition, "end-of-partition", offsets[-1])
        end = {"log_start": 0, "log_end": offsets[-1], "read_to": offsets[-1], "complete": True}
        history.log_ends.append({"topic": history.topic, "partition": partition, **end})


def _consume(history: Planted, partition: int, offset: int, entry: _Entry) -> None:
    """What a group's member gets of one place, and what becomes of its own place there."""

    def get(reader: int = _MEMBER, incarnation: int = 0) -> None:
        history.reads.append(_delivery(history, partition, offset, entry, reader, incarnation))

    match entry.read:
        case "skipped":
            return
        case "went_back":
            get()
        case "two_owners":
            get(_OTHER, incarnation=entry.record % 1000)
        case "rebalance":
            get()
            _tell(history, partition, "revoke", offset + 1)
            _tell(history, partition, "assign", offset)
        case "seek":
            _tell(history, partition, "seek", offset + 1)
            return
    get()


def _tell(history: Planted, partition: int, event: str, offset: int) -> None:
    seat = {"reader": _MEMBER, "incarnation": 0, "topic": history.topic, "partition": partition}
    history.positions.append({**seat, "at_ns": len(history.reads) * MS - MS // 2, "event": event, "offset": offset})


def _delivery(
    history: Planted,
    partition: int,
    offset: int,
    entry: _Entry,
    reader: int,
    incarnation: int = 0,
    phase: str = "live",
) -> dict[str, Any]:
    at = len(history.reads)
    return {
        "reader": reader,
        "incarnation": incarnation,
        "phase": phase,
        "poll": at,
        "topic": history.topic,
        "partition": partition,
        "offset": offset,
        "record_id": entry.record,
        "intact": entry.intact,
        "timestamp_ms": 0,
        "read_ns": at * MS,
    }
