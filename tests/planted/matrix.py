"""What was planted against what was found, as a table that is read at a glance."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.planted.generator import Planted
from tests.planted.judging import Findings, Kind

#: What no plot has touched. Anything found there is a mistake.
REST = "all other records"


def lines(kind: Kind, planted: Sequence[Planted], found: Findings, anomalies: Iterable[str]) -> list[str]:
    """One row for each plot: how often it was planted, and how many rows each checker found of it."""
    columns = list(anomalies)
    owner = {(history.topic, identity): plot for history in planted for identity, plot in history.owned.items()}
    cells = Counter({(owner.get(key, REST), anomaly): 0 for anomaly, counted in found.items() for key in counted})
    for anomaly, counted in found.items():
        for key, number in counted.items():
            cells[owner.get(key, REST), anomaly] += number
    rows = [plot.name for plot in kind.plots] + [REST]
    width = max(map(len, rows))
    heads = [f"{n}" for n, _ in enumerate(columns, 1)]
    table = [f"{kind.name}: {len(planted)} histories; rows: what was planted (a twin: nothing is to be found)"]
    table += ["  " + "  ".join(f"{n} {name}" for n, name in zip(heads, columns, strict=True))]
    table += [" " * width + "".join(f"{head:>6}" for head in heads)]
    for row in rows:
        counts = (cells[row, anomaly] for anomaly in columns)
        table.append(f"{row:<{width}}" + "".join(f"{count or '·':>6}" for count in counts))
    return table
