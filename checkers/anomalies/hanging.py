"""Transactions that hang: whether the first write of one had reached its leader before the transaction ended. Then a
marker is missing. If not, the write came late, and began a transaction that no coordinator knows of (KAFKA-14402).
"""

from collections.abc import Container, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.leadership import COMES_BACK_NS
from harness.core.clock import MS_NS
from harness.core.faults import Row, acted_on, supposing_it_acted
from harness.core.topology import Partition
from harness.history.last_stable import StableEnds
from harness.history.schema import Phase
from harness.history.stored_run import StoredRun

#: librdkafka's default of transaction.timeout.ms.
_TIMEOUT_MS = 60_000


def in_time(stored: StoredRun, of: Partition, ends: StableEnds) -> bool | None:
    """Whether the write at the last stable offset was acknowledged or read there before its producer asked for the end
    of its transaction. False if the history does not show it. An acknowledgement without an offset counts if the write
    was read there.

    None if the transaction may have ended before that: its timeout was over; or a fault may have held back the request
    for an earlier end of the same producer, which then ended this transaction (KAFKA-17754). None, too, if nobody knows
    which write stands there, or whether its acknowledgement is of a copy below, and it may be one in time.
    """
    in_log = (pc.field("topic") == of[0]) & (pc.field("partition") == of[1])
    here = in_log & (pc.field("offset") == ends.last_stable)
    read_ns: dict[int, int] = {}
    for row in stored.rows("reads", here & pc.field("intact") & pc.is_valid(pc.field("record_id"))):
        read_ns[row["record_id"]] = min(row["read_ns"], read_ns.get(row["record_id"], row["read_ns"]))
    read = in_log & pc.field("record_id").isin(pa.array(read_ns, pa.int64()))
    acknowledged = here & (pc.field("outcome") == "ok")
    written = stored.rows("sends", (acknowledged | read) & pc.is_valid(pc.field("transaction")))
    if not written and not read_ns:
        return None if _any_in_time(stored, _may_stand_there(stored, in_log, ends)) else False
    copied = _found_below(stored, in_log, ends, (send for send in written if send["offset"] is None))
    each = {
        _before_its_end(stored, send, answered, read_ns.get(send["record_id"]))
        for send in written
        for answered in _acknowledged_there(send, ends, copied)
    }
    if not each:
        return False
    return each.pop() if len(each) == 1 else None


def _acknowledged_there(send: Row, ends: StableEnds, copied: Container[int]) -> Sequence[bool]:
    """Whether the acknowledgement of a write at the last stable offset is of that write; both answers if it may be of
    a copy. ``copied``: the writes that stand below, too."""
    if send["outcome"] != "ok":
        return (False,)
    if send["offset"] is not None:
        return (send["offset"] == ends.last_stable,)
    return (True, False) if send["record_id"] in copied else (True,)


def _may_stand_there(stored: StoredRun, in_log: pc.Expression, ends: StableEnds) -> list[Row]:
    """The writes that were acknowledged without their offset, and may be the one at the last stable offset: the final
    read found none of them below. (A write of a transaction stands in a log once. What stands above may be of the same
    transaction.)"""
    silent = in_log & (pc.field("outcome") == "ok") & pc.is_null(pc.field("offset"))
    silent &= pc.is_valid(pc.field("transaction"))
    sends = [*stored.rows("sends", silent)]
    elsewhere = _found_below(stored, in_log, ends, sends)
    return [send for send in sends if send["record_id"] not in elsewhere]


def _found_below(stored: StoredRun, in_log: pc.Expression, ends: StableEnds, sends: Iterable[Row]) -> set[int]:
    """Which of these writes the final read found below the last stable offset."""
    ids = {send["record_id"] for send in sends}
    below = in_log & pc.field("record_id").isin(pa.array(ids, pa.int64())) & pc.field("intact")
    below &= (pc.field("phase") == Phase.FINAL) & (pc.field("offset") < ends.last_stable)
    return {row["record_id"] for row in (stored.rows("reads", below) if ids else ())}


def _any_in_time(stored: StoredRun, acknowledged: Iterable[Row]) -> bool:
    """Whether a write was acknowledged before anyone asked for the end of its transaction."""
    first_ns: dict[tuple[int, int, int], int] = {}
    for send in acknowledged:
        its = send["worker"], send["incarnation"], send["transaction"]
        first_ns[its] = min(send["completed_ns"], first_ns.get(its, send["completed_ns"]))
    own = pc.field("transaction").isin(pa.array({transaction for *_, transaction in first_ns}, pa.int64()))
    return any(
        (row["ending_ns"] is None or by_ns < row["ending_ns"])
        for row in (stored.rows("transactions", own) if first_ns else ())
        if (by_ns := first_ns.get((row["worker"], row["incarnation"], row["transaction"]))) is not None
    )


def _before_its_end(stored: StoredRun, send: Row, answered: bool, read_ns: int | None) -> bool | None:
    """``answered``: its acknowledgement counts."""
    # (Another incarnation of the producer has another epoch: its requests for ends cannot end this transaction.)
    mine = (pc.field("worker") == send["worker"]) & (pc.field("incarnation") == send["incarnation"])
    own = stored.rows("transactions", mine)
    its = next((row for row in own if row["transaction"] == send["transaction"]), None)
    if its is None:
        return False
    acknowledged = [send["completed_ns"]] if answered else []
    there = [*acknowledged, *([] if read_ns is None else [read_ns])]
    if not there or (its["ending_ns"] is not None and its["ending_ns"] <= min(there)):
        return False
    by_ns = min(there)
    timeout_ms = int(stored.file.workers("sends").get(send["worker"], {}).get("transaction.timeout.ms", _TIMEOUT_MS))
    earlier = [row for row in own if row["began_ns"] < its["began_ns"] and row["ending_ns"] is not None]
    may_have_ended = (
        _ended_late(earlier, stored.faults, by_ns)
        or by_ns - its["began_ns"] >= timeout_ms * MS_NS
        or (its["ending_ns"] is None and not acknowledged and _replaced(stored, send))
    )
    return None if may_have_ended else True


def _replaced(stored: StoredRun, send: Row) -> bool:
    """Whether a later incarnation of its producer began a transaction: it ended the open one before (KIP-98,
    InitProducerId)."""
    later = (pc.field("worker") == send["worker"]) & (pc.field("incarnation") > send["incarnation"])
    return bool(stored.rows("transactions", later))


def _ended_late(earlier: Iterable[Row], faults: Iterable[Row], by_ns: int) -> bool:
    """Whether a fault may have made a producer send its request for an end again, so that one of both came late."""
    acted = [row for row in map(supposing_it_acted, faults) if row["effective"] or acted_on(row)]
    return any(
        row["injecting_ns"] <= (by_ns if its["ended_ns"] is None else its["ended_ns"])
        and (row["healed_ns"] is None or row["healed_ns"] + COMES_BACK_NS >= its["ending_ns"])
        for its in earlier
        for row in acted
    )
