"""The standing of a loss is the worst of all its records; this collects the evidence that decides each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from checkers.evidence.again import COLUMNS as COLUMNS_OF_SENDS
from checkers.evidence.again import (
    COLUMNS_OF_GONE,
    COLUMNS_OF_VANISHED,
    acknowledged,
    acknowledged_again,
    committed,
    in_larger_pieces,
)
from checkers.evidence.decision import WORST_FIRST, Case
from checkers.evidence.elections import elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import Log, Offsets
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.record_ranges import COLUMNS, RecordRange, bucket_width, record_ranges
from checkers.evidence.spare_offsets import COLUMNS as COLUMNS_OF_SPARE
from checkers.evidence.spare_offsets import InFlight, disturbed, spare_offsets, unacknowledged
from checkers.evidence.store import AnomalyStore, StoredRows
from checkers.evidence.written import WriteCounter
from checkers.leadership import Partition, Span
from harness.core.anomalies import Gone
from harness.core.faults import Row, in_doubt, split_by_end, supposing_it_acted
from harness.core.guarantees import Ruling
from harness.history.run_file import FINAL_READ, RunFile
from harness.history.schema import TRANSACTION
from harness.history.stored_run import StoredRun

#: The feature of eligible leader replicas (KIP-966).
_ELR = "eligible.leader.replicas.version"


def observed(stored: StoredRun, seen: Sequence[Span]) -> Evidence:
    """The evidence about which brokers must have had a record, without the final logs. ``seen``: the run's
    observations, folded."""
    run = stored.file
    return Evidence(
        configuration=run.configuration,
        elections=elections(stored.table("observations"), seen, stored.brokers, run.configuration, stored.faults),
        names=stored.brokers,
        faults=possible_faults(stored.faults),
        end_ns=over_ns(run, stored.last_ns),
        coordinated=stored.count("transactions") > 0,
        last_replica_guarded=run.features.get(_ELR, 0) > 0,
        controllers=run.controllers,
        silence_ns=run.silence_ns,
    )


def with_results(known: Evidence, stored: StoredRun, logs: Mapping[Partition, Log], found: AnomalyStore) -> Evidence:
    """The evidence ``known`` from observations, with the evidence of the results added: the final logs, the vanished
    records that were ``found``, and acknowledgements at offsets that had been acknowledged before."""
    delivered_rows = [rows for _, rows in found.gone(Gone.DELIVERED)]
    not_there = [rows for _, rows in found.gone(Gone.ACKNOWLEDGED, Gone.MOVED)]
    vanished = [case for rows in delivered_rows for case in _vanished(rows, known)]
    columns, done = COLUMNS_OF_SENDS, None
    if known.configuration.read_committed and stored.count("transactions"):
        columns, done = [*COLUMNS_OF_SENDS, *TRANSACTION], stored.pieces("transactions", committed(), TRANSACTION)
    timeout_ns = NEVER if known.configuration.idempotence else stored.file.request_timeout_ns
    in_flight = InFlight(known.elections, known.acting, timeout_ns)
    whole, deliveries = begun_at(logs, vanished), delivered(vanished, known)
    writes = WriteCounter(known.elections, whole)
    pieces = in_larger_pieces(stored.pieces("sends", acknowledged(), columns))
    sends = writes.counting(in_flight.counting(pieces))
    gone = writes.without(piece for rows in not_there for piece in rows.pieces(COLUMNS_OF_GONE))
    read = (piece for rows in delivered_rows for piece in rows.pieces(COLUMNS_OF_VANISHED))
    again = acknowledged_again(sends, gone, read, known.elections, known.acting, logs, known.end_ns, done)
    moved = [rows for _, rows in found.gone(Gone.MOVED)]
    spare = {} if stored.count("transactions") else _spare_offsets(known, stored, moved, in_flight)
    written = writes.each()
    return replace(
        known, logs=whole, delivered=deliveries, again=again, spare=spare, written=written, _edges={}, _moments={}
    )


def _spare_offsets(
    known: Evidence, stored: StoredRun, moved: Iterable[StoredRows], in_flight: InFlight
) -> Mapping[tuple[Partition, int], int]:
    unanswered = stored.pieces("sends", unacknowledged(), COLUMNS_OF_SPARE.names)
    supposed = {of: known.acting(own, len(known.faults) - 1) for of, own in known.elections.items()}
    without = {
        (of, n) for of, own in known.elections.items() for n in disturbed(own, supposed[of], known.configuration)
    }
    elsewhere = (piece for rows in moved for piece in rows.pieces(COLUMNS_OF_SPARE))
    return spare_offsets(unanswered, elsewhere, in_flight.after(), known.configuration, without)


def over_ns(run: RunFile, last_ns: int) -> int:
    """When the writes were over and the final read began: a record that an election takes later is still read."""
    return max([last_ns, *(phase.at_ns for phase in run.phases if phase.phase == FINAL_READ)])


def possible_faults(faults: Sequence[Row]) -> list[Sequence[Row]]:
    """The faults of a run, those that ended earlier on some of their nodes as a row for each end; and, if the effect of
    some is not known, a second list that assumes that they acted."""
    faults = split_by_end(faults)
    doubtful = any(map(in_doubt, faults))
    return [faults, *([[supposing_it_acted(row) for row in faults]] if doubtful else [])]


def _vanished(found: StoredRows, known: Evidence) -> list[Case]:
    """The vanished records as cases. (Where brokers report no epochs, times separate their terms: those of different
    times are kept apart.)"""
    timed = known if any(own.without_epochs for own in known.elections.values()) else None
    parts = record_ranges(found.pieces(COLUMNS), {}, bucket_width(found.extent(), 1), evidence=timed)
    cases = (part.case for part in parts if part.case is not None)
    return [case for case in cases if None not in (case.last_offset, case.delivered_ns)]


def delivered(vanished: Iterable[Case], known: Evidence) -> dict[tuple[Partition, int], tuple[Offsets, Offsets]]:
    """For vanished records, by partition and the number of their term: their offsets in order, and for each the first
    time when a consumer had received one at or above it. Everything below in the log of that leader was committed by
    then."""
    apart: dict[tuple[Partition, int], list[tuple[int, int]]] = {}
    for case in vanished:
        for number in _terms_of(case, known):
            apart.setdefault((case.of, number), []).append((int(case.last_offset or 0), int(case.delivered_ns or 0)))
    found = {}
    for key, delivered_by in apart.items():
        offsets, by = np.array(sorted(delivered_by), np.int64).T
        found[key] = (offsets, np.minimum.accumulate(by[::-1])[::-1])
    return found


def _terms_of(case: Case, known: Evidence) -> list[int]:
    """The term in which vanished records were written: that of their epoch. Without epochs, the only one in which a
    leader led from their first send to their delivery, if its disk was never wiped (after that, it has another
    log)."""
    own = known.elections.get(case.of)
    if own is None or case.delivered_ns is None:
        return []
    if not own.without_epochs:
        return [n for n, term in enumerate(own.terms) if term.epoch == case.epoch]
    sent_ns = BEFORE if case.sent_ns is None else case.sent_ns
    numbers = own.open(sent_ns, case.delivered_ns)
    wiped = {broker for _, broker in known.acting(own, len(known.faults) - 1).wipes(BEFORE, NEVER)}
    leaders = {own.terms[number].leader for number in numbers}
    sure = len(numbers) == 1 and not leaders & wiped and not own.unseen(sent_ns, case.delivered_ns)
    return numbers if sure else []


def begun_at(found: Mapping[Partition, Log], vanished: Iterable[Case]) -> dict[Partition, Log]:
    """The final logs, in which each epoch begins no later than its first vanished record."""
    first: dict[Partition, dict[int, int]] = {}
    for case in vanished:
        if case.epoch is not None:
            of_epoch, offset = first.setdefault(case.of, {}), int(case.first_offset or 0)
            of_epoch[case.epoch] = min(offset, of_epoch.get(case.epoch, offset))
    return {of: log.begun_at(first.get(of, {})) for of, log in found.items()}


def worst_ruling(found: Iterable[RecordRange]) -> tuple[Ruling, int, int]:
    """The worst ruling of all records of an anomaly, the number of records with this ruling, and the number of all
    records."""
    counts: dict[Ruling, int] = {}
    total = 0
    for part in found:
        assert part.decision is not None
        counts[part.decision.ruling] = counts.get(part.decision.ruling, 0) + part.count
        total += part.count
    ruling = min(counts, key=lambda one: (WORST_FIRST.index(one.standing), -counts[one], one.because))
    return ruling, counts[ruling], total
