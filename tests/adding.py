"""Makes docs/adding.md from the toys that tests run: ``python -m tests.adding >docs/adding.md``."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: The text of the page, with a ``{name}`` in place of each example.
_PAGE = """\
# How to add a fault, a workload, a checker, a provider

Each is one file and one line in a catalogue; what other code must know about it is an attribute. The tests know its
name, too: for each part, a list says what they need, and which test fails without it. The examples below are the toys
that the tests load, run and judge, so they work as shown. This page is made from them
(`python -m tests.adding >docs/adding.md`).

## A fault

Write a class in `nemesis/faults/`. It says what it hits (`targets`), how it is injected, measured and healed, and, by
class attributes, what it does to nodes (`ends_process`, `cuts`, `delays`, …; all are in `nemesis/fault.py`). A second
heal changes nothing. Evidence says for each node *holds*, *in part*, *does not hold* or *not known*.

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

A fault that acts in a node's network is a `NetworkFault` made of mechanisms (`nemesis/mechanisms/`). Run:
`scripts/test near`.

The tests need:

- in `WRITTEN` of `tests/nemesis/controls.py`: how a scenario writes it:
  `tests/nemesis/test_nemesis.py::test_every_fault_of_the_catalogue_is_tried`
- in `ACTS` and `IDLE` there: a case in which it acts, and cases in which it cannot have acted:
  `tests/nemesis/test_effects.py::test_every_fault_of_the_catalogue_has_its_controls`
- in `TRIALS`: how it shows that it acts on a real cluster:
  `tests/cluster/test_faults.py::test_every_fault_of_the_catalogue_is_tried`
- if it acts in a network, in `WORST`: the strongest form, under which the harness must still reach the machine:
  `tests/nemesis/test_control.py::test_every_fault_that_lives_in_networks_is_tried`
- if it `delays`: its name:
  `tests/nemesis/test_catalogue.py::test_faults_that_hold_or_lose_packets_make_traffic_late_but_copies_do_not`
- `docs/scenarios.md`, made again (CONTRIBUTING.md):
  `tests/scenario/test_reference.py::test_the_page_is_what_the_code_says`

## A workload

Write a subclass of `Workload` (`workloads/workload.py`) in its own module: its settings, the specs of its worker
processes, the steps that it adds to a timeline, and the errors that a timeline can have. A spec names the worker's
client, which runs in its own process.

```python
{workload}```

The line, in `workloads/catalogue.py`: `"toy": Toy`. Put the client (here `tick`) into a separate module, because
scenarios are read without librdkafka. Run: `scripts/test near`.

The tests need:

- in `RUNS`: its shapes, run on a mock cluster; or a test file of its own, named there:
  `tests/workloads/test_running.py::test_every_workload_of_the_catalogue_is_run_here`
- a `description` of each setting:
  `tests/scenario/test_json_schema.py::test_every_key_has_a_description`
- `docs/scenarios.md`, made again:
  `tests/scenario/test_reference.py::test_the_page_is_what_the_code_says`
- a scenario in `scenarios/` that uses it, in `CORE` of `tests/cluster/test_scenarios.py`:
  `tests/cluster/test_core.py::test_the_core_shows_each_fault_workload_metadata_mode_and_verdict`
- in `STORIES` there: what that scenario's verdict must show:
  `tests/cluster/test_scenarios.py::test_every_scenario_has_its_story_here`

## A checker

A row in `harness/core/anomalies.py` says what the anomaly is and which promise it breaks. A finder in
`checkers/anomalies/` takes the candidates that the cheap scan found, and returns the records. A line in
`checkers/catalogue.py` joins the two: SQL on record bits that selects candidates, the finder, and a rule on its result.

```python
{checker}```

Add the row to `BY_NAME` there, too. Its attributes say what evidence it needs and gives (`gone`, `by_coordinator`,
`lacks_marker`), and whether it is `judged_by_record`. The rows of `harness/core/guarantees.py` say which settings
permit it. A row in `harness/report/anomalies.py` says which other harnesses look for it. Run:
`scripts/test near`, and `scripts/test proof`.

The tests need:

- the row in `BY_NAME`, and the line in the catalogue:
  `tests/checkers/test_judge.py::test_every_anomaly_that_has_a_promise_is_looked_for_and_no_other`
- hand histories in `CASES`: one that it finds, and its twins:
  `tests/checkers/test_delivery.py::test_every_checker_has_a_case_that_it_finds`
- a plot in `tests/planted/plots.py`: the anomaly, next to its nearest legal twin:
  `tests/planted/test_planted.py::test_every_checker_is_planted_for_and_has_a_twin`
- the second judge's rule (`tests/planted/oracle.py`):
  `tests/planted/test_oracle.py::test_each_anomaly_comes_about`
- `docs/anomalies.md`, made again:
  `tests/report/test_anomalies.py::test_the_page_is_what_the_code_says`

## A provider

Write a folder in `harness/providers/` with a `spec.py` (the keys of the scenario's `cluster` that only this provider
knows) and a class with the methods of `harness/cluster/provider.py`. `up` is a context manager that yields a cluster
with its topology, node shell and logs, and removes all of it at the end.

```python
{provider}```

The line, in `harness/providers/catalogue.py`:

```python
    "toy": ProviderRow(ToySpec, Toy),
```

There `Toy` is a function that imports the class only when it is called, because scenarios are read without the
provider's dependencies. For the same reason `spec.py` is separate.

A setting is written in a scenario's `cluster`, or `--set cluster.KEY=VALUE`. It has an option of its own (`--machines`,
`--images`) if the line says so: `options=(CommandOption("bell", "Ring this bell.", locates=True),)`. With `locates` it
says where the nodes are, and `cleanup` takes it, but `suite` does not. Without, it is the other way round. `run` and
`doctor` take both. Run: `scripts/test near`.

The tests need:

- `spec.py` imports only `harness/core/` and `harness/cluster/spec.py`:
  `tests/test_architecture.py::test_the_spec_of_a_provider_imports_only_the_lowest_packages`
- a `description` of each setting:
  `tests/scenario/test_json_schema.py::test_every_key_has_a_description`
- `docs/scenarios.md`, made again:
  `tests/scenario/test_reference.py::test_the_page_is_what_the_code_says`

The tests of real clusters are the provider's own (`tests/cluster/` uses Docker, `tests/lab/` SSH).

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
