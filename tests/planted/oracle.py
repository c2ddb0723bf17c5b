"""A second judge, slow and obvious, written from the table of anomalies: it shares no code with the checkers."""

from collections import defaultdict
from collections.abc import Container
from typing import Any

Row = dict[str, Any]
Sets = dict[str, set[int | None]]
Slot = tuple[str, int]

_RESETS = {"assign", "revoke", "lost", "seek"}
_PLACED = {"assign", "seek"}


def judged(tables: dict[str, list[Row]], committed: Container[int] | None = None) -> Sets:
    """The record ids of each anomaly in one history; those found only.

    Of anomalies that only a group can have: what they would be if the readers were one. ``committed``: the readers of
    isolation level read_committed, which the final read then is of, too; None: nothing was written in transactions.
    A reader is placed at the log start only, whatever offset is reported. What a read_committed log has, nobody may
    skip.
    """
    found: Sets = defaultdict(set)
    sends, reads, positions, ends = (tables[name] for name in ("sends", "reads", "positions", "log_ends"))
    lasting, unsure, aborted = _phase(reads, "live"), set[int](), set[int]()
    if committed is not None:
        unstable = _unstable(positions)
        found["hanging_transaction"] = {None for _ in unstable}
        ends = [{**e, "complete": e["complete"] and slot(e) not in unstable} for e in ends]
        plain = {(slot(s), s["record_id"]) for s in sends if s["transaction"] is None}
        given = [r for r in lasting if r["reader"] in committed]
        asked = {_of(t) for t in tables["transactions"] if not _never_asked(t, sends)}
        within = [s for s in sends if s["transaction"] is not None]
        hidden = {(slot(s), s["record_id"]) for s in within if _of(s) not in asked}
        known = {_of(t) for t in tables["transactions"]}
        aborted = {s["record_id"] for s in within if _of(s) in known - asked}
        shown = [r for r in given if (slot(r), r["record_id"]) not in hidden]
        lasting = [r for r in lasting if r["reader"] not in committed and (slot(r), r["record_id"]) in plain]
        lasting += shown
        afterwards = [*_phase(reads, "final"), *_phase(reads, "replica")]
        _transactions(found, tables["transactions"], sends, [*given, *afterwards], ends)
        _dependencies(found, tables["transactions"], sends, given)
        kept = {_of(t) for t in tables["transactions"] if (t["intent"], t["outcome"]) == ("commit", "ok")}
        unsure = {s["record_id"] for s in sends if s["transaction"] is not None and _of(s) not in kept}
        sends = [{**s, "outcome": "info"} if _promises_nothing(s, unsure) else s for s in sends]
    log, proven = _phase(reads, "final"), _proven(reads, sends)
    _what_was_sent(found, sends, proven, _phase(proven, "final"), ends)
    _what_was_read(found, sends, reads)
    _what_was_in_the_log(found, _phase(proven, "final"), _proven(lasting, sends), ends)
    _copies(found, [*_phase(proven, "final"), *_phase(proven, "live")])
    _offsets(found, sends, reads)
    _replicas(found, reads, sends, ends, aborted)
    _epochs(found, reads)
    _order(found, sends, log, ends, log)
    from_the_start = [{**p, "offset": 0} if p["event"] in _PLACED else p for p in positions]
    _readers(found, sends, reads, log, from_the_start)
    _group(found, reads, positions)
    _owners(found, reads, positions)
    return {anomaly: records for anomaly, records in found.items() if records}


def judged_without_final_read(tables: dict[str, list[Row]]) -> Sets:
    """The same of a history whose logs nobody read when all was over; an offset of -1 is one that it does not tell."""
    found: Sets = defaultdict(set)
    sends, reads, positions = tables["sends"], tables["reads"], tables["positions"]
    log = [r for r in reads if r["offset"] >= 0]
    proven = _proven(reads, sends)
    _what_nobody_read(found, sends, proven, reads)
    _what_was_sent(found, sends, proven, [], [])
    _what_was_read(found, sends, reads)
    _at_two_offsets(found, sends, _proven(log, sends))
    _offsets(found, sends, log)
    _order(found, sends, log, [], reads, acknowledged=True)
    _readers(found, sends, reads, log, positions)
    return {anomaly: records for anomaly, records in found.items() if records}


