"""The trace of one record: when it was sent, acknowledged and read, how its transaction ended, when readers got its
partition, and when a group committed past it. Each event has the brokers' reports and the active faults of its time.

It judges nothing, and reads only the rows that it needs, without Spark.
"""

from dataclasses import dataclass, field

import pyarrow.compute as pc

from checkers.archive import AnomalyEntry, AnomalyRun, Archive, Row
from checkers.evidence.faults import active
from checkers.evidence.leadership import Partition, views
from checkers.evidence.store import StoredRows
from checkers.stories import Held, held
from harness.core.errors import HistoryError
from harness.history.paths import VERDICT_FILE
from harness.history.schema import FINAL_READER, UNKNOWN_OFFSET, Outcome, Phase, sequence_of, worker_of

_ENDS = {Outcome.OK: "succeeded", Outcome.FAIL: "failed", Outcome.INFO: "was abandoned, outcome unknown"}
_MOVES = {
    "assign": "{by} was assigned {of} from {at}",
    "seek": "{by} went to {at} of {of}",
    "revoke": "{of} was revoked from {by}",
    "lost": "{of} was lost to {by}",
}


@dataclass(frozen=True)
class BrokerReport:
    """One broker's report on a partition. ``leader``: the leader's name, or None if the broker knew none."""

    observer: str
    leader: str | None
    leader_epoch: int | None
    isr: list[str]


@dataclass(frozen=True)
class Moment:
    """One event of a record. ``event``: sent, acknowledged, failed, unknown, read live/final/replica; of its
    transaction: began, ending, ended; of a reader of its partition: assign, revoke, lost, seek, commit."""

    at_ns: int
    event: str
    said: str
    topic: str
    partition: int
    offset: int | None
    views: list[BrokerReport]
    faults: list[str]


@dataclass(frozen=True)
class RecordTrace:
    """Everything that is known about a record. ``anomalies`` are {name, standing, run, finding}, the last three only
    for a judged run; ``finding`` is the number of a finding of the verdict, from 0.

    ``not_known``: anomalies of the run that may or may not contain the record, because their records are not stored.
    ``holders``: which brokers had a lost record, over time.
    """

    record_id: int
    worker: int
    sequence: int
    moments: list[Moment]
    ended: list[str]
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
        name = f"worker {worker} #{sequence_of(record)} (record {record})"
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
        ended=_ended(archive, record, sends, reads),
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


def runs(archive: Archive) -> dict[str, list[str]]:
    """The sentences of each anomaly's runs, from verdict.json. Raises HistoryError if the run was not judged."""
    if archive.verdict is None:
        raise HistoryError(f"{archive.directory / VERDICT_FILE}: not judged yet; `kafka-trial check` judges it")
    anomalies = archive.verdict.anomalies
    if any(anomaly.runs is None for anomaly in anomalies.values()):
        raise HistoryError(
            f"{archive.directory / VERDICT_FILE}: of an old version, without causes; `kafka-trial check` adds them"
        )
    return {name: [run.text for run in anomaly.runs or []] for name, anomaly in anomalies.items()}


def _of_send(archive: Archive, row: Row) -> list[Moment]:
    by = f"worker {row['worker']} (incarnation {row['incarnation']})"
    of = f"{row['topic']}-{row['partition']}"
    key = f" under the key {row['key']}" if row["key"] is not None else ""
    moments = [_moment(archive, row, row["invoked_ns"], "sent", f"sent by {by} to {of}{key}", None)]
    if row["completed_ns"] is None:
        return moments
    error = f": {row['error']}" if row["error"] else ""
    at = f"at offset {row['offset']}" if row["offset"] is not None else "without an offset"
    event, said = {
        Outcome.OK: ("acknowledged", f"acknowledged {at}"),
        Outcome.FAIL: ("failed", f"failed{error}"),
        Outcome.INFO: ("unknown", f"abandoned, outcome unknown{error}"),
    }[Outcome(row["outcome"])]
    return [*moments, _moment(archive, row, row["completed_ns"], event, said, row["offset"])]


def _of_read(archive: Archive, row: Row, keys: set[str | None]) -> Moment:
    """The moment of a read. It names the key if that is none of ``keys``, with which the record was sent."""
    epoch = "" if row["leader_epoch"] is None else f", leader epoch {row['leader_epoch']}"
    damaged = "" if row["intact"] else ", its checksum wrong"
    other = bool(keys) and archive.has_column("reads", "key") and row["key"] not in keys
    under = (", without a key" if row["key"] is None else f", under the key {row['key']}") if other else ""
    what = {
        Phase.LIVE: "read live",
        Phase.FINAL: "found by the final read",
        Phase.REPLICA: f"found in the log of {archive.file.broker(row['reader'] - FINAL_READER)}",
    }[Phase(row["phase"])]
    where = f"at {row['topic']}-{row['partition']}:{row['offset']}"
    said = f"{what} {where} by reader {row['reader']} (incarnation {row['incarnation']}{epoch}){under}{damaged}"
    return _moment(archive, row, row["read_ns"], f"read {row['phase']}", said, row["offset"])


