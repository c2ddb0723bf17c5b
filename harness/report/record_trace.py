"""The sentences of the trace of one record. Pure."""

from harness.core.trace import (
    Answer,
    Fate,
    FinalLog,
    InLog,
    InReads,
    Instead,
    InTransaction,
    Moment,
    Place,
    PositionChange,
    Reading,
    Sending,
)
from harness.history.schema import Outcome, PositionEvent
from harness.report.words import by_id

_ANSWERS = {
    "acknowledged": "acknowledged {at}",
    "failed": "failed{error}",
    "unknown": "abandoned, outcome unknown{error}",
}
_READS = {
    "read live": "read live",
    "read final": "found by the final read",
    "read replica": "found in the log of {replica}",
}
_STEPS = {
    "began": "{name} began",
    "ending": "{name}: its {intent} was requested",
    "ended": "{name}: its {intent} {outcome}{error}",
}
_OUTCOMES = {Outcome.OK: "succeeded", Outcome.FAIL: "failed", Outcome.INFO: "was abandoned, outcome unknown"}
_MOVES: dict[str, str] = {
    PositionEvent.ASSIGN: "{by} was assigned {of} from {at}",
    PositionEvent.SEEK: "{by} went to {at} of {of}",
    PositionEvent.REVOKE: "{of} was revoked from {by}",
    PositionEvent.LOST: "{of} was lost to {by}",
    PositionEvent.COMMIT: "{by} committed {of} to {at}: past it",
}
_PLACES = {
    Place.OFFSET: "offset {offset}",
    Place.BEGINNING: "the beginning",
    Place.COMMITTED: "where its group had committed, or the beginning",
    Place.UNKNOWN: "an unknown offset",
}


def said(moment: Moment) -> str:
    """The sentence for one event of a record."""
    of = f"{moment.topic}-{moment.partition}"
    match moment.facts:
        case Sending() as sending:
            return f"sent by {_worker(sending)} to {of}{_under(sending.key) if sending.key is not None else ''}"
        case Answer(error):
            at = f"at offset {moment.offset}" if moment.offset is not None else "without an offset"
            return _ANSWERS[moment.event].format(at=at, error=_because(error))
        case Reading() as reading:
            how = _READS[moment.event].format(replica=reading.replica)
            return f"{how} at {of}:{moment.offset} by {_read(reading)}"
        case InTransaction() as one:
            return _STEPS[moment.event].format(
                name=f"transaction {one.transaction} of {_worker(one)}",
                intent=one.intent,
                outcome=_OUTCOMES[Outcome(one.outcome)],
                error=_because(one.error),
            )
        case PositionChange(reader, incarnation, place):
            by, at = f"reader {reader} (incarnation {incarnation})", _PLACES[place].format(offset=moment.offset)
            return _MOVES[moment.event].format(by=by, of=of, at=at)


def _worker(one: Sending | InTransaction) -> str:
    return f"worker {one.worker} (incarnation {one.incarnation})"


def _read(reading: Reading) -> str:
    """The reader, and what was unusual about the record. The key only if it is another."""
    epoch = "" if reading.leader_epoch is None else f", leader epoch {reading.leader_epoch}"
    key = f",{_under(reading.key)}" if reading.other_key else ""
    damaged = "" if reading.intact else ", its checksum wrong"
    return f"reader {reading.reader} (incarnation {reading.incarnation}{epoch}){key}{damaged}"


def _under(key: str | None) -> str:
    return " without a key" if key is None else f" under the key {key}"


def _because(error: str | None) -> str:
    return f": {error}" if error else ""


def ended(fate: Fate) -> str:
    """The sentence for what became of a record in one partition."""
    of = f"{fate.topic}-{fate.partition}"
    at = ", ".join(map(str, fate.offsets))
    match fate:
        case InReads(read=read):
            where = f", at offset {at}" if at else ", at an unknown offset" if read else ""
            return f"{'read' if read else 'not read'} in {of}{where} (no log was read to its end)"
        case InLog(log=log, offsets=offsets, instead=instead):
            name = f"the final log of {of} ({_extent(log)})"
            if offsets:
                times = f", {len(offsets)} times" if len(offsets) > 1 else ""
                return f"in {name}, at offset {at}{times}"
            return f"not known to be in {name}" if log is None else f"not in {name}{_instead(instead)}"


def _extent(log: FinalLog | None) -> str:
    if log is None:
        return "which was not read"
    if log.end is None:
        return "whose end is unknown"
    read = "read completely" if log.complete else f"read to {log.read_to} only"
    return f"from {log.start}, ends before {log.end}, {read}"


def _instead(instead: Instead | None) -> str:
    if instead is None:
        return ""
    record = "no record of ours" if instead.record_id is None else by_id(instead.record_id)
    return f"; offset {instead.offset} has {record}"
