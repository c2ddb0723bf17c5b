"""The recorded run that ships with the repo: a true verdict where there is no Docker."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.evaluate import judge
from harness.core.layout import VERDICT_FILE

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    (file,) = (tmp_path / "examples").rglob("run.json")
    return file.parent


def test_it_is_small(example: Path) -> None:
    files = [path for path in example.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 500_000


def test_it_is_judged_as_it_was_when_it_was_recorded(example: Path, spark: SparkSession) -> None:
    recorded = (example / VERDICT_FILE).read_text()
    assert judge(example, spark).to_json(indent=2) + "\n" == recorded
    verdict = json.loads(recorded)
    assert verdict["expected"]
    assert verdict["summary"]["lost"] > 0
    assert verdict["anomalies"]["lost"]["standing"] == "permitted"