def _of_transaction(archive: Archive, send: Row) -> list[Moment]:
    if send["transaction"] is None:
        return []
    mine = (pc.field("worker") == send["worker"]) & (pc.field("transaction") == send["transaction"])
    moments = []
    for row in archive.rows("transactions", mine):
        name = f"transaction {row['transaction']} of worker {row['worker']} (incarnation {row['incarnation']})"
        error = f": {row['error']}" if row["error"] else ""
        happened = {
            "began": f"{name} began",
            "ending": f"{name}: its {row['intent']} was requested",
            "ended": f"{name}: its {row['intent']} {_ENDS[Outcome(row['outcome'])]}{error}",
        }
        moments += [
            _moment(archive, {**send, **row}, at_ns, event, said, None)
            for event, said in happened.items()
            if (at_ns := row[f"{event}_ns"]) is not None
        ]
    return moments


def _of_positions(archive: Archive, send: Row, known: list[Row]) -> list[Moment]:
    """Assignments and losses of the record's partition after its send, and the first commit past the record."""
    of = (send["topic"], send["partition"])
    here = (pc.field("topic") == of[0]) & (pc.field("partition") == of[1])
    rows = sorted(archive.rows("positions", here), key=lambda row: row["at_ns"])
    offsets = [row["offset"] for row in known if row["offset"] is not None and (row["topic"], row["partition"]) == of]
    past = [
        row
        for row in rows
        if row["event"] == "commit" and row["error"] is None and offsets and (row["offset"] or 0) > max(offsets)
    ]
    moved = [row for row in rows if row["event"] in _MOVES and row["at_ns"] >= send["invoked_ns"]]
    return [_of_position(archive, row) for row in [*moved, *past[:1]]]


def _of_position(archive: Archive, row: Row) -> Moment:
    by = f"reader {row['reader']} (incarnation {row['incarnation']})"
    of = f"{row['topic']}-{row['partition']}"
    known = row["offset"] is not None and row["offset"] >= 0
    at = f"offset {row['offset']}" if known else _from_where(archive, row["event"])
    said = _MOVES.get(row["event"], "{by} committed {of} to {at}: past it").format(by=by, of=of, at=at)
    return _moment(archive, row, row["at_ns"], row["event"], said, row["offset"])


def _from_where(archive: Archive, event: str) -> str:
    """The position of a reader if its offset is not known."""
    if not archive.file.final_read:
        return "an unknown offset"
    committed = archive.file.configuration.grouped and event == "assign"
    return "where its group had committed, or the beginning" if committed else "the beginning"


def _moment(archive: Archive, row: Row, at_ns: int, event: str, said: str, offset: int | None) -> Moment:
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
    return Moment(at_ns, event, said, *of, offset, seen, active(archive.faults, at_ns))


def _workers(archive: Archive) -> str:
    return ", ".join(map(str, archive.distinct("sends", "worker"))) or "none"


def _ended(archive: Archive, record: int, sends: list[Row], reads: list[Row]) -> list[str]:
    """The fate of the record: one line for each partition to which it was sent, or in which it was read."""
    own = {(row["topic"], row["partition"], row["offset"]) for row in sends if row["outcome"] == Outcome.OK}
    # Damaged bytes prove a record only at the offset of its acknowledgement.
    proven = [row for row in reads if row["intact"] or (row["topic"], row["partition"], row["offset"]) in own]
    final = [row for row in proven if row["phase"] == Phase.FINAL]
    partitions = dict.fromkeys((row["topic"], row["partition"]) for row in (*sends, *reads))
    lines = []
    for of in partitions:
        offsets = sorted({row["offset"] for row in final if (row["topic"], row["partition"]) == of})
        log = _log(archive, of)
        if not archive.file.final_read:
            lines.append(_read(of, [row for row in proven if (row["topic"], row["partition"]) == of]))
        elif of not in archive.ends and not offsets:
            lines.append(f"not known to be in {log}")
        elif offsets:
            times = f", {len(offsets)} times" if len(offsets) > 1 else ""
            lines.append(f"in {log}, at offset {', '.join(map(str, offsets))}{times}")
        else:
            lines.append(f"not in {log}{_instead(archive, record, of, [*sends, *reads])}")
    return lines


