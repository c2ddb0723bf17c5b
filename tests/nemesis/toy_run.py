"""Adds a line to the catalogue of faults, loads a scenario that names it, and injects what its timeline says.

``python -m tests.nemesis.toy_run SCENARIO JOURNAL`` prints what came of it as JSON.
"""

import json
import sys
from pathlib import Path
from random import Random

from harness.core.clock import Clock
from harness.history.journal import Journal
from harness.history.schema import FAULTS as SCHEMA
from nemesis.catalogue import FAULTS
from tests.nemesis.conftest import VIEW, FakeShell
from tests.nemesis.toy import Lull


def main() -> None:
    """The program: see above."""
    FAULTS["lull"] = Lull
    # Those that read the catalogue read it when they are imported.
    from harness.scenario.json_schema import json_schema
    from harness.scenario.loading import load
    from harness.scenario.reference import reference
    from harness.scenario.steps import Inject
    from nemesis.nemesis import Nemesis

    scenario, journal = sys.argv[1:]
    loaded = load(scenario)
    shell = FakeShell()
    done = []
    with (
        Journal(Path(journal), SCHEMA) as rows,
        Nemesis(shell, lambda: VIEW, rows, Clock.start(), Random(1)) as nemesis,
    ):
        for step in loaded.timeline:
            if isinstance(step, Inject):
                name = nemesis.inject(step.inject, step.inject.name)
                done.append({"step": str(step.inject), "injection": name, "active": [a.kind for a in nemesis.active]})
    documented = "lull" in reference() and '"lull"' in json.dumps(json_schema())
    print(json.dumps({"done": done, "documented": documented, "acts": shell.done}))


if __name__ == "__main__":
    main()
