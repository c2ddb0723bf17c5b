"""Scenarios by name or from a file, with ``--set`` applied, validated; errors say file:line and what to change."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from harness.core.errors import ScenarioError
from harness.core.quantities import WRITTEN
from harness.core.written import Written
from harness.resources import scenarios
from harness.scenario.complaints import complaints, problem_lines
from harness.scenario.contradictions import contradictions
from harness.scenario.files import found_from, from_anywhere
from harness.scenario.model import Scenario
from harness.scenario.overrides import override
from harness.scenario.written import parse, read, read_text

_SUFFIXES = (".yaml", ".yml")


def load(name_or_path: str, overrides: Sequence[str] = (), text: str | None = None) -> Scenario:
    """The named scenario, or that of a file, with each ``path=value`` of ``overrides`` applied.

    Paths in the scenario are relative to its file; those in ``overrides`` to the current directory. ``text``: the
    content of the file, which is then not read. Raises ScenarioError with a line for each mistake.
    """
    path = _find(name_or_path) if text is None else Path(name_or_path)
    written = read(path) if text is None else parse(text, name_or_path)
    if "runs" in written.data:
        raise ScenarioError(f"{name_or_path}: this is a suite, not a scenario: `kafka-trial suite` runs it")
    found_from(written.data, path.parent)
    for assignment in overrides:
        override(written, from_anywhere(assignment, Path()))
    return validated(written)


def text_of(name_or_path: str) -> str | None:
    """The content of a file that is given by its path; None for a named scenario, which is part of the program. Raises
    ScenarioError if there is no such file."""
    return None if name_or_path in named() else read_text(_find(name_or_path))


def validated(written: Written) -> Scenario:
    """The scenario of the data. Without a name, it gets that of its file. Raises ScenarioError."""
    named = {"name": Path(written.origin).stem, **written.data}
    try:
        scenario = Scenario.model_validate(named, context=WRITTEN, by_alias=True, by_name=False)
    except ValidationError as exc:
        raise ScenarioError("\n".join(complaints(exc, written))) from exc
    if problems := contradictions(scenario):
        raise ScenarioError("\n".join(problem_lines(problems, written)))
    return scenario


def named() -> dict[str, Path]:
    """The file of every named scenario, in the order of their names."""
    folder = scenarios()
    files = (path for suffix in _SUFFIXES for path in folder.rglob(f"*{suffix}"))
    by_name = {path.relative_to(folder).as_posix().removesuffix(path.suffix): path for path in files}
    return dict(sorted(by_name.items()))


def catalogue() -> list[Scenario]:
    """Every named scenario."""
    return [validated(read(path)) for path in named().values()]


def _find(name_or_path: str) -> Path:
    known = named()
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.suffix in _SUFFIXES:
        raise ScenarioError(f"{path}: no such file")
    by_last_part = {name.rpartition("/")[2]: name for name in known}
    near = get_close_matches(name_or_path, [*known, *by_last_part], n=3)
    meant = dict.fromkeys(by_last_part.get(name, name) for name in near)
    hint = f"did you mean {' or '.join(meant)}?" if meant else "`kafka-trial scenarios` lists them"
    raise ScenarioError(f"no scenario or file is called {name_or_path!r}; {hint}")
