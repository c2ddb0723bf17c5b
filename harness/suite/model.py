"""A suite as written: which scenarios, in which variants, how often."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError

from harness.cluster.spec import Part
from harness.core.complaints import near
from harness.core.errors import ScenarioError
from harness.core.quantities import WRITTEN, PositiveDuration, Whole
from harness.core.written import Written
from harness.resources import folder
from harness.scenario.complaints import complaints
from harness.scenario.loading import named as scenarios
from harness.scenario.written import read

#: The name of a suite that was given as scenarios alone.
UNNAMED = "scenarios"

_SUFFIX = ".yaml"
_WANTED = "a suite is a mapping with a list of runs; a scenario is one of cluster, topic, workload, timeline"


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


def _entry(value: Any) -> Any:
    """An entry that is only a name, or a list of names, means these scenarios."""
    return {"scenarios": value} if isinstance(value, str | list) else value


class Entry(Part):
    """Some scenarios. Each is run in every version and every variant, ``times`` times."""

    scenarios: Annotated[list[str], BeforeValidator(_several)] = Field(
        ["**"],
        description="names, patterns of names such as `jepsen-2013/*`, or files, found from where the suite's file is",
    )
    tags: Annotated[list[str], BeforeValidator(_several)] = Field(
        [], description="of these scenarios, only those that have all of these tags"
    )
    without_tags: Annotated[list[str], BeforeValidator(_several)] = Field(
        [], description="of these scenarios, leave out those that have one of these tags"
    )
    set: Annotated[list[str], BeforeValidator(_several)] = Field(
        [], description="settings changed in each, `path=value` as `run --set` takes them"
    )
    variants: dict[str, Annotated[list[str], BeforeValidator(_several)]] = Field(
        {}, description="by name, the settings of one variant more"
    )
    versions: Annotated[list[str], BeforeValidator(_several)] = Field(
        [], description="Kafka versions; without them, the scenario's own"
    )
    times: Whole = Field(1, ge=1, le=1000, description="how often each is run")


class Suite(Part):
    """A set of scenarios with a name."""

    name: str = Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="default: the file's name")
    about: str = Field("", description="what it is for, in one sentence")
    cannot_run: Literal["fail", "skip"] = Field(
        "fail", description="whether a scenario that this machine cannot run fails the suite; it never counts as passed"
    )
    time_budget: PositiveDuration | None = Field(None, description="start no run that would end later than this")
    runs: Annotated[list[Annotated[Entry, BeforeValidator(_entry)]], BeforeValidator(_several)] = Field(
        min_length=1, description="what is run"
    )
    _folder: Path = PrivateAttr(Path())

    @property
    def folder(self) -> Path:
        """The folder for relative paths: that of the suite's file; without a file, the current one."""
        return self._folder


def suites() -> dict[str, Path]:
    """The file of every suite that comes with kafka-trial, by name."""
    return {path.stem: path for path in sorted(folder("suites").glob(f"*{_SUFFIX}"))}


def load_suite(named: Sequence[str]) -> Suite:
    """A suite, given by its name or file; or a suite of scenarios, given by names, patterns or files.

    Raises ScenarioError with a line for each mistake.
    """
    known = suites()
    if len(named) == 1 and named[0] in known:
        return _validated(read(known[named[0]]))
    if len(named) == 1 and named[0] not in scenarios() and Path(named[0]).is_file():
        written = read(Path(named[0]), _WANTED)
        if "runs" in written.data:
            return _validated(written)
    if suites_named := [name for name in named if name in known]:
        raise ScenarioError(f"{suites_named[0]!r} is a suite: name it alone, or write a suite of your own")
    if len(named) == 1 and "/" not in named[0] and "*" not in named[0] and not Path(named[0]).exists():
        meant = [name for name in scenarios() if name.rpartition("/")[2] == named[0]]
        hint = f"did you mean {' or '.join(meant)}?" if meant else near(named[0], list(known))
        raise ScenarioError(f"no suite or file is called {named[0]!r}; {hint}")
    return Suite(name=UNNAMED, runs=[Entry(scenarios=list(named))])


def _validated(written: Written) -> Suite:
    file = Path(written.origin)
    try:
        suite = Suite.model_validate({"name": file.stem, **written.data}, context=WRITTEN)
    except ValidationError as exc:
        raise ScenarioError("\n".join(complaints(exc, written, Suite))) from exc
    suite._folder = file.parent
    return suite
