"""Which runs a suite consists of, how long they take, and which comes first."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random

from harness.core.errors import ScenarioError
from harness.core.step import TimelineStep
from harness.providers.catalogue import held_alone
from harness.scenario.files import from_anywhere
from harness.scenario.loading import load, named, text_of
from harness.scenario.model import Scenario
from harness.scenario.steps import Until
from harness.suite.model import Entry, Suite

#: Seconds of a run in addition to its timeline: the cluster comes up, all is healed and read, the cluster goes down.
#: Measured: 30 to 45 s with three brokers on two cores.
_AROUND_SECONDS = 40.0
#: An `until` is over when its condition comes: as a rule within this share of what it may take.
_SHARE_OF_UNTIL = 0.25

#: The phase of a run from which on nothing of it is measured any more: writes came back, or were waited for in vain.
DRAIN = "drain"
#: The same with transactions: they settled, for which they have a deadline.
_FINAL_READ = "final read"

_MOST_SEED = 1 << 31


class Urgency(IntEnum):
    """What became of a case last time: a time budget that is too short must not leave out the same each night."""

    FAILED = 0
    LEFT_OUT = 1
    NONE = 2


@dataclass(frozen=True)
class Case:
    """One run that a suite asks for. ``written``, ``overrides`` and, of a file, its ``text`` load its scenario again,
    ``digest`` shows whether it is still the same. ``repeat`` counts from 1 the runs of one ``name``. ``alone``: what
    its cluster has to itself. ``measured_until``: the phase from which on the next cluster may come up."""

    name: str
    written: str
    overrides: tuple[str, ...]
    repeat: int
    seed: int
    scenario: str
    digest: str
    seconds: float
    alone: tuple[str, ...] = ()
    measured_until: str = DRAIN
    text: str | None = None


def plan(suite: Suite, overrides: Sequence[str], times: int, draws: Random) -> list[Case]:
    """Every run of a suite, in the order in which it is written; ``times`` multiplies each entry's own.

    Raises ScenarioError, a line for each scenario that does not load, or matches nothing.
    """
    cases: list[Case] = []
    wrong: list[str] = []
    for entry in suite.runs:
        try:
            found = list(_loaded(entry, suite, overrides))
        except ScenarioError as exc:
            wrong += str(exc).splitlines()
            continue
        if not found:
            wrong.append(f"suite {suite.name}: no scenario is {_said(entry)}; `kafka-trial scenarios` lists them")
        for name, written, text, settings, scenario in found:
            cases += [
                Case(
                    name,
                    written,
                    settings,
                    repeat,
                    draws.randrange(_MOST_SEED),
                    scenario.name,
                    digest(scenario),
                    seconds(scenario),
                    tuple(held_alone(scenario.cluster)),
                    measured_until(scenario),
                    text,
                )
                for repeat in range(1, entry.times * times + 1)
            ]
    if wrong:
        raise ScenarioError("\n".join(dict.fromkeys(wrong)))
    return _numbered(_told_apart(cases))


def measured_until(scenario: Scenario) -> str:
    """The phase of its run from which on nothing of it is measured any more, and another cluster may come up."""
    return DRAIN if scenario.workload.settles_within is None else _FINAL_READ


def digest(scenario: Scenario) -> str:
    """A scenario with every setting that it resolves to, as a short text that is the same for the same."""
    return hashlib.sha256(scenario.model_dump_json(by_alias=True).encode()).hexdigest()[:16]


def seconds(scenario: Scenario) -> float:
    """About how long a run takes, its cluster's coming up and going down included."""
    return _AROUND_SECONDS + sum(map(_expected, scenario.timeline))


def _expected(step: TimelineStep) -> float:
    return step.longest * (_SHARE_OF_UNTIL if isinstance(step, Until) else 1.0)


def in_order(cases: Iterable[Case], urgency: Mapping[str, Urgency]) -> list[Case]:
    """The most urgent first, of these the longest; runs of one name one after the other."""
    return sorted(cases, key=lambda case: (urgency.get(case.name, Urgency.NONE), -case.seconds))


