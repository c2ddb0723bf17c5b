"""The life of one record: sent, acknowledged, read, how its transaction ended, when readers came to its partition and
a group committed past it; and what the brokers told and which faults were active at each.

Judges nothing, and reads only the rows that it needs, without Spark.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ValidationError

from checkers.evidence.faults import active
from checkers.evidence.last_stable import STABILITY, hanging, held_back
from checkers.evidence.leadership import Partition, Span, spans, views
from checkers.evidence.store import pieces, place
from harness.core.errors import HistoryError
from harness.history.journal import SUFFIX
from harness.history.paths import ANOMALIES, HISTORY, JOURNALS, VERDICT_FILE, stored, table_directory
from harness.history.run_file import RunFile
from harness.history.schema import FINAL_READER, TABLES, UNTOLD, Outcome, Phase, sequence_of, worker_of
from harness.history.stored_run import faults, tells, verify

Row = dict[str, Any]

_ENDS = {Outcome.OK: "succeeded", Outcome.FAIL: "failed", Outcome.INFO: "was given up, outcome unknown"}
_PLACES = {
    "assign": "{by} was assigned {place} from {at}",
    "seek": "{by} went to {at} of {place}",
    "revoke": "{place} was revoked from {by}",
    "lost": "{place} was lost to {by}",
}


@dataclass(frozen=True)
class View:
    """What one broker told of a partition: ``leader`` is its name, or None where it knew of none."""

    observer: str
    leader: str | None
    leader_epoch: int | None
    isr: list[str]


@dataclass(frozen=True)
class Moment:
    """One thing that happened to a record. ``event``: sent, acknowledged, failed, unknown, read live/final/replica;
    began, ending and ended, of its transaction; assign, revoke, lost, seek, commit, of a reader of its partition."""

    at_ns: int
    event: str
    said: str
    topic: str
    partition: int
    offset: int | None
    views: list[View]
    faults: list[str]


@dataclass(frozen=True)
class Life:
    """All that is known of a record. ``anomalies`` are {name, standing, run}: the last two only of a judged run.

    ``untold``: anomalies of the run of which nothing here tells whether the record is in them.
    """

    record_id: int
    worker: int
    sequence: int
    moments: list[Moment]
    ended: list[str]
    anomalies: list[Row] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)


class ToldRun(BaseModel):
    """One run of an anomaly's records."""

    text: str
    topic: str | None = None
    partition: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None


class ToldAnomaly(BaseModel):
    """An anomaly as verdict.json has it. ``runs`` is None where causes were not told yet when it was written."""

    count: int = 0
    standing: str | None = None
    examples: list[dict[str, Any]] = []
    runs: list[ToldRun] | None = None


class Told(BaseModel):
    """What is needed of verdict.json, whichever version wrote it."""

    anomalies: dict[str, ToldAnomaly]


