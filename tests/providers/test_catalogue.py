"""A provider is one line of the catalogue: a toy one is chosen, asked and cleaned up after as Docker is."""

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.cli import cleanup, codes, doctor, running, suite
from harness.cli.backends import Backends
from harness.cluster.provider import Provider
from harness.cluster.spec import ClusterSpec, CommandOption, own_spec
from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.history.run_file import RunFile, State
from harness.providers.catalogue import PROVIDERS, ProviderRow, composed, provider_of
from harness.providers.docker.provider import Docker
from harness.providers.docker.spec import DockerSpec
from harness.providers.ssh.provider import Ssh
from harness.run.display import PlainDisplay
from harness.run.lifecycle import run
from harness.scenario.model import Scenario
from tests.command import Invoke

from .toy import Toy, ToySpec


def with_toy(toy: Toy) -> dict[str, ProviderRow]:
    return {**PROVIDERS, "toy": ProviderRow(ToySpec, lambda: toy)}


TOYS = with_toy(Toy())


def test_its_settings_are_keys_of_the_scenarios_cluster() -> None:
    cluster = composed(TOYS).model_validate({"brokers": 1, "image": "mine:1", "bell": "ring"})
    assert (cluster.brokers, cluster.node_names) == (1, ["b1", "c1"])
    assert own_spec(cluster, ToySpec) == ToySpec(bell="ring")
    assert own_spec(cluster, DockerSpec) == DockerSpec(image="mine:1")


def test_without_its_line_they_are_refused() -> None:
    with pytest.raises(ValidationError, match="bell"):
        composed(PROVIDERS).model_validate({"bell": "ring"})


def test_the_validators_of_its_settings_hold() -> None:
    with pytest.raises(ValidationError, match="no IPv4 /24"):
        composed(TOYS).model_validate({"subnet": "10.1.0.0/16"})


@pytest.mark.parametrize("says", [{"bell": "ring"}, {"colours": ["red"]}], ids=lambda says: next(iter(says)))
def test_a_cluster_with_a_key_of_the_toy_provider_belongs_to_it(says: dict[str, object]) -> None:
    cluster = composed(TOYS).model_validate(says)
    assert isinstance(provider_of(cluster, TOYS), Toy)


@pytest.mark.parametrize("says", [{}, {"image": "mine:1"}, {"bell": None}, {"colours": []}, {"config": {"bell": "x"}}])
def test_any_other_is_dockers(says: dict[str, object]) -> None:
    cluster = composed(TOYS).model_validate(says)
    assert isinstance(provider_of(cluster, TOYS), Docker)


@pytest.mark.parametrize(("says", "kind"), [({}, Docker), ({"bell": "ring"}, Toy)])
def test_one_that_is_read_back_whole_has_the_same_provider(says: dict[str, object], kind: type[Provider]) -> None:
    model = composed(TOYS)
    again = model.model_validate(model.model_validate(says).model_dump(mode="json", by_alias=True))
    assert isinstance(provider_of(again, TOYS), kind)


def test_a_cluster_of_machines_is_not_dockers() -> None:
    cluster = composed(PROVIDERS).model_validate({"machines": "inventory.yaml"})
    assert isinstance(provider_of(cluster), Ssh)


def test_a_cluster_of_two_providers_is_refused() -> None:
    cluster = composed(TOYS).model_validate({"image": "mine:1", "bell": "ring"})
    with pytest.raises(ScenarioError, match=r"cluster.image is for docker, cluster.bell is for toy: .* one provider"):
        provider_of(cluster, TOYS)


def test_no_two_providers_have_a_setting_of_one_name() -> None:
    keys = [key for row in PROVIDERS.values() for key in row.spec.model_fields]
    assert sorted(keys) == sorted(set(keys))
    assert not set(keys) & set(ClusterSpec.model_fields)


def test_a_run_asks_the_provider_first_and_starts_nothing_where_something_lacks(tmp_path: Path) -> None:
    toy = Toy(lacks="no toy here: buy one")
    cluster = composed(with_toy(toy)).model_validate({"bell": "ring"})
    scenario = Scenario(name="story", timeline=[{"inject": {"fault": "isolate", "target": "b1"}}])
    with pytest.raises(EnvironmentLacks, match="buy one"):
        run(
            scenario.model_copy(update={"cluster": cluster}),
            tmp_path,
            seed=1,
            display=PlainDisplay(io.StringIO()),
            providers=with_toy(toy),
        )
    assert toy.asked == [("check", cluster, (scenario.faults[0].needs,))]
    assert list(tmp_path.iterdir()) == []


