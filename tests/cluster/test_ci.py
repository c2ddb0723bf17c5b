"""What docs/ci has for a job of every night: its linters take it, and its steps run for a user who is not root."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from docker import DockerClient

from harness.core.waiting import wait_for
from harness.providers.docker.compose import DIRECTORY_LABEL
from harness.providers.docker.sources import DEBIAN
from harness.scenario.json_schema import json_schema
from harness.scenario.loading import named
from harness.suite.junit import render
from harness.suite.results import RunOutcome
from tests.cluster.command import begin, kafka_trial
from tests.cluster.registries import forget, put, registry
from tests.cluster.users import REPOSITORY, User, plain_user
from tests.suite.fakes import case, suite_file

pytestmark = pytest.mark.cluster

GITHUB = REPOSITORY / "docs" / "ci" / "github.yml"
GITLAB = REPOSITORY / "docs" / "ci" / "gitlab-ci.yml"

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
CHECK_JSONSCHEMA = "check-jsonschema==0.39.0"  # brings the schemas that GitHub and GitLab publish

JUNITPARSER = "junitparser==5.0.3"

#: Prints what it reads: the counts of the suite, and what became of each case.
READ = """
import json, sys
from junitparser import JUnitXml
[suite] = JUnitXml.fromfile(sys.argv[1])
counts = {"tests": suite.tests, "failures": suite.failures, "errors": suite.errors, "skipped": suite.skipped}
cases = {case.name: [type(result).__name__ for result in case.result] for case in suite}
print(json.dumps([counts, cases]))
"""

STORY = "lose-messages/leader-killed-acks-all"


@pytest.fixture(scope="module")
def mirror(engine: DockerClient, toolbox: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry with a Debian base: no image of ours was built from it."""
    with registry(tmp_path_factory.mktemp("registry")) as at:
        put(engine, toolbox, at, DEBIAN)
        forget(engine, at)  # (Of a process that was killed.)
        yield at
        forget(engine, at)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    with plain_user(tmp_path_factory.mktemp("user")) as made:
        yield made


def steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(GITHUB.read_text())
    (job,) = workflow["jobs"].values()
    assert {"SUITE", "TIME_BUDGET"} <= workflow["env"].keys()
    return list(job["steps"])


def from_(mirror: str) -> dict[str, str]:
    """The environment of one who has images from a registry alone, whatever else is there already."""
    clients = {name: os.environ[name] for name in ("KAFKA_TRIAL_CLIENTS",) if name in os.environ}
    return {"KAFKA_TRIAL_IMAGES": "registry", "KAFKA_TRIAL_REGISTRY": mirror, **clients}