def _phase(reads: list[Row], phase: str) -> list[Row]:
    return [r for r in reads if r["phase"] == phase]


def _proven(reads: list[Row], sends: list[Row]) -> list[Row]:
    """Without those that are damaged, but for those at the offset where the record that they show was acknowledged."""
    own = {(slot(s), s["record_id"], s["offset"]) for s in sends if s["outcome"] == "ok"}
    return [r for r in reads if r["intact"] or (slot(r), r["record_id"], r["offset"]) in own]


def _offsets_of(log: list[Row]) -> dict[tuple[Slot, int | None], set[int]]:
    offsets = defaultdict(set)
    for r in log:
        offsets[slot(r), r["record_id"]].add(r["offset"])
    return offsets


def _what_was_sent(found: Sets, sends: list[Row], reads: list[Row], log: list[Row], ends: list[Row]) -> None:
    offsets = _offsets_of(log)
    whole = {slot(e): e["complete"] for e in ends}
    starts = {slot(e): e["log_start"] for e in ends}
    for s in sends:
        there = offsets.get((slot(s), s["record_id"]), set())
        kept = (s["offset"] or 0) >= starts.get(slot(s), 0)
        if s["outcome"] == "ok" and not there and kept and whole.get(slot(s)):
            found["lost"].add(s["record_id"])
        if s["outcome"] == "fail" and any(
            r["record_id"] == s["record_id"] and slot(r) == slot(s) and r["phase"] != "replica" for r in reads
        ):
            found["failed_but_present"].add(s["record_id"])
        reported = s["outcome"] == "ok" and s["offset"] is not None
        if reported and there and kept and s["offset"] not in there and whole.get(slot(s)):
            found["acknowledged_elsewhere"].add(s["record_id"])


def _what_was_read(found: Sets, sends: list[Row], reads: list[Row]) -> None:
    sent = {s["record_id"]: s for s in sends}
    sent_as = {(s["record_id"], slot(s), s.get("key")) for s in sends}
    for r in reads:
        if not r["intact"]:
            found["corrupted"].add(r["record_id"])
        elif r["record_id"] not in sent:
            found["phantom"].add(r["record_id"])
        elif (r["record_id"], slot(r), r["key"]) not in sent_as:
            found["misplaced"].add(r["record_id"])


def _what_was_in_the_log(found: Sets, log: list[Row], lasting: list[Row], ends: list[Row]) -> None:
    offsets = _offsets_of(log)
    whole = {slot(e): e["complete"] for e in ends}
    starts = {slot(e): e["log_start"] for e in ends}
    for r in lasting:
        gone = r["offset"] not in offsets.get((slot(r), r["record_id"]), ())
        if r["record_id"] is not None and gone and whole.get(slot(r)) and r["offset"] >= starts[slot(r)]:
            found["vanished"].add(r["record_id"])


def _copies(found: Sets, given: list[Row]) -> None:
    for (_, record), at in _offsets_of(given).items():
        if record is not None and len(at) > 1:
            found["duplicated"].add(record)


def _what_nobody_read(found: Sets, sends: list[Row], proven: list[Row], reads: list[Row]) -> None:
    given = {(slot(r), r["record_id"]) for r in proven}
    for s in sends:
        if s["outcome"] == "ok" and (slot(s), s["record_id"]) not in given:
            passed = any(s["offset"] is not None and s["offset"] <= r["offset"] for r in reads if slot(r) == slot(s))
            found["lost" if passed else "unseen"].add(s["record_id"])


def _at_two_offsets(found: Sets, sends: list[Row], log: list[Row]) -> None:
    offsets = _offsets_of(log)
    for s in sends:
        if s["outcome"] == "ok" and s["offset"] is not None and (slot(s), s["record_id"]) in offsets:
            offsets[slot(s), s["record_id"]].add(s["offset"])
    for (_, record), at in offsets.items():
        if record is not None and len(at) > 1:
            found["duplicated"].add(record)


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


