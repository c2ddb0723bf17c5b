"""Duplicates of which all copies but one were lost: what excuses the loss excuses them, too (KIP-98: an idempotent
producer's record is written once to a log, and sent again if that log lost it)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.acting import Acting
from checkers.evidence.elections import Elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.intervals import NEVER, Times
from checkers.evidence.late import IN_FLIGHT, addressed, begins_ns, elections_of, late_copies
from checkers.evidence.losses import Losses
from checkers.evidence.reach import (
    Disturbances,
    beside_given_up,
    disturbances,
    during,
    given_up,
    held_back,
    written_beside,
)
from checkers.evidence.record_ranges import RecordRange
from checkers.evidence.standing import possible_faults, worst_ruling
from checkers.evidence.store import AnomalyStore, StoredRows, each_partition
from checkers.history import History
from checkers.leadership import Partition
from harness.core.anomalies import ACKNOWLEDGED_ELSEWHERE, DUPLICATED, VANISHED, Anomaly
from harness.core.guarantees import Configuration, Ruling, violation
from harness.core.verdict import Standing

_VANISHED = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("record_id", pa.int64()), ("offset", pa.int64())]
)
_NONE = pa.array([], pa.int64())
_EPOCHS = [("epochs", pa.list_(pa.int32())), ("stands_epoch", pa.int32())]
_HELD_BACK = "nobody knows whether a fault held a copy back until another was acknowledged; if so"
_COPIES = pa.schema([*_VANISHED, ("copies", pa.int64()), ("in_log", pa.int64()), *_EPOCHS])


def copies_vanished(duplicated: StoredRows, vanished: StoredRows, but: pa.Array = _NONE) -> bool | None:
    """Whether the final log has at most one copy of each duplicated record, and all other copies vanished from their
    offsets: no leader epoch had two of them, and the one in the log came last. None if that is not known. ``but``: the
    ids of records that do not count."""
    found = [*duplicated.pieces(_COPIES)]
    gone = [*vanished.pieces(_VANISHED)]
    if not found or not gone:
        return False
    copies, record = pa.concat_tables(found), ["topic", "partition", "record_id"]
    copies = copies.filter(pc.invert(pc.is_in(copies["record_id"], but)))
    there = pa.concat_tables(gone).join(copies.select(record), record, join_type="left semi")
    there = there.group_by(_VANISHED.names).aggregate([])
    stands, missing = pc.max(copies["in_log"]).as_py(), pc.sum(pc.subtract(copies["copies"], copies["in_log"])).as_py()
    if stands is None or stands > 1 or len(there) != missing:
        return False
    return _apart(copies)


def _apart(copies: pa.Table) -> bool | None:
    """Whether each copy of a record has a leader epoch of its own, and the copy in the final log the latest. None if
    that is not known: an epoch is missing, or the copy in the final log is older than one that vanished."""
    epochs = copies["epochs"].combine_chunks()
    row, epoch = pc.list_parent_indices(epochs).to_numpy(), pc.list_flatten(epochs).to_numpy()
    known = epoch >= 0
    twice = known[1:] & (row[1:] == row[:-1]) & (epoch[1:] == epoch[:-1])
    stands = pc.fill_null(copies["stands_epoch"], -1).to_numpy()[row]
    if twice.any():
        return False
    # (The leader of the older copy may have been elected again later, and never had the other copy.)
    older = (known & (stands >= 0) & (stands < epoch)).any()
    return True if known.all() and not older and len(np.unique(row)) == len(copies) else None


def sent_again_for_loss(history: History, found_rows: AnomalyStore, losses: Losses | None) -> Ruling | None:
    """The ruling about duplicates if all copies but one were lost, and the record was sent again because of that; or if
    an idempotent producer gave up another one beside it. None if there are other duplicates, such as a copy that was
    sent again after its acknowledgement."""
    copies = found_rows.of(DUPLICATED)
    beside = written_beside(history, copies) if history.run_file.configuration.idempotence else _NONE
    vanished = copies_vanished(copies, found_rows.of(VANISHED), beside)
    if losses is None or vanished is False:
        return None
    late = [late_copies(history, DUPLICATED, copies, faults) for faults in possible_faults(history.faults)]
    return ruled_as_loss(history, losses.ranges(VANISHED), late, vanished)


def ruled_as_loss(
    history: History, lost: Sequence[RecordRange], late: Sequence[pa.Table], vanished: bool | None
) -> Ruling | None:
    """The ruling about duplicates whose other copies were lost: the ruling about that loss. None if a copy is ``late``
    (LATE, for each of the possible faults) and nothing held it back: nobody sends again what was acknowledged.
    ``vanished``: as of copies_vanished."""
    doubt = "nobody knows whether one log ever had two of its copies; if not" if vanished is None else None
    if len(late[-1]) and not held_back(history, possible_faults(history.faults)[-1], late[-1]):
        return None
    if any(map(len, late)):
        doubt = doubt or _HELD_BACK
    ruling = worst_ruling(lost)[0] if lost else None
    if ruling is None or doubt is None or ruling.standing is not Standing.PERMITTED:
        return ruling
    return _doubted(ruling, doubt)


def _doubted(ruling: Ruling, doubt: str) -> Ruling:
    return replace(ruling, standing=Standing.UNDECIDED, because=f"{doubt}, this is permitted: {ruling.because}")


def without_late_copies(
    history: History, anomaly: Anomaly, stored: StoredRows, ranges: Sequence[RecordRange], known: Evidence
) -> list[RecordRange]:
    """The ``ranges`` of an anomaly that the loss of a first copy may permit. It does not permit those with a copy that
    came late: nobody sends again what was acknowledged. If a fault may have held that copy back, they are undecided.
    Nor does it permit those that one leader wrote twice though nobody sent them again."""
    if not any(one.standing is Standing.PERMITTED for one in ranges):
        return [*ranges]
    each = [_late_offsets(history, anomaly, stored, one) for one in _each_possible(history, known)]
    wrong = {of: reduce(np.intersect1d, (late.get(of, _NO_OFFSETS) for late, _ in each)) for of in each[0][0]}
    perhaps = _in_order({of: [part.get(of, _NO_OFFSETS) for late in each for part in late] for of in each[0][0]})
    forbidden = violation(anomaly, known.configuration)

    def ruled(one: RecordRange) -> RecordRange:
        if one.decision is None or one.standing is not Standing.PERMITTED:
            return one
        if _has_any(one, wrong):
            return replace(one, decision=replace(one.decision, ruling=forbidden, event=None))
        if _has_any(one, perhaps):
            doubted = _doubted(one.decision.ruling, _HELD_BACK)
            return replace(one, decision=replace(one.decision, ruling=doubted, event=None))
        return one

    return [*map(ruled, ranges)]


def _each_possible(history: History, known: Evidence) -> list[Evidence]:
    """The evidence for each list of the possible faults alone."""
    if len(known.faults) == 1:
        return [known]
    return [
        replace(known, faults=[one], elections=elections_of(history, one), _acting={}, _behind={}, _losing={})
        for one in known.faults
    ]


#: The offset of records whose acknowledgement had none: one late copy among them counts for all.
_UNKNOWN = -1
_NO_OFFSETS = np.empty(0, np.int64)

_ByPartition = dict[Partition, npt.NDArray[np.int64]]


def _has_any(one: RecordRange, offsets: _ByPartition) -> bool:
    first, last = one.first_offset, one.last_offset
    if one.of not in offsets:
        return False
    if first is None or last is None:
        return bool((offsets[one.of] == _UNKNOWN).any())
    return bool(np.diff(np.searchsorted(offsets[one.of], [first, last + 1])).any())


def _late_offsets(
    history: History, anomaly: Anomaly, stored: StoredRows, known: Evidence
) -> tuple[_ByPartition, _ByPartition]:
    """The offsets of an anomaly's records of which the copy in the final log is late: its leader epoch began after
    their acknowledgement, or (REAL_TIME_ORDER) it stands behind a record that was sent after that. First those of which
    no fault may have held that copy back, then the others; by partition, in order. (What a later incarnation handed
    over again does not count.) Among the first are also those that one leader wrote ``twice`` (ACKNOWLEDGED_ELSEWHERE):
    only the leader of that copy's epoch may have acknowledged them, and nothing made their producer send them again."""
    moved = anomaly is ACKNOWLEDGED_ELSEWHERE
    columns = {**dict.fromkeys(("record_id", "offset", "read_offset"), pa.int64()), "worker": pa.int32()}
    each = disturbances(history, known.faults[0])
    others = given_up(history) if moved and known.configuration.idempotence else None
    wrong, perhaps = dict[Partition, list[Times]](), dict[Partition, list[Times]]()
    for piece in stored.pieces(pa.schema([*IN_FLIGHT, *columns.items()])):
        sent, until = (pc.fill_null(piece[name], NEVER).to_numpy() for name in ("sent_ns", "acknowledged_ns"))
        offsets = pc.fill_null(piece["offset"], _UNKNOWN).to_numpy()
        stands = pc.fill_null(piece["read_offset"], -1).to_numpy()
        once = _handed_over_once(history, piece)
        beside = ~once if others is None else beside_given_up(others, piece)
        for of, here in each_partition(piece["topic"], piece["partition"]):
            if of in known.elections and of in known.logs:
                own, epochs = known.elections[of], known.logs[of].epochs_at(stands[here])
                in_flight = sent[here], until[here]
                late = (until[here] < begins_ns(own, epochs)) | (not moved)
                held = each[of].held_back(*in_flight) & addressed(own, epochs, until[here])
                twice = (epochs == _only_epoch(own, known.acting(own), *in_flight)) & moved
                twice &= ~beside[here] & ~_resent(each[of], known.configuration, *in_flight)
                wrong.setdefault(of, []).append(offsets[here][once[here] & (late & ~held | twice)])
                perhaps.setdefault(of, []).append(offsets[here][once[here] & late & held])
    return _in_order(wrong), _in_order(perhaps)


