"""One judgement of a run at a time, and its results put beside the run all at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.verdict import Verdict
from harness.history.lock import judging_lock
from harness.history.paths import ANOMALIES, CHECKERS_LOG
from harness.history.run_file import RunFile, State
from harness.history.writing import made_beside, remove_left_beside, swap_in
from harness.report import write


@contextmanager
def judging(directory: Path) -> Iterator[Path]:
    """Wait until nobody else judges the run, and give a folder for the results: within the run, gone afterwards.

    Raises OSError where the run's directory cannot be written.
    """
    with judging_lock(directory) as alone:
        if alone:
            remove_left_beside(directory)
        with made_beside(directory) as results:
            yield results


def publish(directory: Path, results: Path, verdict: Verdict, file: RunFile) -> Path:
    """Put what was found, the verdict and its reports in the place of those of an earlier judgement.

    Returns the path of the report. Raises OSError where one cannot be replaced.
    """
    for name in (ANOMALIES, CHECKERS_LOG):
        swap_in(results / name, directory / name)
    report = write(directory, verdict, file)
    file.state = State.JUDGED
    file.write(directory)
    return report
