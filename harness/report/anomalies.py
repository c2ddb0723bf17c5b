"""Every anomaly as a page, made from the registry: ``python -m harness.report.anomalies``."""

import sys
from collections.abc import Iterator

from harness.core.anomalies import BY_NAME, Anomaly

_HEAD = """\
# Anomalies

What kafka-trial looks for, what each breaks, and who else looks for it. Made from the code by
`python -m harness.report.anomalies`, and held to it by a test.

An anomaly is *permitted* where your settings allow it (`harness/core/guarantees.py` has the table, each row with its
source), and a *violation* where Kafka broke the promise below. A limit is yours: `limits:` of the scenario.
"""

_PROOF = """\
## How each is known to be found

Each anomaly is planted at least 400 times in 200 histories that are otherwise legal, beside its *twin*, the nearest
history that is legal, and some times more in a recorded run: all are found, and nothing else is. Every test run prints
the table of what was planted and what was found (`tests/planted`). A second judge, slow and obvious, agrees with the
checkers on 4,000 random histories, set by set (`tests/planted/oracle.py`). A transaction that hangs is also brought
about on real brokers (`tests/cluster/test_hanging.py`), and so is a follower with records of its own
(`test_replicas.py`), which only `final_read: {replicas: true}` sees.

## Who else finds it

Where three other harnesses detect the same, from their sources (Jepsen at c4c7473, chaos at 2f4f58b, Kafka by
function).

| anomaly | Jepsen: `jepsen.tests.kafka` | Redpanda: `redpanda-data/chaos` | Kafka's system tests: `tests/kafkatest` |
|---|---|---|---|
"""

_TAIL = """\

Not looked for here: cycles between transactions that read and write (Jepsen's Elle), committed offsets (`rw_subscribe`,
`VerifiableConsumer`), compacted topics (`tx_compact`).
"""

#: By anomaly, where Jepsen, Redpanda's chaos, and Kafka's system tests detect it.
ELSEWHERE: dict[str, tuple[str, str, str]] = {
    "lost": (
        "yes, below what was read: `lost-write-cases`",
        "yes: `writes/consistency.py`",
        "yes: `validate_delivery`",
    ),
    "vanished": ("no: what was read once counts as there", "yes: `reads_writes/consistency.py` reads again", "no"),
    "failed_but_present": ("yes: `g1a-cases`", "no: an error leaves it open", "no"),
    "duplicated": (
        "yes: `duplicate-cases`",
        "yes, as unknown: `writes/consistency.py`",
        "yes, fails with idempotence: `validate_delivery`",
    ),
    "phantom": (
        "partly: `no-writer-of-value` ends the analysis",
        "yes: `writes/consistency.py`",
        "partly, of transactions: `transactions_test`",
    ),
    "misplaced": ("partly: the same", "partly: keys, in one partition", "partly: `group_mode_transactions_test`"),
    "corrupted": ("no", "no", "partly: not a number, `is_int`"),
    "rewritten_offset": (
        "yes: `version-orders`, inconsistent-offsets",
        "yes: `reads_writes` (consistency, `Workload`)",
        "no",
    ),
    "diverged": ("no", "no", "no: a tool's lag, `replica_verification_test`"),
    "acknowledged_elsewhere": ("yes, as duplicate", "yes: `reads_writes/Workload`", "no"),
    "reordered": (
        "yes: `nonmonotonic-send-cases`",
        "partly, in transactions: `tx_single_reads_writes`",
        "partly, in one partition: `transactions_test`",
    ),
    "real_time_order": (
        "partly: G0-realtime is looked for, and allowed",
        'yes, "lesser offset": `writes/consistency.py`',
        "no",
    ),
    "skipped": (
        "yes, with assign: `poll-skip+nonmonotonic-cases`",
        "yes: `reads_writes/Workload`",
        "yes: `handle_records_consumed`",
    ),
    "went_back": ("yes, with assign: the same", 'yes, "must be monotonic": `reads_writes/Workload`', "yes: the same"),
    "two_owners": ("no", "no", "partly, by assignment: `_valid_assignment`"),
    "aborted_read": (
        "yes: `g1a-cases`",
        "yes: `tx_single_reads_writes/Workload`",
        "partly, as a copy too many: `transactions_test`",
    ),
    "early_read": (
        "partly, its own: `precommitted-read-cases`",
        'yes, "before commit": `tx_single_reads_writes`',
        "no",
    ),
    "fractured": (
        "yes, as lost: `must-have-committed?`",
        "yes: `tx_single_reads_writes`; a sum: `tx_money`",
        "partly, as a copy missing: `transactions_test`",
    ),
    "committed_lost": (
        "yes, as lost: `lost-write-cases`",
        'yes, "skipped over": `tx_single_reads_writes`',
        "partly: the same",
    ),
    "hanging_transaction": ("partly, as `unseen`", "no", "no: a timeout"),
    "missed": (
        "partly, as `unseen`",
        "yes, as a start that nobody committed: `rw_subscribe/Workload`",
        "yes, as lost: `validate_delivery`",
    ),
    "unseen": ("yes: `unseen`", "–", "–"),
}


def page() -> str:
    """docs/anomalies.md."""
    rows = "".join(f"| {name} | {' | '.join(others)} |\n" for name, others in ELSEWHERE.items())
    return f"{_HEAD}\n{''.join(map(_section, BY_NAME.values()))}{_PROOF}{rows}{_TAIL}"


def _section(anomaly: Anomaly) -> str:
    return f"## {anomaly.name}\n\n{''.join(_lines(anomaly))}\n"


def _lines(anomaly: Anomaly) -> Iterator[str]:
    yield f"N {anomaly.sentence}.\n"
    if anomaly.promise is None:
        yield "\nA limit that the scenario sets; Kafka promises nothing of it.\n"
    else:
        yield f"\nPromise: {anomaly.promise.says} ({anomaly.promise.source}).\n"
    if anomaly.is_loss:
        yield "\nIt is a loss: its records are gone.\n"


if __name__ == "__main__":
    sys.stdout.write(page())
