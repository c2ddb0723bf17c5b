"""docs/adding.md, made from the toys that tests run: ``python -m tests.adding >docs/adding.md``."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: What the page says, with a ``{name}`` for each example.
_PAGE = """\
# How to add a fault, a workload, a checker, a provider

Each is one file and one line of a catalogue; what others must know of it is an attribute of it, and nothing else in the
tree knows its name. The examples below are the toys that the tests load, run and judge: they work as they stand. This
page is made from them (`python -m tests.adding >docs/adding.md`).

## A fault

A class in `nemesis/faults/`. It says what it hits (`targets`), how it is injected, measured and healed, and by class
attributes what it does to nodes (`ends_process`, `cuts`, `delays`, …: `nemesis/fault.py` has them all). Healing twice
changes nothing. Evidence says of each node *holds*, *does not hold* or *not known*.

```python
{fault}```

The line, in `nemesis/catalogue.py`:

```python
    "lull": Lull,
```

Now a scenario may say it, the reference and the JSON Schema have it, and the random mode may draw it:

```yaml
timeline:
  - inject: {fault: lull, target: leader, song: 2s, as: asleep}
  - heal: asleep
```

What acts in a node's network is a `NetworkFault` made of mechanisms (`nemesis/mechanisms/`). Add its rows to
`tests/nemesis/controls.py`: how a scenario writes it, a case in which it acts, and those in which it cannot have acted.
Make `docs/scenarios.md` again (CONTRIBUTING.md). Run: `tests/nemesis`.

## A workload

A class of `workloads/workload.py` in a module of its own: its settings, the specs of its worker processes, steps that
it adds to a timeline, and what contradicts what. A spec names the worker's client, which runs in a process of its own.

```python
{workload}```

The line, in `workloads/catalogue.py`: `"toy": Toy`. The client (here `tick`) goes into a module of its own: a scenario
is read without librdkafka. Make `docs/scenarios.md` again. Run: `tests/workloads/test_catalogue.py`.

## A checker

A row in `harness/core/anomalies.py` says what the anomaly is and which promise it breaks. A finder in
`checkers/anomalies/` takes the candidates that the cheap scan let through, and returns the records. A
line in `checkers/catalogue.py` joins them: the bits that make a record a candidate, the finder, and a rule on what it
returns.

```python
{checker}```

The row stands in `BY_NAME` there, too. What settings permit it is a row in `harness/core/guarantees.py`. Who else looks
for it is a row in `harness/report/anomalies.py`, which makes `docs/anomalies.md`. Plant it (`tests/planted/plots.py`)
beside its nearest legal twin. Run: `tests/checkers/test_judge.py`.

## A provider

A folder in `harness/providers/` with a `spec.py` (what only it knows of a cluster: keys of the scenario's `cluster`)
and a class with the methods of `harness/cluster/provider.py`. `up` is a context manager that gives a cluster with its
topology, node shell and logs, and removes all of it.

```python
{provider}```

The line, in `harness/providers/catalogue.py`:

```python
    "toy": Row(ToySpec, Toy),
```

There `Toy` is a function that imports the class when it is asked for it: a scenario is read without what the provider
needs, and `spec.py` is apart for the same reason.

Run: `tests/providers/test_catalogue.py`.

## A report section

A function in `harness/report/sections.py` that makes blocks of a verdict, and a line in `SECTIONS`. Run:
`tests/report/test_report.py`.
"""

_TOYS = {
    "fault": "tests/nemesis/toy.py",
    "workload": "tests/workloads/toy.py",
    "checker": "tests/checkers/toy.py",
    "provider": "tests/providers/toy.py",
}


def page() -> str:
    """The whole of docs/adding.md."""
    text = _PAGE
    for name, toy in _TOYS.items():
        text = text.replace("{" + name + "}", _code(ROOT / toy))
    return text


def _code(path: Path) -> str:
    """A module without its docstring."""
    source = path.read_text()
    first = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[first.end_lineno :]).lstrip("\n")


if __name__ == "__main__":
    print(page(), end="")
