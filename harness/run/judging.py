"""One judgement of a run at a time, and its results put beside the run all at once."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.verdict import Verdict
from harness.history.lock import judging_lock
from harness.history.paths import ANOMALIES, CHECKERS_LOG, VERDICT_FILE
from harness.history.run_file import RunFile
from harness.history.writing import made_beside, remove_left_beside, swap_in
from harness.report.files import JUNIT_FILE, REPORT_FILE, write


@contextmanager
def judging(directory: Path) -> Iterator[Path]:
    """Wait until nobody else judges the run, and make a folder for the results: within the run, gone afterwards.

    Raises OSError where the run's directory cannot be written.
    """
    with judging_lock(directory) as alone:
        if alone:
            remove_left_beside(directory)
        with made_beside(directory) as results:
            yield results


def emptied(results: Path) -> Path:
    """The folder of ``judging``, without what a judgement that was broken off left in it."""
    for left in results.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
    return results


def publish(directory: Path, results: Path, verdict: Verdict, file: RunFile) -> Path:
    """Replace the anomalies, verdict and reports of an earlier judgement by the new ones.

    All is made beside before anything is replaced: on a full disk what was there stays. Returns the path of the report.
    Raises OSError where one cannot be made or replaced.
    """
    write(results, verdict, file)
    for name in (ANOMALIES, CHECKERS_LOG):
        swap_in(results / name, directory / name)
    for name in (REPORT_FILE, JUNIT_FILE, VERDICT_FILE):
        (results / name).replace(directory / name)
    return directory / REPORT_FILE
