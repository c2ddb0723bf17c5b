"""``kafka-trial explain``: the trace of one record of a stored run."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.errors import print_error
from harness.cli.judging import below
from harness.core.errors import HistoryError
from harness.core.printable import printable
from harness.core.verdict import Standing

if TYPE_CHECKING:
    from checkers.archive import Archive, FindingEntry, Row
    from checkers.stories import Held
    from checkers.trace import RecordTrace
    from harness.core.trace import BrokerReport, Moment

_OFFSET = re.compile(r"(?P<topic>.+)-(?P<partition>\d+):(?P<offset>\d+)")
_RECORD = re.compile(r"(?:worker )?(?P<worker>\d+) ?#(?P<sequence>\d+)")
#: The number of runs that a message names, and of leaders that may have appended a record.
_NAMED = 5
#: The events that take a record (checkers/evidence/holding.py).
_TOOK = {"took", "wiped"}
#: Of the moments at which the holders of a record changed, the number shown from the first on, and up to the last.
_CHANGES = 20


def _number(bits: int) -> Callable[[str], int]:
    """A function that reads a whole number of at most so many bits, which fits into a history's column."""

    def read(text: str) -> int:
        if not text.isdecimal():
            raise click.BadParameter(f"{text!r} is not a number from 0")
        if len(text) > bits or int(text) >> bits:
            raise click.BadParameter(f"{text} is too large: it must be below 2^{bits}")
        return int(text)

    return read


def _record(text: str) -> int:
    """The id of a record, which is written as a number, or as reports write it: worker 1 #42."""
    from harness.history.schema import record_id

    found = _RECORD.fullmatch(text)
    return (
        _number(63)(text) if found is None else record_id(_number(23)(found["worker"]), _number(40)(found["sequence"]))
    )


def _offset(text: str) -> tuple[tuple[str, int], int]:
    """((topic, partition), offset)"""
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not TOPIC-PARTITION:OFFSET, such as trial-0:42")
    return (found["topic"], _number(31)(found["partition"])), _number(63)(found["offset"])


@click.command()
@click.argument("run", metavar="RUN_DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--record",
    type=_record,
    metavar="ID",
    help="Trace the record with this id, a number or N#M: a worker's Mth, from 0 on.",
)
@click.option("--offset", "offset", type=_offset, metavar="TOPIC-PARTITION:OFFSET", help="Trace what is at an offset.")
@click.option("--worker", type=_number(23), metavar="N", help="With --sequence: a worker's nth record, counted from 0.")
@click.option("--sequence", type=_number(40), metavar="N", help="With --worker.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def explain(
    run: Path,
    record: int | None,
    offset: tuple[tuple[str, int], int] | None,
    worker: int | None,
    sequence: int | None,
    as_json: bool,
) -> None:
    """Trace one record of a stored run, or the records at an offset.

    Prints when it was sent, acknowledged and read, the leader and ISR that each broker then reported, the active
    faults, its final position, and its anomalies; for a lost record also which brokers had it over time. Without a
    record, prints the causes of all anomalies.
    """
    if (worker is None) != (sequence is None):
        raise click.UsageError("--worker and --sequence name a record together")
    wanted = [choice for choice in (record, offset, worker) if choice is not None]
    if len(wanted) > 1:
        raise click.UsageError("one of --record, --offset, and --worker with --sequence, not several")
    _one(run)
    from checkers.archive import Archive
    from checkers.trace import by_offset, by_record, range_texts
    from harness.history.schema import record_id
    from harness.history.writing import refuse_links

    refuse_links(run)
    archive = Archive.open(run)
    if not wanted:
        _causes(archive, range_texts(archive), as_json)
        return
    if offset is not None:
        traces = by_offset(archive, *offset)
    elif record is not None:
        traces = [by_record(archive, record)]
    else:
        traces = [by_record(archive, record_id(worker or 0, sequence or 0))]
    if as_json:
        click.echo(json.dumps({"run": archive.file.run, "records": [*map(_as_json, traces)]}))
        return
    click.echo("\n\n".join("\n".join(map(printable, lines(trace, archive))) for trace in traces))


def _as_json(trace: "RecordTrace") -> dict[str, Any]:
    """A trace with the sentences of its moments and fates in place of their facts."""
    from harness.report.record_trace import ended, said

    moments = [
        {
            "at_ns": moment.at_ns,
            "event": moment.event,
            "said": said(moment),
            "topic": moment.topic,
            "partition": moment.partition,
            "offset": moment.offset,
            "views": [asdict(view) for view in moment.views],
            "faults": moment.faults,
        }
        for moment in trace.moments
    ]
    return {**asdict(trace), "moments": moments, "ended": [*map(ended, trace.ended)]}


