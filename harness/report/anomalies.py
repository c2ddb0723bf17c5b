"""Every anomaly as a page, made from the registry: ``python -m harness.report.anomalies``."""

import sys
from collections.abc import Iterable, Iterator

from harness.core.anomalies import (
    ABORTED_READ,
    ACKNOWLEDGED_ELSEWHERE,
    BY_NAME,
    COMMITTED_LOST,
    CORRUPTED,
    DIVERGED,
    DUPLICATED,
    EARLY_READ,
    EPOCH_FELL,
    FAILED_BUT_PRESENT,
    FRACTURED,
    HANGING_TRANSACTION,
    LOST,
    MISPLACED,
    MISSED,
    PHANTOM,
    READ_CYCLE,
    REAL_TIME_ORDER,
    REORDERED,
    REWRITTEN_OFFSET,
    SKIPPED,
    TWO_OWNERS,
    UNSEEN,
    VANISHED,
    WENT_BACK,
    Anomaly,
)
from harness.core.verdict import CauseOf

_HEAD = """\
# Anomalies

What kafka-trial looks for, what each breaks, and who else looks for it. Made from the code by
`python -m harness.report.anomalies`, and held to it by a test.

An anomaly is *permitted* where your settings allow it (`harness/core/guarantees.py` has the table, each row with its
source), and a *violation* where Kafka broke the promise below. A limit is yours: `limits:` of the scenario.
"""

_FINDINGS = """\
## Findings: one cause, said once

One election takes the end of a log: its records are lost, what consumers had of them has vanished, and other records
stand at their offsets. `anomalies` of verdict.json has each of these with all of its count; `findings` has what caused
them, the worst first. Terminal, page, JUnit and a suite's summary tell findings.
"""

_PLACES = """
Where nothing is known of more than 20 places, the smallest are listed as one finding. A verdict of an older version has
no `findings`; its anomalies are shown instead.

"""

#: The keys of a finding, and what each has.
KEYS: dict[str, str] = {
    "standing": "the worst of its records",
    "because": "why it is that, with a `source`, and a `remedy` where it is permitted",
    "cause": "what took the records, as facts: `event`; of an election or a loss of disks `from_ns`, `to_ns` and the "
    "`faults` then; of an election its `leaders`, whether they were in the ISR (`in_isr`, where that is the same of "
    "all), the number of `partitions`, and the first 20 `elections`",
    "evidence": "of the first run with that standing: the brokers that `must` have had the records, that `need_not`, "
    "and of which it is `unknown`; and what the records were `taken_by`",
    "anomalies": "its consequences, and how many of each: it is named after the first. Over all findings they add up "
    "to the counts of the verdict's `anomalies`",
    "runs": "the offsets in each partition, each with its own `anomalies`, standing and evidence: at most 20",
    "more_runs": "the number of other runs",
    "text": "the cause as a sentence",
}

#: What may have taken the records of a finding, and what is one finding then.
EVENTS: dict[CauseOf, str] = {
    CauseOf.ELECTION: "what the elections of one moment took, in all partitions: those that were seen within 3 s of "
    "each other under the same faults (without any, of the same broker)",
    CauseOf.DISKS_LOST: "what went with the disks that were lost by one time",
    CauseOf.NOTHING: "one place of a log: all was observed, and nothing can have taken the records (`hole`: they stood "
    "between others of one leader epoch)",
    CauseOf.UNKNOWN: "one place of a log: nobody knows what took the records",
    CauseOf.RUN: "one anomaly that no record decides by itself",
    CauseOf.LIMIT: "one limit of the scenario",
}

_PROOF = """\
## How each is known to be found

Each anomaly is planted at least 400 times in 200 histories that are otherwise legal, beside its *twin*, the nearest
history that is legal, and a few times in a recorded run, too: all are found, and nothing else is. Every test run prints
the table of what was planted and what was found (`tests/planted`). A second judge, slow and obvious, agrees with the
checkers on 4,000 random histories, set by set (`tests/planted/oracle.py`). A transaction that hangs is also brought
about on real brokers (`tests/cluster/test_hanging.py`), and so is a follower with records of its own
(`test_replicas.py`), which only `final_read: {replicas: true}` sees.

Whether a loss is permitted is tried on clusters that are simulated (`tests/simulated`): replication under random
faults, with bugs planted and without, where it is known of each lost record what took it.
`python -m tests.simulated --seeds 0-99 --fast` prints where the judge disagrees. With `--isolating`, brokers are
cut off again and again, mostly from observer and clients, too.

Some losses stay undecided, however well a cluster is observed:

- A leader that was cut off or paused answers again before it hears of the next one: within some seconds either of
  two may have acknowledged a record, and each continues a log of its own. A consumer that was given it there tells
  whose it is, by its leader epoch. So does a log of which more was lost beside it, but not where the final log ends:
  there its own leader may have lost it.
- While an ISR changes between two samples, nobody knows who was in it when a record was committed. It is known of a
  replica that cannot have fetched the record, as its process had ended, or a `partition` kept it from whoever led, from
  before the record was sent until it was committed. (Not where too few would be left for acks=all.)
- With ZooKeeper before 2.7, a leader writes its ISR to ZooKeeper, and what brokers report follows by up to 65 s. A
  record's ISR is known where it stayed the same from before the record was sent until 65 s after it was acknowledged.
  An unclean election comes sooner than that after the ISR shrank, as a rule: which replicas had to have the record is
  then unknown, and so is whether the loss is permitted. With clean elections alone it is decided by the settings.
- An acknowledgement at an offset that was acknowledged before shows that the record there was gone from its leader's
  log, or that a deposed leader goes on with a log of its own. An election that comes later excuses no such loss. It
  came before where its term had been reported when that write was sent, or where the write was read with a leader
  epoch; where the write is gone, too, and nobody was given it, the loss is undecided.
- With acks=1 a leader that was cut off goes on acknowledging, beside the next one. What stands above the end of the
  next one's log is taken to be the deposed one's only where the next one cannot have written so far: fewer writes than
  there are offsets in between are unknown.

## Who else finds it

Where three other harnesses detect the same, from their sources (Jepsen at c4c7473, chaos at 2f4f58b, Kafka by
function).

| anomaly | Jepsen: `jepsen.tests.kafka` | Redpanda: `redpanda-data/chaos` | Kafka's system tests: `tests/kafkatest` |
|---|---|---|---|
"""

