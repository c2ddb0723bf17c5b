"""A second judge, slow and obvious, written from the table of anomalies: it shares no code with the checkers."""

from collections import defaultdict
from typing import Any

Row = dict[str, Any]
Sets = dict[str, set[int | None]]

_RESETS = {"assign", "revoke", "lost", "seek"}


def judged(tables: dict[str, list[Row]]) -> Sets:
    """The record ids of each anomaly in one history (without transactions); those found only.

    Of anomalies that only a group can have: ``missed``, wherever anything was committed.
    """
    found: Sets = defaultdict(set)
    sends, reads = tables["sends"], tables["reads"]
    _what_was_sent(found, sends, reads, tables["log_ends"])
    _what_was_read(found, sends, reads, tables["log_ends"])
    _offsets(found, sends, reads)
    _replicas(found, reads)
    _order(found, sends, reads, tables["log_ends"])
    _readers(found, reads, tables["positions"])
    _group(found, reads, tables["positions"])
    return {anomaly: records for anomaly, records in found.items() if records}


def _phase(reads: list[Row], phase: str) -> list[Row]:
    return [r for r in reads if r["phase"] == phase]


def _offsets_of(reads: list[Row]) -> dict[tuple[tuple[str, int], int | None], set[int]]:
    offsets = defaultdict(set)
    for r in _phase(reads, "final"):
        offsets[slot(r), r["record_id"]].add(r["offset"])
    return offsets


def _what_was_sent(found: Sets, sends: list[Row], reads: list[Row], ends: list[Row]) -> None:
    offsets = _offsets_of(reads)
    whole = {slot(e): e["complete"] for e in ends}
    starts = {slot(e): e["log_start"] for e in ends}
    for s in sends:
        there = offsets.get((slot(s), s["record_id"]), set())
        kept = s["offset"] is None or s["offset"] >= starts.get(slot(s), 0)
        if s["outcome"] == "ok" and not there and kept and whole.get(slot(s)):
            found["lost"].add(s["record_id"])
        if s["outcome"] == "fail" and any(
            r["record_id"] == s["record_id"] and slot(r) == slot(s) and r["phase"] != "replica" for r in reads
        ):
            found["failed_but_present"].add(s["record_id"])
        told = s["outcome"] == "ok" and s["offset"] is not None
        if told and there and kept and s["offset"] not in there and whole.get(slot(s)):
            found["acknowledged_elsewhere"].add(s["record_id"])


def _what_was_read(found: Sets, sends: list[Row], reads: list[Row], ends: list[Row]) -> None:
    offsets = _offsets_of(reads)
    sent = {s["record_id"]: s for s in sends}
    sent_as = {(s["record_id"], slot(s), s.get("key")) for s in sends}
    whole = {slot(e): e["complete"] for e in ends}
    starts = {slot(e): e["log_start"] for e in ends}
    for r in _phase(reads, "live"):
        gone = (slot(r), r["record_id"]) not in offsets
        if r["record_id"] is not None and gone and whole.get(slot(r)) and r["offset"] >= starts[slot(r)]:
            found["vanished"].add(r["record_id"])
    for (_, record), at in offsets.items():
        if record is not None and len(at) > 1:
            found["duplicated"].add(record)
    for r in reads:
        if not r["intact"]:
            found["corrupted"].add(r["record_id"])
        elif r["record_id"] not in sent:
            found["phantom"].add(r["record_id"])
        elif (r["record_id"], slot(r), r["key"]) not in sent_as:
            found["misplaced"].add(r["record_id"])


def _offsets(found: Sets, sends: list[Row], reads: list[Row]) -> None:
    final = _phase(reads, "final")
    seen = defaultdict(set)
    for s in sends:
        if s["outcome"] == "ok" and s["offset"] is not None:
            seen[slot(s), s["offset"]].add(s["record_id"])
    for r in reads:
        if r["intact"]:
            seen[slot(r), r["offset"]].add(r["record_id"])
    for (of, offset), records in seen.items():
        if len(records) > 1:
            stands = [r["record_id"] for r in final if r["intact"] and (slot(r), r["offset"]) == (of, offset)]
            number = {-1 if record is None else record: record for record in records}
            last = min((-1 if record is None else record for record in stands), default=None)
            found["rewritten_offset"].add(number[min(number.keys() - {last})])


