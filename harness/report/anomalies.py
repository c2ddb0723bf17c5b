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

The anomalies that kafka-trial looks for, the promise that each breaks, and other harnesses that look for it. Made from
the code by `python -m harness.report.anomalies`, and compared with it by a test.

An anomaly is *permitted* if your settings allow it (`harness/core/guarantees.py` has the table, each row with its
source), and a *violation* if Kafka broke the promise below. You set limits yourself: `limits:` of the scenario.
"""

_FINDINGS = """\
## Findings: one for each cause

One election takes the end of a log: its records are lost, those that consumers had read have vanished, and other
records are at their offsets. In verdict.json, `anomalies` has each of these with its whole count, and `findings` has
their causes, the worst first. Terminal, page, JUnit and a suite's summary show findings.
"""

_PLACES = """
If more than 20 places have an unknown cause, the smallest are listed as one finding. A verdict of an older version has
no `findings`; its anomalies are shown instead.

"""

#: The keys of a finding, and what each has.
KEYS: dict[str, str] = {
    "standing": "the worst of its records",
    "because": "the reason for this standing, with a `source`, and a `remedy` if it is permitted",
    "cause": "what took the records, as facts: `event`; for an election or a loss of disks `from_ns`, `to_ns` and the "
    "`faults` then; for an election its `leaders`, whether they were in the ISR (`in_isr`, if that is the same for "
    "all), the number of `partitions`, and the first 20 `elections`",
    "evidence": "from the first range with this standing: the brokers that `must` have had the records, those that "
    "`need_not`, and those for which it is `unknown`; and what the records were `taken_by`",
    "anomalies": "its consequences, with the count of each; the first gives it its name. The counts of all findings "
    "add up to those of the verdict's `anomalies`",
    "runs": "the offsets in each partition, each with its own `anomalies`, standing and evidence: at most 20",
    "more_runs": "the number of other ranges",
    "text": "the cause as a sentence",
}

#: What may have taken the records of a finding, and what one finding is in that case.
EVENTS: dict[CauseOf, str] = {
    CauseOf.ELECTION: "what the elections of one moment took, in all partitions: elections seen within 3 s of each "
    "other under the same faults (without faults: of the same broker)",
    CauseOf.DISKS_LOST: "what was lost with the disks that were wiped by one time",
    CauseOf.NOTHING: "one place of a log: all was observed, and nothing can have taken the records (`hole`: they were "
    "between others of one leader epoch)",
    CauseOf.UNKNOWN: "one place of a log: nobody knows what took the records",
    CauseOf.RUN: "one anomaly that is not judged record by record",
    CauseOf.LIMIT: "one limit of the scenario",
}

_PROOF = """\
## How each is known to be found

Tests plant each anomaly at least 400 times in 200 otherwise legal histories, together with its *twin*, the nearest
legal history, and a few times in a recorded run: all are found, and nothing else is. Every test run prints the table of
planted and found anomalies (`tests/planted`). A second judge, slow and obvious, agrees with the checkers on 4,000
random histories, set by set (`tests/planted/oracle.py`). Real brokers also show a hanging transaction
(`tests/cluster/test_hanging.py`), and a follower with records of its own (`test_replicas.py`), which only
`final_read: {replicas: true}` sees.

Simulated clusters test whether a loss is permitted (`tests/simulated`): they play replication under random faults, with
and without planted bugs, and know what took each lost record. `python -m tests.simulated --seeds 0-99 --fast` prints
where the judge disagrees. With `--isolating`, brokers are cut off again and again, mostly also from observer and
clients. With `--seen seldom`, each broker is asked only every one to two seconds, and leaders get new epochs more
often. With `--seen late`, brokers are of 2.0.1 with ZooKeeper: they report no epochs, and ISRs up to a minute late.

Of the losses that the settings permit, and of those that bugs caused, a tenth at most is undecided there (3 to 8 % in
170 histories); with `--seen seldom` 13 % at most; with `--seen late` more than half (52 and 64 % in 48 histories).
These losses stay undecided, however well a cluster is observed:

