"""``kafka-trial scenarios`` and ``kafka-trial scenarios show``."""

import codecs
import json
import sys
from typing import TYPE_CHECKING

import click

from harness.core.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import TextIO

    from harness.core.verdict import Expectation
    from harness.scenario.model import Scenario


@click.group(invoke_without_command=True)
@click.option("--tag", "tags", multiple=True, help="Only those that have this tag; repeated: all of them.")
@click.option("--group", help="Only those of this folder, such as jepsen-2013.")
@click.option("--long", "as_long", is_flag=True, help="Also source and claim.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each.")
@click.pass_context
def scenarios(context: click.Context, tags: tuple[str, ...], group: str | None, as_long: bool, as_json: bool) -> None:
    """List the named scenarios: about how long each takes, and what is expected."""
    if context.invoked_subcommand is not None:
        if tags or group or as_long or as_json:
            raise click.UsageError(f"`scenarios {context.invoked_subcommand}` takes none of the options of the list")
        return
    from harness.scenario.loading import catalogue
    from harness.suite.plan import seconds

    every = catalogue()
    _refuse_unknown("group", [] if group is None else [group], {_group(scenario) for scenario in every})
    _refuse_unknown("tag", tags, {tag for scenario in every for tag in scenario.tags})
    listed = [one for one in every if set(tags) <= set(one.tags) and group in {None, _group(one)}]
    if not listed:
        raise ScenarioError("no scenario matches all of that: leave a --tag or the --group out")
    width = max(len(scenario.name) for scenario in listed)
    for scenario in listed:
        took, expect = seconds(scenario), expected(scenario.expect)
        if as_json:
            row = scenario.model_dump(mode="json", include={"name", "source", "claim", "tags", "expect"})
            click.echo(json.dumps({**row, "seconds": round(took)}))
            continue
        click.echo(f"{scenario.name:{width}}  about {took:3.0f} s  {expect}")
        for label, text in (("source", scenario.source), ("claim", scenario.claim), ("tags", " ".join(scenario.tags))):
            if text and as_long:
                click.echo(f"  {label + ':':8}{text}")


def _group(scenario: "Scenario") -> str:
    return scenario.name.rpartition("/")[0]


def _refuse_unknown(what: str, names: "Iterable[str]", known: "Collection[str]") -> None:
    from harness.core.complaints import unknown

    for name in names:
        if name not in known:
            raise ScenarioError(unknown(what, name, sorted(known)))


@scenarios.command()
@click.argument("scenario", metavar="NAME|FILE")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Change a setting, as for `run`.")
def show(scenario: str, overrides: tuple[str, ...]) -> None:
    """Print a scenario with all its settings, defaults too. The output is itself a scenario file."""
    from harness.scenario.loading import load
    from harness.scenario.resolved import resolved_yaml

    resolved = load(scenario, overrides)
    # Characters that the locale cannot write become YAML escapes. Others would be read back as different text.
    click.echo(resolved_yaml(resolved, ascii_only=not in_unicode(sys.stdout)), nl=False)


def in_unicode(stream: "TextIO | None") -> bool:
    """Whether every character can be written to a stream."""
    encoding = getattr(stream, "encoding", None)
    return encoding is None or codecs.lookup(encoding).name.startswith("utf-")


def expected(expect: "Expectation") -> str:
    """What a scenario expects, in words."""
    text = " or ".join(expect.verdicts)
    if expect.anomalies:
        text += f": {', '.join(expect.anomalies)}"
    return f"{text}, {expect.standing}" if expect.standing else text
