"""``kafka-trial scenarios`` and ``kafka-trial scenarios show``."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.core.verdict import Expectation


@click.group(invoke_without_command=True)
@click.pass_context
def scenarios(context: click.Context) -> None:
    """List the named scenarios: source, claim, and what is expected."""
    if context.invoked_subcommand is not None:
        return
    from harness.scenario.loading import catalogue

    for scenario in catalogue():
        click.echo(scenario.name)
        for label, said in (
            ("source", scenario.source),
            ("claim", scenario.claim),
            ("expect", expected(scenario.expect)),
        ):
            if said:
                click.echo(f"  {label + ':':8}{said}")


@scenarios.command()
@click.argument("scenario", metavar="NAME|FILE")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Change a setting, as for `run`.")
def show(scenario: str, overrides: tuple[str, ...]) -> None:
    """Print a scenario resolved: every setting, those it does not name too. It is a scenario file itself."""
    from harness.scenario.loading import load
    from harness.scenario.resolved import resolved_yaml

    click.echo(resolved_yaml(load(scenario, overrides)), nl=False)


def expected(expect: "Expectation") -> str:
    """What a scenario expects, in words."""
    said = " or ".join(expect.verdicts)
    if expect.anomalies:
        said += f": {', '.join(expect.anomalies)}"
    return f"{said}, {expect.standing}" if expect.standing else said