- A leader that was cut off or paused may answer again before it learns of its successor. For some seconds either of the
  two may have acknowledged a record, and each continues its own log. A consumer that received the record shows by the
  leader epoch whose it is. So do other lost records next to it in the same log, except at the end of the final log:
  there the log's own leader may have lost it.
- While an ISR changes between two samples, nobody knows who was in it when a record was committed. One case is known: a
  replica cannot have fetched the record if its process had ended, or a `partition` cut it from all possible leaders,
  from before the record was sent until it was committed. (This does not hold if too few replicas are left for
  acks=all.)
- With ZooKeeper before 2.7, a leader writes its ISR to ZooKeeper, and brokers report it up to 65 s later. A record's
  ISR is known if it stayed the same from before the record was sent until 65 s after it was acknowledged. An unclean
  election usually comes earlier than that after the ISR shrank. Then nobody knows which replicas had to have the
  record, or whether the loss is permitted. A replica that had left the ISR may also have joined it again, unreported,
  before it was elected, unless it was cut off from the leader ever since. If all elections are clean, and no fault
  struck the elected replica or its leader before the last one, the settings decide. The first ISR that is
  reported after an election proves nothing: within 2.5 s it may have a replica that joined since.
- A record may be acknowledged with acks=all while its leader, whichever that was, goes on reporting a high watermark
  that is not above it. Then Kafka answered too early; whether it would have been lost otherwise, too, nobody knows.
- A broker outside the ISR may be elected while a member of the ISR answers all the time. The controller may have lost
  sight of that member alone (its heartbeats are not observed), and then the settings permit it.
- A hanging transaction before 3.6 is permitted only where its write is known to have come behind the marker of its own
  transaction, and a violation only where it is known to have been there before. Often neither is known.
- Two owners of a partition (`two_owners`) are undecided if a fault acted on a broker or a client meanwhile, and nobody
  knows whether it kept a member from the group's coordinator for a whole session.
- An acknowledgement at an offset that was acknowledged before shows that the earlier record was gone from its leader's
  log, or that a deposed leader continues its own log. A later election does not excuse such a loss. The election came
  earlier if its term had been reported when the second write was sent, or if that write was read with a leader epoch.
  If the second write is gone too, and nobody received it, the loss is undecided.
- With acks=1 a leader that is cut off continues to acknowledge while its successor does the same. A record above the
  end of the successor's log counts as the deposed leader's only if the successor cannot have written that far: if fewer
  writes are unknown than there are offsets in between.

One thing is taken for granted: a replica that was cut off or paused, and is in the ISR in every report of a term, did
not leave it and come back between two reports. (A replica whose process was started again may have.)

One thing is not reported: a record that was delivered under one leader epoch, and is at the same offset under another
epoch in the final log. It was written again at the same place: readers find it where they got it.

## Who else finds it

What three other harnesses detect, from their sources (Jepsen at c4c7473, chaos at 2f4f58b, Kafka by function).

| anomaly | Jepsen: `jepsen.tests.kafka` | Redpanda: `redpanda-data/chaos` | Kafka's system tests: `tests/kafkatest` |
|---|---|---|---|
"""

_TAIL = """\

Not looked for: cycles of writes alone (Elle's G0), which Kafka permits; committed offsets (`rw_subscribe`,
`VerifiableConsumer`); compacted topics (`tx_compact`).
"""

#: Whether Jepsen, Redpanda's chaos and Kafka's system tests detect an anomaly. One that was not looked up has no row.
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
        yield "\nA limit that the scenario sets; Kafka makes no promise about it.\n"
    else:
        yield f"\nPromise: {anomaly.promise.says} ({anomaly.promise.source}).\n"
    if anomaly.is_loss:
        yield "\nIt is a loss: its records are gone.\n"


if __name__ == "__main__":
    sys.stdout.write(page())
