"""Runs that do not come to their end, or cannot begin: nothing is left behind, and nothing recorded is lost."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from docker import DockerClient

from harness.cli import codes
from harness.cluster.spec import DEFAULT_VERSION
from harness.core.waiting import wait_for
from harness.history.paths import SETTINGS_FILE
from harness.history.run_file import RunFile, State
from harness.providers.docker.cleanup import cleanup
from harness.providers.docker.compose import LABEL
from harness.providers.docker.images import kafka_image
from tests.cluster.command import begin
from tests.command import Invoke

pytestmark = pytest.mark.cluster

#: The smallest cluster there is, and a timeline that lasts longer than any test.
SMALL = {
    "cluster": {"brokers": 1},
    "topic": {"replication": 1},
    "workload": {"kind": "queue", "producers": 1, "consumers": 1, "rate": 500},
}
ENDLESS = {
    **SMALL,
    "timeline": [
        {"inject": {"fault": "slow", "target": "b1", "plane": "client", "delay": "20ms"}},
        {"inject": {"fault": "partition", "from": "b1", "to": "c1"}},
        {"wait": "10m"},
    ],
}
QUICK = {**SMALL, "timeline": [{"until": {"acknowledged": 100, "within": "60s"}}], "expect": {"verdict": "valid"}}


def scenario(directory: Path, text: object, name: str = "story.yaml") -> Path:
    path = directory / name
    path.write_text(yaml.safe_dump(text))
    return path


def left(engine: DockerClient, run: str) -> list[object]:
    chosen: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={run}"}
    return [
        *engine.containers.list(all=True, filters=chosen),
        *engine.networks.list(filters=chosen),
        *engine.volumes.list(filters=chosen),
    ]


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run in the middle of its timeline, with faults in force and writes acknowledged; and its directory."""
    process = begin("run", scenario(tmp_path, ENDLESS), "--store", tmp_path / "store")
    try:

        def running() -> list[Path]:
            assert process.poll() is None, process.communicate()[0]
            runs = [path.parent for path in (tmp_path / "store").rglob("run.json")]
            return [run for run in runs if len(RunFile.read(run).timeline) == 2]

        yield process, wait_for(running, "the second step of the timeline", within=120)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.usefixtures("spark")
@pytest.mark.core
def test_ctrl_c_removes_the_cluster_and_the_recorded_part_is_judged_unknown(
    endless: tuple[subprocess.Popen[str], Path], engine: DockerClient, kafka_trial: Invoke
) -> None:
    process, run = endless
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 255
    assert f"stays in {run}" in said.splitlines()[-1]
    file = RunFile.read(run)
    assert file.state is State.CRASHED
    assert left(engine, file.run) == []
    done = kafka_trial("check", run, "--json")
    assert done.code == 2, done.err
    assert done.verdict["verdict"] == "unknown"
    assert done.verdict["partial"]
    assert done.verdict["summary"]["attempted"] > 0


@pytest.mark.usefixtures("spark")
@pytest.mark.core
def test_after_kill_9_cleanup_removes_everything_and_the_journals_can_be_judged(
    endless: tuple[subprocess.Popen[str], Path], engine: DockerClient, kafka_trial: Invoke
) -> None:
    process, run = endless
    process.kill()
    process.wait()
    name = RunFile.read(run).run
    assert left(engine, name) != []
    done = kafka_trial("cleanup", name)
    assert done.code == 0, done.err
    assert left(engine, name) == []
    judged = kafka_trial("check", run, "--json")
    assert judged.code == 2, judged.err
    assert judged.verdict["partial"]
    assert judged.verdict["summary"]["attempted"] > 0


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = scenario(tmp_path, QUICK)
    both = [begin("run", path, "--store", tmp_path / "store") for _ in range(2)]
    for process in both:
        said, _ = process.communicate(timeout=180)
        assert process.returncode == 0, said
    verdicts = list((tmp_path / "store").rglob("verdict.json"))
    assert len(verdicts) == 2


def test_a_broker_that_exits_at_start_is_reported_with_its_last_words(tmp_path: Path, kafka_trial: Invoke) -> None:
    broken = {**QUICK, "cluster": {"brokers": 1, "config": {"log.retention.ms": "never"}}}
    done = kafka_trial("run", scenario(tmp_path, broken), "--store", tmp_path / "store")
    assert done.code == 255
    line = done.err.splitlines()[-1]
    assert "exited with 1" in line
    assert "log.retention.ms" in line


