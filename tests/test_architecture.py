"""Imports point one way."""

import ast
import re
from pathlib import Path

import pytest

from harness.core import anomalies
from harness.history.schema import TABLES
from tests.sources import texts
from workloads.catalogue import WORKLOADS

ROOT = Path(__file__).parent.parent

_CLUSTER = ("harness.core", "harness.history", "harness.resources", "nemesis", "workloads")
_SCENARIO = (*_CLUSTER, "harness.cluster.spec", "harness.providers.catalogue")
_RUN = (*_SCENARIO, "checkers", "harness.cluster", "harness.scenario", "harness.report")

#: Each package, and what it may import of ours besides itself. The longest name that fits a module is its package.
MAY_IMPORT = {
    "harness.core": (),
    "harness.history": ("harness.core",),
    "harness.resources": ("harness.core",),
    "checkers": ("harness.core", "harness.history"),
    "nemesis": ("harness.core", "harness.history"),
    "workloads": ("harness.core", "harness.history"),
    "harness.importing": ("harness.core", "harness.history"),
    "harness.report": ("harness.core", "harness.history", "harness.resources"),
    "harness.cluster": _CLUSTER,
    "harness.providers": (*_CLUSTER, "harness.cluster"),
    "harness.scenario": _SCENARIO,
    "harness.run": _RUN,
    "harness.suite": (*_RUN, "harness.run"),
    "harness.cli": (*_RUN, "harness.run", "harness.suite", "harness.importing"),
}
_SCAN = ("checkers.leadership", "checkers.history", "checkers.scan")
#: Each part of the checkers, and what it may import of the others. (Anomalies and evidence do not know each other.)
PARTS = {
    "checkers.leadership": (),
    "checkers.history": ("checkers.leadership",),
    "checkers.scan": ("checkers.leadership", "checkers.history"),
    "checkers.anomalies": _SCAN,
    "checkers.evidence": _SCAN,
    "checkers.spark": ("checkers.judge",),
}
OURS = ("harness", "checkers", "nemesis", "workloads")


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def files(package: str) -> list[Path]:
    place = ROOT / package.replace(".", "/")
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_is_below_it(package: str) -> None:
    allowed = (package, *MAY_IMPORT[package])
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(package)
        for name in sorted(imported(path))
        if name.split(".")[0] in OURS and not any(within(name, below) for below in allowed)
    ]
    assert wrong == []


def modules() -> dict[str, Path]:
    paths = [path for package in OURS for path in files(package)]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports_of_ours(named: dict[str, Path]) -> dict[str, set[str]]:
    """Of each module the others of ours that it imports, wherever in the file."""
    of = {module: {*imported(path)} for module, path in named.items()}
    of = {module: names | {name.rpartition(".")[0] for name in names - named.keys()} for module, names in of.items()}
    return {module: (names & named.keys()) - {module} for module, names in of.items()}


def circle(imports: dict[str, set[str]]) -> set[str]:
    """The modules that are in an import circle, or lead into one."""
    left = {module: set(names) for module, names in imports.items()}
    while ground := {module for module, names in left.items() if not names & left.keys()}:
        left = {module: names for module, names in left.items() if module not in ground}
    return set(left)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(imports_of_ours(modules())) == set()
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}


def part_of(module: str) -> str:
    """The part of the checkers that a module is in; what is in none is its own."""
    return next((part for part in PARTS if within(module, part)), module)


def imports_of_parts() -> dict[str, set[str]]:
    """Of each part of the checkers the others that it imports."""
    found: dict[str, set[str]] = {part: set() for part in PARTS}
    for module, names in imports_of_ours(modules()).items():
        if (part := part_of(module)) in found:
            found[part] |= {part_of(name) for name in names if name.startswith("checkers.")} - {part}
    return found


def test_a_part_of_the_checkers_imports_only_what_it_may() -> None:
    too_much = {part: names - {*PARTS[part]} for part, names in imports_of_parts().items()}
    assert too_much == {part: set() for part in PARTS}
    assert part_of("checkers.evidence.behind") == "checkers.evidence"


@pytest.mark.parametrize(("provider", "library"), [("docker", "docker"), ("ssh", "paramiko")])
def test_only_its_provider_knows_what_it_is_made_of(provider: str, library: str) -> None:
    package = f"harness.providers.{provider}"
    inside = ROOT / package.replace(".", "/")
    knows = {
        str(path.relative_to(ROOT)): name
        for package_of_ours in OURS
        for path in files(package_of_ours)
        if inside not in path.parents
        for name in imported(path)
        if within(name, library) or within(name, package)
    }
    assert set(knows) == {"harness/providers/catalogue.py"}
    assert any(within(name, library) for path in files(package) for name in imported(path))


def test_a_fault_does_not_know_which_mechanism_answers() -> None:
    catalogue = ROOT / "nemesis/mechanisms/catalogue.py"
    mechanisms = imported(catalogue) & modules().keys()
    assert len(mechanisms) > 1
    knows = {
        (path.name, mechanism)
        for path in files("nemesis.faults")
        for name in imported(path)
        for mechanism in mechanisms
        if within(name, mechanism)
    }
    assert knows == set()


