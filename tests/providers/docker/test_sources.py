"""Which source our images are built from, against a registry of plain data."""

from types import SimpleNamespace
from typing import cast

import pytest
from docker import DockerClient
from docker.errors import APIError
from requests import Response

from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.doctor import images
from harness.providers.docker.images import BASE as LABEL
from harness.providers.docker.images import base_there
from harness.providers.docker.sources import Source, Sources, chosen, debian, sources

BASE = "mirror:5000/library/debian:bookworm-slim"


def engine(*there: str, **digests: str) -> DockerClient:
    """An engine that has the images ``there``, and whose registries know those of ``digests``."""

    def look(name: str) -> SimpleNamespace:
        if name not in digests:
            raise APIError("404", explanation="manifest unknown: manifest unknown")
        return SimpleNamespace(id=digests[name])

    def get(tag: str) -> SimpleNamespace:
        if tag not in there:
            raise APIError("no such image", cast(Response, SimpleNamespace(status_code=404)))
        return SimpleNamespace(labels={LABEL: "debian@sha256:1234"})

    def found() -> list[SimpleNamespace]:
        return [SimpleNamespace(tags=[tag]) for tag in there]

    return cast(DockerClient, SimpleNamespace(images=SimpleNamespace(get_registry_data=look, list=found, get=get)))


def test_the_default_asks_a_registry_before_building_a_base() -> None:
    assert sources(None, {}) == Sources((Source.REGISTRY, Source.BUILD), None)


def test_a_scenario_goes_before_the_environment() -> None:
    environment = {"KAFKA_TRIAL_IMAGES": "registry", "KAFKA_TRIAL_REGISTRY": "mirror:5000/hub"}
    assert sources(None, environment) == Sources((Source.REGISTRY,), "mirror:5000/hub")
    assert sources("build", environment).allowed == (Source.BUILD,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KAFKA_TRIAL_IMAGES", "latest"),
        ("KAFKA_TRIAL_REGISTRY", "http://mirror:5000"),
        ("KAFKA_TRIAL_REGISTRY", "mirror:5000/"),
        ("KAFKA_TRIAL_REGISTRY", "two words"),
    ],
)
def test_a_wrong_word_in_the_environment_is_reported_in_a_line(name: str, value: str) -> None:
    with pytest.raises(ScenarioError, match=f"^{name} is {value}: set it to [^\n]*$"):
        sources(None, {name: value})


def test_an_image_of_docker_hub_is_asked_of_the_mirror_where_there_is_one() -> None:
    assert Sources().reference("apache/kafka:4.3.1") == "apache/kafka:4.3.1"
    assert Sources(mirror="mirror:5000").reference("apache/kafka:4.3.1") == "mirror:5000/apache/kafka:4.3.1"


def test_a_base_of_a_registry_is_pinned_by_its_digest() -> None:
    client = engine(**{BASE: "sha256:1234"})
    assert debian(client, Sources(mirror="mirror:5000")) == f"{BASE}@sha256:1234"
    assert chosen(client, Sources(mirror="mirror:5000"), missing=["mmdebstrap"]) == f"{BASE}@sha256:1234"


def test_a_base_is_built_here_if_no_registry_answers() -> None:
    assert chosen(engine(), Sources(), missing=[]) is None
    assert chosen(engine(**{BASE: "sha256:1234"}), Sources((Source.BUILD,), "mirror:5000"), missing=[]) is None


def test_the_error_names_both_remedies_if_no_base_can_be_had() -> None:
    with pytest.raises(EnvironmentLacks) as refused:
        chosen(engine(), Sources(mirror="mirror:5000"), missing=["mmdebstrap", "debian-archive-keyring"])
    assert str(refused.value) == (
        f"no registry answers for {BASE} (manifest unknown: manifest unknown), and to make a base here mmdebstrap and"
        " debian-archive-keyring is missing: name a mirror of Docker Hub by KAFKA_TRIAL_REGISTRY, or install it"
    )


def test_a_registry_that_is_asked_for_is_not_replaced() -> None:
    with pytest.raises(EnvironmentLacks, match=r"no registry answers for .*: name a mirror .*, or ask for build"):
        chosen(engine(), Sources((Source.REGISTRY,)), missing=[])


def test_doctor_names_the_source_of_images() -> None:
    wanted = Sources((Source.REGISTRY,), "mirror:5000")
    found = images(engine(**{BASE: "sha256:1234"}), wanted)
    assert (found.good, found.detail) == (True, f"built from {BASE}@sha256:1234; there: none yet")
    lacks = images(engine(), wanted)
    assert not lacks.good
    assert lacks.detail.startswith(
        f"no registry answers for {BASE} (manifest unknown: manifest unknown): name a mirror"
    )


def test_what_was_built_from_the_base_of_another_mirror_is_another_image() -> None:
    asked: dict[str | None, set[str]] = {}
    for mirror in (None, "one:5000", "two:5000"):
        client, seen = engine(), asked.setdefault(mirror, set())
        client.images.get = lambda tag, seen=seen: seen.add(tag) or SimpleNamespace(labels={})
        base_there(client, Sources((Source.REGISTRY,), mirror))
    assert [len(tags) for tags in asked.values()] == [2, 2, 2]
    assert len(set.union(*asked.values())) == 6
    assert len({tag.rpartition("-")[0] for tags in asked.values() for tag in tags}) == 2


def test_doctor_does_not_take_an_old_image_for_the_base() -> None:
    wanted = Sources((Source.REGISTRY,))
    asked: list[str] = []
    client = engine("kafka-trial/kafka:2.3.1-registry-00000000")
    there = SimpleNamespace(labels={LABEL: "debian@sha256:1234"})
    client.images.get = lambda tag: asked.append(tag) or there  # type: ignore[func-returns-value]
    assert base_there(client, wanted) == "debian@sha256:1234"
    assert images(client, wanted).detail.startswith("on a base that is there, built from debian@sha256:1234; there: ")
    stale = images(engine("kafka-trial/kafka:2.3.1-registry-00000000"), wanted)
    assert (stale.good, "there: kafka-trial/kafka:2.3.1-registry-00000000" in stale.detail) == (False, True)
    assert not images(engine(asked[0]), wanted).good
    assert images(engine(*asked), wanted).good
