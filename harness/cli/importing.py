"""``kafka-trial import``: histories that other tools recorded, as runs that ``check`` judges."""

from datetime import UTC, datetime
from pathlib import Path

import click


@click.group(name="import")
def imports() -> None:
    """Turn another tool's history into a run directory for `check`."""


@imports.command()
@click.argument("history", metavar="HISTORY.EDN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="The run directory to make.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting that the history lacks, if it is not Kafka's default: idempotence=false, retries=0, …",
)
def jepsen(history: Path, out: Path | None, settings: tuple[str, ...]) -> None:
    """Import HISTORY.EDN of Jepsen's workload jepsen.tests.kafka, and print the run directory.

    Without --out it is store/jepsen/<UTC time>.
    """
    from harness.history.store import DEFAULT_STORE
    from harness.importing.jepsen import SCENARIO, import_jepsen

    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    directory = out or DEFAULT_STORE / SCENARIO / f"{moment}Z"
    file = import_jepsen(history, directory, dict(_setting(text) for text in settings))
    for note in file.notes:
        click.echo(f"kafka-trial: {note}", err=True)
    click.echo(directory)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as idempotence=false", param_hint="--set")
    return name, value
