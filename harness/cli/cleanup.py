"""``kafka-trial cleanup``."""

from pathlib import Path

import click

from harness.cli.deeds import Deeds


@click.command()
@click.argument("run", required=False)
@click.pass_obj
def cleanup(deeds: Deeds, run: str | None) -> None:
    """Remove what runs left on this machine.

    RUN is a run's name or its directory: its containers, networks and volumes go. Without RUN, those of every run do
    that is not still going. What was recorded stays.
    """
    for line in deeds.cleanup(_named(run)) or ["nothing to remove"]:
        click.echo(line)


def _named(run: str | None) -> str | None:
    """The name of a run, where its directory is given too."""
    if run is None or not Path(run).is_dir():
        return run
    from harness.core.run_file import RunFile

    return RunFile.read(Path(run)).run
