"""``kafka-trial run``."""

import sys
from pathlib import Path

import click

from harness.cli import codes
from harness.cli.deeds import Deeds
from harness.cli.telling import tell


@click.command()
@click.argument("scenario", metavar="NAME|FILE")
@click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Change a setting, e.g. topic.replication=1."
)
@click.option("--seed", type=click.IntRange(min=0), help="Of everything random; a fresh one is drawn, and recorded.")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("store"),
    show_default=True,
    help="Where runs are kept.",
)
@click.option(
    "--keep", is_flag=True, help="Leave the cluster up; `kafka-trial cleanup RUN` removes it, as the run then says."
)
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json as one line.")
@click.pass_obj
def run(
    deeds: Deeds, scenario: str, overrides: tuple[str, ...], seed: int | None, store: Path, keep: bool, as_json: bool
) -> int:
    """Run a scenario on a real cluster and judge it.

    NAME is one that `kafka-trial scenarios` lists, FILE is a scenario of your own. Progress goes to stderr.
    """
    from harness.run.display import for_terminal
    from harness.run.new_run import fresh_seed
    from harness.scenario.loading import load

    wanted = load(scenario, overrides)
    with for_terminal(sys.stderr) as display:
        directory, verdict = deeds.run(wanted, store, fresh_seed() if seed is None else seed, display, keep)
    tell(verdict, directory, directory / "report.html", as_json)
    return codes.of_verdict(verdict)