def test_actionlint_accepts_the_workflow() -> None:
    done = subprocess.run(["go", "run", ACTIONLINT, str(GITHUB)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of others, in an environment of their own."""
    directory = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    subprocess.run([directory / "bin" / "pip", "install", "-q", CHECK_JSONSCHEMA, JUNITPARSER], check=True)
    return directory / "bin"


def read(tools: Path, junit: Path) -> Any:
    """What JUNITPARSER reads in a file: counts, and the results of each case."""
    done = subprocess.run([tools / "python", "-c", READ, junit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_consumer_of_junit_reads_each_run_of_a_suite_whatever_became_of_it(tools: Path, tmp_path: Path) -> None:
    file = suite_file(*(case(str(outcome)) for outcome in RunOutcome))
    for run, outcome in zip(file.runs, RunOutcome, strict=True):
        run.outcome, run.why = outcome, 'because "<of>" & \x1b that'
    (tmp_path / "junit.xml").write_text(render(file))
    assert read(tools, tmp_path / "junit.xml") == [
        {"tests": 10, "failures": 2, "errors": 5, "skipped": 2},
        {
            "as expected": [],
            "not as expected": ["Failure"],
            "unknown": ["Failure"],
            **{name: ["Error"] for name in ("cannot run", "crashed", "interrupted", "recorded", "running")},
            **{name: ["Skipped"] for name in ("not started", "waiting")},
        },
    ]


def test_both_meet_the_schema_that_is_published_for_them(tools: Path) -> None:
    check = tools / "check-jsonschema"
    for arguments in (
        ["--builtin-schema", "vendor.github-workflows", GITHUB],
        ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", GITLAB],
    ):
        done = subprocess.run([check, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_check_jsonschema_takes_every_scenario_and_none_that_is_wrong(tools: Path, tmp_path: Path) -> None:
    """Our own validator (tests/scenario/validator.py) tries many more mistakes."""
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(json_schema()))

    def taken(*arguments: str | Path) -> bool:
        return (
            subprocess.run([tools / "check-jsonschema", *arguments], capture_output=True, check=False).returncode == 0
        )

    assert taken("--check-metaschema", schema)
    assert taken("--schemafile", schema, *named().values())
    right = {"topic": {"replication": 3}}
    kil = {"inject": {"fault": "kil", "target": "leader"}}
    for wrong in ({}, {"tpoic": {}}, {"timeline": [{"wait": 5}]}, {"timeline": [kil]}):
        scenario = tmp_path / "mine.yaml"
        scenario.write_text(yaml.safe_dump(right | wrong))
        assert taken("--schemafile", schema, scenario) is (wrong == {}), wrong


def test_the_gitlab_job_runs_and_keeps_the_same_as_the_github_job() -> None:
    (job,) = yaml.safe_load(GITLAB.read_text()).values()
    for script, always in (("script", False), ("after_script", True)):
        same = [step["run"] for step in steps() if "run" in step and ("always()" in step.get("if", "")) is always]
        assert [line.rstrip("\n") for line in job[script]] == [line.rstrip("\n") for line in same]
    assert (job["cache"]["paths"], job["cache"]["when"]) == ([f"{kept_by_cache()}/"], "always")


def kept_by_cache() -> str:
    """What the workflow's cache restores, before the suite, and keeps after it, whatever became of that."""
    said = [f"{step.get('uses', '')} {step.get('run', '')}" for step in steps()]
    kinds = ("actions/cache/restore@", "kafka-trial suite", "kafka-trial prune", "actions/cache/save@")
    restored, suite, pruned, saved = (next(n for n, one in enumerate(said) if kind in one) for kind in kinds)
    assert restored < suite < pruned < saved
    before, after = steps()[restored]["with"], steps()[saved]["with"]
    assert after == {key: before[key] for key in ("path", "key")}
    # A night of which nothing came, since it could not be set up, must not be kept in place of those before.
    assert not any("run" in step for step in steps()[:restored])
    had = f"always() && steps.{steps()[restored]['id']}.outcome == 'success'"
    assert [steps()[number]["if"] for number in (pruned, saved)] == [had, had]
    return str(before["path"])


@pytest.mark.demo
def test_a_user_who_is_not_root_sees_the_demo_lose(user: User, mirror: str) -> None:
    """(First of those that need images: none is there.)"""
    done = user.run("scripts/demo --json", from_(mirror))
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert verdict["verdict"] == "invalid"
    assert verdict["expected"]
    assert verdict["summary"]["lost"] > 0


def test_runs_of_two_users_at_once_do_not_disturb_each_other(
    user: User, mirror: str, engine: DockerClient, tmp_path: Path
) -> None:
    """Neither in its run, nor by cleaning up: what may still be going is left alone."""
    assert user.run("scripts/setup", from_(mirror)).returncode == 0
    story = "scenarios/lose-messages/leader-killed-acks-all.yaml"
    theirs = " ".join([".venv/bin/kafka-trial run", story, "--store", "beside"])
    stores = (tmp_path, user.clone / "beside")
    with ThreadPoolExecutor(1) as pool, closing_down(begin("run", REPOSITORY / story, "--store", tmp_path)) as ours:
        going = pool.submit(user.run, theirs, from_(mirror))
        up = partial(runs_up, engine, stores)
        both = wait_for(up, "both clusters", within=180, good=lambda runs: len(runs) == 2)
        removed = kafka_trial("cleanup"), user.run(".venv/bin/kafka-trial cleanup", {})
        assert up() == both, removed
        said, _ = ours.communicate(timeout=240)
        done = going.result()
    assert ours.returncode == 0, said
    assert done.returncode == 0, done.stdout + done.stderr
    assert [len(list(store.rglob("verdict.json"))) for store in stores] == [1, 1]


def runs_up(engine: DockerClient, stores: Collection[Path]) -> set[Path]:
    """The runs of these stores that have a container."""
    labelled = engine.containers.list(filters={"label": DIRECTORY_LABEL})
    directories = {Path(container.labels[DIRECTORY_LABEL]) for container in labelled}
    return {run for run in directories if any(run.is_relative_to(store) for store in stores)}


@contextmanager
def closing_down(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the block."""
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.communicate()


def test_a_user_who_is_not_root_runs_the_workflows_steps(user: User, mirror: str, tools: Path) -> None:
    summary = user.clone / "summary.md"
    environment = {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(summary),
        **from_(mirror),
        "SUITE": STORY,
        "TIME_BUDGET": "30m",
    }
    suite = a_night(user, environment)
    assert STORY in summary.read_text()
    assert json.loads(suite.read_text())["baseline"] is None, "there was no night before"
    assert read(tools, suite.with_name("junit.xml")) == [
        {"tests": 1, "failures": 0, "errors": 0, "skipped": 0},
        {STORY: []},
    ]
    (run,) = json.loads(suite.read_text())["runs"]
    assert run["verdict"] == "valid"
    (file,) = (suite.parents[1] / STORY).glob("*/run.json")
    assert f"{mirror}/{DEBIAN}@sha256:" in json.loads(file.read_text())["versions"]["image of nodes"]

    # The next night's runner has what the cache kept, and nothing else of this one.
    summary.unlink()
    before, first = user.clone / kept_by_cache(), file.parent.name
    assert [run.parent.name for run in (before / STORY).glob("*/run.json")] == [first]
    shutil.rmtree(suite.parents[1])
    suite = a_night(user, environment)
    second = json.loads(suite.read_text())
    assert (second["baseline"], second["worse"]) == (str(before), {})
    assert f"0 of 1 scenarios are worse than {before}" in summary.read_text()
    (file,) = (suite.parents[1] / STORY).glob("*/run.json")
    assert file.parent.name != first
    assert [run.parent.name for run in (before / STORY).glob("*/run.json")] == [file.parent.name], "the newest is kept"


def a_night(user: User, environment: Mapping[str, str]) -> Path:
    """Run the workflow's steps; the suite.json that is kept of it."""
    for step in steps():
        if "run" in step:
            done = user.run(step["run"], environment)
            assert done.returncode == 0, f"{step['name']}: {done.stdout}\n{done.stderr}"
    (kept,) = (step["with"] for step in steps() if "upload-artifact" in step.get("uses", ""))
    assert kept["include-hidden-files"], "a run is only whole with them"
    (suite,) = (user.clone / kept["path"]).glob("suite-*/suite.json")
    return suite