def _epochs(found: Sets, reads: list[Row]) -> None:
    reported = [r for r in reads if r["phase"] != "live" and r["leader_epoch"] is not None]
    for a in reported:
        for b in reported:
            one = (a["phase"], a["reader"], slot(a)) == (b["phase"], b["reader"], slot(b))
            if one and b["offset"] < a["offset"] and b["leader_epoch"] > a["leader_epoch"]:
                found["epoch_fell"].add(a["record_id"])


def _replicas(found: Sets, reads: list[Row], sends: list[Row], ends: list[Row], aborted: Container[int]) -> None:
    """What a follower shows of an ``aborted`` transaction is another anomaly."""
    acknowledged = {(slot(s), s["record_id"]) for s in sends if s["outcome"] == "ok"}
    cut = {slot(e) for e in ends if e["log_start"] > 0}
    for follower in {(r["reader"], slot(r)) for r in _phase(reads, "replica")}:
        has = {r["offset"] for r in _phase(reads, "replica") if (r["reader"], slot(r)) == follower}
        for f in _phase(reads, "final"):
            inside = slot(f) not in cut or f["offset"] > min(has)
            wanted = f["record_id"] is not None and (inside or (slot(f), f["record_id"]) in acknowledged)
            if f["intact"] and wanted and slot(f) == follower[1] and f["offset"] < max(has) and f["offset"] not in has:
                found["diverged"].add(f["record_id"])
    whole = [r for r in reads if r["intact"]]
    for r in _phase(whole, "replica"):
        here = [f["record_id"] for f in _phase(whole, "final") if slot(f) == slot(r) and f["offset"] == r["offset"]]
        ended = [e for e in ends if slot(e) == slot(r) and e["complete"] and r["record_id"] not in aborted]
        of = [e for e in ended if e["log_start"] <= r["offset"] < e["log_end"]]
        read = any(slot(f) == slot(r) and f["offset"] == r["offset"] for f in _phase(reads, "final"))
        if r["record_id"] not in here and (here or (of and not read)):
            found["diverged"].add(r["record_id"])


def _order(
    found: Sets, sends: list[Row], log: list[Row], ends: list[Row], reads: list[Row], acknowledged: bool = False
) -> None:
    """``acknowledged``: an acknowledgement tells where a record stands, unless a reader that read on skipped it."""
    starts = {slot(e): e["log_start"] for e in ends}
    stand, log = [], _proven(log, sends)
    for s in sends:
        at = [r["offset"] for r in log if r["record_id"] == s["record_id"] and slot(r) == slot(s)]
        deleted = s["offset"] is not None and s["offset"] < starts.get(slot(s), 0)
        if acknowledged and s["outcome"] == "ok" and s["offset"] is not None:
            given = [r for r in _proven(reads, sends) if r["record_id"] == s["record_id"] and slot(r) == slot(s)]
            beyond = all(r["offset"] < s["offset"] for r in reads if slot(r) == slot(s))
            at = [s["offset"]] if given or beyond else []
        if at and not deleted:
            stand.append((min(at), s))
    for here, a in stand:
        for there, b in stand:
            if slot(a) == slot(b) and there < here:
                one = (a["worker"], a["incarnation"]) == (b["worker"], b["incarnation"])
                if one and b["sequence"] > a["sequence"]:
                    found["reordered"].add(a["record_id"])
                if a["outcome"] == "ok" and a["completed_ns"] < b["invoked_ns"]:
                    found["real_time_order"].add(a["record_id"])


