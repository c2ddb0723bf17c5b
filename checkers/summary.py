"""The summary, as in Jepsen's report of 2013: records sent, acknowledged, surviving, lost, and present without an
acknowledgement."""

from checkers.scan.record_bits import (
    MAY_BE_DAMAGED_IN_PLACE,
    SENT,
    SURVIVED,
    UNDECIDED_BUT_FOUND,
    without_final_read,
)
from harness.core.verdict import Summary

#: The counts in the scan of record bits: SQL on a row of checkers/scan/record_bits.py.
COUNTS = {
    "attempted": f"bit_count({SENT})",
    "acknowledged": "bit_count(acknowledged)",
    "survivors": f"bit_count({SURVIVED})",
    "unacknowledged_present": f"bit_count({UNDECIDED_BUT_FOUND})",
}
#: Counts beside these. ``damaged``: records that survived as damaged bytes at the offset of their acknowledgement;
#: ``in_logs``: the intact records of each final log, however often it has them.
BESIDE = {"damaged": f"bit_count({MAY_BE_DAMAGED_IN_PLACE})", "in_logs": "bit_count(found)"}

#: The same for a run without a final read: every record that was read survived.
COUNTS_OF_READERS = {name: without_final_read(sql) for name, sql in COUNTS.items()}


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
