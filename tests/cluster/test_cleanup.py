"""Which runs are still going, by what their containers' labels say."""

from pathlib import Path

from harness.cluster.cleanup import still_going
from harness.cluster.compose import labels_of
from harness.core.lock import RecordingLock


def test_a_run_is_going_while_its_recorder_lives(tmp_path: Path) -> None:
    lock = RecordingLock(tmp_path)
    assert still_going([labels_of("s/1", tmp_path)]) == {"s/1"}
    lock.release()
    assert still_going([labels_of("s/1", tmp_path)]) == set()


def test_a_run_whose_directory_is_gone_or_unknown_is_not(tmp_path: Path) -> None:
    assert still_going([labels_of("s/1", tmp_path / "gone"), {"kafka-trial.run": "s/2"}]) == set()
