"""``kafka-trial explain``: the life of one record of a stored run."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.judging import below
from harness.core.errors import HistoryError

if TYPE_CHECKING:
    from checkers.trace import Archive, Life, Moment, View

_OFFSET = re.compile(r"(?P<topic>.+)-(?P<partition>\d+):(?P<offset>\d+)")
#: So many runs are named to one who named none.
_NAMED = 5


def _number(bits: int) -> Callable[[str], int]:
    """Reads a whole number that has so many bits at most: what a history's columns can hold."""

    def read(given: str) -> int:
        if not given.isdecimal():
            raise click.BadParameter(f"{given!r} is not a number from 0")
        if len(given) > bits or int(given) >> bits:
            raise click.BadParameter(f"{given} is too large: it must be below 2^{bits}")
        return int(given)

    return read


def _place(given: str) -> tuple[tuple[str, int], int]:
    """((topic, partition), offset)"""
    found = _OFFSET.fullmatch(given)
    if found is None:
        raise click.BadParameter(f"{given!r} is not TOPIC-PARTITION:OFFSET, such as trial-0:42")
    return (found["topic"], _number(31)(found["partition"])), _number(63)(found["offset"])


@click.command()
@click.argument("run", metavar="RUN_DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--record", type=_number(63), metavar="ID", help="The record of this id.")
@click.option("--offset", "place", type=_place, metavar="TOPIC-PARTITION:OFFSET", help="Whatever stood at this offset.")
@click.option("--worker", type=_number(23), metavar="N", help="With --sequence: a worker's nth record, counted from 0.")
@click.option("--sequence", type=_number(40), metavar="N", help="With --worker.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def explain(
    run: Path,
    record: int | None,
    place: tuple[tuple[str, int], int] | None,
    worker: int | None,
    sequence: int | None,
    as_json: bool,
) -> None:
    """Tell the life of one record of a stored run, or of what stood at an offset.

    When it was sent, acknowledged and read, what each broker told then of leader and ISR, which faults were active,
    where it ended, and the anomalies that it is in. Without a record, the causes of all anomalies are told.
    """
    if (worker is None) != (sequence is None):
        raise click.UsageError("--worker and --sequence name a record together")
    wanted = [given for given in (record, place, worker) if given is not None]
    if len(wanted) > 1:
        raise click.UsageError("one of --record, --offset, and --worker with --sequence, not several")
    _one(run)
    from checkers.trace import Archive, by_offset, by_record, runs
    from harness.history.schema import record_id
    from harness.history.writing import refuse_links

    refuse_links(run)
    archive = Archive.open(run)
    if not wanted:
        _causes(archive, runs(archive), as_json)
        return
    if place is not None:
        lives = by_offset(archive, *place)
    elif record is not None:
        lives = [by_record(archive, record)]
    else:
        lives = [by_record(archive, record_id(worker or 0, sequence or 0))]
    if as_json:
        click.echo(json.dumps({"run": archive.file.run, "records": [asdict(life) for life in lives]}))
        return
    click.echo("\n\n".join("\n".join(lines(life, archive)) for life in lives))


def lines(life: "Life", archive: "Archive") -> list[str]:
    """A life as text: one line for each thing that happened, under it what the brokers told where that changed."""
    from harness.report.words import seconds

    told = [f"record {life.record_id}: worker {life.worker} #{life.sequence}"]
    before: Moment | None = None
    for moment in life.moments:
        told.append(f"{seconds(moment.at_ns):>12}  {moment.said}")
        if before is None or (moment.views, moment.faults) != (before.views, before.faults):
            told += [f"{'':14}{view}" for view in _views(moment.views)]
            told.append(f"{'':14}faults active: {', '.join(moment.faults) or 'none'}")
        before = moment
    told += [f"{'ended:':>12}  {line}" for line in life.ended]
    for anomaly in life.anomalies:
        standing = f" ({anomaly['standing']})" if anomaly["standing"] else ""
        told.append(f"{'anomaly:':>12}  {anomaly['name']}{standing}")
        if anomaly["run"]:
            told.append(f"{'':14}{anomaly['run']}")
    if archive.verdict is None:
        told.append(f"{'anomaly:':>12}  not judged yet: `kafka-trial check {archive.directory}` does that")
    elif life.untold:
        told.append(f"{'anomaly:':>12}  not known of {', '.join(life.untold)}, whose records are not kept here:")
        told.append(f"{'':14}`kafka-trial check {archive.directory}` finds them")
    elif not life.anomalies:
        told.append(f"{'anomaly:':>12}  none")
    return told


def _views(views: "list[View]") -> list[str]:
    """What the brokers told, a line for each version of it."""
    versions: dict[str, list[str]] = {}
    for view in views:
        epoch = "" if view.leader_epoch is None else f" (epoch {view.leader_epoch})"
        leads = f"{view.leader} leads" if view.leader else "nobody leads"
        versions.setdefault(f"{leads}{epoch}, ISR {' '.join(view.isr) or 'empty'}", []).append(view.observer)
    return [f"{', '.join(who)}: {said}" for said, who in versions.items()] or ["no broker told who led"]


def _causes(archive: "Archive", told: dict[str, list[str]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"run": archive.file.run, "runs": told}))
        return
    for name, sentences in told.items():
        click.echo(name)
        for sentence in sentences or ["its records are in no runs: see the examples in verdict.json"]:
            click.echo(f"  {sentence}")
    if not told:
        click.echo("no anomaly; --record, --offset, or --worker with --sequence tells of one record")


def _one(run: Path) -> None:
    """Raises HistoryError where there is no run, but some are below: names them."""
    from harness.history.run_file import RUN_FILE

    if not (run / RUN_FILE).is_file():
        names = [str(one) for one in below([str(run)])]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise HistoryError(f"{run}: no run itself: name one of those below, {', '.join(names[:_NAMED])}{more}")
