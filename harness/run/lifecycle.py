"""A whole run, from a validated scenario to its verdict. Only this module knows the order of the steps."""

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from harness.cluster.elections import ElectionsByHand, elect_uncleanly
from harness.cluster.known_settings import as_text, check_settings
from harness.cluster.observer import observe
from harness.cluster.provider import Cluster, Provider
from harness.cluster.ready import await_registered, await_whole_isr, create_topics
from harness.core.verdict import Verdict
from harness.history.journal import Journal, journal_path
from harness.history.paths import SETTINGS_FILE
from harness.history.run_file import FINAL_READ, HEAL, TIMELINE, RunFile, State
from harness.history.schema import FAULTS
from harness.history.seal import write_sealed
from harness.history.store import RunRecord, seal
from harness.history.writing import write_file
from harness.providers.catalogue import PROVIDERS, ProviderRow, provider_of
from harness.run.display import Display
from harness.run.new_run import new_run
from harness.run.recording import begin, note, recording
from harness.run.recovery import (
    RECOVERY_SECONDS,
    down_for,
    look_into_replicas,
    read_finally,
    recover,
    report_observation,
    settle,
)
from harness.run.timeline import Stage, follow
from harness.scenario.model import Scenario
from nemesis.nemesis import Nemesis
from nemesis.schedule import generator
from workloads.processes import Counts
from workloads.workload import Surroundings, start


def run(
    scenario: Scenario,
    store: Path,
    seed: int,
    display: Display,
    keep: bool = False,
    providers: Mapping[str, ProviderRow] = PROVIDERS,
) -> tuple[Path, Verdict]:
    """Run one scenario: record it (``record_run`` has the steps, in order), judge the record, publish the verdict.

    Returns the run's directory and its verdict. Raises what ``record_run`` does.
    """
    # (Imported here, because a recorder does not need the judge: its modules take half a second of a core.)
    from checkers.judge import judge
    from checkers.spark.session import lasting
    from harness.history.stored_run import StoredRun
    from harness.report.sentences import with_sentences
    from harness.run.judging import emptied, judging, publish

    directory = record_run(scenario, store, seed, display, keep, providers, beside_final_read=warm_up)
    display.phase("judge")
    try:
        with judging(directory) as results:
            size = [StoredRun.open(directory).records]
            judged = lasting(lambda spark: judge(directory, spark, emptied(results)), display.line, rows=size)
            file = RunFile.read(directory)
            verdict = with_sentences(judged, file)
            publish(directory, results, verdict, file)
    except BaseException as exc:
        exc.add_note(f"the recording stays in {directory}")
        raise
    return directory, verdict


def record_run(
    scenario: Scenario,
    store: Path,
    seed: int,
    display: Display,
    keep: bool = False,
    providers: Mapping[str, ProviderRow] = PROVIDERS,
    background: bool = False,
    before_cluster: Callable[[bool], None] = lambda _: None,
    before_timeline: Callable[[], None] = lambda: None,
    beside_final_read: Callable[[Counts], None] = lambda _counts: None,
) -> Path:
    """Run and record one scenario, without judging it. Returns the run's directory. The steps:

    1. Check that the provider can run the scenario. (``before_cluster`` may wait here.)
    2. Bring up the cluster, check its settings, and create the topics. (``background``: where the provider can, with
       the cores that other clusters leave idle, until the timeline. ``before_cluster`` gets whether it can.)
    3. Observe every broker until the end. When each ISR is whole, start the nemesis and the clients.
       (``before_timeline`` may wait before the clients write.)
    4. Follow the timeline.
    5. Heal every fault, wait until writes are acknowledged again, and end the clients.
    6. Wait until transactions are over. Read every log to its end, then each replica's, if the scenario says so.
       (``beside_final_read`` is called with the workload's counts before.)
    7. Remove the cluster, unless ``keep``.
    8. Seal the record.

    Everything acquired is released, whatever happens, and the recording stays. Raises EnvironmentLacks before anything
    is started, and ClusterError if the cluster does not become ready.
    """
    provider = provider_of(scenario.cluster, providers)
    provider.check(scenario.cluster, [fault.needs for fault in scenario.faults], progress=display.line)
    background = background and provider.has_background(scenario.cluster)
    before_cluster(background)
    with recording(new_run(scenario, seed, store)) as record:
        phase = partial(begin, record, display)
        with ExitStack() as stack:
            phase("cluster up")
            cluster = _cluster(stack, provider, scenario, record, display, keep, background)
            stage = _stage(stack, cluster, scenario, record, display)
            before_timeline()
            if background:
                cluster.to_foreground()
            stage.workload.begin()
            phase(TIMELINE)
            follow(scenario.timeline, stage)
            phase(HEAL)
            recover(stage, scenario)
            beside_final_read(stage.workload.counts())
            topics = _topics(scenario)
            if (settles_within := scenario.workload.settles_within) is not None:
                phase("transactions settle")
                settle(stage, topics, settles_within)
            phase(FINAL_READ)
            ends = read_finally(stage, topics, scenario.isolation_level)
            if scenario.final_read.replicas:
                phase("replica read")
                look_into_replicas(stage, ends, scenario.isolation_level)
            report_observation(stage)
            record.clocks(cluster.clocks())
            phase("cluster stays up" if keep else "cluster down")
        phase("seal")
        seal(record.directory, record.file, stage.workload.killed)
        record.file.state = State.RECORDED
        write_sealed(record.directory, record.file)
    return record.directory


