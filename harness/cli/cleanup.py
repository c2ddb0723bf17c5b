"""``kafka-trial cleanup``."""

from collections.abc import Mapping
from pathlib import Path

import click

from harness.cli.backends import Backends
from harness.cli.machines import cluster, settings
from harness.cli.options import ProviderCommand
from harness.core.errors import KafkaTrialError


@click.command(cls=ProviderCommand, takes=lambda option: option.locates)
@click.argument("run", required=False)
@click.option("--force", is_flag=True, help="Remove also what a run that is still going uses.")
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@click.pass_obj
def cleanup(backends: Backends, /, run: str | None, force: bool, dry_run: bool, **options: object) -> None:
    """Remove what runs left on this machine, or on those of an inventory.

    RUN is a run's name or its directory: its containers, networks and volumes, or its nodes on machines, are removed.
    Without RUN, those of every finished run are removed. Recordings stay.
    """
    from harness.providers.catalogue import provider_of

    name, recorded = _named(run)
    providers = backends.providers()
    said = settings(options)
    spec = cluster(providers, said or recorded)
    flags = {option.key for row in providers.values() for option in row.options if option.flag}
    everywhere = said.keys() <= flags  # (A flag alone names no place.)
    asked = [row.get() for row in providers.values()] if everywhere else [provider_of(spec, providers)]
    # (No error: a run that was cleaned up earlier cannot be distinguished from one that never existed.)
    nothing = "nothing to remove"
    if run is not None and name == run:
        nothing += f": no such run '{run}' (a run's name is SCENARIO/TIME-SEED, as in its run.json)"
    lines: list[str] = []
    errors: list[KafkaTrialError] = []
    for provider in asked:
        try:
            lines += provider.cleanup(spec, name, force, dry_run)
        except KafkaTrialError as exc:
            errors.append(exc)
    for line in lines if lines or errors else [nothing]:
        click.echo(line)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(str(other))
        raise errors[0]


def _named(run: str | None) -> tuple[str | None, Mapping[str, object]]:
    """The name of a run, given by its name or directory; with a directory, also the cluster settings in its
    run.json."""
    if run is None or not Path(run).is_dir():
        return run, {}
    from harness.history.run_file import RunFile
    from harness.history.writing import refuse_links

    refuse_links(Path(run))
    file = RunFile.read(Path(run))
    return file.run, file.scenario.get("cluster") or {}
