"""A whole run, from a validated scenario to its verdict. The order of things is here and nowhere else."""

import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from checkers import judge
from checkers.spark.session import interruptibly, session
from harness.cluster.elections import Elections, elect_uncleanly
from harness.cluster.log_ends import log_ends
from harness.cluster.observer import observe
from harness.cluster.provider import Cluster
from harness.cluster.ready import await_registered, await_whole_isr, create_topics, out_of_sync
from harness.core.errors import KafkaTrialError
from harness.core.verdict import Verdict
from harness.history.journal import Journal, journal_path
from harness.history.paths import LOGS
from harness.history.run_file import RunFile, State
from harness.history.schema import FAULTS, FINAL_READER
from harness.history.store import RunRecord, seal, sent_nothing
from harness.history.stored_run import rows
from harness.providers.catalogue import PROVIDERS, Row, provider_of
from harness.run.display import Display
from harness.run.judging import judging, publish
from harness.run.new_run import new_run
from harness.run.timeline import Stage, follow, seen
from harness.run.versions import versions
from harness.scenario.model import Scenario
from nemesis.nemesis import Nemesis
from nemesis.schedule import generator
from workloads.clients.settings import Isolation, admin_config, replica_reader_config
from workloads.processes import Counts, Workers
from workloads.protocol import Slot
from workloads.readback.final_read import read_to_end
from workloads.readback.last_stable import await_stable
from workloads.readback.replica_read import read_replicas
from workloads.workload import Plan, start

_RECOVERY_SECONDS = 30.0
_DRAIN_SECONDS = 60.0
_GIVE_UP_SECONDS = 3.0
_READ_SECONDS = 120.0
_WRITING_NS = 1_000_000_000


def run(
    scenario: Scenario,
    store: Path,
    seed: int,
    display: Display,
    keep: bool = False,
    providers: Mapping[str, Row] = PROVIDERS,
) -> tuple[Path, Verdict]:
    """Run one scenario and judge it; returns the run's directory and its verdict.

    Everything acquired is released, whatever happens, and what was recorded is kept. ``keep`` leaves the cluster up.
    Raises EnvironmentLacks before anything is started; ClusterError where the cluster did not come to serve.
    """
    provider = provider_of(scenario.cluster, providers)
    provider.check(scenario.cluster, [fault.needs for fault in scenario.faults])
    with recording(new_run(scenario, seed, store)) as record:
        phase = partial(begin, record, display)
        with ExitStack() as stack:
            phase("cluster up")
            cluster = stack.enter_context(
                provider.up(scenario.cluster, record.file.run, record.directory, partial(note, record, display), keep)
            )
            if keep:
                stack.callback(lambda: display.line(kept(cluster)))
            record.nodes(cluster.topology)
            record.file.features = await_registered(cluster)
            create_topics(cluster, scenario.topic)
            watch = (scenario.watch_topic, scenario.watch_partition)
            coordinated = scenario.workload.transactional_id(record.clock.origin_ns)
            observer = stack.enter_context(
                observe(cluster.topology, scenario.topic.names, watch, record.journals, record.clock, coordinated)
            )
            await_whole_isr(observer, scenario.topic, _RECOVERY_SECONDS)
            faults = stack.enter_context(Journal(journal_path(record.journals, "faults", "nemesis"), FAULTS))
            draws = generator(seed, "nemesis")
            nemesis = stack.enter_context(Nemesis(cluster.shell, observer.view, faults, record.clock, draws))
            elections = Elections(partial(elect_uncleanly, cluster.topology.bootstrap), faults, record.clock)
            topics = dict.fromkeys(scenario.topic.names, scenario.topic.partitions)
            plan = Plan(cluster.topology.bootstrap, topics, record.journals, record.clock, seed)
            workload = stack.enter_context(start(scenario.workload, plan))
            record.file.clients = workload.clients
            stage = Stage(record, cluster.topology, observer, nemesis, workload, display, elections)
            phase("timeline")
            follow(scenario.timeline, stage)
            phase("heal")
            recover(stage, scenario)
            warm_up(workload.counts())
            if (settles_within := scenario.workload.settles_within) is not None:
                phase("transactions settle")
                settle(stage, topics, settles_within)
            phase("final read")
            ends = read_finally(stage, topics, scenario.isolation_level)
            if scenario.final_read.replicas:
                phase("replica read")
                look_into_replicas(stage, ends, scenario.isolation_level)
            report_observation(stage)
            phase("cluster stays up" if keep else "cluster down")
        phase("judge")
        seal(record.directory, record.file, workload.killed)
        record.file.state = State.RECORDED
        record.save()
        with judging(record.directory) as results:
            size = [rows(record.directory)]
            verdict = interruptibly(lambda: judge.judge(record.directory, session(rows=size), results))
            publish(record.directory, results, verdict, record.file)
    return record.directory, verdict