def _readers(found: Sets, sends: list[Row], reads: list[Row], log: list[Row], positions: list[Row]) -> None:
    """What a later leader has, or what was sent after a read, need not have been there to be read."""
    sent: dict[int | None, int] = {}
    for s in sends:
        sent[s["record_id"]] = min(s["invoked_ns"], sent.get(s["record_id"], s["invoked_ns"]))
    live = [r for r in _phase(reads, "live") if r["offset"] >= 0]
    for seat in {_seat(r) for r in (*live, *positions)}:
        reported = [p for p in positions if _seat(p) == seat and p["event"] not in {"commit", *_ENDS}]
        happened = [(p["at_ns"], 0, p["event"], p["offset"], None, None) for p in reported]
        own = [r for r in live if _seat(r) == seat]
        happened += [(r["read_ns"], 1, "read", r["offset"], r["record_id"], r["leader_epoch"]) for r in own]
        reader, _, of = seat
        untold = {r["record_id"] for r in reads if (r["reader"], slot(r)) == (reader, of) and r["offset"] < 0} - {None}
        place = furthest = None
        for at_ns, _, event, offset, record, epoch in sorted(happened, key=_in_order):
            if event in _RESETS:
                place = furthest = offset if event in _PLACED else None
                continue
            if offset is None:
                continue
            if place is not None:
                passed = [r for r in log if slot(r) == of and place <= r["offset"] < offset]
                there = [r for r in passed if None in (epoch, r["leader_epoch"]) or r["leader_epoch"] <= epoch]
                early = {r["record_id"] for r in there if sent.get(r["record_id"], at_ns - 1) < at_ns}
                found["skipped"] |= early - untold
            if event == "read" and furthest is not None and offset < furthest:
                found["went_back"].add(record)
            place = offset + (event == "read")
            furthest = max(place, furthest or 0)


def _group(found: Sets, reads: list[Row], positions: list[Row]) -> None:
    given = {(slot(r), r["offset"]) for r in _phase(reads, "live")}
    for r in _phase(reads, "final"):
        here = [p for p in positions if slot(p) == slot(r)]
        placed = sorted((p["at_ns"], p["offset"] or 0) for p in here if p["event"] in _PLACED)
        begun = placed[0][1] if placed else 0
        past = any(p["event"] == "commit" and not p["error"] and (p["offset"] or 0) > r["offset"] for p in here)
        if past and r["offset"] >= begun and (slot(r), r["offset"]) not in given:
            found["missed"].add(r["record_id"])


def _owners(found: Sets, reads: list[Row], positions: list[Row]) -> None:
    stays = defaultdict(list)
    for r in _phase(reads, "live"):
        resets = [p for p in positions if _seat(p) == _seat(r) and p["event"] in _RESETS]
        stays[_seat(r), sum(p["at_ns"] <= r["read_ns"] for p in resets)].append(r)
    begun = {stay: min((r["read_ns"], r["offset"]) for r in given) for stay, given in stays.items()}
    for stay, given in stays.items():
        for other, others in stays.items():
            (mine, _), (theirs, _) = stay, other
            later = (begun[stay][0], *mine[:2]) > (begun[other][0], *theirs[:2])
            if mine[2] == theirs[2] and mine[:2] != theirs[:2] and later:
                first = {r["record_id"] for r in given if (r["read_ns"], r["offset"]) == begun[stay]}
                if begun[stay][0] < max(r["read_ns"] for r in others):
                    found["two_owners"].add(min(first - {None}, default=None))


_ENDS = ("last-stable", "high-watermark")


def _unstable(positions: list[Row]) -> set[Slot]:
    last: dict[tuple[Slot, str], int] = {}
    for p in sorted(positions, key=lambda p: p["at_ns"]):
        last[slot(p), p["event"]] = p["offset"]
    slots = {of for of, event in last if event in _ENDS}
    return {of for of in slots if last[of, "last-stable"] < last[of, "high-watermark"]}