_TAIL = """\

Not looked for here: cycles of writes alone (Elle's G0), which Kafka permits, committed offsets (`rw_subscribe`,
`VerifiableConsumer`), compacted topics (`tx_compact`).
"""

#: Where Jepsen, Redpanda's chaos and Kafka's system tests detect an anomaly; one that was not looked up has no row.
ELSEWHERE: dict[Anomaly, tuple[str, str, str]] = {
    LOST: (
        "yes, below what was read: `lost-write-cases`",
        "yes: `writes/consistency.py`",
        "yes: `validate_delivery`",
    ),
    VANISHED: ("no: what was read once counts as there", "yes: `reads_writes/consistency.py` reads again", "no"),
    FAILED_BUT_PRESENT: ("yes: `g1a-cases`", "no: an error leaves it open", "no"),
    DUPLICATED: (
        "yes: `duplicate-cases`",
        "yes, as unknown: `writes/consistency.py`",
        "yes, fails with idempotence: `validate_delivery`",
    ),
    PHANTOM: (
        "partly: `no-writer-of-value` ends the analysis",
        "yes: `writes/consistency.py`",
        "partly, of transactions: `transactions_test`",
    ),
    MISPLACED: ("partly: the same", "partly: keys, in one partition", "partly: `group_mode_transactions_test`"),
    CORRUPTED: ("no", "no", "partly: not a number, `is_int`"),
    REWRITTEN_OFFSET: (
        "yes: `version-orders`, inconsistent-offsets",
        "yes: `reads_writes` (consistency, `Workload`)",
        "no",
    ),
    DIVERGED: ("no", "no", "no: a tool's lag, `replica_verification_test`"),
    EPOCH_FELL: ("no", "no", "no"),
    ACKNOWLEDGED_ELSEWHERE: ("yes, as duplicate", "yes: `reads_writes/Workload`", "no"),
    REORDERED: (
        "yes: `nonmonotonic-send-cases`",
        "partly, in transactions: `tx_single_reads_writes`",
        "partly, in one partition: `transactions_test`",
    ),
    REAL_TIME_ORDER: (
        "partly: G0-realtime is looked for, and allowed",
        'yes, "lesser offset": `writes/consistency.py`',
        "no",
    ),
    SKIPPED: (
        "yes, with assign: `poll-skip+nonmonotonic-cases`",
        "yes: `reads_writes/Workload`",
        "yes: `handle_records_consumed`",
    ),
    WENT_BACK: ("yes, with assign: the same", 'yes, "must be monotonic": `reads_writes/Workload`', "yes: the same"),
    TWO_OWNERS: ("no", "no", "partly, by assignment: `_valid_assignment`"),
    ABORTED_READ: (
        "yes: `g1a-cases`",
        "yes: `tx_single_reads_writes/Workload`",
        "partly, as a copy too many: `transactions_test`",
    ),
    EARLY_READ: (
        "partly, its own: `precommitted-read-cases`; others': Elle's G1c-realtime",
        'yes, "before commit": `tx_single_reads_writes`',
        "no",
    ),
    READ_CYCLE: ("yes: Elle's G1c, and with real time", "no", "no"),
    FRACTURED: (
        "yes, as lost: `must-have-committed?`",
        "yes: `tx_single_reads_writes`; a sum: `tx_money`",
        "partly, as a copy missing: `transactions_test`",
    ),
    COMMITTED_LOST: (
        "yes, as lost: `lost-write-cases`",
        'yes, "skipped over": `tx_single_reads_writes`',
        "partly: the same",
    ),
    HANGING_TRANSACTION: ("partly, as `unseen`", "no", "no: a timeout"),
    MISSED: (
        "partly, as `unseen`",
        "yes, as a start that nobody committed: `rw_subscribe/Workload`",
        "yes, as lost: `validate_delivery`",
    ),
    UNSEEN: ("yes: `unseen`", "–", "–"),
}


def page() -> str:
    """docs/anomalies.md."""
    rows = "".join(f"| {anomaly.name} | {' | '.join(others)} |\n" for anomaly, others in ELSEWHERE.items())
    anomalies = "".join(map(_section, BY_NAME.values()))
    keys, events = (
        _table("key of a finding", "what it has", KEYS.items()),
        _table("`event`", "one finding is", EVENTS.items()),
    )
    return f"{_HEAD}\n{anomalies}{_FINDINGS}{keys}{events}{_PLACES}{_PROOF}{rows}{_TAIL}"


def _table(what: str, says: str, rows: Iterable[tuple[str, str]]) -> str:
    return "".join([f"\n| {what} | {says} |\n|---|---|\n", *(f"| `{key}` | {row} |\n" for key, row in rows)])


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
