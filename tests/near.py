"""The tests near to a change: ``python -m tests.near [REVISION]`` runs them.

A change is what differs from the revision (HEAD, if none is named) in the working tree, and files that git does not
know. A test file is touched by what it imports, at any depth, by what the fixtures that it asks for import, and by the
data that it reads. Near to a changed file are those that import it themselves; where none does, those that are the
fewest imports away. What is further away, or takes minutes, is named and not run.
"""

import ast
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("harness", "checkers", "nemesis", "workloads", "benchmarks", "tests")

#: By the prefix of a data file's path, the prefixes of the test files that read it. The first matching row counts.
READERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("scenarios/", ("tests/scenario/", "tests/cli/test_others.py", "tests/cli/test_run.py", "tests/cluster/test_sc")),
    ("docker/", ("tests/scenario/test_wheel.py", "tests/cluster/test_images.py", "tests/cluster/test_distribution.py")),
    ("examples/", ("tests/test_example.py", "tests/golden/", "tests/planted/test_recorded.py")),
    ("harness/report/templates/", ("tests/report/", "tests/scenario/test_wheel.py")),
    ("tests/golden/", ("tests/golden/",)),
    ("tests/checkers/recorded/", ("tests/checkers/test_recorded_runs.py",)),
    ("benchmarks/delivery.sql", ("tests/planted/test_benchmark.py",)),
    ("README.md", ("tests/test_readme.py", "tests/cli/test_commands.py")),
    ("CONTRIBUTING.md", ("tests/test_readme.py",)),
    ("MANIFEST.in", ("tests/scenario/test_wheel.py",)),
    ("pyproject.toml", ("tests/",)),
    ("requirements.lock", ("tests/",)),
)

#: Folders whose tests take minutes. Tests on real clusters do, too.
LONG = ("tests/planted/", "tests/simulated/", "tests/golden/")


_ON_CLUSTERS = re.compile(r"^(pytestmark = .*|@)pytest\.mark\.(cluster|lab)", re.MULTILINE)

_QUICK = "not heavy and not long"
_NO_SUCH_REVISION = 64

_MODULE = re.compile(r"\w+(\.\w+)+")


class Source:
    """The imports of a Python file of the repository, as paths of other files of the repository."""

    def __init__(self, root: Path, path: str) -> None:
        self.root = root
        self.path = path

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return (self.root / self.path).read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> frozenset[str]:
        """The files that it imports anywhere."""
        return frozenset(path for _, path in _imported(self.tree, self.root, self.path))

    def imports_of(self, names: Iterable[str]) -> frozenset[str]:
        """The files from which the names are imported that these definitions use."""
        used, found = deque(names), set[str]()
        seen = set(used)
        while used:
            definition = self._definitions.get(used.popleft())
            if definition is None:
                continue
            found |= {path for _, path in _imported(definition, self.root, self.path)}
            more = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)} | set(
                _asked_for(definition)
            )
            found |= {path for name, path in self._at_top if name in more}
            used.extend(more - seen)
            seen |= more
        return frozenset(found)

    @cached_property
    def fixtures(self) -> frozenset[str]:
        """The fixtures that it defines."""
        return frozenset(
            name
            for name, node in self._definitions.items()
            if isinstance(node, ast.FunctionDef) and any("fixture" in ast.unparse(d) for d in node.decorator_list)
        )

    @cached_property
    def asked_for(self) -> frozenset[str]:
        """All parameters of its functions; the fixtures that it requests are among them."""
        return frozenset(name for node in ast.walk(self.tree) for name in _asked_for(node))

    @cached_property
    def _definitions(self) -> Mapping[str, ast.stmt]:
        found: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign):
                found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = node
        return found

    @cached_property
    def _at_top(self) -> list[tuple[str, str]]:
        return [pair for node in self.tree.body for pair in _imported_by(node, self.root, self.path)]


