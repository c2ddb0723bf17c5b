"""Silences: times in which a partition was written to, but no broker's report on it was fresh."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import Window
from checkers.leadership import FRESH_NS, Partition
from harness.core.clock import SECOND_NS
from harness.history.schema import PARTITION


@dataclass(frozen=True)
class Silence:
    """A time in which the last report of any broker on a partition was too old to count."""

    topic: str
    partition: int
    from_ns: int
    to_ns: int

    @property
    def when(self) -> str:
        """``"from 5.0 s to 9.5 s"``."""
        return f"from {self.from_ns / SECOND_NS:.1f} s to {self.to_ns / SECOND_NS:.1f} s"


def silences(observations: pa.Table, written: Mapping[Partition, tuple[int, int]]) -> list[Silence]:
    """The silences of each partition between its first and its last write, in order.

    ``observations``: topic, partition, at_ns, in any order. A report is fresh for FRESH_NS.
    """
    reports = observations.select(["topic", "partition", "at_ns"]).sort_by(
        [(name, "ascending") for name in ("topic", "partition", "at_ns")]
    )
    times = {of: np.empty(0, np.int64) for of in written} | dict(_by_partition(reports))
    return [one for of, (since, until) in sorted(written.items()) for one in _between(of, times[of], since, until)]


def _by_partition(reports: pa.Table) -> Iterator[tuple[Partition, np.ndarray]]:
    each = reports.group_by(PARTITION, use_threads=False).aggregate([("at_ns", "list")])
    lists = each["at_ns_list"].combine_chunks()
    for row, (topic, partition) in enumerate(
        zip(each["topic"].to_pylist(), each["partition"].to_pylist(), strict=True)
    ):
        yield (topic, partition), lists[row].values.to_numpy()


def _between(of: Partition, times: np.ndarray, since_ns: int, until_ns: int) -> Iterable[Silence]:
    # Two bounds: a report that is just no longer fresh at the first write, and one at the end of the last write.
    ends = np.concatenate([[since_ns - FRESH_NS], times, [until_ns]])
    begun, over = np.maximum(ends[:-1] + FRESH_NS, since_ns), np.minimum(ends[1:], until_ns)
    silent = begun < over
    return [Silence(*of, int(begin), int(end)) for begin, end in zip(begun[silent], over[silent], strict=True)]


def silences_of_brokers(observations: pa.Table, current: pa.Table) -> dict[Partition, dict[str | None, list[Window]]]:
    """The times longer than FRESH_NS without a report of a broker on a partition; by None, without a ``current`` report
    of any broker, between the first and the last report of the partition."""
    found: dict[Partition, dict[str | None, list[Window]]] = {}
    bounds = observations.group_by(PARTITION).aggregate([("at_ns", "min"), ("at_ns", "max")])
    rows = current.select([*PARTITION, "at_ns"])
    edges = [pa.table([bounds[name] for name in (*PARTITION, at)], rows.schema) for at in ("at_ns_min", "at_ns_max")]
    _add_silences(found, observations, [*PARTITION, "observer"], FRESH_NS)
    _add_silences(found, pa.concat_tables([rows, *edges]), PARTITION, FRESH_NS)
    return found


def pauses_of_brokers(observations: pa.Table, longer_than_ns: int) -> dict[Partition, dict[str | None, list[Window]]]:
    """The times without a report of a broker on a partition, by the broker's name."""
    found: dict[Partition, dict[str | None, list[Window]]] = {}
    _add_silences(found, observations, [*PARTITION, "observer"], longer_than_ns)
    return found


def _add_silences(
    found: dict[Partition, dict[str | None, list[Window]]], observations: pa.Table, keys: list[str], longer_than_ns: int
) -> None:
    rows = observations.select([*keys, "at_ns"]).sort_by([(name, "ascending") for name in [*keys, "at_ns"]])
    if len(rows) < 2:
        return
    at = rows["at_ns"].to_numpy()
    same = np.ones(len(at) - 1, bool)
    for name in keys:
        same &= pc.equal(rows[name][1:], rows[name][:-1]).to_numpy()
    gaps = np.flatnonzero(same & (np.diff(at) > longer_than_ns))
    for row, since in zip(rows.take(gaps).to_pylist(), at[gaps + 1].tolist(), strict=True):
        of = found.setdefault((row["topic"], row["partition"]), {})
        of.setdefault(row.get("observer"), []).append((row["at_ns"], since))
