"""Simulated histories judged, and each record that was lost compared with the truth."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from checkers.evidence.final_logs import inside
from checkers.evidence.holes import read_final_logs, with_final_logs
from checkers.evidence.losses import Losses
from checkers.evidence.record_ranges import RecordRange
from checkers.evidence.standing import observed
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from checkers.judge import judge
from harness.core.anomalies import LOST, REWRITTEN_OFFSET, VANISHED, Anomaly
from harness.core.verdict import Standing, Verdict
from tests.simulated.decisions import decisions
from tests.simulated.history import write
from tests.simulated.play import Played, play
from tests.simulated.settings import Bug, Seen, bug_of, settings_of
from tests.simulated.truth import Loss, Permits, losses, vanished_from

#: What the judge can have said of a record besides its standing.
NOT_REPORTED = "not reported"
#: What the truth can be besides what is permitted.
NOT_LOST = "not lost"

#: What may not be said of what is otherwise.
_WRONG = {
    (Permits.NO, Standing.PERMITTED),
    (Permits.SHOWN, Standing.PERMITTED),
    (Permits.YES, Standing.VIOLATION),
}

Where = tuple[str, int]

_TIMES = ("acknowledged_ns", "sent_ns", "read_ns")


@dataclass(frozen=True)
class Judged:
    """A record as truth and judge have it. ``truth``: a Permits, or NOT_LOST; ``said``: a Standing, or NOT_REPORTED.

    ``holders``: the brokers that had it when it was acknowledged (None: it never was); ``must``: those that must have
    had it then, as the judge says (None: that is not compared). ``observed``: somebody observed to the end of its
    history.
    """

    seed: int
    settings: str
    bug: Bug | None
    anomaly: str
    place: Where
    offset: int
    truth: str
    said: str
    event: str
    holders: frozenset[int] | None
    must: frozenset[int] | None
    observed: bool

    @property
    def disagrees(self) -> bool:
        """Whether the judge is wrong. Not to decide is no mistake, of a single record."""
        if NOT_LOST in {self.truth} or NOT_REPORTED in {self.said}:
            return True
        return (self.truth, self.said) in _WRONG

    @property
    def holders_disagree(self) -> bool:
        """Whether the judge says that a broker must have had it which lacked it. (A bug may make it lack it.)"""
        if self.bug is not None or self.must is None or self.holders is None:
            return False
        return not self.must <= self.holders


def compared(
    seeds: Iterable[int], spark: SparkSession, bugs: bool = True, isolating: bool = False, seen: Seen = Seen.OFTEN
) -> Iterator[Judged]:
    """Every record that histories lost, or are said to. Those of equal settings are judged as one run."""

    def settings(seed: int) -> str:
        return repr(settings_of(seed, seen))

    for _, alike in groupby(sorted(seeds, key=settings), key=settings):
        histories = [
            play(seed, settings_of(seed, seen), bug_of(seed) if bugs else None, number, isolating=isolating)
            for number, seed in enumerate(alike)
        ]
        with tempfile.TemporaryDirectory(prefix="kafka-trial-simulated-") as run:
            write(Path(run), histories)
            verdict = judge(Path(run), spark)
            yield from against_truth(History.read(Path(run), spark), histories, verdict)


def decided(
    seeds: Iterable[int], bugs: bool = True, isolating: bool = False, seen: Seen = Seen.OFTEN
) -> Iterator[Judged]:
    """As ``compared``, for each history by itself and without Spark: what is lost is read from its tables."""
    for seed in seeds:
        played = play(seed, settings_of(seed, seen), bug_of(seed) if bugs else None, isolating=isolating)
        for anomaly, loss, decision in decisions(played):
            # (With other acks the judge says who must have had it when it was committed. And between two reports that
            # are far apart a broker may leave the ISR and join it again: then it had the record only afterwards.)
            must = decision.must if played.settings.acks_all and seen is not Seen.SELDOM else None
            yield _judged(played, anomaly, loss.place, loss.record.offset, loss, decision.standing, must)


def against_truth(history: History, histories: Sequence[Played], verdict: Verdict) -> Iterator[Judged]:
    """Of a judged run, each record that was lost or is said to be; and what is said of the offset that it had."""
    truth = {one.record.id: (played, one) for played in histories for one in losses(played)}
    by_topic = {played.topic: played for played in histories}
    yield from _rewritten(history, truth, verdict)
    for anomaly in (LOST, VANISHED):
        reported = dict(_reported(history, anomaly, verdict))
        for record_id, (place, offset, said) in reported.items():
            played, loss = truth.get(record_id, (by_topic[place[0]], None))
            if loss is None and anomaly is VANISHED:
                loss = vanished_from(played, place, offset, record_id)
            yield _judged(played, anomaly, place, offset, loss, said)
        for record_id, (played, loss) in truth.items():
            if record_id not in reported and _is_in(anomaly, played, loss):
                yield _judged(played, anomaly, loss.place, loss.record.offset, loss, NOT_REPORTED)


def _rewritten(history: History, truth: Mapping[int, tuple[Played, Loss]], verdict: Verdict) -> Iterator[Judged]:
    """Each lost record at whose offset another stands. (Of a record that stands elsewhere, too, the truth is of one
    copy.)"""
    for record_id, (place, offset, said) in _reported(history, REWRITTEN_OFFSET, verdict):
        played, loss = truth.get(record_id, (None, None))
        if played is not None and loss is not None and (loss.place, loss.record.offset) == (place, offset):
            yield _judged(played, REWRITTEN_OFFSET, place, offset, loss, said)


def _is_in(anomaly: Anomaly, played: Played, loss: Loss) -> bool:
    if anomaly is LOST:
        return loss.acknowledged_ns is not None
    return any(record.id == loss.record.id for record in played.chronicles[loss.place].delivered)


def _judged(
    played: Played,
    anomaly: Anomaly,
    place: Where,
    offset: int,
    loss: Loss | None,
    said: str,
    must: frozenset[int] | None = None,
) -> Judged:
    return Judged(
        played.seed,
        played.settings.name,
        played.bug,
        anomaly.name,
        place,
        offset,
        NOT_LOST if loss is None else loss.permits,
        said,
        "" if loss is None else loss.event,
        None if loss is None else loss.holders,
        must,
        played.observed,
    )


def _reported(history: History, anomaly: Anomaly, verdict: Verdict) -> Iterator[tuple[int, tuple[Where, int, str]]]:
    """Each record that an anomaly tells, with the standing of the run of records that it is in."""
    if anomaly.name not in verdict.anomalies:
        return
    stored = AnomalyStore.read(history.results)
    known, missing = with_final_logs(history, observed(history.stored, history.seen), stored, read_final_logs(history))
    ranges: dict[Where, list[RecordRange]] = {}
    for one in Losses(history, stored, missing, known).ranges(anomaly):
        ranges.setdefault(one.of, []).append(one)
    for piece in stored.of(anomaly).pieces():
        for row in piece.to_pylist():
            place = row["topic"], row["partition"]
            yield (
                row["record_id"],
                (
                    place,
                    row["offset"],
                    _standing(row, ranges[place], bool(inside(missing, place, np.array([row["offset"]]))[0])),
                ),
            )


def _standing(row: Mapping[str, Any], ranges: Sequence[RecordRange], hole: bool) -> str:
    """The standing of a record: its run is the narrowest around its offset and the time of its acknowledgement. (What
    was permitted is reported as no hole, though another record may be missing at the same offset.)"""
    offset, at_ns = row["offset"], next(row[name] for name in _TIMES if row[name] is not None)
    around = [
        one
        for one in ranges
        if (one.hole == hole or (hole and one.decision and one.decision.standing is Standing.PERMITTED))
        and (one.first_offset is None or one.first_offset <= offset <= (one.last_offset or offset))
    ]
    # The times of a run are of what was acknowledged in it, if anything was.
    then = [one for one in around if one.first_ns <= at_ns <= one.last_ns] or around
    decision = min(then, key=lambda one: (one.last_ns - one.first_ns, one.count)).decision
    assert decision is not None
    return decision.standing


def counts(found: Iterable[Judged]) -> Counter[tuple[str, str]]:
    """How many records have which truth, and what the judge said of them."""
    return Counter((one.truth, one.said) for one in found)


def undecided(found: Iterable[Judged], truth: Permits) -> float:
    """Which part of the records of a truth is undecided, where somebody observed to the end."""
    of = [one.said == Standing.UNDECIDED for one in found if one.truth == truth and one.observed]
    return sum(of) / len(of) if of else 0.0


def either(found: Iterable[Judged]) -> float:
    """Which part of the records that a bug took may be of what the settings permit as well: of them all may be said."""
    by_bugs = Counter(one.truth for one in found if one.truth in {Permits.NO, Permits.SHOWN, Permits.EITHER})
    return by_bugs[Permits.EITHER] / by_bugs.total() if by_bugs else 0.0


def lines(found: Sequence[Judged]) -> list[str]:
    """What disagrees, records that stand together in a row; and the counts."""
    wrong = sorted((one for one in found if one.disagrees), key=_order)
    reported = [
        _line(list(alike))
        for _, alike in groupby(wrong, key=lambda one: (*_order(one)[:4], one.truth, one.said, one.event))
    ]
    table = [f"{truth:>10}  {said:<10} {number:>7}" for (truth, said), number in sorted(counts(found).items())]
    of = [f"undecided of what is {truth}: {undecided(found, truth):.1%}" for truth in (Permits.YES, Permits.NO)]
    of.append(f"of what a bug took, either: {either(found):.1%}")
    return [*reported, "", f"{'truth':>10}  {'judge':<10} records", *table, *of]


def _order(one: Judged) -> tuple[int, str, Where, str, int]:
    return one.seed, one.settings, one.place, one.anomaly, one.offset


def _line(alike: Sequence[Judged]) -> str:
    first, last = alike[0], alike[-1]
    where = f"{first.place[0]}-{first.place[1]} @{first.offset}..{last.offset} ({len(alike)})"
    held = f"; held by {', '.join(map(str, sorted(first.holders)))}" if first.holders else ""
    bug = f"; planted: {first.bug}" if first.bug else ""
    said = f"{first.anomaly} {first.truth}, judged {first.said}"
    return f"seed {first.seed} {where} {said}: {first.event}{held}{bug} [{first.settings}]"