class Graph:
    """The Python files of a repository, and those on which each test file depends."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._far: dict[str, Mapping[str, int]] = {}
        self.sources = {
            path: Source(root, path)
            for package in PACKAGES
            for path in sorted(str(file.relative_to(root)) for file in (root / package).rglob("*.py"))
        }

    @property
    def tests(self) -> list[str]:
        """The test files."""
        return [path for path in self.sources if Path(path).name.startswith("test_")]

    def far(self, test: str) -> Mapping[str, int]:
        """Every file on which a test file depends, itself included, with the number of imports between them."""
        if test not in self._far:
            self._far[test] = self._rests_on(test)
        return self._far[test]

    def _rests_on(self, test: str) -> dict[str, int]:
        far = {test: 0}
        waiting = deque([(path, 1) for path in self._of_fixtures(test)])
        waiting.extendleft((path, 1) for path in self.sources[test].imports)
        while waiting:
            path, distance = waiting.popleft()
            if path in far or path not in self.sources:
                continue
            far[path] = distance
            waiting.extend((further, distance + 1) for further in self.sources[path].imports)
        return far

    def _of_fixtures(self, test: str) -> Iterator[str]:
        """The conftest files above a test file whose fixtures it requests, and their imports."""
        asked = set(self.sources[test].asked_for)
        for folder in Path(test).parents:
            path = str(folder / "conftest.py")
            conftest = self.sources.get(path)
            if conftest is None:
                continue
            chosen = conftest.fixtures & asked
            if chosen:
                yield from conftest.imports_of(chosen)
                asked |= conftest.asked_for

    def conftests(self, test: str) -> Iterator[str]:
        """The conftest files that pytest loads for a test file."""
        return (path for folder in Path(test).parents if (path := str(folder / "conftest.py")) in self.sources)


def touched(changed: str, graph: Graph) -> dict[str, int]:
    """The test files that depend on this path, the nearest first, with the number of imports between them."""
    read = set() if changed.endswith(".py") else set(readers(changed, graph.tests))
    found: dict[str, int] = {}
    for test in graph.tests:
        if changed in graph.far(test):
            found[test] = graph.far(test)[changed]
        elif test in read or changed in graph.conftests(test):
            found[test] = 1
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def readers(data: str, tests: Iterable[str]) -> list[str]:
    """The test files that read a file that is not Python."""
    begins = next((places for beginning, places in READERS if data.startswith(beginning)), ())
    return [test for test in tests if test.startswith(begins)]


@dataclass(frozen=True)
class Choice:
    """The tests to run for a change, the nearest first; and those left out, which take minutes or are further away."""

    run: list[str]
    long: list[str]
    far: list[str]


def choose(changed: Iterable[str], graph: Graph) -> Choice:
    """The tests near a change. It only reads the files from which the graph is made."""
    near, far = dict[str, None](), dict[str, None]()
    for path in changed:
        distances = touched(path, graph)
        nearest = max(1, min(distances.values(), default=1))
        near |= dict.fromkeys(test for test, distance in distances.items() if distance <= nearest)
        far |= dict.fromkeys(distances)
    long = [test for test in near if test.startswith(LONG) or _ON_CLUSTERS.search(graph.sources[test].text)]
    return Choice([test for test in near if test not in long], long, [test for test in far if test not in near])


def changes(revision: str, root: Path = ROOT) -> list[str]:
    """The paths in the working tree that differ from a revision, and untracked ones."""
    differing = _git(root, "diff", "--name-only", "--no-renames", revision, "--")
    return sorted({*differing, *_git(root, "ls-files", "--others", "--exclude-standard")})


def main(arguments: list[str]) -> int:
    """Run the tests near the change; return pytest's exit code."""
    try:
        changed = changes(arguments[0] if arguments else "HEAD")
    except subprocess.CalledProcessError as exc:
        print(f"near: {exc.stderr.strip()}", file=sys.stderr)
        return _NO_SUCH_REVISION
    choice = choose(changed, Graph())
    print(f"near: {len(changed)} files changed, {len(choice.run)} test files are near", file=sys.stderr)
    if choice.long:
        print(f"near: these take minutes, run them by hand: {' '.join(choice.long)}", file=sys.stderr)
    if choice.far:
        print(f"near: {len(choice.far)} more are further away: scripts/test fast", file=sys.stderr)
    if not choice.run:
        return 0
    code = subprocess.run([sys.executable, "-m", "pytest", "-m", _QUICK, *choice.run], cwd=ROOT, check=False).returncode
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _asked_for(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield from (argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))


def _imported(tree: ast.AST, root: Path, path: str) -> Iterator[tuple[str, str]]:
    """The imports in a piece of a file: each name, and the file from which it comes."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        return
    yield from _imported_by(tree, root, path)
    for child in ast.iter_child_nodes(tree):
        yield from _imported(child, root, path)


def _imported_by(node: ast.AST, root: Path, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from ((alias.asname or alias.name.split(".")[0], file) for file in _files(root, alias.name))
    elif isinstance(node, ast.ImportFrom):
        above = Path(path).parts[: -node.level] if node.level else ()
        module = ".".join((*above, *filter(None, [node.module])))
        for alias in node.names:
            for file in (*_files(root, f"{module}.{alias.name}"), *_files(root, module)):
                yield alias.asname or alias.name, file
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
        # As in `python -m workloads.worker`.
        yield from (("", file) for file in _files(root, node.value))


def _files(root: Path, module: str) -> Iterator[str]:
    """The file of a module, and the files of the packages that contain it."""
    parts = module.split(".")
    if parts[0] not in PACKAGES:
        return
    for n in range(1, len(parts) + 1):
        place = "/".join(parts[:n])
        yield from (path for path in (f"{place}.py", f"{place}/__init__.py") if (root / path).is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
