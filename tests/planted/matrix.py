"""What was planted against what was found, as a table that is read at a glance."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.planted.generator import Planted
from tests.planted.judging import Findings, Kind

#: What no plot has touched. Anything found there is a mistake.
REST = "all other records"


def lines(kind: Kind, planted: Sequence[Planted], found: Findings, anomalies: Iterable[str]) -> list[str]:
    """One row for each plot: how often it was planted, and how many rows each checker found of it."""
    columns = [*anomalies]
    cells = _cells(planted, found)
    times = sum((history.times for history in planted), Counter[str]())
    twins = {plot.name: f"  twin of {', '.join(plot.twin_of)}" for plot in kind.plots if plot.twin_of}
    rows = [*(plot.name for plot in kind.plots), REST]
    width = max(map(len, rows))
    return [
        f"{kind.name}: {len(planted)} histories",
        "  ".join(f"{n}: {name}" for n, name in enumerate(columns, 1)),
        f"{'':<{width}} planted" + "".join(f"{n:>5}" for n, _ in enumerate(columns, 1)),
        *(
            f"{row:<{width}} {times[row] or '':>7}"
            + "".join(f"{cells[row, anomaly] or '·':>5}" for anomaly in columns)
            + twins.get(row, "")
            for row in rows
        ),
    ]


def _cells(planted: Sequence[Planted], found: Findings) -> Counter[tuple[str, str]]:
    owner = {(history.topic, identity): plot for history in planted for identity, plot in history.owned.items()}
    cells = Counter[tuple[str, str]]()
    for anomaly, counted in found.items():
        for key, number in counted.items():
            cells[owner.get(key, REST), anomaly] += number
    return cells
