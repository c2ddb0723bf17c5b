"""What follows a timeline: heal, recover, drain, settle, and read everything back."""

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from harness.cluster.log_ends import log_ends
from harness.cluster.ready import out_of_sync
from harness.core.clock import SECOND_NS
from harness.core.errors import KafkaTrialError
from harness.core.topology import Partition
from harness.history.paths import LOGS, OBSERVER_LOG
from harness.history.run_file import DRAIN, RunFile
from harness.history.schema import FINAL_READER
from harness.run.recording import begin
from harness.run.timeline import Stage, seen
from harness.scenario.model import Scenario
from workloads.clients.settings import Isolation, admin_config, replica_reader_config
from workloads.processes import Workers
from workloads.readback.final_read import read_to_end
from workloads.readback.last_stable import await_stable
from workloads.readback.replica_read import read_replicas

#: A choice: clusters that recover take 5 s on average (docs/nightly.md); one that does not costs all of this.
RECOVERY_SECONDS = 30.0
#: A choice: a record is answered or given up within delivery.timeout.ms (30 s by default), then consumers catch up.
_DRAIN_SECONDS = 60.0
#: A choice: nothing is acknowledged any more, so a longer drain would only wait.
_GIVE_UP_SECONDS = 3.0
#: A choice: only a log that cannot be read to its end takes so long, and the run is then unknown.
_READ_SECONDS = 120.0
#: Longer than the 0.5 s within which a follower fetches again (replica.fetch.wait.max.ms): see ``recover``.
_WRITING_NS = SECOND_NS


def recover(stage: Stage, scenario: Scenario) -> None:
    """Heal all faults, wait until every ISR is complete and writes are acknowledged again, and drain.

    A wait that times out is reported, and makes the run ``unknown``; later waits are then short. A worker that dies is
    noted at the end, and does not stop the others.
    """
    at_ns = stage.record.clock.now()
    heal(stage, scenario.final_read.down)
    since_ns = stage.record.clock.now()
    down = {name for active in stage.nemesis.active for name in active.nodes}
    excused = [node for name in down if (node := stage.topology.named(name))]

    def lacking() -> list[str]:
        return out_of_sync(stage.observer, scenario.topic, without=excused)

    awaited, patience, drain = "full ISR after the heal", RECOVERY_SECONDS, _DRAIN_SECONDS
    if stage.until(lambda: not lacking(), patience, awaited, stage.show):
        # (Earlier, a deposed leader may still acknowledge writes, with acks=1.) One more second of writes, because
        # followers that truncated their logs get the high watermark only when it moves (KIP-227, KAFKA-14704).
        since_ns = stage.record.clock.now() + _WRITING_NS
    else:
        patience = 0.0
    if scenario.workload.acks != "0":
        written = "writes acknowledged after the heal"
        came = stage.until(lambda: stage.workload.acknowledged_since(since_ns), patience, written, stage.show)
        stage.report(written, at_ns, met=came, detail="" if came else f"none within {patience:g} s; {seen(stage)}")
        patience, drain = (patience, drain) if came else (0.0, _GIVE_UP_SECONDS)
    begin(stage.record, stage.display, DRAIN)
    finish(stage.record.file, stage.workload, drain)
    whole = stage.until(lambda: not lacking(), patience, awaited, stage.show)
    stage.report(awaited, at_ns, met=whole, detail="" if whole else "; ".join(lacking()))


def down_for(scenario: Scenario) -> float:
    """The longest time in seconds from the end of the timeline to the end of the final read, for which nodes stay down
    on purpose; 0 if none do."""
    if not scenario.final_read.down:
        return 0.0
    readings = 1 + (scenario.cluster.brokers if scenario.final_read.replicas else 0)
    settling = scenario.workload.settles_within or 0.0
    return 3 * RECOVERY_SECONDS + _DRAIN_SECONDS + settling + readings * _READ_SECONDS


