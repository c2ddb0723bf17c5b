"""The recorded run that ships with the repo: a true verdict where there is no Docker."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.history.paths import ANOMALIES, VERDICT_FILE
from tests.command import Invoke
from tests.golden.sample import Judged

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns(ANOMALIES))
    (file,) = (tmp_path / "examples").rglob("run.json")
    return file.parent


def test_it_is_small(example: Path) -> None:
    files = [path for path in example.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 500_000


def test_it_is_judged_as_it_was_when_it_was_recorded(example: Path, of_corpus: Callable[[str], Judged]) -> None:
    recorded = (example / VERDICT_FILE).read_text()
    judged = of_corpus("recorded jepsen-2013 unclean-election").verdict
    assert judged is not None
    verdict = json.loads(recorded)
    as_then = judged.model_copy(update={"judge": verdict.get("judge", {})})
    assert as_then.to_json(indent=2) + "\n" == recorded
    assert verdict["expected"]
    assert verdict["summary"]["lost"] > 0
    assert verdict["anomalies"]["lost"]["standing"] == "permitted"


def test_no_lost_record_is_told_to_be_in_no_anomaly(example: Path, kafka_trial: Invoke) -> None:
    [lost] = json.loads((example / VERDICT_FILE).read_text())["anomalies"]["lost"]["examples"][:1]
    known = kafka_trial("explain", example, "--record", lost["record_id"]).out
    assert "    anomaly:  lost, rewritten_offset, vanished (permitted)\n" in known
    unknown = kafka_trial("explain", example, "--offset", "trial-0:3000").out
    assert "    anomaly:  not known of lost, rewritten_offset, vanished, whose records are not kept here:\n" in unknown
    assert f"`kafka-trial check {example}` finds them\n" in unknown
    assert "anomaly:  none" not in known + unknown
