"""``kafka-trial cleanup``."""

from pathlib import Path

import click

from harness.cli.deeds import Deeds
from harness.core.errors import KafkaTrialError


@click.command()
@click.argument("run", required=False)
@click.option("--force", is_flag=True, help="Remove what is still going, too.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.pass_obj
def cleanup(deeds: Deeds, run: str | None, force: bool, dry_run: bool) -> None:
    """Remove what runs left on this machine.

    RUN is a run's name or its directory: its containers, networks and volumes are removed. Without RUN, those of every
    finished run are. What was recorded stays.
    """
    name = _named(run)
    # (One that was cleaned up before looks like one that never was: no error.)
    nothing = "nothing to remove"
    if run is not None and name == run:
        nothing += f": no such run '{run}' (a run's name is SCENARIO/TIME-SEED, as in its run.json)"
    lines: list[str] = []
    errors: list[KafkaTrialError] = []
    for row in deeds.providers().values():
        try:
            lines += row.get().cleanup(name, force, dry_run)
        except KafkaTrialError as exc:
            errors.append(exc)
    for line in lines if lines or errors else [nothing]:
        click.echo(line)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(str(other))
        raise errors[0]


def _named(run: str | None) -> str | None:
    """The name of a run, where its directory is given too."""
    if run is None or not Path(run).is_dir():
        return run
    from harness.history.run_file import RunFile
    from harness.history.writing import refuse_links

    refuse_links(Path(run))
    return RunFile.read(Path(run)).run
