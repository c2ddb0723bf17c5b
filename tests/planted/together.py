"""Many hand histories judged as one run. Each has its own topic, workers, readers and brokers, so that a fault in one
reaches no other; what is judged record by record has a standing in each."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS
from checkers.evidence.holes import read_final_logs
from checkers.evidence.losses import losses_of
from checkers.evidence.standing import observed, worst_ruling
from checkers.history import History
from checkers.judge import explained
from checkers.screening import records, stored
from harness.core.anomalies import BY_NAME
from harness.core.guarantees import Ruling
from harness.history.run_file import NodeAddress
from tests.checkers.notation import HandHistory, apart, write

_BROKERS_OF_A_HISTORY = 10


def write_together(run: Path, histories: Iterable[Iterable[str]], **settings: Any) -> list[str]:
    """Store hand histories as one run. Returns: the topic of each."""
    written = apart(histories)
    for n, one in enumerate(written):
        _with_own_brokers(one, n * _BROKERS_OF_A_HISTORY)
    ids = range(1, 1 + len(written) * _BROKERS_OF_A_HISTORY)
    nodes = [NodeAddress(name=f"b{n}", role="broker", id=n, address=f"b{n}") for n in ids]
    write(run, written, nodes=nodes, **settings)
    return [one.topic for one in written]


def _with_own_brokers(history: HandHistory, first: int) -> None:
    """Number the brokers of a history from ``first`` on, and name its faults after it."""

    def ids(of: list[int] | None) -> list[int] | None:
        return None if of is None else [first + one for one in of]

    def name(of: str) -> str:
        return f"b{first + int(of[1:])}" if of.startswith("b") else of

    for row in history.rows["observations"]:
        row["observer"] = name(row["observer"])
        row["leader"] += first if row["leader"] > 0 else 0
        row.update({column: ids(row[column]) for column in ("replicas", "isr", "elr")})
    for row in history.rows["faults"]:
        row["fault"] = f"{history.topic}-{row['fault']}"
        nodes = ("nodes", "nodes_without_effect", "nodes_not_known", "cut_from", "cut_to")
        row.update({column: [*map(name, row[column])] for column in nodes if column in row})


def rulings(run: Path, spark: SparkSession, anomaly: str, one_task: bool) -> Mapping[str, Ruling]:
    """The ruling about what is found of an anomaly in each topic that has any. ``one_task``: as of History.read."""
    return dict(_rulings(History.read(run, spark, one_task=one_task), anomaly))


def _rulings(history: History, anomaly: str) -> Iterator[tuple[str, Ruling]]:
    _, found = records(history, [checker for checker in CHECKERS if checker.anomaly is BY_NAME[anomaly]])
    kept = stored(found)
    losses = losses_of(history, kept, observed(history.stored, history.seen), read_final_logs(history))
    for one in found:
        _, ranges = explained(history, one, kept, losses)
        for topic in {each.topic for each in ranges}:
            yield topic, worst_ruling(each for each in ranges if each.topic == topic)[0]
