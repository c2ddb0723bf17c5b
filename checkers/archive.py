"""Reads single rows of a stored run, without Spark: its tables, the brokers' reports, and verdict.json."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pyarrow.compute as pc
from pydantic import BaseModel, ValidationError

from checkers.evidence.store import AnomalyStore
from checkers.leadership import Span, spans
from harness.core.errors import HistoryError
from harness.history.journal import SUFFIX
from harness.history.paths import HISTORY, JOURNALS, VERDICT_FILE, checking
from harness.history.run_file import RunFile
from harness.history.stored_run import StoredRun

Row = dict[str, Any]


class AnomalyRange(BaseModel):
    """One range of an anomaly's records. (verdict.json calls ranges ``runs``.)"""

    text: str
    topic: str | None = None
    partition: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None


class AnomalyEntry(BaseModel):
    """An anomaly in verdict.json. ``runs`` is None in verdicts of old versions, which reported no causes."""

    count: int = 0
    standing: str | None = None
    examples: list[dict[str, Any]] = []
    runs: list[AnomalyRange] | None = None


class FindingRange(BaseModel):
    """One range of a finding's records."""

    text: str = ""
    topic: str | None = None
    partition: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    standing: str | None = None
    anomalies: dict[str, int] = {}


class FindingEntry(BaseModel):
    """A finding in verdict.json."""

    anomalies: dict[str, int]
    standing: str
    text: str = ""
    runs: list[FindingRange] = []
    more_runs: int = 0


class VerdictFile(BaseModel):
    """The needed part of verdict.json, whichever version wrote it. Old versions have no ``findings``."""

    anomalies: dict[str, AnomalyEntry]
    findings: list[FindingEntry] = []


@dataclass(frozen=True)
class Archive(StoredRun):
    """A stored run, read row by row."""

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Raises HistoryError if there is no run, if its history is not sealed yet, or if a table cannot be read."""
        RunFile.read(directory)
        where = directory / HISTORY
        if not where.is_dir() or any((directory / JOURNALS).glob(f"*{SUFFIX}")):
            raise HistoryError(f"{where}: no history here yet; {checking(directory)} seals what was recorded")
        return super().open(directory)

    def range_of(self, table: str, column: str, wanted: pc.Expression) -> tuple[int, int] | None:
        """The least and the greatest value of a column in the rows that match an expression."""
        found = self.table(table, wanted, [column])[column]
        least = pc.min_max(found).as_py()
        return None if least["min"] is None else (least["min"], least["max"])

    def distinct(self, table: str, column: str) -> list[Any]:
        """The distinct values of a column, sorted."""
        return sorted(pc.unique(self.table(table, columns=[column])[column]).to_pylist())

    @cached_property
    def seen(self) -> list[Span]:
        """The brokers' reports, folded into spans."""
        return spans(self.table("observations"))

    @cached_property
    def found(self) -> AnomalyStore:
        """The anomalies that the last judgement stored in the run's directory."""
        return AnomalyStore.read(self.directory)

    @cached_property
    def verdict(self) -> VerdictFile | None:
        """verdict.json; None if the run was not judged. Raises HistoryError if the file is not a verdict of ours."""
        path = self.directory / VERDICT_FILE
        if not path.is_file():
            return None
        try:
            return VerdictFile.model_validate_json(path.read_bytes())
        except ValidationError as exc:
            first = exc.errors()[0]
            where = ".".join(map(str, first["loc"])) or "whole file"
            why = f"{where}: {first['msg']}"
            raise HistoryError(f"{path}: not a verdict ({why}); `kafka-trial check` writes it again") from exc
