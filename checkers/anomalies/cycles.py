"""Transactions that got each other's records: what depends on what, and in a circle (Adya's G1c).

Only reads make dependencies here. The order in which two transactions stand in a log, or in several, makes none: Kafka
does not isolate writes from each other (docs/jepsen.md).

Of the members of a cycle that each wait for the commit of the one before, all are open when the last of them begins. So
the search begins at each transaction whose record one got that began before it, and goes no further than to those
that were open then: not many, however long the history.
"""

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_READ
from checkers.history import History

_KEY = ["worker", "transaction"]

#: What is known of a record that a transaction got.
_GIVEN = "struct(read_ns, record_id, topic, partition, offset, sent_ns, acknowledged_ns)"


def recorded(history: History) -> bool:
    """Whether any transaction reads."""
    recorded = history.transactional and history.stored.has_column("reads", "transaction")
    return recorded and history.stored.constants("reads").get("transaction", 0) is not None


def read_cycle(history: History) -> DataFrame:
    """Records that a transaction got whose sender had got a record of that transaction, or of one that had, and
    so on. One row for each two transactions: the first record.

    Guarantee: with read_committed a record is delivered after the commit of its transaction (KIP-98, 4), and a
    transaction polls before it commits: so each of a cycle would have been committed before itself (Adya, G1c).
    Returns: RECORD, transaction, read_ns, reader, reader_transaction, cycle (how many transactions are in it)
    """
    edges = _dependencies(history)
    back = edges.withColumnsRenamed({"reader": "origin", "writer": "reached"})
    closed = reaching(edges).join(back, on=["origin", "reached"], how="inner")
    return closed.selectExpr(
        "given.*",
        "reached.transaction",
        "origin.worker as reader",
        "origin.transaction as reader_transaction",
        "steps + 1 as cycle",
    ).selectExpr(*OF_READ, "transaction", "read_ns", "reader", "reader_transaction", "cycle")


def not_committed_before(history: History) -> DataFrame:
    """Transactions that had got what was sent later than they began, directly or through others: they were not
    committed before that began. Returns: worker, transaction, least_ns"""
    return (
        reaching(_dependencies(history))
        .groupBy("reached.worker", "reached.transaction")
        .agg(F.max("origin.began_ns").alias("least_ns"))
    )


def reaching(edges: DataFrame) -> DataFrame:
    """Which transactions each one (or record outside of any) reached that began before it, and were open when it did.

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
    """Which transaction got a record of which other, or of which record that was sent outside of any.

    Returns: writer, reader (a struct of began_ns, worker, transaction each: as they began; of a record outside of any
    transaction, when it was sent, and its number below 0), given (the first record, a struct), read_until_ns
    """
    of_readers = history.read_committed if history.run_file.configuration.read_committed else "phase = 'live'"
    begun = history.transactions.selectExpr(*_KEY, "struct(began_ns, worker, transaction) as node")
    alone = "struct(invoked_ns as began_ns, worker, -1 - sequence as transaction)"
    sent = (
        history.table("sends")
        .join(begun, on=_KEY, how="left")
        .selectExpr(
            "record_id",
            f"coalesce(node, {alone}) as writer",
            "invoked_ns as sent_ns",
            "if(outcome = 'ok', completed_ns, null) as acknowledged_ns",
        )
    )
    given = (
        history.reads.where(f"({of_readers}) and intact and transaction is not null")
        .selectExpr("topic", "partition", "offset", "record_id", "read_ns", "reader as worker", "transaction")
        .join(begun.withColumnRenamed("node", "reader"), on=_KEY, how="inner")
        .drop(*_KEY)
    )
    return (
        given.join(sent, on="record_id", how="inner")
        .where("writer != reader")
        .groupBy("writer", "reader")
        .agg(F.expr(f"min({_GIVEN})").alias("given"), F.max("read_ns").alias("read_until_ns"))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
