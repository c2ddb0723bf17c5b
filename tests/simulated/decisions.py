"""Each lost record of simulated histories, decided one by one from its tables alone, without Spark."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from checkers.evidence.again import COLUMNS, COLUMNS_OF_GONE, COLUMNS_OF_VANISHED, acknowledged_again
from checkers.evidence.causes import decided
from checkers.evidence.decision import Case, Decision
from checkers.evidence.elections import elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import NO_EPOCH, Log
from checkers.evidence.neighbours import attached
from checkers.evidence.record_ranges import HANDED_ON_NS, RecordRange
from checkers.evidence.spare_offsets import COLUMNS as COLUMNS_OF_SPARE
from checkers.evidence.spare_offsets import InFlight, spare_offsets
from checkers.evidence.standing import begun_at, delivered, possible_faults
from checkers.evidence.written import WriteCounter
from checkers.leadership import Partition, spans
from harness.core.anomalies import LOST, VANISHED, Anomaly
from harness.history.schema import OBSERVATIONS, SENDS, Outcome, Phase
from tests.checkers.notation import SECOND
from tests.simulated.faults import CONTROLLER
from tests.simulated.log import Record
from tests.simulated.play import Played
from tests.simulated.truth import Loss, losses

_WIDTH = 64
_SENT = pa.schema([SENDS.field(name) for name in COLUMNS])


def evidence(played: Played) -> Evidence:
    """What a judge knows of a history."""
    observations = pa.Table.from_pylist(played.tables["observations"], OBSERVATIONS)
    names = {broker: f"b{broker}" for broker in played.brokers}
    configuration = played.settings.configuration
    sends = played.tables["sends"]
    times = [at for row in sends for at in (row["invoked_ns"], row["completed_ns"]) if at is not None]
    times += [row["read_ns"] for row in played.tables["reads"] if row["phase"] == Phase.FINAL]
    logs = {(end["topic"], end["partition"]): _log(played, end) for end in played.tables["log_ends"]}
    vanished = _vanished(played)
    known = Evidence(
        configuration=configuration,
        elections=elections(observations, spans(observations), names, configuration, played.tables["faults"]),
        names=names,
        faults=possible_faults(played.tables["faults"]),
        logs=begun_at(logs, vanished),
        end_ns=max(times, default=0),
        last_replica_guarded=played.settings.elr,
        controllers=frozenset({CONTROLLER}),
        silence_ns=played.settings.session_ns - SECOND,
    )
    known = replace(known, delivered=delivered(vanished, known))
    reported = [row for row in sends if row["outcome"] == Outcome.OK and row["offset"] is not None]
    sent = pa.Table.from_pylist([{name: row[name] for name in COLUMNS} for row in reported], _SENT)
    gone = pa.Table.from_pylist(_not_there(played, reported), COLUMNS_OF_GONE)
    read = [{name: row[name] for name in COLUMNS_OF_VANISHED.names} for row in _gone(played)]
    given = pa.Table.from_pylist(read, COLUMNS_OF_VANISHED)
    in_flight, writes = InFlight(known.elections, known.acting), WriteCounter(known.elections, known.logs)
    placed, not_there = writes.counting(in_flight.counting([sent])), writes.without([gone])
    again = acknowledged_again(placed, not_there, [given], known.elections, known.acting, logs, known.end_ns)
    spare = _spare(played, known, in_flight)
    return replace(known, again=again, spare=spare, written=writes.each(), _edges={}, _moments={})


def _spare(played: Played, known: Evidence, in_flight: InFlight) -> Mapping[tuple[Partition, int], int]:
    stands = {(place, record.id): record.offset for place, log in played.final.items() for record in log}
    sends = played.tables["sends"]
    silent = [row for row in sends if row["outcome"] != Outcome.OK or row["offset"] is None]
    elsewhere = [
        row
        for row in sends
        if row["outcome"] == Outcome.OK
        and stands.get(((row["topic"], row["partition"]), row["record_id"]), row["offset"]) != row["offset"]
    ]
    tables = ([pa.Table.from_pylist(rows, COLUMNS_OF_SPARE)] for rows in (silent, elsewhere))
    return spare_offsets(*tables, in_flight.after(), known.configuration)


def _not_there(played: Played, sends: list[dict[str, object]]) -> list[dict[str, object]]:
    """What is not where it was acknowledged, each with the epoch that readers were given it with."""
    there = {(place, record.offset, record.id) for place, log in played.final.items() for record in log}
    epochs = _epochs(played)
    return [
        {
            **{name: row[name] for name in ("topic", "partition", "offset")},
            "sent_ns": row["invoked_ns"],
            "acknowledged_ns": row["completed_ns"],
            "read_epoch": _only(epochs.get((row["record_id"], row["offset"]), set())),
        }
        for row in sends
        for place in [(row["topic"], row["partition"])]
        if place in played.final and (place, row["offset"], row["record_id"]) not in there
    ]


def _epochs(played: Played) -> dict[tuple[object, object], set[int]]:
    """With which epochs readers were given what is gone, by its id and place."""
    found: dict[tuple[object, object], set[int]] = {}
    for row in _gone(played):
        found.setdefault((row["record_id"], row["offset"]), set()).add(row["leader_epoch"])
    return found


def _log(played: Played, end: dict[str, object]) -> Log:
    found: dict[int, list[int]] = {}
    for record in played.final.get((end["topic"], end["partition"]), ()):
        found.setdefault(_epoch_seen(played, record), []).append(record.offset)
    rows = [(epoch, min(offsets), max(offsets)) for epoch, offsets in sorted(found.items())]
    return Log(*np.array(rows, np.int64).reshape(-1, 3).T, end=int(end["log_end"]))


def _epoch_seen(played: Played, record: Record) -> int:
    return record.epoch if played.settings.consumers_see_epochs else NO_EPOCH


def _gone(played: Played) -> Iterator[dict[str, object]]:
    there = {(place, record.id) for place, log in played.final.items() for record in log}
    for row in played.tables["reads"]:
        place = (row["topic"], row["partition"])
        if row["phase"] == Phase.LIVE and place in played.final and (place, row["record_id"]) not in there:
            yield row


def _vanished(played: Played) -> list[Case]:
    sent = {row["record_id"]: row["invoked_ns"] for row in played.tables["sends"]}
    return [
        Case(
            (row["topic"], row["partition"]),
            sent[row["record_id"]],
            row["read_ns"],
            False,
            row["offset"],
            row["offset"],
            row["leader_epoch"],
            row["read_ns"],
        )
        for row in _gone(played)
    ]


def decisions(played: Played) -> Iterator[tuple[Anomaly, Loss, Decision]]:
    """Each lost or vanished record with its decision."""
    known, truth = evidence(played), losses(played)
    sends = {row["record_id"]: row for row in played.tables["sends"]}
    read: dict[int, dict[str, object]] = {}
    for row in _gone(played):
        read.setdefault(row["record_id"], row)
    epochs, last, first = _epochs(played), _last_read(played), _first_read(played)
    holes = {loss.record.id for loss in truth if _in_hole(played, loss)}
    each: dict[Anomaly, list[RecordRange]] = {}
    by_id = {loss.record.id: loss for loss in truth}
    for anomaly in (LOST, VANISHED):
        some = [loss for loss in truth if (loss.acknowledged_ns if anomaly is LOST else read.get(loss.record.id))]
        ranges = []
        for loss in some:
            send, given = sends[loss.record.id], read.get(loss.record.id) if anomaly is VANISHED else None
            acknowledged = send["outcome"] == Outcome.OK
            offset = given["offset"] if given else send["offset"]
            until = send["completed_ns"] if acknowledged else given["read_ns"]
            case = Case(
                loss.place,
                send["invoked_ns"],
                until,
                acknowledged,
                offset,
                offset,
                given["leader_epoch"] if given else _only(epochs.get((loss.record.id, offset), set())),
                given["read_ns"] if given else None,
                loss.record.id in holes,
                fetched_ns=last.get((loss.record.id, offset)),
                received_ns=first.get((loss.record.id, offset)) if known.without_epochs(loss.place) else None,
            )
            ranges.append(_range(case, loss))
        each[anomaly] = decided(ranges, anomaly, known)
    for anomaly, other in ((LOST, VANISHED), (VANISHED, LOST)):
        spare = known.spare if anomaly is LOST else {}
        for part in attached(each[anomaly], _WIDTH, known.logs, (), spare, known.written, each[other]):
            assert part.decision is not None
            yield anomaly, by_id[part.again_to or 0], part.decision


def _last_read(played: Played) -> dict[tuple[int, int], int]:
    """When a consumer can have fetched a record last, by record and offset."""
    found: dict[tuple[int, int], int] = {}
    for row in played.tables["reads"]:
        if row["phase"] == Phase.LIVE:
            place = row["record_id"], row["offset"]
            found[place] = max(row["read_ns"] - HANDED_ON_NS, found.get(place, 0))
    return found


def _first_read(played: Played) -> dict[tuple[int, int], int]:
    """When a consumer had got a record first, by record and offset."""
    found: dict[tuple[int, int], int] = {}
    for row in played.tables["reads"]:
        if row["phase"] == Phase.LIVE:
            found.setdefault((row["record_id"], row["offset"]), row["read_ns"])
    return found


def _only(epochs: set[int]) -> int | None:
    return next(iter(epochs)) if len(epochs) == 1 else None


def _range(case: Case, loss: Loss) -> RecordRange:
    at = case.until_ns or 0
    offset = case.first_offset
    # (A record's id stands where a duplicate's second offset would.)
    return RecordRange(*case.of, 0, offset, offset, loss.record.id, 1, 1, at, at, case.hole, case)


def _in_hole(played: Played, loss: Loss) -> bool:
    here = [record.offset for record in played.final.get(loss.place, ())]
    offset = loss.record.offset
    if offset in here or not here:
        return False
    below, above = ([o for o in here if o < offset], [o for o in here if o > offset])
    epochs = {record.offset: _epoch_seen(played, record) for record in played.final[loss.place]}
    return bool(below and above and epochs[max(below)] == epochs[min(above)])