def _read(of: Partition, reads: list[Row]) -> str:
    """The fate of a record if no log was read to its end."""
    offsets = sorted({row["offset"] for row in reads if row["offset"] != UNKNOWN_OFFSET})
    where = f", at offset {', '.join(map(str, offsets))}" if offsets else ", at an unknown offset" if reads else ""
    return f"{'read' if reads else 'not read'} in {of[0]}-{of[1]}{where} (no log was read to its end)"


def _log(archive: Archive, of: Partition) -> str:
    name = f"the final log of {of[0]}-{of[1]}"
    end = archive.ends.get(of)
    if end is None:
        return f"{name} (which was not read)"
    if end["log_end"] < 0:
        return f"{name} (whose end is unknown)"
    read = "read completely" if end["complete"] else f"read to {end['read_to']} only"
    return f"{name} (from {end['log_start']}, ends before {end['log_end']}, {read})"


def _instead(archive: Archive, record: int, of: Partition, rows: list[Row]) -> str:
    """What the final log has at the offset at which the record was acknowledged or read."""
    offset = next((r["offset"] for r in rows if (r["topic"], r["partition"]) == of and r["offset"] is not None), None)
    if offset is None or (of in archive.ends and offset >= archive.ends[of]["read_to"]):
        return ""
    there = archive.rows(
        "reads",
        (pc.field("topic") == of[0])
        & (pc.field("partition") == of[1])
        & (pc.field("offset") == offset)
        & (pc.field("phase") == Phase.FINAL.value),
    )
    other = next((row["record_id"] for row in there if row["record_id"] not in {record, None}), None)
    if other is not None:
        return f"; offset {offset} has worker {worker_of(other)} #{sequence_of(other)}"
    return f"; offset {offset} has no record of ours"


def _stored_of(stored: StoredRows, record: int) -> list[Row]:
    """The rows of an anomaly that contain a record: as ``record_id``, or among the ``records`` of an offset."""
    rows = [row for piece in stored.pieces(wanted=pc.field("record_id") == record) for row in piece.to_pylist()]
    for piece in () if rows else stored.pieces():
        if "records" not in piece.column_names:
            break
        of = piece["records"].combine_chunks()
        mine = pc.list_parent_indices(of).filter(pc.equal(pc.list_flatten(of), record))
        rows += piece.take(mine).to_pylist()
    return rows


def _anomalies(archive: Archive, record: int) -> tuple[dict[str, Row], list[str]]:
    """The anomalies that contain a record, each with the record's row; and those of which that is not known.

    If the records of an anomaly are not stored, only the examples in the verdict are known.
    """
    judged = archive.verdict.anomalies if archive.verdict else {}
    stored = archive.found.rows
    found: dict[str, Row] = {}
    not_known = []
    for name in sorted(stored.keys() | judged.keys()):
        anomaly = judged.get(name, AnomalyEntry())
        if name in stored:
            rows = _stored_of(stored[name], record)
        else:
            rows = [row for row in anomaly.examples if record in {row.get("record_id"), *row.get("records", [])}]
        if rows:
            found[name] = rows[0]
        if not rows and name not in stored and anomaly.count > len(anomaly.examples):
            not_known.append(name)
    return found, not_known


def _anomaly(archive: Archive, name: str, row: Row) -> Row:
    """What the verdict says about a record in an anomaly."""
    anomaly = archive.verdict.anomalies.get(name, AnomalyEntry()) if archive.verdict else AnomalyEntry()
    run = next((run.text for run in anomaly.runs or [] if _within(row, run)), None)
    number, standing = _finding_of(archive, name, row)
    return {"name": name, "standing": standing or anomaly.standing, "run": run, "finding": number}


def _finding_of(archive: Archive, name: str, row: Row) -> tuple[int | None, str | None]:
    """The number of the verdict's finding that contains a record of an anomaly, and its standing there; None if the
    verdict does not say."""
    findings = archive.verdict.findings if archive.verdict else []
    of = [(number, finding) for number, finding in enumerate(findings) if name in finding.anomalies]
    for number, finding in of:
        for run in finding.runs:
            here = (row.get("topic"), row.get("partition")) == (run.topic, run.partition)
            if name in run.anomalies and here and _between(run.first_offset, row.get("offset"), run.last_offset):
                return number, run.standing
    return (of[0][0], of[0][1].standing) if len(of) == 1 else (None, None)


def _within(row: Row, run: AnomalyRun) -> bool:
    if (row.get("topic"), row.get("partition")) != (run.topic, run.partition):
        return False
    when = row.get("acknowledged_ns")
    timely = when is None or _between(run.first_ns, when, run.last_ns)
    return timely and _between(run.first_offset, row.get("offset"), run.last_offset)


def _between(first: int | None, value: int | None, last: int | None) -> bool:
    return first is not None and value is not None and last is not None and first <= value <= last
