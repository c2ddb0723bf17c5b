"""Judge simulated histories, and print where the judge disagrees with the truth.

.venv/bin/python -m tests.simulated --seeds 0-239             judge them as stored runs, one for each settings
.venv/bin/python -m tests.simulated --seeds 0-999 --fast      decide each record from its tables, without Spark
.venv/bin/python -m tests.simulated --seeds 17 --keep DIR     keep the history of seed 17 there, to be judged by hand
.venv/bin/python -m tests.simulated --seeds 17 --tell         tell what truly happened in it, without a judge
"""

import argparse
import sys
from pathlib import Path

from checkers.spark.session import session
from tests.simulated.history import write
from tests.simulated.judged import compared, decided, lines
from tests.simulated.play import play
from tests.simulated.settings import Seen, bug_of, settings_of
from tests.simulated.truth import losses
from tests.simulated.world import SECOND


def main() -> int:
    """Run the command; 1 where judge and truth disagree."""
    parser = argparse.ArgumentParser(
        prog="tests.simulated", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=_seeds, required=True, metavar="A-B", help="from A to B, both played")
    parser.add_argument("--without-bugs", action="store_true", help="plant none")
    parser.add_argument("--isolating", action="store_true", help="cut brokers off, and nothing else")
    parser.add_argument("--seen", type=Seen, choices=list(Seen), default=Seen.OFTEN, help="how much is observed")
    parser.add_argument("--fast", action="store_true", help="without Spark")
    parser.add_argument("--tell", action="store_true", help="tell what happened, and judge nothing")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write the history of each seed into DIR, and judge none"
    )
    asked = parser.parse_args()
    if asked.tell or asked.keep:
        for seed in asked.seeds:
            _tell(seed, not asked.without_bugs, asked.isolating, asked.seen, asked.keep)
        return 0
    how = (not asked.without_bugs, asked.isolating, asked.seen)
    found = list(decided(asked.seeds, *how) if asked.fast else compared(asked.seeds, session(), *how))
    print(*lines(found), sep="\n")
    return int(any(one.disagrees for one in found))


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _tell(seed: int, bugs: bool, isolating: bool, seen: Seen, keep: Path | None) -> None:
    played = play(seed, settings_of(seed, seen), bug_of(seed) if bugs else None, isolating=isolating)
    if keep is not None:
        write(keep / f"seed-{seed}", [played])
    print(f"seed {seed}: {played.settings.name}, bug: {played.bug}")
    for row in sorted(played.tables["faults"], key=lambda row: row["injecting_ns"]):
        healed = "" if row["healed_ns"] is None else f"..{row['healed_ns'] / SECOND:.1f}"
        print(f"  {row['injecting_ns'] / SECOND:6.1f}{healed} s  {row['kind']} {' '.join(row['nodes'])}")
    for place, facts in played.chronicles.items():
        print(f"  {place[0]}-{place[1]}, replicas {facts.replicas}")
        for one in facts.elections:
            eligible = ", ".join(map(str, sorted(one.eligible)))
            print(f"    {one.at / SECOND:6.2f} s  epoch {one.epoch}: {one.leader} of {eligible}: {one.kind}")
        for struck in facts.bug_struck:
            print(f"    {struck / SECOND:6.2f} s  the bug strikes")
    for loss in losses(played):
        print(
            f"    lost: {loss.place[1]}@{loss.record.offset} of epoch {loss.record.epoch}: {loss.permits}: {loss.event}"
        )


if __name__ == "__main__":
    sys.exit(main())
