"""Cycles of transactions that read each other's records (Adya's G1c).

Only reads make dependencies here. The order of two transactions in a log makes none: Kafka does not isolate writes from
each other (docs/jepsen.md).

In a cycle each transaction waits for the commit of the one before it, so all are open when the last of them begins. The
search therefore begins at each transaction whose record was read by a transaction that had begun earlier, and it only
follows transactions that were open at that time. These are few, however long the history is.
"""

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_READ
from checkers.history import History
from harness.history.schema import TRANSACTION

#: A record that a transaction read.
_READ = "struct(read_ns, record_id, topic, partition, offset, sent_ns, acknowledged_ns)"


def reads_transactionally(history: History) -> bool:
    """Whether the history records the reads of transactions."""
    recorded = history.transactional and history.stored.has_column("reads", "transaction")
    return recorded and history.stored.constants("reads").get("transaction", 0) is not None


def read_cycle(history: History) -> DataFrame:
    """Records that a transaction read although their sender had itself, directly or through others, read a record of
    that transaction. One row for each pair of transactions: the first record.

    Guarantee: with read_committed a record is delivered after the commit of its transaction (KIP-98, 4), and a
    transaction polls before it commits. So each transaction of a cycle would have been committed before itself (Adya,
    G1c). Returns: RECORD, transaction, read_ns, reader, reader_transaction, cycle (how many transactions are in it)
    """
    edges = _dependencies(history)
    back = edges.withColumnsRenamed({"reader": "origin", "writer": "reached"})
    closed = reaching(edges).join(back, on=["origin", "reached"], how="inner")
    return closed.selectExpr(
        "first_read.*",
        "reached.transaction",
        "origin.worker as reader",
        "origin.transaction as reader_transaction",
        "steps + 1 as cycle",
    ).selectExpr(*OF_READ, "transaction", "read_ns", "reader", "reader_transaction", "cycle")


def not_committed_before(history: History) -> DataFrame:
    """Transactions that read, directly or through others, a record of a transaction that began after them: they were
    not committed before that one began. Returns: worker, transaction, least_ns"""
    return (
        reaching(_dependencies(history))
        .groupBy("reached.worker", "reached.transaction")
        .agg(F.max("origin.began_ns").alias("least_ns"))
    )


def reaching(edges: DataFrame) -> DataFrame:
    """For each transaction (or record outside of any), the transactions that read from it, directly or through others,
    that began before it, and that were open when it began.

    Returns: origin, reached (as ``writer`` and ``reader`` of ``edges``), steps (how many records it took)
    """
    first = edges.where("reader < writer").selectExpr("writer as origin", "reader as reached", "1 as steps")
    found = frontier = first.localCheckpoint()
    steps = edges.selectExpr("writer as reached", "reader", "read_until_ns")
    while not frontier.isEmpty():
        frontier = (
            frontier.join(steps, on="reached", how="inner")
            .where("reader < origin and read_until_ns >= origin.began_ns")
            .groupBy("origin", F.col("reader").alias("reached"))
            .agg(F.expr("min(steps) + 1").alias("steps"))
            .join(found, on=["origin", "reached"], how="left_anti")
            .localCheckpoint()
        )
        found = found.unionByName(frontier)
    return found


def _dependencies(history: History) -> DataFrame:
    """Which transaction read a record of which other transaction, or a record that was sent outside of any.

    Returns: writer, reader (each a struct of began_ns, worker, transaction; for a record outside of any transaction,
    the time of its send and a negative number), first_read (the first record, a struct), read_until_ns. (A record may
    be sent several times; what was read is of no later send.)
    """
    read_committed = history.run_file.configuration.read_committed
    of_readers = history.read_committed if read_committed else "phase = 'live'"
    # (G1c is about transactions that commit. With read_uncommitted others, too, are read and go on.)
    in_cycles = history.transactions if read_committed else history.transactions.where("intent = 'commit'")
    begun = in_cycles.selectExpr(*TRANSACTION, "struct(began_ns, worker, transaction) as node")
    alone = "struct(invoked_ns as began_ns, worker, -1 - sequence as transaction)"
    sent = (
        history.table("sends")
        .join(begun, on=TRANSACTION, how="left")
        .selectExpr(
            "record_id",
            f"coalesce(node, {alone}) as writer",
            "invoked_ns as sent_ns",
            "if(outcome = 'ok', completed_ns, null) as acknowledged_ns",
        )
    )
    reads = (
        history.reads.where(f"({of_readers}) and intact and transaction is not null")
        .selectExpr("topic", "partition", "offset", "record_id", "read_ns", "reader as worker", "transaction")
        .join(begun.withColumnRenamed("node", "reader"), on=TRANSACTION, how="inner")
        .drop(*TRANSACTION)
    )
    return (
        reads.join(sent, on="record_id", how="inner")
        .where("writer != reader and read_ns >= sent_ns")
        .groupBy("writer", "reader")
        .agg(F.expr(f"min({_READ})").alias("first_read"), F.max("read_ns").alias("read_until_ns"))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
