"""What happened in a run, for anomalies whose standing does not depend on single records. An entry of the catalogue
(checkers/catalogue.py) names the function of its anomaly."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from checkers.evidence.late import IN_FLIGHT, late_copies
from checkers.evidence.reach import Resent, cut_off, given_up_beside, resent
from checkers.evidence.store import StoredRows
from checkers.history import History
from harness.core.anomalies import DUPLICATED, REORDERED, Anomaly
from harness.core.faults import Row
from harness.core.guarantees import Circumstances

#: Takes the history, its faults, and all rows that were found of the anomaly.
Happened = Callable[[History, Sequence[Row], StoredRows], Circumstances]


def nothing(_history: History, _faults: Sequence[Row], _found: StoredRows) -> Circumstances:
    """Nothing: no event excuses the anomaly."""
    return Circumstances()


def of_duplicated(history: History, faults: Sequence[Row], found: StoredRows) -> Circumstances:
    """Why records may have been written twice: they were sent again; or their idempotent producer gave up another one
    beside them."""
    if not history.run_file.configuration.idempotence:
        return _sent_again(history, faults, DUPLICATED, found)
    beside = given_up_beside(history, found) and not len(late_copies(history, DUPLICATED, found, faults))
    return Circumstances(given_up_beside=beside)


def of_reordered(history: History, faults: Sequence[Row], found: StoredRows) -> Circumstances:
    """Why records may have come late: they were sent again, or nobody waited for them any more."""
    acknowledged = (piece["acknowledged_ns"] for piece in found.pieces(IN_FLIGHT))
    unanswered = history.run_file.configuration.acks == "0" or not any(len(one.drop_null()) for one in acknowledged)
    return replace(_sent_again(history, faults, REORDERED, found), unanswered=unanswered)


def _sent_again(history: History, faults: Sequence[Row], anomaly: Anomaly, found: StoredRows) -> Circumstances:
    never = Resent(again=False, elected=False)
    sent = never if history.run_file.configuration.idempotence else resent(history, anomaly, found, faults)
    return Circumstances(
        elected=sent.elected, resent=sent.again, held_back=sent.held, too_many_copies=sent.too_many_copies
    )


def of_two_owners(history: History, faults: Sequence[Row], found: StoredRows) -> Circumstances:
    """Whether a fault cut the members of a group off from its coordinator, or may have."""
    return Circumstances(
        cut_off=cut_off(history, faults, found), may_be_cut_off=cut_off(history, faults, found, perhaps=True)
    )


def of_unseen(history: History, _faults: Sequence[Row], _found: StoredRows) -> Circumstances:
    """Whether the logs were read when all was over."""
    return Circumstances(final_read=history.run_file.final_read)


def of_missed(_history: History, _faults: Sequence[Row], found: StoredRows) -> Circumstances:
    """How many records were missed though their member lived, and knew what it had committed."""
    excused = sum(pc.sum(pc.or_(piece["died"], piece["unanswered"])).as_py() for piece in found.pieces())
    return Circumstances(missed_by_the_living=found.count - excused)


def all_may_have_moved(history: History, found: StoredRows) -> bool:
    """Whether, for each row of an anomaly, a group may have moved the partition right before it, unseen."""
    rows = found.pieces() if history.moved_unseen else ()
    columns = [piece["may_have_moved"] for piece in rows if "may_have_moved" in piece.column_names]
    return bool(columns) and all(pc.all(one).as_py() for one in columns)
