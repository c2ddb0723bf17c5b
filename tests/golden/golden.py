"""The kept texts: one file for each history of the corpus, ``kept/<name>.txt``."""

import difflib
from pathlib import Path

from tests.golden.sample import Sample

KEPT = Path(__file__).parent / "kept"


def kept(sample: Sample) -> str:
    """The kept text; empty where none is kept yet."""
    file = file_of(sample)
    return file.read_text() if file.exists() else ""


def file_of(sample: Sample) -> Path:
    """Where the text of ``sample`` is kept."""
    return KEPT / f"{sample.name.replace(',', '').replace(' ', '-')}.txt"


def changes(before: str, after: str) -> list[str]:
    """The lines that went (-) and came (+)."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in compared if not line.startswith(("---", "+++", "@@"))]
