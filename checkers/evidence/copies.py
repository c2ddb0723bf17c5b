"""Duplicates of which all copies but one were lost: what excuses the loss excuses them, too (KIP-98: an idempotent
producer's record is written once to a log, and sent again if that log lost it)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.causes import found_ranges
from checkers.evidence.elections import Elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import Holes
from checkers.evidence.intervals import NEVER
from checkers.evidence.leadership import Partition
from checkers.evidence.reach import IN_FLIGHT, held_back, late_copies
from checkers.evidence.standing import possible_faults, worst_ruling
from checkers.evidence.store import AnomalyStore, StoredRows, each_partition
from checkers.history import History
from harness.core.anomalies import DUPLICATED, VANISHED
from harness.core.guarantees import Ruling
from harness.core.verdict import Standing

_VANISHED = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("record_id", pa.int64()), ("offset", pa.int64())]
)
_EPOCHS = [("epochs", pa.list_(pa.int32())), ("stands_epoch", pa.int32())]
_COPIES = pa.schema([*_VANISHED, ("copies", pa.int64()), ("in_log", pa.int64()), *_EPOCHS])


def copies_vanished(duplicated: StoredRows, vanished: StoredRows) -> bool | None:
    """Whether the final log has at most one copy of each duplicated record, and all other copies vanished from their
    offsets: no leader epoch had two of them, and the standing one came last. None if that is not known."""
    found = [*duplicated.pieces(_COPIES)]
    gone = [*vanished.pieces(_VANISHED)]
    if not found or not gone:
        return False
    copies, record = pa.concat_tables(found), ["topic", "partition", "record_id"]
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


def sent_again_for_loss(history: History, kept: AnomalyStore, missing: Holes, known: Evidence | None) -> Ruling | None:
    """The ruling about duplicates if all copies but one were lost, and the record was sent again because of that: it is
    the ruling about the loss. None if there are other duplicates, such as a copy that was sent again after its
    acknowledgement. ``missing``: the holes of the final logs."""
    copies = kept.of(DUPLICATED)
    vanished = copies_vanished(copies, kept.of(VANISHED))
    if known is None or vanished is False:
        return None
    doubt = "nobody knows whether one log ever had two of its copies" if vanished is None else None
    late = [one for one in (late_copies(history, DUPLICATED, copies), resent_late(copies, known.elections)) if len(one)]
    if late:
        if not held_back(history, possible_faults(history.faults)[-1], late):
            return None
        doubt = doubt or "nobody knows whether a fault held a copy back until another was acknowledged"
    lost = found_ranges(history, VANISHED, kept, missing, known)
    ruling = worst_ruling(lost)[0] if lost else None
    if ruling is None or doubt is None or ruling.standing is not Standing.PERMITTED:
        return ruling
    return replace(ruling, standing=Standing.UNDECIDED, because=f"{doubt}; if not, this is permitted: {ruling.because}")


def resent_late(stored: StoredRows, known: Mapping[Partition, Elections]) -> pa.Table:
    """The duplicated records of which a copy came late: its leader epoch began after their acknowledgement. That copy
    is the one in the final log, or the latest if all are gone. (An epoch that nobody reported began after all earlier
    ones.)

    Returns: topic, partition, sent_ns, acknowledged_ns
    """
    found = [IN_FLIGHT.empty_table()]
    columns = pa.schema([*IN_FLIGHT, *_EPOCHS])
    for piece in stored.pieces(columns):
        late = np.zeros(len(piece), bool)
        epochs, until = _latest_epochs(piece), pc.fill_null(piece["acknowledged_ns"], NEVER).to_numpy()
        for of, here in each_partition(piece["topic"], piece["partition"]):
            for term in known[of].terms if of in known else ():
                if term.epoch is not None:
                    late[here] |= (epochs[here] >= term.epoch) & (until[here] < term.begins_ns)
        found.append(piece.select(IN_FLIGHT.names).filter(pa.array(late)))
    return pa.concat_tables(found)


def _latest_epochs(copies: pa.Table) -> npt.NDArray[np.int64]:
    """For each duplicated record, the leader epoch of the copy in the final log; if there is none, the latest epoch of
    its copies; -1 if it is not known."""
    latest = [max(epochs or [-1]) for epochs in copies["epochs"].to_pylist()]
    stands = copies["stands_epoch"].cast(pa.int64())
    epochs: npt.NDArray[np.int64] = pc.coalesce(stands, pa.array(latest, pa.int64())).to_numpy()
    return epochs
