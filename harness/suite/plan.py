"""Which runs a suite has, how long they take, and which comes first."""

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
from harness.history.run_file import DRAIN, FINAL_READ
from harness.providers.catalogue import held_alone
from harness.scenario.files import from_anywhere
from harness.scenario.loading import load, named, text_of
from harness.scenario.model import Scenario
from harness.scenario.steps import Until
from harness.suite.model import Entry, Suite

#: Seconds of a run in addition to its timeline: to start the cluster, to heal, to read all, and to stop the cluster.
#: Measured with three brokers on two cores: 39 to 43 s for a run alone, which also starts Spark; in a suite, where runs
#: overlap, 13 to 17 s, but not for the first and the last, for which a time budget has to hold, too.
_AROUND_SECONDS = 40.0
#: An `until` ends when its condition holds: usually within this share of its timeout.
_SHARE_OF_UNTIL = 0.25

#: A seed that is drawn fits into a signed integer of 32 bits, as other tools want it.
_MOST_SEED = 1 << 31
#: suite.json, which has them all, is rewritten at each change.
_MOST_RUNS = 10_000


class Urgency(IntEnum):
    """What happened to a case last time. A time budget that is too short must not skip the same cases each night."""

    FAILED = 0
    LEFT_OUT = 1
    NONE = 2


@dataclass(frozen=True)
class SuiteCase:
    """One run of a suite.

    ``written``, ``overrides`` and, for a file, its ``text`` load the scenario again; ``digest`` shows whether it is
    still the same. ``repeat`` counts the runs of one ``name`` from 1. ``alone``: what its cluster shares with no other
    at the same time. ``measured_until``: the phase from which on the next cluster may start.
    """

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


def plan(suite: Suite, overrides: Sequence[str], times: int, draws: Random) -> list[SuiteCase]:
    """Every run of a suite, in the order of its file. ``times`` multiplies each entry's own ``times``.

    Raises ScenarioError with a line for each scenario that does not load, and each entry that matches nothing; and if
    there are too many runs.
    """
    cases: list[SuiteCase] = []
    wrong: list[str] = []
    for entry in suite.runs:
        try:
            found = list(_loaded(entry, suite, overrides))
        except ScenarioError as exc:
            wrong += str(exc).splitlines()
            continue
        if not found:
            wrong.append(f"suite {suite.name}: no scenario is {_described(entry)}; `kafka-trial scenarios` lists them")
        if len(cases) + len(found) * entry.times * times > _MOST_RUNS:
            raise ScenarioError(
                f"suite {suite.name}: more than {_MOST_RUNS:,} runs: make it smaller, or run it several times"
            )
        for name, written, text, settings, scenario in found:
            cases += [
                SuiteCase(
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
    return _numbered(_with_distinct_names(cases))


def measured_until(scenario: Scenario) -> str:
    """The phase of a run from which on nothing is measured any more, so that another cluster may start."""
    return DRAIN if scenario.workload.settles_within is None else FINAL_READ


def digest(scenario: Scenario) -> str:
    """A digest of a scenario with all its settings: equal scenarios have the same."""
    return hashlib.sha256(scenario.model_dump_json(by_alias=True).encode()).hexdigest()[:16]


def seconds(scenario: Scenario) -> float:
    """About how long a run takes alone, with the start and stop of its cluster."""
    return _AROUND_SECONDS + sum(map(_expected, scenario.timeline))


def _expected(step: TimelineStep) -> float:
    return step.longest * (_SHARE_OF_UNTIL if isinstance(step, Until) else 1.0)


def in_order(cases: Iterable[SuiteCase], urgency: Mapping[str, Urgency]) -> list[SuiteCase]:
    """The most urgent runs first, among equals the longest; runs of one name stay together."""
    return sorted(cases, key=lambda case: (urgency.get(case.name, Urgency.NONE), -case.seconds))


def _loaded(
    entry: Entry, suite: Suite, overrides: Sequence[str]
) -> Iterator[tuple[str, str, str | None, tuple[str, ...], Scenario]]:
    """For each case: its name, the name or file that it is loaded from, the file's text, its settings, and the
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
    """Raises ScenarioError if the suite's own settings do not load: the message then names the suite, because the user
    did not type these settings."""
    try:
        load(written, settings, text)
    except ScenarioError as exc:
        raise ScenarioError("\n".join(f"{what}: {line}" for line in str(exc).splitlines())) from exc


def _matching(patterns: Sequence[str], folder: Path) -> list[str]:
    """The names and files that these patterns match, each scenario once, though a named one is also a file. A file has
    its absolute path, so that it is found from any directory. Raises ScenarioError for an unknown name."""
    known = named()
    found: list[str] = []
    for pattern in patterns:
        if pattern in known:
            found.append(pattern)
        elif (folder / pattern).is_file():
            found.append(str((folder / pattern).resolve()))
        elif not set("*?[") & set(pattern):
            found.append(pattern)
        else:
            found += [name for name in known if fnmatchcase(name, pattern)]
            found += _files(pattern, folder)
    by_file: dict[str, str] = {}
    for one in found:
        by_file.setdefault(str(known[one].resolve()) if one in known else one, one)
    return list(by_file.values())


def _files(pattern: str, folder: Path) -> list[str]:
    # (A pattern that ends with ** matches folders, and from Python 3.13 on also files, of any kind.)
    if pattern.endswith("**"):
        return []
    anchor = Path(pattern).anchor
    try:
        matching = sorted((Path(anchor) if anchor else folder).glob(pattern.removeprefix(anchor).lstrip("/")))
    except ValueError as exc:
        raise ScenarioError(f"{pattern}: not a pattern of files ({exc})") from exc
    return [str(path.resolve()) for path in matching if path.suffix in {".yaml", ".yml"}]


def _described(entry: Entry) -> str:
    text = " or ".join(repr(name) for name in entry.scenarios)
    if entry.tags:
        text += f" with the tags {', '.join(entry.tags)}"
    return text + (f" without {', '.join(entry.without_tags)}" if entry.without_tags else "")


def _with_distinct_names(cases: Sequence[SuiteCase]) -> list[SuiteCase]:
    """The cases; if several files have scenarios of one name, each of these names gets its file's path, relative to
    their common folder."""
    written_by_name: dict[str, set[str]] = {}
    for case in cases:
        written_by_name.setdefault(case.name, set()).add(case.written)
    distinct = []
    for case in cases:
        files = sorted(written for written in written_by_name[case.name] if Path(written).is_absolute())
        if len(written_by_name[case.name]) > 1 and case.written in files:
            path = os.path.relpath(case.written, os.path.commonpath(map(os.path.dirname, files)))
            distinct.append(replace(case, name=f"{case.name} ({path})"))
        else:
            distinct.append(case)
    return distinct


def _numbered(cases: Sequence[SuiteCase]) -> list[SuiteCase]:
    """The cases with ``repeat`` counted over all entries."""
    counts: dict[str, int] = {}
    numbered = []
    for case in cases:
        counts[case.name] = counts.get(case.name, 0) + 1
        numbered.append(replace(case, repeat=counts[case.name]))
    return numbered
