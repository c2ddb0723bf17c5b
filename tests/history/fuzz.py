"""Many damages to the shipped run, over all processors: each must be refused in one line, or change nothing that is
judged. The first that is neither is shown."""

import os
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from harness.history.seal import Seal

from .damages import WELL, contents, damage, outcome

EXAMPLE = next((Path(__file__).parents[2] / "examples").rglob("seal.json")).parent
_AT_ONCE = 100


def outcomes(seed: int, first: int) -> Counter[str]:
    """What became of _AT_ONCE damages; every one that should not is printed, with its number."""
    counted: Counter[str] = Counter()
    whole, seal = contents(EXAMPLE), Seal.read(EXAMPLE)
    assert seal is not None
    judged_by = frozenset(map(Path, seal.files))
    with tempfile.TemporaryDirectory(prefix="kafka-trial-fuzz-") as scratch:
        for number in range(first, first + _AT_ONCE):
            run = Path(scratch, f"run-{number}")
            shutil.copytree(EXAMPLE, run)
            how = damage(run, Random(f"{seed}/{number}"))
            try:
                became = outcome(run, whole, judged_by)
            except Exception:  # noqa: BLE001 - each is counted and shown
                became = traceback.format_exc()
            counted[became if became in WELL else "wrong"] += 1
            if became not in WELL:
                print(f"--- number {number}, {how}\n{became}", file=sys.stderr)
            shutil.rmtree(run)
    return counted


def main(number: int = 10_000, seed: int = 0) -> int:
    """Tries at least ``number``; prints the counts. 1 where one was judged in silence, or ended in a traceback."""
    total: Counter[str] = Counter()
    starts = range(0, number, _AT_ONCE)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for counted in pool.map(outcomes, [seed] * len(starts), starts):
            total += counted
    print(", ".join(f"{total[key]:,} {key}" for key in (*WELL, "wrong")))
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
