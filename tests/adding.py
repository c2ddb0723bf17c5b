"""Makes docs/adding.md from the toys that tests run: ``python -m tests.adding >docs/adding.md``."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: The text of the page, with a ``{name}`` in place of each example.
_PAGE = """\
# How to add a fault, a workload, a checker, a provider

Each is one file and one line in a catalogue. Nothing else in the tree knows its name; what other code must know about
it is an attribute. The examples below are the toys that the tests load, run and judge, so they work as shown. This page
is made from them (`python -m tests.adding >docs/adding.md`).

## A fault

Write a class in `nemesis/faults/`. It says what it hits (`targets`), how it is injected, measured and healed, and, by
class attributes, what it does to nodes (`ends_process`, `cuts`, `delays`, …; all are in `nemesis/fault.py`). A second
heal changes nothing. Evidence says for each node *holds*, *does not hold* or *not known*.

```python
{fault}```

The line, in `nemesis/catalogue.py`:

```python
    "lull": Lull,
```

Now a scenario can use it, the reference and the JSON Schema contain it, and the random mode can draw it:

```yaml
timeline:
  - inject: {fault: lull, target: leader, song: 2s, as: asleep}
  - heal: asleep
```

A fault that acts in a node's network is a `NetworkFault` made of mechanisms (`nemesis/mechanisms/`). Add its rows to
`tests/nemesis/controls.py`: how a scenario writes it, a case in which it acts, and cases in which it cannot have acted.
Make `docs/scenarios.md` again (CONTRIBUTING.md). Run: `tests/nemesis`.

## A workload

Write a subclass of `Workload` (`workloads/workload.py`) in its own module: its settings, the specs of its worker
processes, the steps that it adds to a timeline, and the errors that a timeline can have. A spec names the worker's
client, which runs in its own process.

```python
{workload}```

The line, in `workloads/catalogue.py`: `"toy": Toy`. Put the client (here `tick`) into a separate module, because
scenarios are read without librdkafka. Make `docs/scenarios.md` again. Run: `tests/workloads/test_catalogue.py`.

## A checker

A row in `harness/core/anomalies.py` says what the anomaly is and which promise it breaks. A finder in
`checkers/anomalies/` takes the candidates that the cheap scan found, and returns the records. A line in
`checkers/catalogue.py` joins the two: SQL on record bits that selects candidates, the finder, and a rule on its result.

```python
{checker}```

Add the row to `BY_NAME` there, too. A row in `harness/core/guarantees.py` says which settings permit it. A row in
`harness/report/anomalies.py`, from which `docs/anomalies.md` is made, says which other harnesses look for it. Plant it
next to its nearest legal twin (`tests/planted/plots.py`). Run: `tests/checkers/test_judge.py`.

## A provider

Write a folder in `harness/providers/` with a `spec.py` (the keys of the scenario's `cluster` that only this provider
knows) and a class with the methods of `harness/cluster/provider.py`. `up` is a context manager that yields a cluster
with its topology, node shell and logs, and removes all of it at the end.

```python
{provider}```

The line, in `harness/providers/catalogue.py`:

```python
    "toy": Row(ToySpec, Toy),
```

There `Toy` is a function that imports the class only when it is called, because scenarios are read without the
provider's dependencies. For the same reason `spec.py` is separate.

Run: `tests/providers/test_catalogue.py`.

## A report section

Write a function in `harness/report/sections.py` that makes blocks from a verdict, and a line in `SECTIONS`. Run:
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
