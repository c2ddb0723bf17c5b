"""What a section of a report is made of. Text and page each know how to show every kind of block, and no section."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.report.chart import Chart


@dataclass(frozen=True)
class Marked:
    """A cell, or a word of a heading, in a tone: ``good``, ``doubtful`` or ``bad``. ``code``: as it stands."""

    text: str
    tone: str = ""
    code: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Lines:
    """Lines of text; ``label`` stands before each on a terminal. ``soft``: an aside."""

    lines: Sequence[str]
    label: str = ""
    soft: bool = False
    kind: str = field(default="lines", init=False)


@dataclass(frozen=True)
class Facts:
    """Names and what is said of each."""

    facts: Sequence[tuple[str, str]]
    kind: str = field(default="facts", init=False)


@dataclass(frozen=True)
class Figures:
    """What, how many, and as a share of what."""

    rows: Sequence[tuple[str, str, str]]
    kind: str = field(default="figures", init=False)


@dataclass(frozen=True)
class Cells:
    """A table. ``header_column``: the column that names its row. ``long``: cells are wrapped."""

    rows: Sequence[Sequence[str | Marked]]
    headers: Sequence[str] = ()
    header_column: int | None = None
    long: bool = False
    kind: str = field(default="cells", init=False)


@dataclass(frozen=True)
class Card:
    """Blocks under a heading of their own: what, and how many of each."""

    counts: Mapping[str, int]
    mark: Marked
    blocks: Sequence["Block"]
    kind: str = field(default="card", init=False)


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown when they are asked for. Only a page shows them."""

    summary: str
    blocks: Sequence["Block"]
    kind: str = field(default="folded", init=False)


@dataclass(frozen=True)
class Drawing:
    """The chart of a run. Only a page shows it."""

    chart: Chart
    kind: str = field(default="drawing", init=False)


Block = Lines | Facts | Figures | Cells | Card | Folded | Drawing