def kept(cluster: Cluster) -> str:
    """What stays up, where clients find it, and how it is removed."""
    nodes = [node.name for node in cluster.topology.nodes if cluster.why_dead(node) is None]
    return (
        f"kept: {', '.join(nodes) or 'no node'} up; bootstrap.servers={cluster.topology.bootstrap}; "
        f"`kafka-trial cleanup {cluster.run}` removes it all"
    )


@contextmanager
def recording(record: RunRecord) -> Iterator[RunRecord]:
    """Until the run is over: where it breaks off, run.json says so, and the journals stay for ``check`` to judge, where
    anything was sent. (What was sealed before it broke off is whole.)"""
    record.file.versions = versions(record.file.configuration.version)
    try:
        yield record
    except BaseException as exc:
        if record.file.state not in {State.RECORDED, State.JUDGED}:
            record.file.state = State.INTERRUPTED if sent_nothing(record.directory) else State.CRASHED
        record.file.notes.append(f"broken off: {type(exc).__name__}: {exc}".rstrip(": "))
        record.save()
        exc.add_note(f"what was recorded is kept in {record.directory}")
        raise
    finally:
        record.release()


def note(record: RunRecord, display: Display, text: str) -> None:
    """Note and show what went wrong beside what is judged."""
    record.file.notes.append(text)
    display.line(text)


def begin(record: RunRecord, display: Display, name: str) -> None:
    """Note and show that a phase of the run begins."""
    record.phase(name)
    display.phase(name)


def warm_up(counts: Counts) -> None:
    """Start Spark beside the final read, for about as many rows as are going to be judged.

    Not before: it takes both cores of a small machine, and how soon writes come back after a fault is judged. If it
    fails, the judge meets the same error where it can be told.
    """
    expected = [2 * counts.sent + counts.read]
    threading.Thread(target=session, kwargs={"rows": expected}, name="spark", daemon=True).start()


def recover(stage: Stage, scenario: Scenario) -> None:
    """Heal all faults, wait until the ISR is whole, go on until writes are acknowledged again, and drain.

    What does not come about is reported, and makes the run ``unknown``; a cluster that was waited for in vain once is
    not waited for again. A worker that dies is noted at the end, and keeps the others from nothing.
    """
    at_ns = stage.record.clock.now()
    heal(stage, scenario.final_read.down)
    since_ns = stage.record.clock.now()
    down = {name for active in stage.nemesis.active for name in active.nodes}
    excused = [node for name in down if (node := stage.topology.named(name))]

    def lacking() -> list[str]:
        return out_of_sync(stage.observer, scenario.topic, without=excused)

    awaited, patience, drain = "full ISR after the heal", _RECOVERY_SECONDS, _DRAIN_SECONDS
    if stage.until(lambda: not lacking(), patience, awaited, stage.show):
        # Before, a deposed leader may acknowledge too (acks=1). A second of writes more, for those that truncated their
        # logs: the high watermark is told them again only when it moves (KIP-227, KAFKA-14704).
        since_ns = stage.record.clock.now() + _WRITING_NS
    else:
        patience = 0.0
    if scenario.workload.acks != "0":
        written = "writes acknowledged after the heal"
        came = stage.until(lambda: stage.workload.acknowledged_since(since_ns), patience, written, stage.show)
        stage.report(written, at_ns, met=came, detail="" if came else f"none within {patience:g} s; {seen(stage)}")
        patience, drain = (patience, drain) if came else (0.0, _GIVE_UP_SECONDS)
    begin(stage.record, stage.display, "drain")
    finish(stage.record.file, stage.workload, drain)
    whole = stage.until(lambda: not lacking(), patience, awaited, stage.show)
    stage.report(awaited, at_ns, met=whole, detail="" if whole else "; ".join(lacking()))


