"""The trace of one record: when it was sent, acknowledged and read, how its transaction ended, when readers got its
partition, and when a group committed past it. Each event has the brokers' reports and the active faults of its time.

It judges nothing, and reads only the rows that it needs, without Spark. harness/report/record_trace.py makes sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from checkers.archive import AnomalyEntry, AnomalyRange, Archive, Row
from checkers.evidence.faults import active
from checkers.evidence.store import StoredRows
from checkers.leadership import Partition, views
from checkers.stories import Held, held
from harness.core.anomalies import BY_NAME
from harness.core.errors import HistoryError
from harness.core.trace import (
    Answer,
    BrokerReport,
    Fate,
    FinalLog,
    InLog,
    InReads,
    Instead,
    InTransaction,
    Moment,
    MomentFacts,
    Place,
    PositionChange,
    Reading,
    Sending,
)
from harness.history.paths import VERDICT_FILE, checking
from harness.history.schema import (
    ENDS_INTERVAL,
    FINAL_READER,
    UNKNOWN_OFFSET,
    Outcome,
    Phase,
    PositionEvent,
    sequence_of,
    worker_of,
)

_ANSWERS = {Outcome.OK: "acknowledged", Outcome.FAIL: "failed", Outcome.INFO: "unknown"}
_MOVES = frozenset(ENDS_INTERVAL)


@dataclass(frozen=True)
class RecordTrace:
    """Everything that is known about a record. ``ended``: what became of it in each of its partitions.

    ``anomalies`` are {name, standing, run, finding}, the last three only for a judged run; ``finding`` is the number of
    a finding of the verdict, from 0. ``not_known``: anomalies of the run that may or may not contain the record,
    because their records are not stored. ``holders``: which brokers had a lost record, over time.
    """

    record_id: int
    worker: int
    sequence: int
    moments: list[Moment]
    ended: list[Fate]
    anomalies: list[Row] = field(default_factory=list)
    not_known: list[str] = field(default_factory=list)
    holders: list[Held] = field(default_factory=list)


def by_record(archive: Archive, record: int) -> RecordTrace:
    """The trace of the record with this id. Raises HistoryError if the run does not know it."""
    mine = pc.field("record_id") == record
    sends, reads = archive.rows("sends", mine), archive.rows("reads", mine)
    if not sends and not reads:
        worker = worker_of(record)
        sent = archive.range_of("sends", "sequence", pc.field("worker") == worker)
        known = f"worker {worker} sent #{sent[0]}–#{sent[1]}" if sent else f"the workers that sent: {_workers(archive)}"
        name = f"worker {worker} #{sequence_of(record)}"
        raise HistoryError(f"{archive.directory}: nothing is known about {name}; {known}")
    moments = [moment for row in sends for moment in _of_send(archive, row)]
    keys = {row["key"] for row in sends}
    moments += [_of_read(archive, row, keys) for row in reads]
    moments += [moment for row in sends for moment in _of_transaction(archive, row)]
    moments += [moment for row in sends for moment in _of_positions(archive, row, [*sends, *reads])]
    found, not_known = _anomalies(archive, record)
    return RecordTrace(
        record_id=record,
        worker=worker_of(record),
        sequence=sequence_of(record),
        moments=sorted(moments, key=lambda moment: moment.at_ns),
        ended=list(_fates(archive, record, sends, reads)),
        anomalies=[_anomaly(archive, name, row) for name, row in found.items()],
        not_known=not_known,
        holders=held(archive, found),
    )


def by_offset(archive: Archive, of: Partition, offset: int) -> list[RecordTrace]:
    """The traces of all records that were acknowledged or read at an offset, in the order of time.

    Raises HistoryError if there is none.
    """
    topic, partition = of
    here = (pc.field("topic") == topic) & (pc.field("partition") == partition)
    there = here & (pc.field("offset") == offset)
    acknowledged = [
        (row["completed_ns"] or row["invoked_ns"], row["record_id"]) for row in archive.rows("sends", there)
    ]
    read = [(row["read_ns"], row["record_id"]) for row in archive.rows("reads", there)]
    records = dict.fromkeys(record for _, record in sorted(acknowledged + [r for r in read if r[1] is not None]))
    if records:
        return [by_record(archive, record) for record in records]
    if read:
        raise HistoryError(f"{topic}-{partition}:{offset} was read, but is not a record of ours: it has no record id")
    ranges = [archive.range_of(table, "offset", here) for table in ("sends", "reads")]
    known = [one for one in ranges if one is not None]
    if known:
        hint = f"offsets {min(low for low, _ in known)}–{max(high for _, high in known)} are known there"
    else:
        hint = f"the run has {', '.join(f'{t}-{p}' for t, p in sorted(archive.ends)) or 'no partition'}"
    raise HistoryError(f"{archive.directory}: nothing was acknowledged or read at {topic}-{partition}:{offset}; {hint}")


def range_texts(archive: Archive) -> dict[str, list[str]]:
    """The sentences of each anomaly's ranges, from verdict.json. Raises HistoryError if the run was not judged."""
    if archive.verdict is None:
        raise HistoryError(f"{archive.directory / VERDICT_FILE}: not judged yet; `kafka-trial check` judges it")
    anomalies = archive.verdict.anomalies
    if any(anomaly.runs is None for anomaly in anomalies.values()):
        raise HistoryError(
            f"{archive.directory / VERDICT_FILE}: of an old version, without causes; `kafka-trial check` adds them"
        )
    return {name: [part.text for part in anomaly.runs or []] for name, anomaly in anomalies.items()}