def _cluster(
    stack: ExitStack,
    provider: Provider,
    scenario: Scenario,
    record: RunRecord,
    display: Display,
    keep: bool,
    background: bool,
) -> Cluster:
    """The cluster, up, with the scenario's topics; run.json has its nodes, versions and features. ``stack`` removes
    it."""
    noted = partial(note, record, display)
    up = provider.up(scenario.cluster, record.file.run, record.directory, noted, keep, background, display.line)
    cluster = stack.enter_context(up)
    if keep:
        stack.callback(lambda: display.line(kept(cluster)))
    record.nodes(cluster.topology, cluster.clocks())
    record.file.versions |= cluster.versions
    record.file.features = await_registered(cluster)
    settings = check_settings(cluster, scenario.cluster, noted)
    write_file(record.directory, SETTINGS_FILE, as_text(settings))
    create_topics(cluster, scenario.topic)
    return cluster


def _stage(stack: ExitStack, cluster: Cluster, scenario: Scenario, record: RunRecord, display: Display) -> Stage:
    """The observer, the nemesis and the clients, started; the clients do not write yet. ``stack`` ends them."""
    watched = (scenario.watch_topic, scenario.watch_partition)
    seed = record.file.seed
    surroundings = Surroundings(cluster.topology.bootstrap, _topics(scenario), record.journals, record.clock, seed)
    coordinated = scenario.workload.transactional_id(record.clock.origin_ns)
    group = surroundings.group if scenario.workload.grouped else None
    observer = stack.enter_context(
        observe(cluster.topology, scenario.topic.names, watched, record.journals, record.clock, coordinated, group)
    )
    await_whole_isr(observer, scenario.topic, RECOVERY_SECONDS)
    faults = stack.enter_context(Journal(journal_path(record.journals, "faults", "nemesis"), FAULTS))
    nemesis = stack.enter_context(
        Nemesis(cluster.shell, observer.view, faults, record.clock, generator(seed, "nemesis"))
    )
    elections = ElectionsByHand(partial(elect_uncleanly, cluster.topology.bootstrap), faults, record.clock)
    workload = stack.enter_context(start(scenario.workload, surroundings))
    record.file.clients, record.file.writes = workload.clients, workload.writes
    afterwards = down_for(scenario)
    return Stage(record, cluster.topology, observer, nemesis, workload, display, elections, afterwards=afterwards)


def _topics(scenario: Scenario) -> dict[str, int]:
    return dict.fromkeys(scenario.topic.names, scenario.topic.partitions)


def kept(cluster: Cluster) -> str:
    """The line about a kept cluster: its nodes, the address for clients, and the command that removes it."""
    nodes = [node.name for node in cluster.topology.nodes if cluster.why_dead(node) is None]
    return (
        f"kept: {', '.join(nodes) or 'no node'} up; bootstrap.servers={cluster.topology.bootstrap}; "
        f"`{cluster.removed_by}` removes it all"
    )


def warm_up(counts: Counts) -> None:
    """Start Spark during the final read, for about as many rows as will be judged.

    Not earlier: Spark's start takes both cores of a small machine, and would delay the writes after a fault, whose time
    is judged. If the start fails, the judge gets the same error, and reports it.
    """
    from checkers.spark.session import session

    expected = [2 * counts.sent + counts.read]
    threading.Thread(target=session, kwargs={"rows": expected}, name="spark", daemon=True).start()