def heal(stage: Stage, down: Sequence[str]) -> None:
    """Heal all faults except those that stay ``down``. A fault that cannot be healed is reported, as in ``recover``."""
    at_ns = stage.record.clock.now()
    try:
        stage.nemesis.heal_all(except_=down)
    except KafkaTrialError as exc:
        stage.report("heal all", at_ns, met=False, detail=str(exc))
    stage.record.file.down = {name: [n.name for n in nodes] for name, nodes in stage.nemesis.meant(down).items()}
    stage.record.file.lasting = {active.name: list(active.nodes) for active in stage.nemesis.active}
    stage.record.save()


def finish(file: RunFile, workload: Workers, within: float) -> None:
    """Drain and end the workload, and note problems. A worker that died makes the run partial; one that did not finish
    makes it ``unknown``."""
    file.notes += workload.finish(within)
    file.unfinished = workload.unfinished
    file.died = workload.died_members
    file.partial |= bool(workload.deaths())


def report_observation(stage: Stage) -> None:
    """Report threads of the observer that failed, as in ``recover``. Their tracebacks are stored with the nodes'
    logs."""
    defects = stage.observer.defects
    if defects:
        with (stage.record.directory / LOGS / OBSERVER_LOG).open("w", encoding="utf-8") as log:
            for _, error in defects:
                traceback.print_exception(error, file=log)
        errors = "; ".join(f"{doing} ended: {type(error).__name__}: {error}" for doing, error in defects)
        stage.report("brokers observed to the end", stage.record.clock.now(), met=False, detail=errors)


def read_finally(stage: Stage, topics: Mapping[str, int], isolation_level: Isolation) -> list[dict[str, Any]]:
    """Read every log to its end. Returns the rows of ``log_ends``. A log that was not read completely is reported, as
    in ``recover``."""
    at_ns, record = stage.record.clock.now(), stage.record
    ends = log_ends(stage.observer, stage.topology, isolation_level)
    read = read_to_end(
        ends,
        topics,
        isolation_level,
        record.journals,
        record.clock,
        _READ_SECONDS,
        record.file.broker,
        led=stage.observer.led,
    )
    reader = f"final {FINAL_READER}"
    record.file.clients[reader], record.file.writes[reader] = dict(read.config), ("reads", "log_ends")
    stage.report("every log read to its end", at_ns, met=not read.missed, detail="; ".join(read.missed))
    return read.rows


def look_into_replicas(stage: Stage, ends: Sequence[Mapping[str, Any]], isolation_level: Isolation) -> None:
    """Read the log of every follower in an ISR. A log that was not read to its end is reported, as in ``recover``."""
    at_ns, record = stage.record.clock.now(), stage.record
    followers: dict[int, list[Partition]] = {}
    for tp, sight in stage.observer.partitions().items():
        for broker in set(sight.isr) - {sight.leader}:
            followers.setdefault(broker, []).append(tp)
    for broker, partitions in followers.items():
        settings = replica_reader_config(stage.topology.bootstrap, isolation_level, broker, len(partitions))
        reader = f"replica {FINAL_READER + broker}"
        record.file.clients[reader], record.file.writes[reader] = dict(settings), ("reads",)
    missed = read_replicas(
        stage.topology.bootstrap,
        followers,
        ends,
        isolation_level,
        record.journals,
        record.clock,
        _READ_SECONDS,
        record.file.broker,
    )
    read = f"of {', '.join(map(record.file.broker, sorted(followers)))}" if followers else "no follower is in an ISR"
    stage.report("every in-sync follower's log read", at_ns, met=not missed, detail="; ".join(missed) or read)


def settle(stage: Stage, topics: Mapping[str, int], within: float) -> None:
    """Wait until every transaction has ended. A log whose last stable offset is unknown is reported, as in ``recover``.

    If that offset is known, the checkers judge it. If it is not, no checker would notice.
    """
    at_ns, record = stage.record.clock.now(), stage.record
    record.file.clients["admin 0"] = dict(admin_config(stage.topology.bootstrap))
    unstable = await_stable(stage.topology.bootstrap, topics, record.journals, record.clock, within)
    names = ", ".join(f"{topic}-{partition}" for topic, partition in unstable)
    detail = f"not known of {names} after {within:g} s" if unstable else ""
    stage.report("every log stable to its end", at_ns, met=not unstable, detail=detail)
