"""Compare how every history of the corpus is judged with how it was judged when its text was kept.

.venv/bin/python -m tests.golden                  compare; exit 1 where anything differs
.venv/bin/python -m tests.golden --write          keep what is judged now, and print what changed
.venv/bin/python -m tests.golden --all-rows DIR   write the texts with every row to DIR, to compare two commits
.venv/bin/python -m tests.golden transactions     only the histories whose name has this in it
"""

import argparse
import sys
import tempfile
from pathlib import Path

from checkers.spark.session import session
from tests.golden.corpus import samples
from tests.golden.golden import KEPT, changes, file_of, kept
from tests.golden.sample import judged

_PRINTED = 40


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="tests.golden", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="", help="part of a history's name")
    parser.add_argument("--write", action="store_true", help="keep what is judged now")
    parser.add_argument("--all-rows", type=Path, metavar="DIR", help="write texts with every row to DIR")
    asked = parser.parse_args()
    every = list(samples())
    chosen = [sample for sample in every if asked.name in sample.name]
    if not chosen:
        parser.error(f"no history has {asked.name!r} in its name")
    differing = 0
    for sample in chosen:
        with tempfile.TemporaryDirectory(prefix="kafka-trial-golden-") as run:
            text = judged(sample, Path(run), session()).text(all_rows=asked.all_rows is not None)
        if asked.all_rows:
            asked.all_rows.mkdir(parents=True, exist_ok=True)
            (asked.all_rows / file_of(sample).name).write_text(text)
        elif text != kept(sample):
            differing += 1
            _print(sample.name, changes(kept(sample), text))
            if asked.write:
                KEPT.mkdir(exist_ok=True)
                file_of(sample).write_text(text)
    stale = sorted({*KEPT.glob("*")} - {file_of(sample) for sample in every})
    for file in stale:
        print(f"{file.name}: of no history{', removed' if asked.write else ''}")
        if asked.write:
            file.unlink()
    print(f"{len(chosen)} histories judged, {differing} differ{' and are kept anew' if asked.write else ''}")
    return int(bool(differing or stale) and not asked.write)


def _print(name: str, lines: list[str]) -> None:
    print(f"{name}: {len(lines)} lines differ")
    for line in lines[:_PRINTED]:
        print(f"  {line[:400]}")
    if len(lines) > _PRINTED:
        print(f"  … and {len(lines) - _PRINTED} more")


if __name__ == "__main__":
    sys.exit(main())