def _loaded(
    entry: Entry, suite: Suite, overrides: Sequence[str]
) -> Iterator[tuple[str, str, str | None, tuple[str, ...], Scenario]]:
    """The name of each case, what it is loaded from, the text of that where it is a file, its settings, and the
    scenario."""
    variants = entry.variants or {"": []}
    versions = entry.versions or [""]
    for written in _matching(entry.scenarios, suite.folder):
        text = text_of(written)
        plain = load(written, text=text)
        if not set(entry.tags) <= set(plain.tags) or set(entry.without_tags) & set(plain.tags):
            continue
        for version in versions:
            for variant, changed in variants.items():
                own = [*entry.set, *([f"cluster.version={version}"] if version else []), *changed]
                written_in_it = [from_anywhere(setting, suite.folder) for setting in own]
                settings = [*written_in_it, *(from_anywhere(setting, Path()) for setting in overrides)]
                labels = [label for label in (version, variant or " ".join([*entry.set, *changed])) if label]
                name = " ".join([plain.name, *([f"({', '.join(labels)})"] if labels else [])])
                try:
                    scenario = load(written, settings, text)
                except ScenarioError:
                    _refuse_own(f"suite {suite.name}: {name}", written, written_in_it, text)
                    raise
                yield name, written, text, tuple(settings), scenario


def _refuse_own(what: str, written: str, settings: Sequence[str], text: str | None) -> None:
    """Nobody typed what a suite's file sets. Raises ScenarioError where it is that which does not load."""
    try:
        load(written, settings, text)
    except ScenarioError as exc:
        raise ScenarioError("\n".join(f"{what}: {line}" for line in str(exc).splitlines())) from exc


def _matching(patterns: Sequence[str], folder: Path) -> list[str]:
    """The names and files that these are, or match, each once; a file by its whole path, so that it is found from
    another directory, too. Raises ScenarioError for a name that nobody knows."""
    known = named()
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in known:
            found.setdefault(pattern)
        elif (folder / pattern).is_file():
            found.setdefault(str((folder / pattern).resolve()))
        elif not set("*?[") & set(pattern):
            found.setdefault(pattern)
        else:
            found.update(dict.fromkeys(name for name in known if fnmatchcase(name, pattern)))
            found.update(dict.fromkeys(_files(pattern, folder)))
    return list(found)


def _files(pattern: str, folder: Path) -> list[str]:
    # (What ends with ** names folders, and from Python 3.13 on their files, too: of any kind, wherever one stands.)
    if pattern.endswith("**"):
        return []
    anchor = Path(pattern).anchor
    try:
        matching = sorted((Path(anchor) if anchor else folder).glob(pattern.removeprefix(anchor).lstrip("/")))
    except ValueError as exc:
        raise ScenarioError(f"{pattern}: no pattern of files ({exc})") from exc
    return [str(path.resolve()) for path in matching if path.suffix in {".yaml", ".yml"}]


def _said(entry: Entry) -> str:
    said = " or ".join(repr(name) for name in entry.scenarios)
    if entry.tags:
        said += f" with the tags {', '.join(entry.tags)}"
    return said + (f" without {', '.join(entry.without_tags)}" if entry.without_tags else "")


def _told_apart(cases: Sequence[Case]) -> list[Case]:
    """Files of which two name their scenario alike, each with its path, below the folder that all of them are in."""
    of: dict[str, set[str]] = {}
    for case in cases:
        of.setdefault(case.name, set()).add(case.written)
    apart = []
    for case in cases:
        files = sorted(written for written in of[case.name] if Path(written).is_absolute())
        if len(of[case.name]) > 1 and case.written in files:
            path = os.path.relpath(case.written, os.path.commonpath(map(os.path.dirname, files)))
            apart.append(replace(case, name=f"{case.name} ({path})"))
        else:
            apart.append(case)
    return apart


def _numbered(cases: Sequence[Case]) -> list[Case]:
    """``repeat`` counted over entries that name the same case."""
    counts: dict[str, int] = {}
    numbered = []
    for case in cases:
        counts[case.name] = counts.get(case.name, 0) + 1
        numbered.append(replace(case, repeat=counts[case.name]))
    return numbered