def heal(stage: Stage, down: Sequence[str]) -> None:
    """Heal all faults but what is to stay ``down``. What cannot be healed is reported, as in ``recover``."""
    at_ns = stage.record.clock.now()
    try:
        stage.nemesis.heal_all(except_=down)
    except KafkaTrialError as exc:
        stage.report("heal all", at_ns, met=False, detail=str(exc))
    stage.record.file.down = {name: [n.name for n in nodes] for name, nodes in stage.nemesis.meant(down).items()}
    stage.record.file.lasting = {active.name: list(active.nodes) for active in stage.nemesis.active}
    stage.record.save()


def finish(file: RunFile, workload: Workers, within: float) -> None:
    """Drain and end the workload. What did not go as it should is noted; a worker that died makes the run partial, and
    one that did not finish makes it ``unknown``."""
    file.notes += workload.finish(within)
    file.unfinished = workload.unfinished
    file.died = workload.died_members
    file.partial |= bool(workload.deaths())


def report_observation(stage: Stage) -> None:
    """Report what of the observer ended early, as in ``recover``. The tracebacks are kept beside the nodes' logs."""
    defects = stage.observer.defects
    if defects:
        with (stage.record.directory / LOGS / "observer.log").open("w", encoding="utf-8") as log:
            for _, error in defects:
                traceback.print_exception(error, file=log)
        told = "; ".join(f"{doing} ended: {type(error).__name__}: {error}" for doing, error in defects)
        stage.report("brokers observed to the end", stage.record.clock.now(), met=False, detail=told)


def read_finally(stage: Stage, topics: Mapping[str, int], isolation_level: Isolation) -> list[dict[str, Any]]:
    """Read every log to its end; returns the rows of log_ends. One not read whole is reported, as in ``recover``."""
    at_ns, record = stage.record.clock.now(), stage.record
    ends = log_ends(stage.observer, stage.topology, isolation_level)
    read = read_to_end(
        ends, topics, isolation_level, record.journals, record.clock, _READ_SECONDS, led=stage.observer.led
    )
    record.file.clients[f"final {FINAL_READER}"] = dict(read.config)
    stage.report("every log read to its end", at_ns, met=not read.missed, detail="; ".join(read.missed))
    return read.rows


def look_into_replicas(stage: Stage, ends: Sequence[Mapping[str, Any]], isolation_level: Isolation) -> None:
    """Read the log of every follower in an ISR. One that was not read to its end is reported, as in ``recover``."""
    at_ns, record = stage.record.clock.now(), stage.record
    followers: dict[int, list[Slot]] = {}
    for slot, sight in stage.observer.partitions().items():
        for broker in set(sight.isr) - {sight.leader}:
            followers.setdefault(broker, []).append(slot)
    for broker, slots in followers.items():
        settings = replica_reader_config(stage.topology.bootstrap, isolation_level, broker, len(slots))
        record.file.clients[f"replica {FINAL_READER + broker}"] = dict(settings)
    missed = read_replicas(
        stage.topology.bootstrap, followers, ends, isolation_level, record.journals, record.clock, _READ_SECONDS
    )
    read = f"of brokers {', '.join(map(str, sorted(followers)))}" if followers else "no follower is in an ISR"
    stage.report("every in-sync follower's log read", at_ns, met=not missed, detail="; ".join(missed) or read)


def settle(stage: Stage, topics: Mapping[str, int], within: float) -> None:
    """Wait until every transaction is over. A log that is not known to be stable is reported, as in ``recover``.

    Where its last stable offset was told, the checkers judge it; where not, none of them would miss it.
    """
    at_ns, record = stage.record.clock.now(), stage.record
    record.file.clients["admin 0"] = dict(admin_config(stage.topology.bootstrap))
    unstable = await_stable(stage.topology.bootstrap, topics, record.journals, record.clock, within)
    names = ", ".join(f"{topic}-{partition}" for topic, partition in unstable)
    detail = f"not known of {names} after {within:g} s" if unstable else ""
    stage.report("every log stable to its end", at_ns, met=not unstable, detail=detail)
