"""``kafka-trial run``."""

import json
import sys
from pathlib import Path

import click

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.machines import overrides, settings
from harness.cli.options import ProviderCommand
from harness.cli.printing import print_verdict
from harness.cli.stores import store_option


@click.command(cls=ProviderCommand, before="no_judge")
@click.argument("scenario", metavar="NAME|FILE")
@click.option(
    "--set", "assignments", multiple=True, metavar="PATH=VALUE", help="Change a setting, e.g. topic.replication=1."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random (default: a fresh one).")
@store_option
@click.option("--keep", is_flag=True, help="Leave the cluster up, and print its address and how to remove it.")
@click.option("--no-judge", is_flag=True, help="Record only: `kafka-trial check RUN` judges it, here or elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json as one line.")
@click.pass_obj
def run(
    backends: Backends,
    /,
    scenario: str,
    assignments: tuple[str, ...],
    seed: int | None,
    store: Path,
    keep: bool,
    no_judge: bool,
    as_json: bool,
    **options: object,
) -> int:
    """Run a scenario on a real cluster and judge it.

    NAME is one that `kafka-trial scenarios` lists, FILE is a scenario of your own. Progress goes to stderr.
    """
    from harness.history.paths import REPORT_FILE
    from harness.run.display import for_terminal
    from harness.run.new_run import fresh_seed
    from harness.scenario.loading import load

    wanted = load(scenario, [*assignments, *overrides(settings(options))])
    seed = fresh_seed() if seed is None else seed
    with for_terminal(sys.stderr) as display:
        if no_judge:
            recorded = backends.record(wanted, store, seed, display, keep)
        else:
            directory, verdict = backends.run(wanted, store, seed, display, keep)
    if no_judge:
        click.echo(json.dumps({"directory": str(recorded)}) if as_json else f"recorded: {recorded}")
        return codes.MET
    print_verdict(verdict, directory, directory / REPORT_FILE, as_json)
    return codes.of_verdict(verdict)
