"""Says whether judging became slower: ``python -m benchmarks.compare A B [--records N,N…] [--times N] [--json FILE]``.

Two commits judge the same histories in turn, A B A B …, each time cold, in a fresh process with that commit's code. The
older one writes the histories, because it cannot judge newer formats. Prints a table of the figures: the medians of
both, and how the pairs compare. A slow minute of the machine hits both of a pair; B counts as slower or faster only if
all pairs agree. Exits with 1 if it is slower by more than 5 % in all.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The figures of ``benchmarks.checking --measure all``, and their headings.
FIGURES = {"cold": "cold s", "cpu": "CPU s", "warm": "warm s", "peak": "peak MiB"}

#: A program that writes a history: its arguments are the directory and the number of sends.
WRITE = """
import sys
from pathlib import Path
from benchmarks.histories import write_run
write_run(Path(sys.argv[1]), int(sys.argv[2]))
"""

#: A choice: of eight figures of equal commits, some are slower in three pairs of three by chance, but not by so much.
_NOISE = 1.05

Pair = dict[str, dict[str, float]]


@contextmanager
def checkout(commit: str, into: Path) -> Iterator[Path]:
    """A temporary work tree of a commit."""
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(into), commit], check=True)
    try:
        yield into
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(into)], check=True)


def in_tree(tree: Path, does: str, *command: str) -> str:
    """The output of a Python command that runs the code of ``tree``. If it fails, ends the program with what it
    ``does`` and the last line of its errors."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run([sys.executable, *command], cwd=tree, env=environment, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        sys.exit(f"{does} failed: {lines[-1]}")
    return done.stdout.decode()


def older(repository: Path, a: str, b: str) -> str:
    """``A`` or ``B``: the earlier commit; on different branches, the one with the earlier date."""
    ancestor = subprocess.run(["git", "merge-base", "--is-ancestor", b, a], cwd=repository, check=False).returncode == 0
    descendant = (
        subprocess.run(["git", "merge-base", "--is-ancestor", a, b], cwd=repository, check=False).returncode == 0
    )
    if ancestor != descendant:
        return "B" if ancestor else "A"
    shown = ["git", "show", "--no-patch", "--format=%ct"]
    at_a, at_b = (int(subprocess.check_output([*shown, one], cwd=repository)) for one in (a, b))
    return "B" if at_b < at_a else "A"


def compared(pairs: Sequence[Pair], figure: str) -> dict[str, Any]:
    """The medians of both sides, the ratios B/A of the pairs, and whether B is ``slower`` or ``faster`` (if all pairs
    agree) or the ``same``."""
    ratios = [pair["B"][figure] / pair["A"][figure] for pair in pairs]
    follows = "slower" if min(ratios) > 1 else "faster" if max(ratios) < 1 else "same"
    return {
        **{side: statistics.median(pair[side][figure] for pair in pairs) for side in ("A", "B")},
        "ratio": statistics.median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
        "B is": follows,
    }


def slower(results: Mapping[str, Sequence[Pair]]) -> bool:
    """Whether B is slower in any figure, and by more than noise in each pair."""
    return any(compared(pairs, figure)["lowest"] > _NOISE for pairs in results.values() for figure in FIGURES)


def table(results: Mapping[str, Sequence[Pair]]) -> str:
    """The results as a table: a line for each size and figure."""
    lines = [f"{'records':>10}  {'figure':<9}{'A':>9}{'B':>9}  {'B/A':>5}  {'of pairs':<12}B is"]
    for records, pairs in results.items():
        for figure, heading in FIGURES.items():
            row = compared(pairs, figure)
            spread = f"{row['lowest']:.2f}–{row['highest']:.2f}"
            numbers = f"{row['A']:>9.1f}{row['B']:>9.1f}  {row['ratio']:>5.2f}"
            lines.append(f"{records:>10}  {heading:<9}{numbers}  {spread:<12}{row['B is']}")
    return "\n".join(lines)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commits", nargs=2, metavar="COMMIT", help="A, and B")
    parser.add_argument("--records", default="30000,1000000", help="sizes: sends of each history")
    parser.add_argument("--times", type=int, default=3, help="pairs for each size")
    parser.add_argument("--memory", default="6g", help="heap of the Spark driver")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    asked = parser.parse_args()
    results: dict[str, list[Pair]] = {}
    with tempfile.TemporaryDirectory(prefix="kafka-trial-compare-") as scratch:
        folder = Path(scratch)
        commits = dict(zip("AB", asked.commits, strict=True))
        first = older(Path.cwd(), *asked.commits)
        with checkout(asked.commits[0], folder / "A") as a, checkout(asked.commits[1], folder / "B") as b:
            trees = {"A": a, "B": b}
            for records in asked.records.split(","):
                run = folder / f"run-{records}"
                in_tree(trees[first], f"{commits[first]}: writing {records} records", "-c", WRITE, str(run), records)
                measure = ("-m", "benchmarks.checking", "--measure", "all", str(run), "--memory", asked.memory)
                says = f"judging {records} records that {commits[first]} wrote"
                for _ in range(asked.times):
                    pair = {
                        side: json.loads(in_tree(tree, f"{commits[side]}: {says}", *measure))
                        for side, tree in trees.items()
                    }
                    results.setdefault(records, []).append(pair)
                    print(f"{records}: {pair}", file=sys.stderr, flush=True)
    if asked.json:
        asked.json.write_text(json.dumps({"commits": asked.commits, "results": results}, indent=1) + "\n")
    print(table(results))
    sys.exit(slower(results))


if __name__ == "__main__":
    main()
