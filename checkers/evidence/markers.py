"""Records of aborted transactions that were delivered: whether an event may have taken the marker that aborted them."""

import pyarrow as pa

from checkers.evidence.behind import over
from checkers.evidence.decision import undecided
from checkers.evidence.elections import Elections
from checkers.evidence.intervals import BEFORE, NEVER, Window
from checkers.evidence.late import elections_of
from checkers.evidence.losses import Losses
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from checkers.leadership import COMES_BACK_NS, Partition
from harness.core.anomalies import ABORTED_READ
from harness.core.faults import Does, Row, acted_on, does, may_have_acted
from harness.core.guarantees import Ruling, asked_by_hand

_ROWS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("sent_ns", pa.int64()), ("read_ns", pa.int64())])
_NOBODY_KNOWS = "nobody knows whether the log lost the marker that aborted it, before it was read"


def marker_may_be_gone(history: History, found: AnomalyStore, _losses: Losses | None) -> Ruling | None:
    """Undecided if, between the send and the delivery of each record that was read although its transaction was not
    committed, its partition may have lost what was committed: by an election that may have been unclean, or the wiped
    disk of a leader. The next marker of the same producer then ends the old transaction, too
    (ProducerAppendInfo). None otherwise."""
    rows = [row for piece in found.of(ABORTED_READ).pieces(_ROWS) for row in piece.to_pylist()]
    known, windows = elections_of(history), dict[Partition, list[Window]]()
    for row in rows:
        of = row["topic"], row["partition"]
        if of not in windows:
            windows[of] = _may_take(history, known.get(of), of)
        sent_ns = BEFORE if row["sent_ns"] is None else row["sent_ns"]
        if not any(since <= row["read_ns"] and sent_ns <= until for since, until in windows[of]):
            return None
    return undecided(ABORTED_READ, _NOBODY_KNOWS) if rows else None


def _may_take(history: History, elections: Elections | None, of: Partition) -> list[Window]:
    """The times in which a partition may have lost what was committed."""
    faults = may_have_acted(history.faults)
    uncleanly = history.run_file.configuration.elects_uncleanly or any(asked_by_hand(row, of) for row in faults)
    if elections is None:
        return [(BEFORE, NEVER)] if uncleanly and faults else []
    windows = [
        window
        for row in faults
        if does(row, Does.DESTROYS_DATA)
        for broker in elections.replicas
        if elections.names.get(broker) in acted_on(row)
        for window in _led_empty(elections, broker, row)
    ]
    if uncleanly:
        later = [n for n in range(1, len(elections.terms)) if not _surely_clean(elections, n)]
        windows += [(elections.terms[n].begins_ns, elections.terms[n].seen_ns) for n in later]
    return windows


def _led_empty(elections: Elections, broker: int, wipe: Row) -> list[Window]:
    """The times of this wipe in which the broker led; and its elections soon after it."""
    injecting_ns, until = wipe["injecting_ns"], over(wipe)
    own = (term for term in elections.terms if term.leader == broker)
    led = (term for term in own if term.begins_ns <= until + COMES_BACK_NS and term.ends_ns >= injecting_ns)
    return [(max(injecting_ns, term.begins_ns), max(until, term.begins_ns)) for term in led]


def _surely_clean(elections: Elections, n: int) -> bool:
    """Whether the leader of a term was certainly elected from the ISR."""
    leader = elections.terms[n].leader
    known = not elections.reported_late(n) and all(leader in isr for isr in elections.isrs_before(n))
    heard = not elections.unheard(elections.last_reported_ns(n), elections.terms[n].seen_ns)
    return known and heard and leader in elections.surely_eligible(n)