def test_a_run_brings_up_the_cluster_of_its_scenario_with_the_runs_directory(tmp_path: Path) -> None:
    toy, shown = Toy(), io.StringIO()
    scenario = Scenario(name="story", cluster={"brokers": 5})
    with pytest.raises(ClusterError, match="the toy is broken"):
        run(scenario, tmp_path, 1, PlainDisplay(shown), keep=True, providers={"toy": ProviderRow(ToySpec, lambda: toy)})
    (directory,) = (path.parent for path in tmp_path.rglob("run.json"))
    file = RunFile.read(directory)
    assert toy.asked == [("check", scenario.cluster, ()), ("up", scenario.cluster, file.run, directory, True, False)]
    assert file.state is State.INTERRUPTED
    assert file.notes == ["the bell is cracked", "broken off: ClusterError: the toy is broken"]
    assert shown.getvalue().splitlines()[0].endswith("  the box is opened")
    assert "the bell is cracked" in shown.getvalue()


@pytest.mark.parametrize(("lacks", "code", "mark"), [("", 0, "ok"), ("no toy", codes.CANNOT_RUN, "MISSING")])
def test_doctor_prints_its_findings(lacks: str, code: int, mark: str, kafka_trial: Invoke) -> None:
    done = kafka_trial("doctor", backends=Backends(providers=lambda: {"toy": ProviderRow(ToySpec, lambda: Toy(lacks))}))
    assert done.code == code
    assert done.out.splitlines()[1:] == [
        f"{mark:8}{'toy':12}{lacks or 'in its box'}",
        f"{'cannot':8}{'bell':12}cracked",
    ]


def ringing(toy: Toy) -> Backends:
    bell = CommandOption("bell", "Ring this bell.", choices=("ring", "chime"), locates=True)
    colours = CommandOption("colours", "Paint it.")
    row = ProviderRow(ToySpec, lambda: toy, options=(bell, colours))
    return Backends(providers=lambda: {**PROVIDERS, "toy": row})


@pytest.mark.parametrize("command", ["doctor", "cleanup"])
def test_a_command_takes_its_options(command: str, kafka_trial: Invoke) -> None:
    toy = Toy()
    kafka_trial(command, "--bell", "ring", backends=ringing(toy))
    ((asked, cluster),) = toy.asked
    assert asked == command
    assert isinstance(cluster, ClusterSpec)
    assert own_spec(cluster, ToySpec) == ToySpec(bell="ring")


def test_help_has_its_options_between_those_of_the_command(kafka_trial: Invoke) -> None:
    found = {}
    for command in ("run", "doctor", "cleanup", "suite"):
        shown = kafka_trial(command, "--help", backends=ringing(Toy())).out
        found[command] = [word for word in shown.split() if word in {"--bell", "--colours", "--machines", "--images"}]
    assert found == {
        "run": ["--bell", "--colours", "--machines", "--images"],
        "doctor": ["--bell", "--colours", "--machines", "--images"],
        "cleanup": ["--bell", "--machines"],
        "suite": ["--colours", "--images"],
    }


def test_without_its_line_there_are_no_options_of_it(kafka_trial: Invoke) -> None:
    done = kafka_trial("doctor", "--bell", "ring")
    assert done.code == codes.BAD_INPUT
    assert "No such option" in done.err


def test_a_choice_of_its_options_is_checked(kafka_trial: Invoke) -> None:
    done = kafka_trial("doctor", "--bell", "toll", backends=ringing(Toy()))
    assert done.code == codes.BAD_INPUT
    assert "'--bell': 'toll' is not one of 'ring', 'chime'" in done.err


def test_options_are_settings_of_their_provider() -> None:
    for row in PROVIDERS.values():
        assert {option.key for option in row.options} <= set(row.spec.model_fields)


def test_no_option_of_a_provider_has_the_name_of_another_parameter_of_a_command() -> None:
    options = Counter(option.key for row in PROVIDERS.values() for option in row.options)
    for command in (running.run, suite.suite, doctor.doctor, cleanup.cleanup):
        names = Counter(parameter.name for parameter in command.params)
        assert not [name for name, count in (names + options).items() if count > 1], command.name


def test_cleanup_asks_it_after_docker_and_without_docker_too(
    kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    done = kafka_trial("cleanup", "s/1", "--force", backends=Backends(providers=lambda: TOYS))
    assert (done.code, done.out) == (codes.CANNOT_RUN, "put away the toy of s/1, True, False\n")
    assert done.err.startswith("kafka-trial: no Docker engine answers")


def test_doctor_says_of_scenarios_whether_they_can_run_here(kafka_trial: Invoke) -> None:
    for lacks, code in (("", codes.MET), ("no toy here: buy one", codes.CANNOT_RUN)):
        toy = Toy(lacks=lacks)
        backends = Backends(providers=lambda toy=toy: {"docker": ProviderRow(DockerSpec, lambda: toy)})
        done = kafka_trial("doctor", "jepsen-2013/min-isr-2", "delivery/at-least-once", "--json", backends=backends)
        assert done.code == code
        reported = [json.loads(line) for line in done.out.splitlines()]
        assert [(one["name"], one["good"], one["detail"]) for one in reported] == [
            (name, not lacks, lacks) for name in ("jepsen-2013/min-isr-2", "delivery/at-least-once")
        ]
        assert toy.asked
        assert toy.asked[0][0] == "check"
    assert kafka_trial("doctor", "nobody").code == codes.BAD_INPUT
