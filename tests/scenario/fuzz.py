"""Many damaged scenarios, over all processors: the first that neither loads nor is refused in lines is shown whole."""

import os
import sys
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random

from .mutations import mutated
from .test_mutations import TEXTS, loaded

_AT_ONCE = 500


def outcomes(seed: int, first: int) -> Counter[str]:
    """How many of _AT_ONCE loaded, and were refused; every other is printed, with its number."""
    counted: Counter[str] = Counter()
    for number in range(first, first + _AT_ONCE):
        random = Random(f"{seed}/{number}")
        text = mutated(random.choice(TEXTS), TEXTS, random)
        try:
            counted["refused" if loaded(text) is None else "loaded"] += 1
        except Exception:  # noqa: BLE001 - each is counted and shown
            counted["crashed"] += 1
            print(f"--- number {number}\n{text!r}\n{traceback.format_exc()}", file=sys.stderr)
    return counted


def main(number: int = 100_000, seed: int = 0) -> int:
    """Tries at least ``number``; prints the counts. 1 where one crashed."""
    total: Counter[str] = Counter()
    starts = range(0, number, _AT_ONCE)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for counted in pool.map(outcomes, [seed] * len(starts), starts):
            total += counted
    print(", ".join(f"{total[key]:,} {key}" for key in ("loaded", "refused", "crashed")))
    return 1 if total["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
