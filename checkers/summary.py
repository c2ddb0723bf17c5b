"""The summary, as in Jepsen's report of 2013: records sent, acknowledged, surviving, lost, and present without an
acknowledgement."""

from harness.core.verdict import Summary

#: The counts in the scan of record bits: SQL on a row of checkers/scan/record_bits.py.
COUNTS = {
    "attempted": "bit_count(acknowledged | failed | undecided)",
    "acknowledged": "bit_count(acknowledged)",
    "survivors": "bit_count((acknowledged | failed | undecided) & found)",
    "unacknowledged_present": "bit_count(undecided & found)",
}
#: Counts beside these. ``damaged``: records that survived as damaged bytes at the offset of their acknowledgement;
#: ``in_logs``: the intact records of each final log, however often it has them.
BESIDE = {"damaged": "bit_count(acknowledged & damaged)", "in_logs": "bit_count(found)"}

#: The same for a run without a final read: every record that was read survived.
COUNTS_OF_READERS = {name: sql.replace("found", "delivered") for name, sql in COUNTS.items()}


def summary(counts: dict[str, int], lost: int | None, duplicated: int | None) -> Summary:
    """The summary. ``counts`` has the names of COUNTS. Rates are fractions of the acknowledged records, the ack rate of
    the attempted ones."""
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
