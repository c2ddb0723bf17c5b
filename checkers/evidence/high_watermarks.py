"""The high watermarks that leaders reported."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import BEFORE, Times
from checkers.leadership import Partition


class Highs(NamedTuple):
    """When a leader reported a new highest high watermark, and that high watermark.

    ``reported_ns``: when it last reported this one. ``still_ns``: a time at which it certainly was no higher yet. (A
    report has an answer that came before it, but the question was asked after the report before:
    harness.cluster.observer.)
    """

    at_ns: Times
    high: Times
    reported_ns: Times
    still_ns: Times


def high_watermarks(
    observations: pa.Table, names: Mapping[int, str]
) -> dict[Partition, dict[tuple[int, int | None], Highs]]:
    """The high watermarks in leaders' own reports, by partition, and by leader and epoch; without epochs not only those
    that are higher than all before.

    A high watermark that came with a later leader epoch than that of the term does not count for the term.
    """
    rows = observations.filter(pc.is_valid(observations["high"]))
    columns = ["topic", "partition", "leader", "leader_epoch"]
    by_id = {name: broker for broker, name in names.items()}
    observers = rows["observer"].combine_chunks().dictionary_encode()
    if not len(rows):
        return {}
    ids = np.array([by_id.get(name, -1) for name in observers.dictionary.to_pylist()], np.int64)
    own = ids[observers.indices.to_numpy()] == rows["leader"].to_numpy()
    timely = pc.fill_null(pc.less_equal(rows["high_epoch"], rows["leader_epoch"]), True).to_numpy()
    rows = rows.filter(pa.array(own & timely)).select([*columns, "at_ns", "high"])
    rows = rows.sort_by([(name, "ascending") for name in [*columns, "at_ns"]])
    found: dict[Partition, dict[tuple[int, int | None], Highs]] = {}
    if not len(rows):
        return found
    other = np.zeros(len(rows) - 1, bool)
    for name in columns:
        other |= ~pc.fill_null(pc.equal(rows[name][1:], rows[name][:-1]), name == "leader_epoch").to_numpy()
    edges = [0, *(np.flatnonzero(other) + 1).tolist(), len(rows)]
    at, high = rows["at_ns"].to_numpy(), rows["high"].to_numpy()
    heads = rows.select(columns).take(edges[:-1]).to_pylist()
    for row, (first, last) in zip(heads, pairwise(edges), strict=True):
        of, own = found.setdefault((row["topic"], row["partition"]), {}), (at[first:last], high[first:last])
        # (Without epochs these may be of several terms.)
        of[row["leader"], row["leader_epoch"]] = (
            Highs(*own, own[0], own[0]) if row["leader_epoch"] is None else risen(*own)
        )
    return found


def risen(at: Times, high: Times) -> Highs:
    """Of high watermarks in the order of time, those that are higher than all before."""
    highest = np.maximum.accumulate(high)
    new = np.append(np.ones(min(len(at), 1), bool), highest[1:] > highest[:-1])
    last = np.append(np.flatnonzero(new)[1:], len(at)) - 1 if len(at) else np.empty(0, np.int64)
    still = np.where(last > 0, at[np.maximum(last, 1) - 1], BEFORE)
    return Highs(at[new], highest[new], at[last], still)
