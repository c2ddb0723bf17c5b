"""Says whether judging became slower: ``python -m benchmarks.compare A B [--records N,N…] [--times N] [--json FILE]``.

Two commits judge the same histories in turn, A B B A …, each time cold, in a fresh process with that commit's code. The
older one writes the histories, because it cannot judge newer formats. After each pair, writes to a file the figures
of every pair, the medians of both, and how the pairs compare; prints a table of them in the end. A slow minute of the
machine hits both of a pair, and because the sides take turns to be first, a machine that becomes slower favours none. B
counts as slower or faster only if all pairs agree. Exits with 1 if it is slower by more than 5 % in all, or by more
than 25 % if there is only one pair.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
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

#: Sends of each history. The largest is judged once, because that takes minutes.
SIZES = "30000,1000000,10000000x1"

#: A choice: of eight figures of equal commits, some are slower in three pairs of three by chance, but not by so much.
_NOISE = 1.05
#: A choice: one pair alone differs more by chance.
_NOISE_OF_ONE = 1.25

Pair = dict[str, dict[str, float]]
Outputs = Callable[..., str]


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
    """The medians of both sides, the ratios B/A of the pairs, whether B is ``slower`` or ``faster`` (if all pairs
    agree, or by more than noise if there is only one) or the ``same``, and whether it ``fails``: it is slower by more
    than noise in each pair."""
    ratios = [pair["B"][figure] / pair["A"][figure] for pair in pairs]
    sure, noise = (1, _NOISE) if len(pairs) > 1 else (_NOISE_OF_ONE, _NOISE_OF_ONE)
    follows = "slower" if min(ratios) > sure else "faster" if max(ratios) < 1 / sure else "same"
    return {
        **{side: statistics.median(pair[side][figure] for pair in pairs) for side in ("A", "B")},
        "ratio": statistics.median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
        "B is": follows,
        "fails": min(ratios) > noise,
    }


def concluded(commits: Mapping[str, str], results: Mapping[int, Sequence[Pair]]) -> dict[str, Any]:
    """What the JSON file has: the commits, for each size the pairs and how each figure compares, the exit code, and
    why it is that."""
    sizes = [
        {"records": records, "pairs": pairs, "figures": {figure: compared(pairs, figure) for figure in FIGURES}}
        for records, pairs in results.items()
    ]
    worse = [
        f"{FIGURES[figure]} of {size['records']} records, {row['lowest']:.2f} times or more"
        for size in sizes
        for figure, row in size["figures"].items()
        if row["fails"]
    ]
    because = f"B is slower in all pairs: {'; '.join(worse)}" if worse else "B is not slower by more than noise"
    return {"commits": dict(commits), "sizes": sizes, "exit": int(bool(worse)), "because": because}


def table(conclusion: Mapping[str, Any]) -> str:
    """The content of the JSON file as a table: a line for each size and figure."""
    lines = [f"{'records':>10}  {'figure':<9}{'A':>9}{'B':>9}  {'B/A':>5}  {'of pairs':<12}B is"]
    for size in conclusion["sizes"]:
        for figure, heading in FIGURES.items():
            row = size["figures"][figure]
            spread = f"{row['lowest']:.2f}–{row['highest']:.2f}"
            numbers = f"{row['A']:>9.1f}{row['B']:>9.1f}  {row['ratio']:>5.2f}"
            lines.append(f"{size['records']:>10}  {heading:<9}{numbers}  {spread:<12}{row['B is']}")
    return "\n".join(lines)


def sizes(text: str) -> dict[int, int | None]:
    """How many pairs of each size, if it says so: ``30000,10000000x1``. Raises ValueError."""
    parts = (part.partition("x") for part in text.split(","))
    return {at_least_one(records): at_least_one(own) if x else None for records, x, own in parts}


def at_least_one(text: str) -> int:
    """A number. Raises ValueError if it is below 1."""
    if (number := int(text)) < 1:
        raise ValueError(f"{number} is less than 1")
    return number


def short(commit: str) -> str:
    """The short hash of a commit, however it is named. If there is none, ends the program."""
    named = ["git", "rev-parse", "--verify", "--quiet", "--short", f"{commit}^{{commit}}"]
    found = subprocess.run(named, capture_output=True, text=True, check=False).stdout.strip()
    return found or sys.exit(f"no commit {commit!r}")


def measured(
    commits: Mapping[str, str], pairs_of: Mapping[int, int], memory: str, outputs: Outputs
) -> Iterator[dict[int, list[Pair]]]:
    """The pairs of each size so far, A B B A …, after each pair. ``outputs`` runs a command in a tree, as ``in_tree``
    does."""
    results: dict[int, list[Pair]] = {}
    first = older(Path.cwd(), commits["A"], commits["B"])
    with tempfile.TemporaryDirectory(prefix="kafka-trial-compare-") as scratch:
        folder = Path(scratch)
        with checkout(commits["A"], folder / "A") as a, checkout(commits["B"], folder / "B") as b:
            trees = {"A": a, "B": b}
            for records, times in pairs_of.items():
                run = folder / f"run-{records}"
                writes = ("-c", WRITE, str(run), str(records))
                outputs(trees[first], f"{commits[first]}: writing {records} records", *writes)
                measure = ("-m", "benchmarks.checking", "--measure", "all", str(run), "--memory", memory)
                says = f"judging {records} records that {commits[first]} wrote"
                for number in range(times):
                    pair = {
                        side: json.loads(outputs(trees[side], f"{commits[side]}: {says}", *measure))
                        for side in ("AB" if number % 2 == 0 else "BA")
                    }
                    results.setdefault(records, []).append(pair)
                    print(f"{records}: {pair}", file=sys.stderr, flush=True)
                    yield results


def main(arguments: Sequence[str] | None = None, outputs: Outputs = in_tree) -> None:
    """Run the comparison. ``outputs``: as in ``measured``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commits", nargs=2, metavar="COMMIT", help="A, and B")
    parser.add_argument(
        "--records", type=sizes, default=SIZES, help=f"sizes: sends of each history ({SIZES}; x1: one pair)"
    )
    parser.add_argument("--times", type=at_least_one, default=3, help="pairs for each other size")
    parser.add_argument("--memory", default="6g", help="heap of the Spark driver")
    parser.add_argument("--json", type=Path, help="the file with the figures (bench-compare-A-B.json)")
    asked = parser.parse_args(arguments)
    commits = {side: short(commit) for side, commit in zip("AB", asked.commits, strict=True)}
    file = asked.json or Path(f"bench-compare-{commits['A']}-{commits['B']}.json")
    pairs_of = {records: own or asked.times for records, own in asked.records.items()}
    conclusion = concluded(commits, {})
    for results in measured(commits, pairs_of, asked.memory, outputs):
        conclusion = concluded(commits, results)
        file.write_text(json.dumps(conclusion, indent=1) + "\n")
    print(table(conclusion), conclusion["because"], f"written to {file}", sep="\n")
    sys.exit(conclusion["exit"])


if __name__ == "__main__":
    main()
