"""Records of aborted transactions that were delivered: whether an event may have taken the marker that aborted them."""

import pyarrow as pa

from checkers.evidence.behind import over
from checkers.evidence.decision import undecided
from checkers.evidence.elections import Elections
from checkers.evidence.intervals import BEFORE, Window
from checkers.evidence.late import elections_of
from checkers.evidence.losses import Losses
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from harness.core.anomalies import ABORTED_READ
from harness.core.faults import Does, acted_on, does, may_have_acted
from harness.core.guarantees import Ruling, asked_by_hand

_ROWS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("sent_ns", pa.int64()), ("read_ns", pa.int64())])
_NOBODY_KNOWS = "nobody knows whether the log lost the marker that aborted it, before it was read"


def marker_may_be_gone(history: History, found: AnomalyStore, _losses: Losses | None) -> Ruling | None:
    """Undecided if, between the send and the delivery of each record that was read although its transaction was not
    committed, its partition may have lost what was committed: by an election that the settings allow to be unclean, or
    that somebody asked for; or by a wiped disk. The next marker of the same producer then ends the old transaction, too
    (ProducerAppendInfo). None otherwise."""
    rows = [row for piece in found.of(ABORTED_READ).pieces(_ROWS) for row in piece.to_pylist()]
    known, windows = elections_of(history), dict[tuple[str, int], list[Window]]()
    for row in rows:
        of = row["topic"], row["partition"]
        if of not in windows:
            windows[of] = _may_take(history, known[of]) if of in known else []
        sent_ns = BEFORE if row["sent_ns"] is None else row["sent_ns"]
        if not any(since <= row["read_ns"] and sent_ns <= until for since, until in windows[of]):
            return None
    return undecided(ABORTED_READ, _NOBODY_KNOWS) if rows else None


def _may_take(history: History, elections: Elections) -> list[Window]:
    """The times in which a partition may have lost what was committed."""
    faults = may_have_acted(history.faults)
    names = {elections.names.get(broker) for broker in elections.replicas}
    wiped = (row for row in faults if does(row, Does.DESTROYS_DATA) and acted_on(row) & names)
    windows = [(row["injecting_ns"], over(row)) for row in wiped]
    by_hand = any(asked_by_hand(row, elections.of) for row in faults)
    if history.run_file.configuration.elects_uncleanly or by_hand:
        windows += [(term.begins_ns, term.seen_ns) for term in elections.terms[1:]]
    return windows
