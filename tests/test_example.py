"""The recorded run that ships with the repo: a true verdict where there is no Docker."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.judge import judge
from harness.cli.backends import Backends
from harness.core.errors import HistoryError
from harness.history.paths import ANOMALIES, VERDICT_FILE
from harness.history.seal import SEAL_FILE
from harness.history.stored_run import StoredRun
from tests.command import Invoke
from tests.golden.sample import Judged

EXAMPLES = Path(__file__).parent.parent / "examples"
#: Another run of the same scenario, as it was recorded before runs were sealed, with its verdict.
UNSEALED = Path(__file__).parent / "history" / "unsealed"


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


def test_no_lost_record_is_shown_as_in_no_anomaly(example: Path, kafka_trial: Invoke) -> None:
    [lost] = json.loads((example / VERDICT_FILE).read_text())["anomalies"]["lost"]["examples"][:1]
    known = kafka_trial("explain", example, "--record", lost["record_id"]).out
    assert "    anomaly:  lost, rewritten_offset, vanished (permitted)\n" in known
    unknown = kafka_trial("explain", example, "--offset", "trial-0:3000").out
    assert "    anomaly:  not known of lost, rewritten_offset, vanished, whose records are not kept here:\n" in unknown
    assert f"`kafka-trial check {example}` finds them\n" in unknown
    assert "anomaly:  none" not in known + unknown


def test_every_page_of_it_has_a_checksum(example: Path) -> None:
    part = example / "history" / "sends" / "1.parquet"
    columns = pq.read_metadata(part).row_group(0)
    biggest = max(map(columns.column, range(columns.num_columns)), key=lambda one: one.total_compressed_size)
    damaged = bytearray(part.read_bytes())
    damaged[biggest.data_page_offset + biggest.total_compressed_size // 2] ^= 1
    part.write_bytes(damaged)
    with pytest.raises(OSError, match="CRC checksum"):
        pq.ParquetFile(part, page_checksum_verification=True).read()
    with pytest.raises(HistoryError, match=r"history/sends/1\.parquet: damaged"):
        StoredRun.open(example)


def test_it_is_sealed_and_a_copy_without_its_seal_is_known_to_have_none(example: Path) -> None:
    assert StoredRun.open(example).sealed
    (example / SEAL_FILE).unlink()
    unsealed = StoredRun.open(example)
    assert (unsealed.sealed, unsealed.count("sends")) == (False, 6734)


@pytest.mark.heavy
def test_the_run_that_was_recorded_before_runs_were_sealed_is_judged_the_same(
    tmp_path: Path, spark: SparkSession, kafka_trial: Invoke
) -> None:
    known = json.loads((UNSEALED / VERDICT_FILE).read_text())
    shutil.copytree(UNSEALED, run := tmp_path / "run")
    real = Backends(judge=lambda master, conf, rows: lambda directory, results: judge(directory, spark, results))
    done = kafka_trial("check", run, "--json", backends=real)
    assert done.err == f"kafka-trial: {run}: it has no seal: judged without knowing whether it is whole\n"
    reported = ("verdict", "reasons", "summary", "anomalies", "findings", "preconditions", "at_risk")
    assert {name: done.verdict[name] for name in reported} == {name: known[name] for name in reported}
