"""``kafka-trial schema``."""

import json

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of scenarios.

    Editors use it to complete and check scenarios. VS Code does if a file begins with the line
    `# yaml-language-server: $schema=scenario.schema.json`.
    """
    from harness.scenario.json_schema import json_schema

    # (ASCII can be written in every locale, and is also valid UTF-8, which JSON needs.)
    click.echo(json.dumps(json_schema(), indent=2))
