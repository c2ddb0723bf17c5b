"""An archive of Spark's Java classes in one file, which its Java process maps: a session starts in half the time.

``python -m checkers.spark.class_archive RUN`` makes it (JEP 350: Java 13 or later): it judges a copy of a stored run.
The file is in the virtual environment of that Spark. Only the Java that made it uses it; another one ignores it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from checkers.judge import judge
from checkers.spark.session import ARCHIVE, session
from harness.core.errors import EnvironmentLacks


def make(run: Path) -> None:
    """Write ARCHIVE completely or not at all. Raises EnvironmentLacks if Spark's Java process writes none."""
    ARCHIVE.unlink(missing_ok=True)
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    half = ARCHIVE.with_suffix(".half")
    spark = session(conf={"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={half}"})
    with tempfile.TemporaryDirectory(prefix="kafka-trial-archive-") as scratch:
        judge(Path(shutil.copytree(run, Path(scratch, "run"))), spark)
    java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    java.stdin.close()  # this ends the process, which writes the file at its exit
    java.wait()
    if not half.exists():
        raise EnvironmentLacks("this Java wrote no archive of classes")
    half.rename(ARCHIVE)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
