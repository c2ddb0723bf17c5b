"""The histories whose judgement is kept as text: where each comes from, and how it is stored to be judged."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.history.paths import ANOMALIES, VERDICT_FILE
from harness.history.run_file import RunFile
from tests.checkers import test_delivery, test_groups, test_judge, test_recorded_runs, test_transactions
from tests.checkers.notation import HandHistory, by_hand, write
from tests.checkers.test_delivery import Case, hand_histories
from tests.golden.sample import Sample
from tests.planted import judging, test_mutants, test_recorded
from tests.planted.judging import KINDS, Kind

EXAMPLES = Path(__file__).parents[2] / "examples"
_SEEDS = range(2)


def samples() -> Iterator[Sample]:
    """Every history of the corpus, in a fixed order."""
    for file in sorted(EXAMPLES.rglob("run.json")):
        yield Sample(
            f"recorded {file.parent.relative_to(EXAMPLES).parent}".replace("/", " "), partial(_copy, file.parent)
        )
    for file in sorted(test_recorded_runs.RECORDED.glob("*/run.json")):
        yield Sample(f"recorded {file.parent.name}", partial(_copy, file.parent), long=True)
    yield Sample("recorded with plants", _plant_in_recorded, planted=True)
    for kind in KINDS:
        yield Sample(f"planted {kind.name}", partial(_plant, kind), planted=True)
    yield from _by_hand()
    for kind, checkers in test_mutants.TRIED.items():
        yield Sample(f"mutants {kind.name}", partial(_plant, kind), tuple(test_mutants.mutants(checkers)), planted=True)


def _by_hand() -> Iterator[Sample]:
    delivery, transactions = test_delivery, test_transactions
    yield _cases("single records", delivery.CASES)
    yield _cases("partial", delivery.PARTIAL, **delivery.SILENT)
    yield _cases("read by a group", delivery.GROUPED, grouped=True)
    for n, one in enumerate(delivery.ALONE):
        yield replace(_cases(f"alone {n}", [one]), long=True)
    yield _cases("committed by a group", test_groups.CASES, grouped=True)
    yield _cases("transactions, read_committed", transactions.CASES, **transactions.settings("read_committed"))
    yield _cases(
        "transactions, read_uncommitted", transactions.UNCOMMITTED, **transactions.settings("read_uncommitted")
    )
    yield replace(_histories("loss of 2013", [by_hand(*test_judge.STORY)], **test_judge.UNCLEAN), long=True)
    yield replace(_histories("clean", [by_hand(*test_judge.CLEAN)]), long=True)
    yield replace(_histories("nothing at all", [by_hand()]), long=True)


def _cases(name: str, cases: list[Case], **settings: Any) -> Sample:
    return _histories(name, hand_histories(cases), **settings)


def _histories(name: str, histories: Sequence[HandHistory], **settings: Any) -> Sample:
    return Sample(f"by hand {name}", lambda run: write(run, histories, **settings))


def _copy(recorded: Path, run: Path) -> None:
    left_out = shutil.ignore_patterns(ANOMALIES, VERDICT_FILE)
    shutil.copytree(recorded, run, ignore=left_out, dirs_exist_ok=True)


def _plant_in_recorded(run: Path) -> None:
    [file] = EXAMPLES.rglob("run.json")
    recorded = test_recorded.Recorded.read(file.parent)
    test_recorded.plant(recorded)
    recorded.write(run)
    test_recorded.as_group(RunFile.read(file.parent)).write(run)


def _plant(kind: Kind, run: Path) -> None:
    judging.write(run, kind, judging.plant(kind, _SEEDS))
