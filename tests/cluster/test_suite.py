"""A suite on real clusters: killed in the middle, and gone on with."""

import json
import os
import signal
from pathlib import Path

import pytest
import yaml
from docker import DockerClient

from harness.core.waiting import wait_for
from harness.history.run_file import RunFile, State
from harness.providers.docker.compose import BACKGROUND, FOREGROUND, LABEL
from harness.suite.results import RunOutcome, SuiteFile, stored_suites
from tests.cluster.command import begin
from tests.cluster.test_breaking_off import SMALL

pytestmark = pytest.mark.cluster

QUICK = {**SMALL, "timeline": [{"until": {"acknowledged": 100, "within": "60s"}}]}


def scenarios(directory: Path) -> list[Path]:
    """Three: one that is valid, one that crashes, for its brokers do not start, and one that is not as expected."""
    texts = {
        "good": QUICK,
        "crashes": {**QUICK, "cluster": {"brokers": 1, "config": {"log.retention.bytes": "none"}}},
        "surprising": {**QUICK, "expect": {"verdict": "invalid", "anomalies": ["lost"]}},
    }
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, **text}))
    return [directory / f"{name}.yaml" for name in texts]


def left(engine: DockerClient, store: Path) -> list[str]:
    containers = engine.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
    return [one.name for one in containers if any(str(store) in value for value in one.labels.values())]


def test_resume_of_a_killed_suite_neither_repeats_nor_loses_a_run(tmp_path: Path, engine: DockerClient) -> None:
    store = tmp_path / "store"
    arguments = ("suite", *scenarios(tmp_path), "--store", store)
    killed = begin(*arguments)

    def writing() -> list[Path]:
        assert killed.poll() is None, killed.communicate()[0]
        runs = [path.parent for path in store.rglob("run.json")]
        return [run for run in runs if any(phase.phase == "timeline" for phase in RunFile.read(run).phases)]

    [begun] = wait_for(writing, "the timeline of the first run", within=120)
    killed.kill()
    killed.communicate()
    again = begin(*arguments, "--resume", "--json")
    said, _ = again.communicate(timeout=400)

    [directory] = stored_suites(store)
    file = SuiteFile.read(directory)
    assert json.loads(said.splitlines()[-1])["runs"] == json.loads(file.model_dump_json(by_alias=True))["runs"]
    assert {run.name: run.outcome for run in file.runs} == {
        "good": RunOutcome.EXPECTED,
        "crashes": RunOutcome.CRASHED,
        "surprising": RunOutcome.UNEXPECTED,
    }
    assert again.returncode == 255
    # The run that was under way was recorded whole before its recorder knew that the suite was gone, or ran once more.
    first = next(run for run in file.runs if (store / run.scenario) == begun.parent)
    whole = RunFile.read(begun).state in {State.RECORDED, State.JUDGED}
    assert first.abandoned == ([] if whole else [str(begun.relative_to(store))])
    assert len(list((store / "good").iterdir())) == 1 + (first.scenario == "good" and not whole)
    assert left(engine, store) == []


def test_a_cluster_that_starts_in_the_background_is_out_of_it_when_its_timeline_begins(
    tmp_path: Path, engine: DockerClient
) -> None:
    store, slow = tmp_path / "store", tmp_path / "slow.yaml"
    slow.write_text(yaml.safe_dump({"name": "slow", **SMALL, "timeline": [{"wait": "5s"}]}))
    suite = begin("suite", slow, "--times", "2", "--store", store)
    shares = dict[str, set[int]]()

    def both_written() -> bool:
        for path in store.rglob("run.json"):
            file = RunFile.read(path.parent)
            if [phase.phase for phase in file.phases][-1:] == ["timeline"]:
                label = {"label": f"{LABEL}={file.run}"}
                found = engine.containers.list(filters=label, ignore_removed=True)
                shares[file.run] = {one.attrs["HostConfig"]["CpuShares"] for one in found}
        assert suite.poll() in {None, 0}, suite.communicate()[0]
        return len(shares) == 2

    wait_for(both_written, "two timelines", within=180)
    assert set(map(frozenset, shares.values())) == {frozenset({FOREGROUND})}
    suite.communicate(timeout=180)
    composed = [yaml.safe_load(path.read_text()) for path in store.rglob("compose.yaml")]
    assert {node["cpu_shares"] for one in composed for node in one["services"].values()} == {BACKGROUND}
    runs = sorted(RunFile.read(path.parent).run for path in store.rglob("run.json"))
    first, second = (RunFile.read(store / run) for run in runs)
    drained = next(phase.at_ns for phase in first.phases if phase.phase == "drain")
    assert second.origin_unix_ns < first.origin_unix_ns + drained, "it came up while the first was healed"


def test_resume_judges_a_run_recorded_before_the_suite_was_killed(tmp_path: Path, engine: DockerClient) -> None:
    store = tmp_path / "store"
    arguments = ("suite", scenarios(tmp_path)[0], "--store", store)
    killed = begin(*arguments)

    def recorded() -> list[Path]:
        assert killed.poll() is None, killed.communicate()[0]
        runs = [path.parent for path in store.rglob("run.json")]
        return [run for run in runs if RunFile.read(run).state is State.RECORDED]

    [run] = wait_for(recorded, "a run that is not judged yet", within=180, every=0.02)
    killed.kill()
    killed.communicate()
    assert not (run / "verdict.json").exists()
    again = begin(*arguments, "--resume")
    said, _ = again.communicate(timeout=300)

    assert again.returncode == 0, said
    assert (run / "verdict.json").exists()
    assert [one.parent for one in store.rglob("run.json")] == [run]
    [directory] = stored_suites(store)
    [reported] = SuiteFile.read(directory).runs
    assert (reported.outcome, reported.abandoned) == (RunOutcome.EXPECTED, [])
    assert left(engine, store) == []


def test_ctrl_c_ends_a_suite_with_the_results_so_far(tmp_path: Path, engine: DockerClient) -> None:
    store = tmp_path / "store"
    endless = tmp_path / "endless.yaml"
    endless.write_text(yaml.safe_dump({"name": "endless", **SMALL, "timeline": [{"wait": "10m"}]}))
    process = begin("suite", endless, "--store", store)

    def writing() -> list[Path]:
        assert process.poll() is None, process.communicate()[0]
        runs = [path.parent for path in store.rglob("run.json")]
        return [run for run in runs if any(phase.phase == "timeline" for phase in RunFile.read(run).phases)]

    wait_for(writing, "the timeline", within=120)
    os.kill(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 255
    assert "--resume` continues it" in said
    [directory] = stored_suites(store)
    assert SuiteFile.read(directory).runs[0].outcome is RunOutcome.INTERRUPTED
    assert (directory / "junit.xml").is_file()
    assert left(engine, store) == []