def _of_send(archive: Archive, row: Row) -> list[Moment]:
    by = Sending(row["worker"], row["incarnation"], row["key"])
    moments = [_moment(archive, row, row["invoked_ns"], "sent", by, None)]
    if row["completed_ns"] is None:
        return moments
    event = _ANSWERS[Outcome(row["outcome"])]
    return [*moments, _moment(archive, row, row["completed_ns"], event, Answer(row["error"]), row["offset"])]


def _of_read(archive: Archive, row: Row, keys: set[str | None]) -> Moment:
    """The moment of a read. ``keys``: those with which the record was sent."""
    reading = Reading(
        row["reader"],
        row["incarnation"],
        replica=archive.file.broker(row["reader"] - FINAL_READER) if row["phase"] == Phase.REPLICA else None,
        leader_epoch=row["leader_epoch"],
        key=row["key"],
        other_key=bool(keys) and archive.has_column("reads", "key") and row["key"] not in keys,
        intact=row["intact"],
    )
    return _moment(archive, row, row["read_ns"], f"read {row['phase']}", reading, row["offset"])


def _of_transaction(archive: Archive, send: Row) -> list[Moment]:
    if send["transaction"] is None:
        return []
    mine = (pc.field("worker") == send["worker"]) & (pc.field("transaction") == send["transaction"])
    moments = []
    for row in archive.rows("transactions", mine):
        one = InTransaction(
            row["worker"], row["incarnation"], row["transaction"], row["intent"], row["outcome"], row["error"]
        )
        moments += [
            _moment(archive, {**send, **row}, at_ns, event, one, None)
            for event in ("began", "ending", "ended")
            if (at_ns := row[f"{event}_ns"]) is not None
        ]
    return moments


def _of_positions(archive: Archive, send: Row, known: list[Row]) -> list[Moment]:
    """Assignments and losses of the record's partition after its send, and the first commit past the record."""
    of = (send["topic"], send["partition"])
    here = (pc.field("topic") == of[0]) & (pc.field("partition") == of[1])
    rows = sorted(archive.rows("positions", here), key=lambda row: row["at_ns"])
    offsets = [row["offset"] for row in known if row["offset"] is not None and (row["topic"], row["partition"]) == of]
    commits = [row for row in rows if row["event"] == PositionEvent.COMMIT and row["error"] is None]
    past = [row for row in commits if offsets and (row["offset"] or 0) > max(offsets)]
    moved = [row for row in rows if row["event"] in _MOVES and row["at_ns"] >= send["invoked_ns"]]
    return [_of_position(archive, row) for row in [*moved, *past[:1]]]


def _of_position(archive: Archive, row: Row) -> Moment:
    position = PositionChange(row["reader"], row["incarnation"], _place(archive, row))
    return _moment(archive, row, row["at_ns"], row["event"], position, row["offset"])


def _place(archive: Archive, row: Row) -> Place:
    if row["offset"] is not None and row["offset"] >= 0:
        return Place.OFFSET
    if not archive.file.final_read:
        return Place.UNKNOWN
    grouped = archive.file.configuration.grouped and row["event"] == PositionEvent.ASSIGN
    return Place.COMMITTED if grouped else Place.BEGINNING


def _moment(archive: Archive, row: Row, at_ns: int, event: str, facts: MomentFacts, offset: int | None) -> Moment:
    of = (row["topic"], row["partition"])
    seen = [
        BrokerReport(
            span.observer,
            None if span.leader < 0 else archive.file.broker(span.leader),
            span.leader_epoch,
            [archive.file.broker(broker) for broker in span.isr],
        )
        for span in views(archive.seen, of, at_ns)
    ]
    return Moment(at_ns, event, facts, *of, offset, seen, active(archive.faults, at_ns))


def _workers(archive: Archive) -> str:
    return ", ".join(map(str, archive.distinct("sends", "worker"))) or "none"


def _fates(archive: Archive, record: int, sends: list[Row], reads: list[Row]) -> Iterator[Fate]:
    """What became of the record in each partition to which it was sent, or in which it was read."""
    own = {(row["topic"], row["partition"], row["offset"]) for row in sends if row["outcome"] == Outcome.OK}
    # Damaged bytes prove a record only at the offset of its acknowledgement.
    proven = [row for row in reads if row["intact"] or (row["topic"], row["partition"], row["offset"]) in own]
    for of in dict.fromkeys((row["topic"], row["partition"]) for row in (*sends, *reads)):
        here = [row for row in proven if (row["topic"], row["partition"]) == of]
        if not archive.file.final_read:
            yield InReads(*of, bool(here), sorted({row["offset"] for row in here} - {UNKNOWN_OFFSET}))
            continue
        offsets = sorted({row["offset"] for row in here if row["phase"] == Phase.FINAL})
        log = _log(archive.ends.get(of))
        gone = log is not None and not offsets
        yield InLog(*of, log, offsets, _instead(archive, record, of, [*sends, *reads]) if gone else None)


