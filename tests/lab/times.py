"""How long injections and heals take on the lab's machines: ``python -m tests.lab.times [ROUNDS] [KIND …]``.

Medians and the longest, in seconds, and how many scripts each injection sent to a machine, at most. Three machines are
to be up.
"""

import statistics
import sys
import time
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.history.journal import Journal
from harness.history.schema import FAULTS as SCHEMA
from nemesis.catalogue import FAULTS
from tests.cluster.test_faults import TRIALS
from tests.nemesis.conftest import nemesis_on

from .conftest import INVENTORY, plain_nodes


def main(rounds: int, kinds: list[str]) -> None:
    """Print a line for each kind of fault."""
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    scripts: Counter[str] = Counter()
    with plain_nodes(INVENTORY) as (shell, _), TemporaryDirectory() as scratch:
        for turn, kind in product(range(rounds), kinds):
            trial, journal = TRIALS[kind], Path(scratch) / f"{kind}-{turn}"
            with Journal(journal, SCHEMA) as rows, nemesis_on(shell, rows) as nemesis:
                nemesis.within = 60.0
                for earlier, parameters in trial.before:
                    nemesis.inject(FAULTS[earlier].model_validate(parameters))
                shell.sent.clear()
                began = time.perf_counter()
                nemesis.inject(FAULTS[kind].model_validate(trial.fault))
                injected = time.perf_counter()
                scripts[kind] = max(scripts[kind], *shell.sent.values())
                took[kind, "inject"].append(injected - began)
                nemesis.heal_all()
                took[kind, "heal"].append(time.perf_counter() - injected)
    print("fault      inject: median  longest  scripts   heal: median")
    for kind in kinds:
        injected, healed = (took[kind, what] for what in ("inject", "heal"))
        median, longest = statistics.median(injected), max(injected)
        print(f"{kind:10} {median:14.3f} {longest:8.3f} {scripts[kind]:8} {statistics.median(healed):14.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7, sys.argv[2:] or list(FAULTS))
