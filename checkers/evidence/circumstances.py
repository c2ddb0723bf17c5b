"""What happened in a run, for anomalies whose standing does not depend on single records. An entry of the catalogue
(checkers/catalogue.py) names the function of its anomaly. Where several things may have happened, each to some of the
records, it is a list."""

from collections.abc import Callable, Sequence

import pyarrow.compute as pc

from checkers.evidence.late import late_copies
from checkers.evidence.overtaken import may_have_come_late
from checkers.evidence.reach import Resent, cut_off, given_up_beside, resent
from checkers.evidence.store import StoredRows
from checkers.history import History
from harness.core.anomalies import DUPLICATED, REORDERED, Anomaly
from harness.core.faults import Row
from harness.core.guarantees import Circumstances

#: Takes the history, its faults, and all rows that were found of the anomaly.
Happened = Callable[[History, Sequence[Row], StoredRows], list[Circumstances]]


def nothing(_history: History, _faults: Sequence[Row], _found: StoredRows) -> list[Circumstances]:
    """Nothing: no event excuses the anomaly."""
    return [Circumstances()]


def of_duplicated(history: History, faults: Sequence[Row], found: StoredRows) -> list[Circumstances]:
    """Why records may have been written twice: they were sent again; or their idempotent producer gave up another one
    beside them."""
    if not history.run_file.configuration.idempotence:
        return [_sent_again(history, faults, DUPLICATED, found)]
    beside = given_up_beside(history, found) and not len(late_copies(history, DUPLICATED, found, faults))
    return [Circumstances(given_up_beside=beside)]


def of_reordered(history: History, faults: Sequence[Row], found: StoredRows) -> list[Circumstances]:
    """Why records may stand behind later ones: they were sent again, or (of those that no broker acknowledged) nobody
    waited for them any more."""
    acknowledged = pc.field("acknowledged_ns").is_valid()
    answered = 0 if history.run_file.configuration.acks == "0" else found.count_of(acknowledged)
    happened = [_sent_again(history, faults, REORDERED, found, acknowledged)] if answered else []
    if answered < found.count:
        late = not history.run_file.configuration.idempotence and may_have_come_late(history, faults, found)
        happened.append(Circumstances(came_late=late))
    return happened


def _sent_again(
    history: History,
    faults: Sequence[Row],
    anomaly: Anomaly,
    found: StoredRows,
    wanted: pc.Expression | None = None,
) -> Circumstances:
    never = Resent(again=False, elected=False)
    idempotent = history.run_file.configuration.idempotence
    sent = never if idempotent else resent(history, anomaly, found, faults, wanted=wanted)
    return Circumstances(
        elected=sent.elected, resent=sent.again, held_back=sent.held, too_many_copies=sent.too_many_copies
    )


def of_two_owners(history: History, faults: Sequence[Row], found: StoredRows) -> list[Circumstances]:
    """Whether a fault cut the members of a group off from its coordinator, or may have."""
    cut = [cut_off(history, faults, found, perhaps) for perhaps in (False, True)]
    return [Circumstances(cut_off=cut[0], may_be_cut_off=cut[1])]


def of_unseen(history: History, _faults: Sequence[Row], _found: StoredRows) -> list[Circumstances]:
    """Whether the logs were read when all was over."""
    return [Circumstances(final_read=history.run_file.final_read)]


def of_missed(_history: History, _faults: Sequence[Row], found: StoredRows) -> list[Circumstances]:
    """How many records were missed though their member lived, and knew what it had committed."""
    excused = sum(pc.sum(pc.or_(piece["died"], piece["unanswered"])).as_py() for piece in found.pieces())
    return [Circumstances(missed_by_the_living=found.count - excused)]


def all_may_have_moved(history: History, found: StoredRows) -> bool:
    """Whether, for each row of an anomaly, a group may have moved the partition right before it, unseen."""
    rows = found.pieces() if history.moved_unseen else ()
    columns = [piece["may_have_moved"] for piece in rows if "may_have_moved" in piece.column_names]
    return bool(columns) and all(pc.all(one).as_py() for one in columns)
