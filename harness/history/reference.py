"""The tables of a stored run as a page, made from their schemas: ``python -m harness.history.reference``."""

import sys

import pyarrow as pa

from harness.core.faults import ELECTION, Does
from harness.history.schema import FORMER, LATER, TABLES

#: Reads the shipped example; a test runs it.
EXAMPLE = """\
select outcome, count(*) as records
from 'examples/jepsen-2013/unclean-election/*/history/sends/*.parquet'
group by outcome order by outcome
"""

#: How a table is read in Python.
PYTHON = """\
import pyarrow.dataset

sends = pyarrow.dataset.dataset("examples/jepsen-2013/unclean-election/20261128T033428.632Z-2013/history/sends")
acknowledged = sends.to_table(filter=pyarrow.dataset.field("outcome") == "ok")
print(acknowledged.to_pandas().groupby("partition")["record_id"].count())
"""

_FORMER = " and ".join(f"`{name}` in `{table}`" for table, names in FORMER.items() for name in sorted(names))

_HEAD = f"""\
# The history of a run

`<run>/history/<table>/*.parquet`, one file for each writer. Made from the code by
`python -m harness.history.reference`, and held to it by a test. Times that end in `_ns` are nanoseconds since the run's
origin on a monotonic clock; `run.json` has the origin's wall-clock time. A column marked *later*
may be missing in an older run. One may also have {_FORMER}, which nothing reads.

With DuckDB:

```sql
{EXAMPLE}```

With pyarrow and pandas:

```python
{PYTHON}```

With Spark: `spark.read.parquet("<run>/history/sends")`.
"""

#: What a row of each table is.
ROWS = {
    "sends": "one record handed to a producer",
    "reads": "one record delivered to a reader",
    "positions": "what happened to a reader's position in a partition",
    "transactions": "one transaction, from begin to commit or abort",
    "faults": "one injection of a fault, and its heal",
    "observations": "the state of a partition as one broker reported it",
    "log_ends": "how far the final read of a partition had to come, and how far it came",
}

#: What a column means, in whichever table it is, or in one: `table.column`.
COLUMNS = {
    "worker": "number of the producer",
    "reader": "number of the reader: 1000 is the final read, 1000 + n the read of broker n's own log",
    "incarnation": "which process of that worker, from 0 on: a new one after each kill. Of a"
    " producer 100 times that, and one more for each client that replaced a dead one in that process",
    "sequence": "which of the worker's records, from 0 on",
    "topic": "topic",
    "partition": "partition",
    "record_id": "worker * 2^40 + sequence",
    "reads.record_id": "worker * 2^40 + sequence; null where no worker wrote the payload",
    "key": "the record's key as text; null for none",
    "invoked_ns": "when it was handed to the client",
    "completed_ns": "when its answer came; null while none had",
    "outcome": "ok: acknowledged; fail: it can never have been written; info: nobody knows",
    "transactions.outcome": "ok: ended as asked; fail: it cannot have been committed; info: nobody knows",
    "error": "the error's name; null for none",
    "offset": "its offset; null where Kafka reported none",
    "reads.offset": "its offset; -1 where an imported history has none",
    "positions.offset": "the offset that the event is about; null where it is not known",
    "transaction": "number of the worker's transaction; null outside of one",
    "reads.transaction": "number of the reader's transaction in which it was polled; null outside of one",
    "transactions.transaction": "number of the worker's transaction",
    "phase": "live: by a consumer during the run; final: by the final read; replica: from one broker's own log",
    "poll": "number of the reader's poll; null where `read_ns` shows the order",
    "positions.poll": "number of the reader's next poll; null where `at_ns` shows the order",
    "leader_epoch": "leader epoch; null where the broker's version reports none",
    "intact": "whether the payload's checksum is right",
    "read_ns": "when the poll that brought it returned",
    "at_ns": "when it happened",
    "observations.at_ns": "when the broker reported it",
    "event": "assign, revoke, lost, seek, committing (asked), commit (answered), end-of-partition, error; of the final "
    "read: last-stable, high-watermark; of an imported history: may-have-moved (by a group)",
    "intent": "commit or abort",
    "began_ns": "when it began",
    "ending_ns": "when its end was asked for; null where it never was",
    "ended_ns": "when the answer came; null where none did",
    "fault": "the same as `injection`, under its older name",
    "kind": f"the fault's name in nemesis/catalogue.py; `{ELECTION}`: no fault, but an election that a step asked for",
    "nodes": "the nodes that it names",
    "injecting_ns": "when the injection began",
    "injected_ns": "when it was done; null where it failed, or nobody knows",
    "healing_ns": "when the heal began; null where there was none",
    "healed_ns": "when it was done",
    "effective": "whether it acted on every node that it names",
    "evidence": "JSON: packet counters, process states, exit codes, by node",
    "nodes_without_effect": "the nodes on which it is not known to have acted until its end",
    "nodes_not_known": "those of them on which it may have acted: for a time, or its effect there was not measured",
    Does.ENDS_PROCESS: "whether it ends the nodes' processes",
    Does.HALTS_PROCESS: "whether it halts them",
    Does.DESTROYS_DATA: "whether it destroys their data",
    Does.CUTS: "whether it cuts nodes from each other",
    Does.DELAYS: "whether packets come late: held, or lost and sent again",
    "cut_from": "of a cut: the nodes on one side",
    "cut_to": "of a cut: those on the other",
    "both_ways": "of a cut between two sides: whether what `cut_to` sends is lost, too",
    "cuts_clients": "of a cut of each node from all others: whether it cuts them from the clients, too",
    "plane": "of a fault in networks: which traffic it hits: all, replication, controller or client",
    "injection": "name of the injection: the scenario's `as:`, or one that the harness made; null in older runs",
    "observer": "the broker that reported it",
    "leader": "id of the leader; -1 where that broker knows none",
    "replicas": "ids of the replicas",
    "isr": "ids of the in-sync replicas",
    "high": "high watermark, reported by the leader in this epoch before it reported this ISR; null where it "
    "was not asked for",
    "high_epoch": "leader epoch that the leader reported for `high` (ListOffsets from version 4 on)",
    "elr": "ids of the eligible leader replicas (KIP-966); null where the broker's version reports none",
    "controller": "id of the broker that is the controller, with ZooKeeper; -1 where that broker knows none; null with "
    "KRaft",
    "coordinator": "id of the broker that it named as coordinator of the workload's group; null where it named none",
    "log_start": "first offset of the log",
    "log_end": "the offset after its last record",
    "read_to": "how far the final read came",
    "complete": "whether it came to the end",
}


def page() -> str:
    """docs/history.md."""
    return _HEAD + "".join(_table(name, schema) for name, schema in TABLES.items())


def _table(name: str, schema: pa.Schema) -> str:
    rows = "".join(_row(name, field) for field in schema)
    return f"\n## {name}\n\nA row is {ROWS[name]}.\n\n| column | type | meaning |\n|---|---|---|\n{rows}"


def _row(table: str, field: pa.Field) -> str:
    later = field.name in LATER.get(table, ())
    meaning = COLUMNS.get(f"{table}.{field.name}") or COLUMNS[field.name]
    kind = str(field.type).replace("<item: ", " of ").replace("<element: ", " of ").rstrip(">")
    marks = ", null" if field.nullable else ""
    return f"| `{field.name}` | {kind}{marks}{', later' if later else ''} | {meaning} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