def _transactions(found: Sets, transactions: list[Row], sends: list[Row], shown: list[Row], ends: list[Row]) -> None:
    """``shown``: what was given out with read_committed."""
    whole = {slot(e) for e in ends if e["complete"]}
    starts = {slot(e): e["log_start"] for e in ends}
    final = {(slot(r), r["record_id"]) for r in _proven(_phase(shown, "final"), sends)}
    for t in transactions:
        of_it = [s for s in sends if _of(s) == _of(t)]
        given = [r for r in shown if r["intact"] and r["record_id"] in {s["record_id"] for s in of_it}]
        if _never_asked(t, sends):
            found["aborted_read"] |= {r["record_id"] for r in given}
            continue
        found["early_read"] |= {r["record_id"] for r in given if r["read_ns"] < t["ending_ns"]}
        written = [s for s in of_it if s["outcome"] != "fail"]  # a commit fails if one of them did
        kept = [s for s in written if (s["offset"] or 0) >= starts.get(slot(s), 0)]
        judged = [s for s in kept if slot(s) in whole]
        missing = [s["record_id"] for s in judged if (slot(s), s["record_id"]) not in final]
        if 0 < len(missing) < len(judged):
            found["fractured"] |= {*missing}
        if t["outcome"] == "ok" and missing and len(missing) == len(written):
            found["committed_lost"] |= {*missing}


def _never_asked(transaction: Row, sends: list[Row]) -> bool:
    """Whether nobody asked to commit it, or was refused, or had to abort it since a record had failed."""
    ending_ns = transaction["ending_ns"]
    if transaction["intent"] == "abort" or ending_ns is None or transaction["outcome"] == "fail":
        return True
    of_it = [s for s in sends if _of(s) == _of(transaction)]
    given_up = [s for s in of_it if s["outcome"] == "info" and (s["completed_ns"] or ending_ns + 1) <= ending_ns]
    return transaction["outcome"] == "info" and bool(given_up or [s for s in of_it if s["outcome"] == "fail"])


def _dependencies(found: Sets, transactions: list[Row], sends: list[Row], given: list[Row]) -> None:
    """What the transactions that poll were given: from each transaction to those that were given something of it."""
    whole = [r for r in given if r["intact"] and r["transaction"] is not None]
    known = {_of(t): t for t in transactions}
    by_id = defaultdict(list)
    for s in sends:
        by_id[s["record_id"]].append(s)
    was_given: dict[Any, dict[Any, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    begun = {key: (t["began_ns"], *key) for key, t in known.items()}
    for r in whole:
        reader = (r["reader"], r["transaction"])
        for s in by_id[r["record_id"]]:
            writer = _of(s) if _of(s) in known else (s["worker"], -1 - s["sequence"])
            begun.setdefault(writer, (s["invoked_ns"], *writer))
            if reader in known and writer != reader:
                was_given[writer][reader].append((r["read_ns"], r["record_id"]))
            if writer == reader and reader in known and not _never_asked(known[reader], sends):
                found["early_read"].add(r["record_id"])
    for origin in [*was_given]:
        reached, new = set[Any](), {one for one in was_given[origin] if begun[one] < begun[origin]}
        while new:
            reached |= new
            steps = ((at, to) for one in new for to, at in was_given.get(one, {}).items())
            open_then = {to for at, to in steps if begun[to] < begun[origin] and max(at)[0] >= begun[origin][0]}
            new = open_then - reached
        for one in reached:
            closing = was_given.get(one, {}).get(origin)
            if closing:
                found["read_cycle"].add(min(closing)[1])
            if not _never_asked(known[one], sends):
                mine = {s["record_id"] for s in sends if _of(s) == one}
                found["early_read"] |= {
                    r["record_id"]
                    for r in given
                    if r["intact"] and r["record_id"] in mine and r["read_ns"] < begun[origin][0]
                }


def _promises_nothing(send: Row, unsure: Container[int]) -> bool:
    return send["outcome"] == "ok" and send["record_id"] in unsure


def _of(row: Row) -> tuple[int, int | None]:
    """The transaction that a row is about, or of."""
    return row["worker"], row["transaction"]


def _in_order(happened: tuple[int, int, str, int | None, int | None, int | None]) -> tuple[int, int, int, int]:
    at_ns, event_or_read, _, offset, record, _ = happened
    return at_ns, event_or_read, offset or 0, -1 if record is None else record


def _seat(row: Row) -> tuple[int, int, Slot]:
    return row["reader"], row["incarnation"], slot(row)


def slot(row: Row) -> Slot:
    return row["topic"], row["partition"]
