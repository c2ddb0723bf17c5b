"""Records that stand behind later ones of their producer though no broker acknowledged them: whether their requests may
have come late.

With several requests in flight it may have been sent again, behind later ones that were sent before it was given up.

Or its producer sent the next record when it waited no more for this one: it was given up, or (acks=0) written to the
connection. If a fault holds its request back, it may still reach the leader after the next one. So it may have come
late if no later record that stands before it was acknowledged earlier than that (unless another leader was elected in
between: each broker has its own connection), and if a fault may have held it back until the last of them was sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.reach import FELT_NS, Disturbances, disturbances, until_reported
from checkers.evidence.store import StoredRows
from checkers.history import History
from harness.core.faults import Row
from harness.history.run_file import Origin
from harness.history.schema import PARTITION

_NUMBERS = ("record_id", "offset", "sent_ns", "acknowledged_ns", "after_record")
_OVERTAKEN = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("worker", pa.int32())]
    + [(name, pa.int64()) for name in _NUMBERS]
)
#: How long a closed connection goes on to send what was lost: about 100 s (Linux, ip-sysctl, tcp_orphan_retries).
_ORPHANED_NS = 120_000_000_000
_LANE = [*PARTITION, "worker", "incarnation"]
_SENT = [*_LANE, "record_id", "sequence", "offset", "invoked_ns", "completed_ns", "outcome"]


def may_have_come_late(history: History, faults: Sequence[Row], found: StoredRows) -> bool:
    """Whether the requests of all records that were ``found`` out of order (REORDERED), and that no broker
    acknowledged, may have come late. An imported history does not contain its faults: there they may."""
    no_answers = history.run_file.configuration.acks == "0"
    rows = until_reported(history, found, _OVERTAKEN, None if no_answers else pc.field("acknowledged_ns").is_null())
    if rows["sent_ns"].null_count:
        return False
    if history.run_file.origin is not Origin.KAFKA_TRIAL or not len(rows):
        return True
    sends, each = _Sends(history, rows, no_answers), disturbances(history, faults)
    return all(_came_late(history, row, sends, each[row["topic"], row["partition"]]) for row in rows.to_pylist())


def _came_late(history: History, row: Mapping[str, Any], sends: "_Sends", each: Disturbances) -> bool:
    sent, reported = row["sent_ns"], NEVER if row["acknowledged_ns"] is None else row["acknowledged_ns"]
    overtook = sends.between(row)
    if overtook is None:
        return False
    elected = min((begun for begun, over in each.elections if over >= sent), default=NEVER)
    if overtook.sent_ns <= reported and _sent_again(history, each, sent, reported):
        return True
    if overtook.acknowledged_ns < min(reported, elected):
        return False
    held = (_leaves_ns(begun, over) for begun, over in each.held if begun <= reported + each.unread_ns)
    until = [*held, *([reported + FELT_NS] if elected <= reported or reported - sent >= each.timeout_ns else [])]
    return overtook.sent_ns <= max(until, default=BEFORE)


def _sent_again(history: History, each: Disturbances, sent: int, reported: int) -> bool:
    """Whether a record may have been sent again behind others that were in flight with it."""
    configuration, times = history.run_file.configuration, (np.array([sent]), np.array([reported]))
    again = each.resent(*times) if configuration.retries else each.refused(*times)
    return configuration.max_in_flight > 1 and bool(again.all())


def _leaves_ns(begun: int, over: int) -> int:
    """Until when a request may leave that a fault held back: after the heal, the next attempt of its connection comes
    within as long as the fault lasted (RFC 6298: each wait is twice the one before)."""
    healed = over - FELT_NS
    return max(over, healed + min(healed - begun, _ORPHANED_NS))


@dataclass(frozen=True)
class _Overtook:
    """The later records that stand before one: when the first was acknowledged (NEVER: none was), and when the last was
    sent."""

    acknowledged_ns: int
    sent_ns: int


class _Sends:
    """The sends that may have overtaken any of these ``rows``, in order. ``no_answers``: a report is no answer of a
    broker."""

    def __init__(self, history: History, rows: pa.Table, no_answers: bool) -> None:
        last_ns = pc.max(pc.fill_null(rows["acknowledged_ns"], NEVER)).as_py()
        named = pa.concat_arrays([rows[name].combine_chunks() for name in ("record_id", "after_record")])
        wanted = pc.field("record_id").isin(named) | (pc.field("completed_ns") < last_ns)
        sends = history.stored.table("sends", wanted & pc.field("worker").isin(rows["worker"].unique()), _SENT)
        sends = sends.sort_by([(name, "ascending") for name in (*_LANE, "sequence")])
        answered = pa.scalar(no_answers) if no_answers else pc.equal(sends["outcome"], "ok")
        self._done = pc.if_else(answered, pc.fill_null(sends["completed_ns"], NEVER), NEVER).to_numpy()
        self._offset = pc.fill_null(sends["offset"], NEVER).to_numpy()
        self._id, self._sent = (sends[name].to_numpy() for name in ("record_id", "invoked_ns"))
        self._incarnation, self._by_id = sends["incarnation"].to_numpy(), np.argsort(self._id, kind="stable")

    def between(self, row: Mapping[str, Any]) -> _Overtook | None:
        """Those that overtook a record; None if its own send is not known."""
        own = next((n for n in self._all_of(row["record_id"]) if self._sent[n] == row["sent_ns"]), None)
        after = self._all_of(row["after_record"])
        same = [n for n in after if own is not None and self._incarnation[n] == self._incarnation[own]]
        if own is None or not same:
            return None
        last = same[0]
        there = self._offset[own + 1 : last + 1] < row["offset"]
        there[-1:] = True
        done = self._done[own + 1 : last + 1][there]
        return _Overtook(int(done.min(initial=NEVER)), int(self._sent[last]))

    def _all_of(self, record_id: int) -> list[int]:
        first, last = (np.searchsorted(self._id, record_id, side, self._by_id) for side in ("left", "right"))
        found: list[int] = self._by_id[first:last].tolist()
        return found
