"""Command lines run in the test's own process, with deeds that need neither Docker nor Spark."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli.deeds import Deeds
from harness.cli.main import invoke
from harness.core.verdict import Verdict
from tests.checkers.notation import tell, write
from tests.report.verdicts import verdict


@dataclass(frozen=True)
class Done:
    """What a command line came to."""

    code: int
    out: str
    err: str


Invoke = Callable[..., Done]


@pytest.fixture
def kafka_trial(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """``kafka_trial("run", "x", deeds=…)``."""

    def run(*arguments: object, deeds: Deeds | None = None) -> Done:
        code = invoke([str(argument) for argument in arguments], deeds)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A small run that was recorded whole."""
    directory = tmp_path / "store" / "by-hand" / "1"
    write(
        directory,
        [
            tell(
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
    return directory


def judging(*verdicts: Verdict, **others: object) -> Deeds:
    """Deeds whose judge gives these verdicts, one after the other; the last one again and again."""
    left = list(verdicts) or [verdict()]

    def judge(directory: Path) -> Verdict:
        return left.pop(0) if len(left) > 1 else left[0]

    return Deeds(**{"judge": lambda master, conf, rows: judge, **others})  # type: ignore[arg-type]
