"""Spark's own classes in one file that its Java process maps: a session starts in half the time.

``python -m checkers.spark.class_archive RUN`` makes it (JEP 350: Java 13 or later) by judging a copy of a stored run.
It lies in the virtual environment whose Spark it is of; a Java that is not the one that made it goes without.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from checkers.judge import judge
from checkers.spark.session import ARCHIVE, session
from harness.core.errors import EnvironmentLacks


def make(run: Path) -> None:
    """Write ARCHIVE, all of it or nothing. Raises EnvironmentLacks where Spark's Java process writes none."""
    ARCHIVE.unlink(missing_ok=True)
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    half = ARCHIVE.with_suffix(".half")
    spark = session(conf={"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={half}"})
    with tempfile.TemporaryDirectory(prefix="kafka-trial-archive-") as scratch:
        judge(Path(shutil.copytree(run, Path(scratch, "run"))), spark)
    java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    java.stdin.close()  # which ends it: it writes the file as it exits
    java.wait()
    if not half.exists():
        raise EnvironmentLacks("this Java wrote no archive of classes")
    half.rename(ARCHIVE)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
