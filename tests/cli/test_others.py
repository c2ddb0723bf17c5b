"""``scenarios``, ``cleanup`` and ``doctor``."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.environment import look_at_java
from harness.cluster.provider import Provider
from harness.cluster.spec import Part
from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.history.lock import RecordingLock
from harness.history.run_file import RunFile
from harness.providers.catalogue import ProviderRow
from harness.providers.docker.cleanup import cleanup as clean
from harness.providers.docker.compose import labels_of
from harness.providers.docker.provider import Docker
from harness.providers.docker.spec import DockerSpec
from harness.scenario.json_schema import json_schema
from harness.scenario.loading import catalogue, load
from harness.scenario.loading import named as named_scenarios
from harness.suite.model import load_suite
from harness.suite.plan import plan
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke


class Nothing(Part):
    """What only these providers know."""


def cleaning(*removes: Callable[..., list[str]]) -> Backends:
    """What the commands do, with a provider for each way of cleaning up."""

    def row(remove: Callable[..., list[str]]) -> ProviderRow:
        return ProviderRow(Nothing, lambda: cast(Provider, SimpleNamespace(cleanup=remove)))

    return Backends(providers=lambda: {f"provider {number}": row(remove) for number, remove in enumerate(removes)})


def test_scenarios_lists_each_in_a_line_with_its_time_and_expectation(kafka_trial: Invoke) -> None:
    done = kafka_trial("scenarios")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[0] for row in rows] == [scenario.name for scenario in catalogue()]
    assert all(row[1] == "about" and 40 < int(row[2]) < 600 and row[3] == "s" for row in rows)
    assert "invalid: lost, permitted" in done.out


def test_scenarios_tells_source_claim_and_tags_where_asked(kafka_trial: Invoke) -> None:
    done = kafka_trial("scenarios", "--long")
    for scenario in catalogue():
        said = f"\n  source: {scenario.source}\n  claim:  {scenario.claim}\n  tags:   {' '.join(scenario.tags)}\n"
        assert said in done.out


def test_scenarios_are_chosen_by_tag_and_by_group(kafka_trial: Invoke) -> None:
    done = kafka_trial("scenarios", "--tag", "remedy", "--group", "jepsen-2013", "--json")
    reported = [json.loads(line) for line in done.out.splitlines()]
    assert {one["name"] for one in reported} == {"jepsen-2013/clean-election", "jepsen-2013/min-isr-2"}
    assert all("remedy" in one["tags"] and one["expect"]["verdict"] == "valid" and one["seconds"] for one in reported)
    for options, says in (
        (["--tag", "nobody"], "no tag is called 'nobody'; known: "),
        (["--group", "lose-mesages"], "no group is called 'lose-mesages'; did you mean 'lose-messages'?"),
        (["--group", "nothing", "--tag", "remedy"], "no group is called 'nothing'; known: delivery, "),
        (["--group", "exactly-once", "--tag", "remedy"], "no scenario matches all of that"),
    ):
        assert_one_line(kafka_trial("scenarios", *options), codes.BAD_INPUT, says)


def test_every_scenario_has_tags() -> None:
    assert [scenario.name for scenario in catalogue() if not scenario.tags] == []


def test_scenarios_show_prints_a_scenario_that_can_be_run(tmp_path: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("scenarios", "show", "jepsen-2013/unclean-election", "--set", "workload.rate=50")
    written = tmp_path / "shown.yaml"
    written.write_text(done.out)
    shown, original = load(str(written)), load("jepsen-2013/unclean-election")
    assert shown.workload.rate == 50
    assert shown.model_copy(update={"workload": original.workload}) == original


def test_scenarios_show_refuses_an_unknown_scenario(kafka_trial: Invoke) -> None:
    assert_one_line(
        kafka_trial("scenarios", "show", "nothing-of-the-kind"), codes.BAD_INPUT, "no scenario or file is called"
    )


@pytest.mark.parametrize("options", [["--tag", "partition"], ["--group", "lose-messages"], ["--json"], ["--long"]])
def test_scenarios_show_refuses_the_options_of_the_list(options: list[str], kafka_trial: Invoke) -> None:
    done = kafka_trial("scenarios", *options, "show", "jepsen-2013/min-isr-2")
    assert (done.code, done.out) == (codes.BAD_INPUT, "")
    assert "`scenarios show` takes none of the options of the list" in done.err


def test_schema_prints_the_json_schema_for_editors(kafka_trial: Invoke) -> None:
    done = kafka_trial("schema")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == json_schema()


def test_cleanup_lists_what_it_removed(kafka_trial: Invoke) -> None:
    asked: list[object] = []

    def remove(*wanted: object) -> list[str]:
        asked.append(wanted[1:])
        return ["removed container kt-1-b1", "removed network kt-1"]

    done = kafka_trial("cleanup", "mine/1", backends=cleaning(remove))
    assert (done.code, done.out) == (0, "removed container kt-1-b1\nremoved network kt-1\n")
    assert kafka_trial("cleanup", backends=cleaning(remove)).code == 0
    assert kafka_trial("cleanup", "--force", backends=cleaning(remove)).code == 0
    assert kafka_trial("cleanup", "--dry-run", backends=cleaning(remove)).code == 0
    assert asked == [("mine/1", False, False), (None, False, False), (None, True, False), (None, False, True)]


def test_cleanup_says_that_nothing_bears_a_name(kafka_trial: Invoke) -> None:
    backends = cleaning(lambda *wanted: [])
    done = kafka_trial("cleanup", "typo", backends=backends)
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.startswith("nothing to remove: no such run 'typo' (")
    assert kafka_trial("cleanup", backends=backends).out == "nothing to remove\n"


def test_cleanup_takes_the_directory_of_a_run_for_its_name(stored: Path, kafka_trial: Invoke) -> None:
    asked: list[str | None] = []
    backends = cleaning(lambda spec, run, *how: asked.append(run) or [])
    assert kafka_trial("cleanup", stored, backends=backends).out == "nothing to remove\n"
    assert asked == ["by-hand/1"]


def stays(*wanted: object) -> list[str]:
    raise ClusterError("kt-1-b1 could not be removed: device busy")


def test_cleanup_reports_resources_that_stay(kafka_trial: Invoke) -> None:
    assert_one_line(kafka_trial("cleanup", backends=cleaning(stays)), codes.CRASHED, "kt-1-b1 could not be removed")


def test_a_failed_cleanup_of_one_provider_does_not_stop_the_others(kafka_trial: Invoke) -> None:
    done = kafka_trial("cleanup", backends=cleaning(stays, lambda *wanted: ["removed machine m1"]))
    assert (done.code, done.out) == (codes.CRASHED, "removed machine m1\n")
    assert done.err == "kafka-trial: kt-1-b1 could not be removed: device busy\n"


def test_all_providers_that_cannot_clean_up_are_named(kafka_trial: Invoke) -> None:
    def unreachable(*wanted: object) -> list[str]:
        raise EnvironmentLacks("no route to m1")

    done = kafka_trial("cleanup", backends=cleaning(stays, unreachable))
    assert (done.code, done.out) == (codes.CRASHED, "")
    assert done.err == "kafka-trial: kt-1-b1 could not be removed: device busy; no route to m1\n"


def test_cleanup_without_docker_says_so(tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert_one_line(kafka_trial("cleanup"), codes.CANNOT_RUN, "no Docker engine answers")


@pytest.mark.parametrize("host", ["tcp://x:y", "tcp://[", "foo://bar"])
def test_cleanup_with_a_docker_host_that_is_none_says_so(
    host: str, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert_one_line(kafka_trial("cleanup"), codes.CANNOT_RUN, "no Docker engine answers")


def test_doctor_without_docker_suggests_a_remedy(kafka_trial: Invoke) -> None:
    def refuse() -> Any:
        raise EnvironmentLacks("no Docker engine answers: start one")

    done = kafka_trial(
        "doctor", backends=Backends(providers=lambda: {"docker": ProviderRow(DockerSpec, lambda: Docker(refuse))})
    )
    assert done.code == codes.CANNOT_RUN
    assert "MISSING docker      no Docker engine answers: start one\n" in done.out


@pytest.mark.parametrize("error", [ScenarioError, ClusterError, EnvironmentLacks])
def test_doctor_looks_at_every_scenario_though_one_cannot_be(error: type[Exception], kafka_trial: Invoke) -> None:
    refusals = iter([error("it cannot be"), None])

    class Odd(Docker):
        def check(self, *_: object) -> None:
            if (refused := next(refusals)) is not None:
                raise refused

    done = kafka_trial(
        *("doctor", "jepsen-2013/min-isr-2", "jepsen-2013/clean-election"),
        backends=Backends(providers=lambda: {"docker": ProviderRow(DockerSpec, Odd)}),
    )
    assert done.code == codes.CANNOT_RUN
    assert [line.split()[0] for line in done.out.splitlines()] == ["MISSING", "ok"]
    assert "it cannot be" in done.out


def test_doctor_looks_at_each_scenario_of_a_suite_or_glob(tmp_path: Path, kafka_trial: Invoke) -> None:
    class Fine(Docker):
        def check(self, *_: object) -> None:
            return

    backends = Backends(providers=lambda: {"docker": ProviderRow(DockerSpec, Fine)})
    for named, expected in (
        ("nightly", {case.name for case in plan(load_suite(["nightly"]), (), 1, Random(0))}),
        ("exactly-once/*", {name for name in named_scenarios() if name.startswith("exactly-once/")}),
    ):
        done = kafka_trial("doctor", named, backends=backends)
        assert done.code == codes.MET
        assert {line.removeprefix("ok").strip() for line in done.out.splitlines()} == expected
    mine = tmp_path / "mine.yaml"
    run = "{scenarios: jepsen-2013/min-isr-2, times: 3, variants: {v: cluster.version=%s}}"
    mine.write_text(f"runs: [{run % '3.9.2'}, {run % '4.3.1'}]\n")
    done = kafka_trial("doctor", mine, backends=backends)
    assert done.out.splitlines() == ["ok      jepsen-2013/min-isr-2 (v)"] * 2, "two variants of one name"
    done = kafka_trial("doctor", "min-isr-2", backends=backends)
    assert_one_line(done, codes.BAD_INPUT, "did you mean jepsen-2013/min-isr-2?")


def test_doctor_says_that_a_scenario_could_not_be_judged(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fine(Docker):
        def check(self, *_: object) -> None:
            return

    backends = Backends(providers=lambda: {"docker": ProviderRow(DockerSpec, Fine)})
    assert kafka_trial("doctor", "jepsen-2013/min-isr-2", backends=backends).code == codes.MET
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = kafka_trial("doctor", "jepsen-2013/min-isr-2", backends=backends)
    assert done.code == codes.CANNOT_RUN
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["MISSING", "java"],
        ["ok", "jepsen-2013/min-isr-2"],
    ]


def test_doctor_knows_a_java_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="Java 17 or later"):
        look_at_java()


@pytest.mark.parametrize("said", ['openjdk version "11.0.2" 2019-01-15', "what?"])
def test_doctor_knows_a_java_that_is_old(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="Java 17 or later"):
        look_at_java()


@pytest.mark.parametrize("by_directory", [True, False])
def test_cleanup_by_a_foreign_run_file_leaves_a_run_that_is_going_alone(
    by_directory: bool, stored: Path, tmp_path: Path, kafka_trial: Invoke
) -> None:
    name, going, removed = RunFile.read(stored).run, tmp_path / "going", list[str]()
    going.mkdir()
    container = SimpleNamespace(name="b1", labels=labels_of(name, going), remove=lambda **how: removed.append("b1"))
    things = SimpleNamespace(list=lambda **how: [container])
    nothing = SimpleNamespace(list=lambda **how: [])
    engine = cast(Any, SimpleNamespace(containers=things, networks=nothing, volumes=nothing))
    backends = cleaning(lambda spec, run, force, dry_run: clean(run, engine, force, dry_run))
    named = stored if by_directory else name
    lock = RecordingLock(going)
    try:
        assert_one_line(kafka_trial("cleanup", named, backends=backends), codes.BAD_INPUT, "still going; --force")
        assert removed == []
        assert kafka_trial("cleanup", named, "--force", backends=backends).code == 0
    finally:
        lock.release()
    assert removed == ["b1"]
