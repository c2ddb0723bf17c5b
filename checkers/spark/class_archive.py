"""An archive of Spark's Java classes in one file, which its Java process maps: a session starts in half the time.

``python -m checkers.spark.class_archive RUN`` makes it (JEP 350: Java 13 or later): it judges a copy of a stored run.
The file is in the virtual environment of that Spark. Only the Java that made it uses it; another one ignores it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from checkers.judge import judge
from checkers.spark.session import ARCHIVE, NO_CONF, session
from harness.core.errors import EnvironmentLacks


def make(run: Path) -> None:
    """Write ARCHIVE completely or not at all. Raises EnvironmentLacks if Spark's Java process writes none, or if the
    next one does not use it."""
    ARCHIVE.unlink(missing_ok=True)
    NO_CONF.mkdir(parents=True, exist_ok=True)
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
    if not used():
        ARCHIVE.unlink()
        raise EnvironmentLacks("this Java does not use the archive of classes that it wrote")


def used() -> bool:
    """Whether a new session of this process has classes from ARCHIVE. Java is silent if it ignores it."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-archive-") as scratch:
        classes = Path(scratch, "classes")
        session(conf={"spark.driver.extraJavaOptions": f"-Xlog:class+load:file={classes}"})
        return "shared objects file (top)" in classes.read_text(encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