@dataclass(frozen=True)
class Archive:
    """A stored run, looked into row by row."""

    directory: Path
    file: RunFile

    @classmethod
    def open(cls, directory: Path) -> "Archive":
        """Raises HistoryError where there is no run, its history is not sealed yet, or a table of it cannot be read."""
        archive = cls(directory, RunFile.read(directory))
        where = directory / HISTORY
        if not where.is_dir() or any((directory / JOURNALS).glob(f"*{SUFFIX}")):
            raise HistoryError(f"{where}: no history here yet; `kafka-trial check {directory}` seals what was recorded")
        for table in TABLES:
            verify(directory, table)
        return archive

    def table(self, name: str, wanted: pc.Expression | None = None) -> pa.Table:
        """The rows of a table that meet an expression. Raises HistoryError where a file is not one of ours."""
        try:
            return stored(self.directory, name).to_table(filter=wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as exc:
            raise HistoryError(f"{table_directory(self.directory, name)}: {str(exc).splitlines()[0]}") from exc

    def rows(self, table: str, wanted: pc.Expression | None = None) -> list[Row]:
        """``table``, row by row."""
        found: list[Row] = self.table(table, wanted).to_pylist()
        return found

    def range_of(self, table: str, column: str, wanted: pc.Expression) -> tuple[int, int] | None:
        """The least and the greatest of a column, in the rows that meet an expression."""
        found = stored(self.directory, table).to_table(columns=[column], filter=wanted)[column]
        least = pc.min_max(found).as_py()
        return None if least["min"] is None else (least["min"], least["max"])

    def distinct(self, table: str, column: str) -> list[Any]:
        """The values of a column, each once, in their order."""
        return sorted(pc.unique(stored(self.directory, table).to_table(columns=[column])[column]).to_pylist())

    @cached_property
    def names(self) -> dict[int, str]:
        """The brokers by their id."""
        return {node.id: node.name for node in self.file.nodes if node.role == "broker"}

    @cached_property
    def seen(self) -> list[Span]:
        """What the brokers told, folded."""
        return spans(self.table("observations"))

    @cached_property
    def faults(self) -> list[Row]:
        """The faults in the order of their injection."""
        return faults(self.rows("faults"))

    @cached_property
    def ends(self) -> dict[Partition, Row]:
        """Where the final read of each partition had to reach."""
        rows = self.rows("log_ends")
        if self.file.configuration.read_committed:
            rows = held_back(rows, hanging(self.table("positions", STABILITY)))
        return {(row["topic"], row["partition"]): row for row in rows}

    @cached_property
    def tells_keys(self) -> bool:
        """Whether it is known under which keys records were read."""
        return tells(self.directory, "reads", "key")

    @cached_property
    def verdict(self) -> Told | None:
        """verdict.json; None of a run that was not judged. Raises HistoryError where it is none of ours."""
        path = self.directory / VERDICT_FILE
        if not path.is_file():
            return None
        try:
            return Told.model_validate_json(path.read_bytes())
        except ValidationError as exc:
            first = exc.errors()[0]
            where = ".".join(map(str, first["loc"])) or "whole file"
            why = f"{where}: {first['msg']}"
            raise HistoryError(f"{path}: not a verdict ({why}); `kafka-trial check` writes it anew") from exc


def by_record(archive: Archive, record: int) -> Life:
    """The life of the record of this id. Raises HistoryError where the run knows of none."""
    mine = pc.field("record_id") == record
    sends, reads = archive.rows("sends", mine), archive.rows("reads", mine)
    if not sends and not reads:
        worker = worker_of(record)
        sent = archive.range_of("sends", "sequence", pc.field("worker") == worker)
        known = f"worker {worker} sent #{sent[0]}–#{sent[1]}" if sent else f"the workers that sent: {_workers(archive)}"
        name = f"record {record} (worker {worker} #{sequence_of(record)})"
        raise HistoryError(f"{archive.directory}: nothing is known of {name}; {known}")
    moments = [moment for row in sends for moment in _of_send(archive, row)]
    keys = {row["key"] for row in sends}
    moments += [_of_read(archive, row, keys) for row in reads]
    moments += [moment for row in sends for moment in _of_transaction(archive, row)]
    moments += [moment for row in sends for moment in _of_places(archive, row, [*sends, *reads])]
    anomalies, untold = _anomalies(archive, record)
    return Life(
        record_id=record,
        worker=worker_of(record),
        sequence=sequence_of(record),
        moments=sorted(moments, key=lambda moment: moment.at_ns),
        ended=_ended(archive, record, sends, reads),
        anomalies=anomalies,
        untold=untold,
    )


def by_offset(archive: Archive, of: Partition, offset: int) -> list[Life]:
    """The lives of all records that were acknowledged or read at an offset, the first to be there first.

    Raises HistoryError where nothing was.
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
        raise HistoryError(f"{topic}-{partition}:{offset} was read, and is no record of ours: it has no record id")
    ranges = [archive.range_of(table, "offset", here) for table in ("sends", "reads")]
    known = [one for one in ranges if one is not None]
    if known:
        told = f"offsets {min(low for low, _ in known)}–{max(high for _, high in known)} are known there"
    else:
        told = f"the run has {', '.join(f'{t}-{p}' for t, p in sorted(archive.ends)) or 'no partition'}"
    raise HistoryError(f"{archive.directory}: nothing was acknowledged or read at {topic}-{partition}:{offset}; {told}")


def runs(archive: Archive) -> dict[str, list[str]]:
    """The sentences of each anomaly's runs, from verdict.json. Raises HistoryError where the run was not judged."""
    if archive.verdict is None:
        raise HistoryError(f"{archive.directory / VERDICT_FILE}: not judged yet; `kafka-trial check` judges it")
    anomalies = archive.verdict.anomalies
    if any(anomaly.runs is None for anomaly in anomalies.values()):
        raise HistoryError(
            f"{archive.directory / VERDICT_FILE}: of before causes were told; `kafka-trial check` tells them"
        )
    return {name: [run.text for run in anomaly.runs or []] for name, anomaly in anomalies.items()}


def _of_send(archive: Archive, row: Row) -> list[Moment]:
    by = f"worker {row['worker']} (incarnation {row['incarnation']})"
    place = f"{row['topic']}-{row['partition']}"
    key = f" under the key {row['key']}" if row["key"] is not None else ""
    moments = [_moment(archive, row, row["invoked_ns"], "sent", f"sent by {by} to {place}{key}", None)]
    if row["completed_ns"] is None:
        return moments
    error = f": {row['error']}" if row["error"] else ""
    at = f"at offset {row['offset']}" if row["offset"] is not None else "without an offset"
    event, said = {
        Outcome.OK: ("acknowledged", f"acknowledged {at}"),
        Outcome.FAIL: ("failed", f"failed{error}"),
        Outcome.INFO: ("unknown", f"given up, outcome unknown{error}"),
    }[Outcome(row["outcome"])]
    return [*moments, _moment(archive, row, row["completed_ns"], event, said, row["offset"])]


def _of_read(archive: Archive, row: Row, keys: set[str | None]) -> Moment:
    """``keys`` are those that the record was sent with: what it was read under is told where that is another."""
    epoch = "" if row["leader_epoch"] is None else f", leader epoch {row['leader_epoch']}"
    damaged = "" if row["intact"] else ", its checksum wrong"
    other = bool(keys) and archive.tells_keys and row["key"] not in keys
    under = (", without a key" if row["key"] is None else f", under the key {row['key']}") if other else ""
    what = {
        Phase.LIVE: "read live",
        Phase.FINAL: "found by the final read",
        Phase.REPLICA: f"found in the log of broker {row['reader'] - FINAL_READER}",
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
            "ending": f"{name}: its {row['intent']} was asked for",
            "ended": f"{name}: its {row['intent']} {_ENDS[Outcome(row['outcome'])]}{error}",
        }
        moments += [
            _moment(archive, {**send, **row}, at_ns, event, said, None)
            for event, said in happened.items()
            if (at_ns := row[f"{event}_ns"]) is not None
        ]
    return moments


def _of_places(archive: Archive, send: Row, told: list[Row]) -> list[Moment]:
    """Who was given a record's partition, or lost it, after it was sent; and the first commit past it."""
    of = (send["topic"], send["partition"])
    places = (pc.field("topic") == of[0]) & (pc.field("partition") == of[1])
    rows = sorted(archive.rows("positions", places), key=lambda row: row["at_ns"])
    offsets = [row["offset"] for row in told if row["offset"] is not None and (row["topic"], row["partition"]) == of]
    past = [
        row
        for row in rows
        if row["event"] == "commit" and row["error"] is None and offsets and (row["offset"] or 0) > max(offsets)
    ]
    moved = [row for row in rows if row["event"] in _PLACES and row["at_ns"] >= send["invoked_ns"]]
    return [_of_place(archive, row) for row in [*moved, *past[:1]]]


def _of_place(archive: Archive, row: Row) -> Moment:
    by = f"reader {row['reader']} (incarnation {row['incarnation']})"
    place = f"{row['topic']}-{row['partition']}"
    told = row["offset"] is not None and row["offset"] >= 0
    at = f"offset {row['offset']}" if told else _from_where(archive, row["event"])
    said = _PLACES.get(row["event"], "{by} committed {place} to {at}: past it").format(by=by, place=place, at=at)
    return _moment(archive, row, row["at_ns"], row["event"], said, row["offset"])


def _from_where(archive: Archive, event: str) -> str:
    """Where a reader was put that no offset was told of."""
    if not archive.file.final_read:
        return "a place that nobody told"
    committed = archive.file.configuration.grouped and event == "assign"
    return "where its group had committed, or the beginning" if committed else "the beginning"


def _moment(archive: Archive, row: Row, at_ns: int, event: str, said: str, offset: int | None) -> Moment:
    of = (row["topic"], row["partition"])
    told = [
        View(
            span.observer,
            None if span.leader < 0 else _name(archive, span.leader),
            span.leader_epoch,
            [_name(archive, broker) for broker in span.isr],
        )
        for span in views(archive.seen, of, at_ns)
    ]
    return Moment(at_ns, event, said, *of, offset, told, active(archive.faults, at_ns))


def _name(archive: Archive, broker: int) -> str:
    return archive.names.get(broker, f"broker {broker}")


def _workers(archive: Archive) -> str:
    return ", ".join(map(str, archive.distinct("sends", "worker"))) or "none"


def _ended(archive: Archive, record: int, sends: list[Row], reads: list[Row]) -> list[str]:
    """Where the record ended: one line for each partition that it was sent to, acknowledged in, or found in."""
    own = {(row["topic"], row["partition"], row["offset"]) for row in sends if row["outcome"] == Outcome.OK}
    # Damaged bytes prove a record where it was acknowledged alone.
    proven = [row for row in reads if row["intact"] or (row["topic"], row["partition"], row["offset"]) in own]
    final = [row for row in proven if row["phase"] == Phase.FINAL]
    places = dict.fromkeys((row["topic"], row["partition"]) for row in (*sends, *reads))
    lines = []
    for of in places:
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
    """What is known of a record's end where no log was read to its end."""
    told = sorted({row["offset"] for row in reads if row["offset"] != UNTOLD})
    where = f", at offset {', '.join(map(str, told))}" if told else ", at no offset that was told" if reads else ""
    return f"{'read' if reads else 'not read'} in {of[0]}-{of[1]}{where} (no log was read to its end)"


def _log(archive: Archive, of: Partition) -> str:
    name = f"the final log of {of[0]}-{of[1]}"
    end = archive.ends.get(of)
    if end is None:
        return f"{name} (which was not read)"
    if end["log_end"] < 0:
        return f"{name} (whose end is unknown)"
    read = "read whole" if end["complete"] else f"read to {end['read_to']} only"
    return f"{name} (from {end['log_start']}, ends before {end['log_end']}, {read})"


def _instead(archive: Archive, record: int, of: Partition, rows: list[Row]) -> str:
    """What stands where the record was told to be."""
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
        return f"; at offset {offset} stands record {other} (worker {worker_of(other)} #{sequence_of(other)})"
    return f"; nothing of ours stands at offset {offset}"


def _kept_of(kept: Path, record: int) -> list[Row]:
    """The rows of an anomaly that a record is in: as their subject, or among the ``records`` of an offset."""
    rows = [row for piece in pieces(kept, wanted=pc.field("record_id") == record) for row in piece.to_pylist()]
    for piece in () if rows else pieces(kept):
        if "records" not in piece.column_names:
            break
        of = piece["records"].combine_chunks()
        mine = pc.list_parent_indices(of).filter(pc.equal(pc.list_flatten(of), record))
        rows += piece.take(mine).to_pylist()
    return rows


def _anomalies(archive: Archive, record: int) -> tuple[list[Row], list[str]]:
    """The anomalies that a record is in, and those of which it cannot be told.

    What is kept of an anomaly need not be kept beside its verdict, whose examples then are all that there is.
    """
    judged = archive.verdict.anomalies if archive.verdict else {}
    kept = {part.parent.name for part in (archive.directory / ANOMALIES).glob("*/*.parquet")}
    found: list[Row] = []
    untold = []
    for name in sorted(kept | judged.keys()):
        anomaly = judged.get(name, ToldAnomaly())
        if name in kept:
            rows = _kept_of(place(archive.directory, name), record)
        else:
            rows = [row for row in anomaly.examples if record in {row.get("record_id"), *row.get("records", [])}]
        for row in rows[:1]:
            run = next((run.text for run in anomaly.runs or [] if _within(row, run)), None)
            found.append({"name": name, "standing": anomaly.standing, "run": run})
        if not rows and name not in kept and anomaly.count > len(anomaly.examples):
            untold.append(name)
    return found, untold


def _within(row: Row, run: ToldRun) -> bool:
    if (row.get("topic"), row.get("partition")) != (run.topic, run.partition):
        return False
    when = row.get("acknowledged_ns")
    timely = when is None or _between(run.first_ns, when, run.last_ns)
    return timely and _between(run.first_offset, row.get("offset"), run.last_offset)


def _between(first: int | None, value: int | None, last: int | None) -> bool:
    return first is not None and value is not None and last is not None and first <= value <= last
