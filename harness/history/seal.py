"""seal.json: the size and checksum of each file that a verdict rests on. A damaged run is refused."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.core.errors import HistoryError
from harness.history.paths import HISTORY, is_there
from harness.history.run_file import RUN_FILE, RunFile
from harness.history.writing import write_file

SEAL_FILE = "seal.json"
SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


class SealedFile(_Part):
    """A file as it was when the run was sealed. ``rows``: of a Parquet file."""

    bytes: int
    sha256: str
    rows: int | None = None


class Seal(_Part):
    """The whole of seal.json. ``files`` by their paths in the run; ``sha256`` is that of ``files`` themselves."""

    schema_number: int = Field(SCHEMA, alias="schema")
    files: dict[str, SealedFile]
    sha256: str

    @classmethod
    def of(cls, files: dict[str, SealedFile]) -> Self:
        """The seal of these files."""
        return cls(files=files, sha256=_checksum_of(files))

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """The seal of a run; None if it has none. Raises HistoryError if the seal is damaged."""
        path = directory / SEAL_FILE
        try:
            seal = cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as exc:
            raise HistoryError(f"{path}: damaged: copy the run again from where it was recorded") from exc
        if seal.sha256 != _checksum_of(seal.files):
            raise HistoryError(f"{path}: damaged: copy the run again from where it was recorded")
        return seal

    def check(self, directory: Path) -> None:
        """Raises HistoryError, which names the file, if the run is not as it was when sealed."""
        self._check(directory, self.files)

    def check_history(self, directory: Path) -> None:
        """The same of all that was sealed but run.json."""
        self._check(directory, {name: sealed for name, sealed in self.files.items() if name != RUN_FILE})

    def _check(self, directory: Path, files: Mapping[str, SealedFile]) -> None:
        for name, sealed in files.items():
            path = directory / name
            if not path.is_file():
                raise HistoryError(f"{path}: missing: it was there when the run was sealed")
            size = path.stat().st_size
            if size != sealed.bytes:
                raise HistoryError(f"{path}: damaged: {size:,} bytes, {sealed.bytes:,} when the run was sealed")
            if _checksum(path) != sealed.sha256:
                raise HistoryError(f"{path}: damaged: not what it was when the run was sealed")
        for name in _names(directory):
            if name not in self.files:
                raise HistoryError(f"{directory / name}: no part of the run that was sealed: take it out")


def is_run(directory: Path) -> bool:
    """Whether a run is there: it has run.json, or, where that was lost, its seal."""
    return any(is_there(directory / name) for name in (RUN_FILE, SEAL_FILE))


def write_sealed(directory: Path, file: RunFile) -> None:
    """Write run.json for the last time, and the seal over it and the history.

    The seal is written first: if the process ends between the two, run.json still says that the run is not whole.
    """
    text = file.text().encode()
    files = {RUN_FILE: SealedFile(bytes=len(text), sha256=hashlib.sha256(text).hexdigest())}
    for name in _names(directory):
        path = directory / name
        files[name] = SealedFile(bytes=path.stat().st_size, sha256=_checksum(path), rows=_rows(path))
    write_file(directory, SEAL_FILE, Seal.of(files).model_dump_json(by_alias=True, indent=1, exclude_none=True) + "\n")
    file.write(directory)


def _names(directory: Path) -> Iterator[str]:
    """Every file of the history, as seal.json names it."""
    for path in sorted((directory / HISTORY).rglob("*")):
        if path.is_file():
            yield path.relative_to(directory).as_posix()


def _rows(path: Path) -> int | None:
    """The rows of a Parquet file; None of another, or one that is torn (whoever reads it refuses it)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except pa.ArrowInvalid:
        return None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum_of(files: dict[str, SealedFile]) -> str:
    plain = {name: file.model_dump(exclude_none=True) for name, file in files.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