def lines(trace: "RecordTrace", archive: "Archive") -> list[str]:
    """A trace as text: one line for each event, followed by what the brokers reported, if that changed."""
    from harness.history.paths import checking
    from harness.report.record_trace import ended, said
    from harness.report.words import seconds

    text = [f"worker {trace.worker} #{trace.sequence}"]
    before: Moment | None = None
    for moment in trace.moments:
        text.append(f"{seconds(moment.at_ns):>12}  {said(moment)}")
        if before is None or (moment.views, moment.faults) != (before.views, before.faults):
            text += [f"{'':14}{view}" for view in _views(moment.views)]
            text.append(f"{'':14}faults active: {', '.join(moment.faults) or 'none'}")
        before = moment
    text += [f"{'ended:':>12}  {ended(fate)}" for fate in trace.ended]
    text += _holders(trace.holders, {one["standing"] for one in trace.anomalies})
    for together in _of_one_cause(trace.anomalies):
        standing = f" ({together[0]['standing']})" if together[0]["standing"] else ""
        text.append(f"{'anomaly:':>12}  {', '.join(one['name'] for one in together)}{standing}")
        text += [f"{'':14}{one['run']}" for one in together if one["run"]][:1]
    if archive.verdict is None:
        text.append(f"{'anomaly:':>12}  not judged yet: {checking(archive.directory)} does that")
    elif trace.not_known:
        text.append(f"{'anomaly:':>12}  not known of {', '.join(trace.not_known)}, whose records are not kept here:")
        text.append(f"{'':14}{checking(archive.directory)} finds them")
    elif not trace.anomalies:
        text.append(f"{'anomaly:':>12}  none")
    return text


def _holders(each: "list[Held]", standings: set[str | None]) -> list[str]:
    """Which brokers had a record over time, for each leader that may have appended it."""
    from harness.core.listing import in_order
    from harness.report.sentences import held
    from harness.report.words import broker, seconds

    text = []
    for one in each[:_NAMED]:
        by, apart = broker(one.leader, one.leader_epoch), len({tuple(other.anomalies) for other in each}) > 1
        named = f", as {in_order(one.anomalies)}" if apart else ""
        supposed = ", and every fault acted of which nobody knows" if one.supposed else ""
        text.append(f"{'holders:':>12}  {'if ' if len(each) > 1 else ''}{by} appended it{named}{supposed}")
        changes = [f"{'':14}{seconds(change['at_ns']):>12}  {held(change)}" for change in one.changes]
        hidden = len(changes) - 2 * _CHANGES
        text += changes if hidden <= 0 else [*changes[:_CHANGES], f"{'':14}… and {hidden} more", *changes[-_CHANGES:]]
    if more := each[_NAMED:]:
        text.append(f"{'holders:':>12}  … and {len(more)} more leaders may have appended it")
    if Standing.PERMITTED in standings and not _TOOK & {change["event"] for one in each for change in one.changes}:
        text.append(f"{'':14}an election that is permitted took the records next to it, and so took it, too")
    return text if each else []


def _of_one_cause(anomalies: "list[Row]") -> "list[list[Row]]":
    """The anomalies of a record, grouped by finding and standing."""
    together: dict[object, list[Row]] = {}
    for one in anomalies:
        cause = one["name"] if one["finding"] is None else (one["finding"], one["standing"])
        together.setdefault(cause, []).append(one)
    return list(together.values())


def _views(views: "list[BrokerReport]") -> list[str]:
    """What the brokers reported: a line for each different report, with its brokers."""
    from harness.report.words import of_epoch

    versions: dict[str, list[str]] = {}
    for view in views:
        leads = (f"{view.leader} leads" if view.leader else "nobody leads") + of_epoch(view.leader_epoch)
        versions.setdefault(f"{leads}, ISR {' '.join(view.isr) or 'empty'}", []).append(view.observer)
    return [f"{', '.join(who)}: {report}" for report, who in versions.items()] or ["no broker said who led"]


def _causes(archive: "Archive", causes: dict[str, list[str]], as_json: bool) -> None:
    findings = archive.verdict.findings if archive.verdict else []
    if as_json:
        shown = [finding.model_dump(include={"anomalies", "standing", "text"}) for finding in findings]
        click.echo(json.dumps({"run": archive.file.run, "runs": causes, "findings": shown}))
        return
    for name, sentences in ((_heading(one), _sentences(one)) for one in findings) if findings else causes.items():
        click.echo(printable(name))
        for sentence in sentences or ["its records are in no runs: see the examples in verdict.json"]:
            click.echo(printable(f"  {sentence}"))
    if not causes:
        click.echo("no anomaly; --record, --offset, or --worker with --sequence shows one record")


def _heading(finding: "FindingEntry") -> str:
    return f"{', '.join(f'{name} {count:,}' for name, count in finding.anomalies.items())} ({finding.standing})"


def _sentences(finding: "FindingEntry") -> list[str]:
    """The sentences of a finding: its cause, if it has several ranges, and its ranges."""
    ranges = [part.text for part in finding.runs]
    more = [f"… and {finding.more_runs} more ranges of records"] if finding.more_runs else []
    cause = [finding.text] if finding.text and len(ranges) + len(more) > 1 else []
    return [*cause, *ranges, *more]


def _one(run: Path) -> None:
    """Raises HistoryError if the directory is not a run, but has runs below: names them."""
    from harness.history.run_file import RUN_FILE

    if not (run / RUN_FILE).is_file():
        names = [str(one) for one in below([str(run)], lambda _, error: print_error(str(error)))]
        if not names:
            raise HistoryError(f"{run}: no run here that can be read")
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise HistoryError(f"{run}: not a run itself: name one of those below, {', '.join(names[:_NAMED])}{more}")
