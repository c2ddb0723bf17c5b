"""A stored run, and backends that need neither Docker nor Spark."""

from pathlib import Path

import pytest

from harness.cli.backends import Backends
from harness.core.verdict import Verdict
from harness.history.seal import write_sealed
from tests.checkers.notation import by_hand, write
from tests.report.verdicts import verdict


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A small run that was recorded whole."""
    directory = tmp_path / "store" / "by-hand" / "1"
    file = write(
        directory,
        [
            by_hand(
                "send a ok @0",
                "send b ok @1",
                "final a @0",
                "end 0..2",
                "fault cut b1 0..1",
                "saw b1 @0 leader=1 epoch=0 isr=1,2,3",
                "saw b2 @1 leader=2 epoch=1 isr=2,3",
            )
        ],
        unclean_election=True,
    )
    write_sealed(directory, file)
    return directory


def judging(*verdicts: Verdict, **others: object) -> Backends:
    """Backends whose judge gives these verdicts, one after the other; the last one again and again."""
    left = list(verdicts) or [verdict()]

    def judge(directory: Path, results: Path) -> Verdict:
        return left.pop(0) if len(left) > 1 else left[0]

    return Backends(**{"judge": lambda master, conf, rows: judge, **others})  # type: ignore[arg-type]
