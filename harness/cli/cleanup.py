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
    name = _named(run)
    # (One that was cleaned up before looks like one that never was: no error.)
    nothing = "nothing to remove"
    if run is not None and name == run:
        nothing += f": nothing here bears the name '{run}' (a run's name is SCENARIO/TIME-SEED, as in its run.json)"
    for line in deeds.cleanup(name) or [nothing]:
        click.echo(line)


def _named(run: str | None) -> str | None:
    """The name of a run, where its directory is given too."""
    if run is None or not Path(run).is_dir():
        return run
    from harness.core.run_file import RunFile

    return RunFile.read(Path(run)).run
