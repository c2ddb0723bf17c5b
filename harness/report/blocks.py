"""The blocks that sections of a report are made of. Text and page know how to show each kind of block, but no
section."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.report.chart import Chart


@dataclass(frozen=True)
class Marked:
    """A cell, or a word of a heading, in a tone: ``good``, ``doubtful`` or ``bad``. ``code``: shown as code."""

    text: str
    tone: str = ""
    code: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Lines:
    """Lines of text. ``label``: put before each line on a terminal. ``soft``: less important."""

    lines: Sequence[str]
    label: str = ""
    soft: bool = False
    kind: str = field(default="lines", init=False)


@dataclass(frozen=True)
class Facts:
    """Names, each with a text."""

    facts: Sequence[tuple[str, str]]
    kind: str = field(default="facts", init=False)


@dataclass(frozen=True)
class Figures:
    """Rows of name, count, and share of what."""

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
    """Blocks under a heading with names and counts."""

    counts: Mapping[str, int]
    mark: Marked
    blocks: Sequence["Block"]
    kind: str = field(default="card", init=False)


@dataclass(frozen=True)
class Folded:
    """Blocks that a reader can unfold. Only a page shows them."""

    summary: str
    blocks: Sequence["Block"]
    kind: str = field(default="folded", init=False)


@dataclass(frozen=True)
class Drawing:
    """The chart of a run. Only a page shows it."""

    chart: Chart
    kind: str = field(default="drawing", init=False)


Block = Lines | Facts | Figures | Cells | Card | Folded | Drawing