def test_a_setting_that_a_broker_does_not_know_is_reported_before_the_timeline(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    unknown = "cluster.config={replica.lag.time.max.mss: 2000}"
    done = kafka_trial("run", scenario(tmp_path, QUICK), "--set", unknown, "--store", tmp_path / "store")
    assert done.code == codes.BAD_INPUT
    line = done.err.splitlines()[-1]
    assert "Kafka ignores 'replica.lag.time.max.mss'" in line
    assert "did you mean 'replica.lag.time.max.ms'?" in line
    (run,) = (path.parent for path in (tmp_path / "store").rglob("run.json"))
    assert [one.phase for one in RunFile.read(run).phases] == ["cluster up"]


@pytest.mark.usefixtures("spark")
def test_all_broker_settings_are_kept_beside_the_run(tmp_path: Path, kafka_trial: Invoke) -> None:
    given = "cluster.config={replica.lag.time.max.ms: 2000}"
    done = kafka_trial("run", scenario(tmp_path, QUICK), "--set", given, "--store", tmp_path / "store")
    assert done.code == 0, done.err
    (kept,) = (tmp_path / "store").rglob(SETTINGS_FILE)
    (b1,) = json.loads(kept.read_text()).values()
    assert b1["replica.lag.time.max.ms"] == "2000"
    assert len(b1) > 200, "all that it runs with, not what was given alone"


def test_a_subnet_that_is_taken_is_reported(tmp_path: Path, engine: DockerClient, kafka_trial: Invoke) -> None:
    taken = engine.networks.get("bridge").attrs["IPAM"]["Config"][0]["Subnet"]
    clash = ".".join(taken.split(".")[:3]) + ".0/24"
    done = kafka_trial("run", scenario(tmp_path, QUICK), "--set", f"cluster.subnet={clash}", "--store", tmp_path / "s")
    assert done.code == 3
    assert f"cluster.subnet {clash} is taken by Docker network bridge" in done.err.splitlines()[-1]


def test_an_image_that_cannot_be_had_is_reported(tmp_path: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial(
        "run", scenario(tmp_path, QUICK), "--set", "cluster.image=localhost/no/such:image", "--store", tmp_path / "s"
    )
    assert done.code == 3
    assert "cluster.image localhost/no/such:image cannot be pulled" in done.err.splitlines()[-1]


@pytest.mark.usefixtures("spark")
def test_a_given_image_and_published_ports_run_too(tmp_path: Path, engine: DockerClient, kafka_trial: Invoke) -> None:
    image = kafka_image(engine, DEFAULT_VERSION)
    given = {**QUICK, "cluster": {"brokers": 1, "image": image, "clients": "published"}}
    done = kafka_trial("run", scenario(tmp_path, given), "--store", tmp_path / "store", "--json")
    assert done.code == 0, done.err
    assert done.verdict["summary"]["acknowledged"] > 0


@pytest.mark.usefixtures("spark")
def test_random_faults_are_drawn_by_the_seed_and_healed(tmp_path: Path, kafka_trial: Invoke) -> None:
    faults = [{"fault": "kill", "target": "one-of brokers"}, {"fault": "isolate", "target": "leader"}]
    drawn = {
        # (With the default of 9 s a fault may be over before anything is acknowledged without the broker that it hit.)
        "cluster": {"config": {"broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 500}},
        "topic": {"min.insync.replicas": 2},
        "workload": {"kind": "queue", "rate": 500},
        "timeline": [{"random": {"faults": faults, "every": "8s", "for": "24s"}}],
    }
    path = scenario(tmp_path, drawn)
    done = kafka_trial("run", path, "--seed", "4", "--store", tmp_path / "store", "--json")
    assert done.code == 0, done.err
    assert done.verdict["verdict"] == "valid"
    assert len(done.verdict["faults"]) == 3


@pytest.mark.usefixtures("spark")
def test_a_controller_quorum_works_without_its_leader(tmp_path: Path, kafka_trial: Invoke) -> None:
    quorum = {
        "cluster": {"brokers": 1, "controllers": 3},
        "topic": {"replication": 1},
        "workload": {"kind": "queue", "rate": 500},
        "timeline": [
            {"until": {"acknowledged": 1000, "within": "60s"}},
            {"inject": {"fault": "kill", "target": "controller"}},
            {"until": {"acknowledged": 3000, "within": "60s"}},
        ],
    }
    done = kafka_trial("run", scenario(tmp_path, quorum), "--store", tmp_path / "store", "--json")
    assert done.code == 0, done.err
    (fault,) = done.verdict["faults"]
    assert fault["nodes"][0].startswith("c")


@pytest.mark.usefixtures("spark")
def test_a_cluster_that_is_kept_goes_with_cleanup(tmp_path: Path, engine: DockerClient, kafka_trial: Invoke) -> None:
    done = kafka_trial("run", scenario(tmp_path, QUICK), "--keep", "--store", tmp_path / "store", "--json")
    run = done.verdict["run"]
    try:
        assert done.code == 0, done.err
        assert left(engine, run) != []
    finally:
        cleanup(run, engine)
    assert left(engine, run) == []