def _in_order(parts: Mapping[Partition, Sequence[Times]]) -> _ByPartition:
    return {of: np.sort(np.concatenate(each)) for of, each in parts.items()}


def _handed_over_once(history: History, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether only one incarnation of its producer handed over each of these records."""
    if "incarnation" in history.same("sends"):
        return np.ones(len(rows), bool)
    ids = rows["record_id"]
    sends = history.stored.table("sends", pc.field("record_id").isin(ids), ["record_id"])["record_id"].to_numpy()
    each, times = np.unique(sends, return_counts=True)
    return ~np.isin(ids.to_numpy(), each[times > 1])


def _resent(each: Disturbances, configuration: Configuration, sent: Times, until: Times) -> npt.NDArray[np.bool_]:
    """Whether a producer that is not idempotent may have sent each of these records again, and its leader have written
    it again (as ``duplicated`` is permitted: harness/core/guarantees.py)."""
    if configuration.idempotence:
        return np.zeros(len(sent), bool)
    may = each.resent(sent, until)
    return may if configuration.retries else may & each.refused(sent, until)


def _only_epoch(known: Elections, acting: Acting, sent: Times, until: Times) -> Times:
    """The epoch of the only term whose leader may have acknowledged each of these records; -2 if there are several, or
    if that is not known."""
    begins, ends = known.begins_and_ends
    terms, epochs = np.zeros(len(sent), np.int64), np.full(len(sent), -2, np.int64)
    for n, term in enumerate(known.terms):
        led = [(int(begins[n]), int(ends[n])), *term.again_ns]
        may = during(led, sent, until) & (sent <= acting.ended_ns(n))
        terms += may
        epochs[may] = -2 if term.epoch is None else term.epoch
    unseen = during((window for _, window in known.unreported), sent, until)
    return np.where((terms == 1) & ~unseen, epochs, -2)
