"""The report of 2013: how many were sent, acknowledged, survived, lost, and found though never acknowledged."""

from harness.core.verdict import Summary

#: What the pass over the blocks counts for it (SQL on a row of checkers/scan/record_bits.py).
COUNTS = {
    "attempted": "bit_count(acknowledged | failed | undecided)",
    "acknowledged": "bit_count(acknowledged)",
    "survivors": "bit_count((acknowledged | failed | undecided) & found)",
    "unacknowledged_present": "bit_count(undecided & found)",
}
#: Of these some survived, too: damaged, where they were acknowledged.
DAMAGED = {"damaged": "bit_count(acknowledged & damaged)"}

#: The same of a run without a final read: what was read at all survived.
COUNTS_OF_READERS = {name: sql.replace("found", "delivered") for name, sql in COUNTS.items()}


def summary(counts: dict[str, int], lost: int | None, duplicated: int | None) -> Summary:
    """``counts`` as COUNTS names them; rates are fractions of the acknowledged, the ack rate of the attempted."""
    attempted, acknowledged = counts["attempted"], counts["acknowledged"]
    return Summary(
        attempted=attempted,
        acknowledged=acknowledged,
        survivors=counts["survivors"],
        lost=lost,
        unacknowledged_present=counts["unacknowledged_present"],
        duplicated=duplicated,
        ack_rate=_rate(acknowledged, attempted),
        loss_rate=_rate(lost, acknowledged),
        unacknowledged_present_rate=_rate(counts["unacknowledged_present"], acknowledged),
    )


def _rate(part: int | None, whole: int) -> float | None:
    return round(part / whole, 6) if whole and part is not None else None