def test_code_that_every_workload_shares_knows_none_by_name() -> None:
    """(A table of the history is called as a workload is: what reads or writes that table may name it.)"""
    own = {workload.__module__ for workload in WORKLOADS.values()}
    knows = {module for module, names in imports_of_ours(modules()).items() if names & own} - own
    assert knows == {"workloads.catalogue"}
    every = {module: path for module, path in modules().items() if module not in own | knows}
    packages = ("harness.run", "harness.scenario", "harness.suite", "workloads")
    shared = {module: path for module, path in every.items() if any(within(module, package) for package in packages)}
    tables = TABLES.keys() & WORKLOADS.keys()
    assert tables == {"transactions"}
    named = {
        (module, name)
        for module, path in shared.items()
        for text in texts(path)
        for name in WORKLOADS
        if f"kind: {name}" in text or (text == name and not (name in tables and within(module, "workloads.clients")))
    }
    assert named == set()


def test_the_spec_of_a_provider_imports_only_the_lowest_packages() -> None:
    """The model of a scenario contains the specs, and a scenario must load without the code that starts clusters."""
    ground = ("harness.core", "harness.cluster.spec", "workloads.clients.librdkafka")
    specs = [ROOT / "harness/cluster/spec.py", *(ROOT / "harness/providers").glob("*/spec.py")]
    assert len(specs) > 1
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in specs
        for name in sorted(imported(path))
        if name.split(".")[0] in OURS and not any(within(name, below) for below in ground)
    ]
    assert wrong == []


#: Texts that are the name of an anomaly, and why they may: each means something else, or is where the name is given.
TELLS = {
    "harness/core/anomalies.py": {*anomalies.BY_NAME},
    # JUnit's word for a test that did not run; and ours for a run that was not judged.
    "harness/cli/printing.py": {"skipped"},
    "harness/report/junit.py": {"skipped"},
    "harness/suite/junit.py": {"skipped"},
    # The header of a column, and the label of a count, of the summary.
    "harness/cli/stores.py": {"lost"},
    "harness/report/words.py": {"duplicated"},
    # A column of the scan.
    "checkers/scan/log_order.py": {"reordered"},
    # The event of a consumer that lost a partition.
    "harness/history/schema.py": {"lost"},
}


def named_in_texts() -> dict[str, set[str]]:
    """Of each file the anomalies that a text in it is the name of, or has in backticks."""
    names = {*anomalies.BY_NAME}
    found = {
        str(path.relative_to(ROOT)): {
            name for text in texts(path) for name in names if text == name or f"`{name}`" in text
        }
        for path in modules().values()
    }
    return {place: named for place, named in found.items() if named}


def test_the_page_lists_every_module_that_names_an_anomaly() -> None:
    constants = {name for name, value in vars(anomalies).items() if isinstance(value, anomalies.Anomaly)}
    rows = {f"harness.core.anomalies.{name}" for name in constants}
    naming = {str(path.relative_to(ROOT)) for path in modules().values() if imported(path) & rows}
    named = named_in_texts()
    naming |= {place for place, names in named.items() if names - TELLS.get(place, set())}
    page = (ROOT / "ARCHITECTURE.md").read_text()
    said = re.search(r"^Single anomalies are named by (.*?)\.\n\n", page, re.MULTILINE | re.DOTALL)
    assert said is not None
    assert set(re.findall(r"`([\w/]+\.py)`", said[1])) == naming
    assert {place: names for place, names in TELLS.items() if names - named.get(place, set())} == {}


def test_every_package_is_in_the_table() -> None:
    listed = [path for package in MAY_IMPORT for path in files(package)]
    every = [path for package in OURS for path in files(package) if path != ROOT / "harness/__init__.py"]
    assert sorted(listed) == sorted(every)


def test_an_import_against_the_grain_would_be_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def late():\n    from harness.run import timeline\n    import pyspark\n")
    assert imported(wrong) == {"harness.run.timeline", "pyspark"}
    assert not any(within("harness.run.timeline", below) for below in MAY_IMPORT["checkers"])


def full_name(short: str) -> str:
    """``core`` and ``cluster/spec`` as the page writes them, as modules."""
    name = short.strip().replace("/", ".")
    return name if name.split(".")[0] in OURS else f"harness.{name}"


def test_the_page_says_what_each_package_may_import() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| `([\w/]+?)(?:/|\.py)` \| [^|]+\|([^|]*)\|$", page, re.MULTILINE)
    said = {path.replace("/", "."): {full_name(one) for one in cell.split(",") if one.strip()} for path, cell in rows}

    def all_of(package: str) -> set[str]:
        named = said.get(package, set())
        return named.union(*(all_of(one) for one in named))

    packages = (MAY_IMPORT | PARTS).keys() - {"harness.resources"}
    assert {package: all_of(package) for package in packages} == {
        package: {*(MAY_IMPORT | PARTS)[package]} - {"harness.resources"} for package in packages
    }
    imports = imports_of_parts()
    assert {part: said[part] - imports[part] for part in PARTS} == {part: set() for part in PARTS}


def test_the_page_of_the_architecture_names_the_folders_that_there_are() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"^\| `([\w/.]+)` \|", page, re.MULTILINE)
    assert [place for place in named if not (ROOT / place).exists()] == []
    packages = {package.replace(".", "/") + "/" for package in MAY_IMPORT} - {"harness/resources/"}
    assert packages <= set(named)
    text = page + (ROOT / "docs/glossary.md").read_text()
    linked = {path for path in re.findall(r"`([\w/]+\.py|tests/[\w/]+)`", text) if "/" in path}
    linked |= {*re.findall(r"\]\(([\w/.]+)\)", page)}
    assert [path for path in linked if not (ROOT / path).exists()] == []
