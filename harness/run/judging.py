"""Judges a run in only one process at a time, and publishes all its results at once."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.verdict import Verdict
from harness.history.lock import judging_lock
from harness.history.paths import ANOMALIES, CHECKERS_LOG, JUNIT_FILE, REPORT_FILE, VERDICT_FILE
from harness.history.run_file import RunFile
from harness.history.writing import made_beside, remove_left_beside, swap_in
from harness.report.files import write


@contextmanager
def judging(directory: Path) -> Iterator[Path]:
    """Wait until nobody else judges the run, and make a temporary folder in it for the results.

    Raises OSError if the run's directory cannot be written.
    """
    with judging_lock(directory) as alone:
        if alone:
            remove_left_beside(directory)
        with made_beside(directory) as results:
            yield results


def emptied(results: Path) -> Path:
    """The folder of ``judging``, emptied of what an interrupted judgement left in it."""
    for path in results.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return results


def publish(directory: Path, results: Path, verdict: Verdict, file: RunFile) -> Path:
    """Replace the anomalies, verdict and reports of an earlier judgement by the new ones.

    All new files are written before any is replaced: on a full disk the old ones stay. Returns the path of the report.
    Raises OSError if a file cannot be written or replaced.
    """
    write(results, verdict, file)
    for name in (ANOMALIES, CHECKERS_LOG):
        swap_in(results / name, directory / name)
    for name in (REPORT_FILE, JUNIT_FILE, VERDICT_FILE):
        (results / name).replace(directory / name)
    return directory / REPORT_FILE