def _log(end: Row | None) -> FinalLog | None:
    if end is None:
        return None
    known = end["log_end"] if end["log_end"] >= 0 else None
    return FinalLog(end["log_start"], known, end["read_to"], end["complete"])


def _instead(archive: Archive, record: int, of: Partition, rows: list[Row]) -> Instead | None:
    """What the final log has at the offset at which the record was acknowledged or read; None if it was not read to
    there."""
    offset = next((r["offset"] for r in rows if (r["topic"], r["partition"]) == of and r["offset"] is not None), None)
    if offset is None or offset >= archive.ends[of]["read_to"]:
        return None
    there = archive.rows(
        "reads",
        (pc.field("topic") == of[0])
        & (pc.field("partition") == of[1])
        & (pc.field("offset") == offset)
        & (pc.field("phase") == Phase.FINAL.value),
    )
    return Instead(offset, next((row["record_id"] for row in there if row["record_id"] not in {record, None}), None))


def _stored_of(stored: StoredRows, record: int) -> list[Row]:
    """The rows of an anomaly that contain a record: as ``record_id``, or among the ``records`` of an offset. (Of a
    transaction, ``records`` is a number.)"""
    rows = [row for piece in stored.pieces(wanted=pc.field("record_id") == record) for row in piece.to_pylist()]
    for piece in () if rows else stored.pieces():
        if "records" not in piece.column_names or not pa.types.is_list(piece.schema.field("records").type):
            break
        of = piece["records"].combine_chunks()
        mine = pc.list_parent_indices(of).filter(pc.equal(pc.list_flatten(of), record))
        rows += piece.take(mine).to_pylist()
    return rows


def _records_of(example: Row) -> set[int | None]:
    records = example.get("records")
    return {example.get("record_id"), *(records if isinstance(records, list) else [])}


def _anomalies(archive: Archive, record: int) -> tuple[dict[str, Row], list[str]]:
    """The anomalies that contain a record, each with the record's row; and those of which that is not known.

    If not all records of an anomaly are stored, only those and the examples in the verdict are known.
    """
    judged = archive.verdict.anomalies if archive.verdict else {}
    stored = archive.found.rows
    found: dict[str, Row] = {}
    not_known = []
    for name in sorted(stored.keys() | judged.keys()):
        anomaly = judged.get(name, AnomalyEntry())
        rows, whole = list[Row](), False
        if name in stored:
            try:
                rows, whole = _stored_of(stored[name], record), stored[name].count >= anomaly.count
            except (pa.ArrowInvalid, OSError) as exc:
                where = stored[name].files[0].parent
                raise HistoryError(f"{where}: cannot be read: {checking(archive.directory)}") from exc
        rows = rows or [row for row in anomaly.examples if record in _records_of(row)]
        if rows:
            found[name] = rows[0]
        # (An example for each transaction says nothing about its other records.)
        in_part = name in BY_NAME and BY_NAME[name].counts_transactions
        if not rows and not whole and (anomaly.count > len(anomaly.examples) or in_part):
            not_known.append(name)
    return found, not_known


def _anomaly(archive: Archive, name: str, row: Row) -> Row:
    """What the verdict says about a record in an anomaly."""
    anomaly = archive.verdict.anomalies.get(name, AnomalyEntry()) if archive.verdict else AnomalyEntry()
    text = next((part.text for part in anomaly.runs or [] if _within(row, part)), None)
    number, standing = _finding_of(archive, name, row)
    return {"name": name, "standing": standing or anomaly.standing, "run": text, "finding": number}


def _finding_of(archive: Archive, name: str, row: Row) -> tuple[int | None, str | None]:
    """The number of the verdict's finding that contains a record of an anomaly, and its standing there; None if the
    verdict does not say."""
    findings = archive.verdict.findings if archive.verdict else []
    of = [(number, finding) for number, finding in enumerate(findings) if name in finding.anomalies]
    for number, finding in of:
        for part in finding.runs:
            here = (row.get("topic"), row.get("partition")) == (part.topic, part.partition)
            if name in part.anomalies and here and _between(part.first_offset, row.get("offset"), part.last_offset):
                return number, part.standing
    return (of[0][0], of[0][1].standing) if len(of) == 1 else (None, None)


def _within(row: Row, part: AnomalyRange) -> bool:
    if (row.get("topic"), row.get("partition")) != (part.topic, part.partition):
        return False
    when = row.get("acknowledged_ns")
    timely = when is None or _between(part.first_ns, when, part.last_ns)
    return timely and _between(part.first_offset, row.get("offset"), part.last_offset)


def _between(first: int | None, value: int | None, last: int | None) -> bool:
    return first is not None and value is not None and last is not None and first <= value <= last