def _replicas(found: Sets, reads: list[Row]) -> None:
    whole = [r for r in reads if r["intact"]]
    for r in _phase(whole, "replica"):
        here = [f["record_id"] for f in _phase(whole, "final") if slot(f) == slot(r) and f["offset"] == r["offset"]]
        if here and r["record_id"] not in here:
            found["diverged"].add(r["record_id"])


def _order(found: Sets, sends: list[Row], reads: list[Row], ends: list[Row]) -> None:
    final = _phase(reads, "final")
    starts = {slot(e): e["log_start"] for e in ends}
    log = []
    for s in sends:
        at = [r["offset"] for r in final if r["intact"] and r["record_id"] == s["record_id"] and slot(r) == slot(s)]
        deleted = s["offset"] is not None and s["offset"] < starts.get(slot(s), 0)
        if at and not deleted:
            log.append((min(at), s))
    for here, a in log:
        for there, b in log:
            if slot(a) == slot(b) and there < here:
                one = (a["worker"], a["incarnation"]) == (b["worker"], b["incarnation"])
                if one and b["sequence"] > a["sequence"]:
                    found["reordered"].add(a["record_id"])
                if a["outcome"] == "ok" and a["completed_ns"] < b["invoked_ns"]:
                    found["real_time_order"].add(a["record_id"])


def _readers(found: Sets, reads: list[Row], positions: list[Row]) -> None:
    final, live = _phase(reads, "final"), _phase(reads, "live")
    for seat in {(r["reader"], r["incarnation"], slot(r)) for r in (*live, *positions)}:
        told = [p for p in positions if is_of(p, seat) and p["event"] != "commit"]
        happened = [(p["at_ns"], 0, p["event"], p["offset"], None) for p in told]
        happened += [(r["read_ns"], 1, "read", r["offset"], r["record_id"]) for r in live if is_of(r, seat)]
        place = furthest = None
        for _, _, event, offset, record in sorted(happened, key=_in_order):
            if event in _RESETS:
                place = furthest = offset if event in {"assign", "seek"} else None
                continue
            if offset is None:
                continue
            if place is not None:
                passed = {r["record_id"] for r in final if slot(r) == seat[2] and place <= r["offset"] < offset}
                found["skipped"] |= passed
            if event == "read" and furthest is not None and offset < furthest:
                found["went_back"].add(record)
            place = offset + (event == "read")
            furthest = max(place, furthest or 0)


def _group(found: Sets, reads: list[Row], positions: list[Row]) -> None:
    given = {(slot(r), r["offset"]) for r in _phase(reads, "live")}
    for r in _phase(reads, "final"):
        here = [p for p in positions if slot(p) == slot(r)]
        placed = sorted((p["at_ns"], p["offset"] or 0) for p in here if p["event"] in {"assign", "seek"})
        begun = placed[0][1] if placed else 0
        past = any(p["event"] == "commit" and not p["error"] and (p["offset"] or 0) > r["offset"] for p in here)
        if past and r["offset"] >= begun and (slot(r), r["offset"]) not in given:
            found["missed"].add(r["record_id"])


def _in_order(happened: tuple[int, int, str, int | None, int | None]) -> tuple[int, int, int, int]:
    at_ns, told_or_read, _, offset, record = happened
    return at_ns, told_or_read, offset or 0, -1 if record is None else record


def slot(row: Row) -> tuple[str, int]:
    return row["topic"], row["partition"]


def is_of(row: Row, seat: tuple[int, int, tuple[str, int]]) -> bool:
    return (row["reader"], row["incarnation"], slot(row)) == seat
