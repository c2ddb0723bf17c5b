"""Images from a registry: a Debian base for ours, and those that others publish. A real registry on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from docker import DockerClient

from harness.cluster.spec import DEFAULT_VERSION
from harness.core.errors import EnvironmentLacks
from harness.history.run_file import RunFile
from harness.providers.docker.images import BASE, kafka_image, lacking, toolbox_image
from harness.providers.docker.node_image import node_image
from harness.providers.docker.sources import DEBIAN, Source, Sources, chosen
from tests.cluster.registries import forget, put, registry
from tests.cluster.test_breaking_off import QUICK
from tests.command import Invoke

pytestmark = pytest.mark.cluster

#: As Kafka's project lays its image out: a user who is not root, an entry point of its own, nothing of ours.
OFFICIAL = """
ARG OURS
FROM ${OURS}
RUN cd /opt/kafka && rm start log4j*.properties classes.jsa bootstrap.checkpoint && useradd appuser
USER appuser
LABEL kafka-trial.base=""
ENTRYPOINT ["/__cacert_entrypoint.sh"]
"""

#: As Confluent lays its image out, whose numbers are not Kafka's.
CONFLUENT = """
ARG OURS
FROM ${OURS}
RUN mkdir -p /usr/share/java && mv /opt/kafka/libs /usr/share/java/kafka && rm -r /opt/kafka && useradd appuser
RUN cd /usr/share/java/kafka && for jar in kafka_2.*.jar; do mv $jar ${jar%%-*}-8.3.0-ccs.jar; done
USER appuser
LABEL kafka-trial.base=""
ENTRYPOINT ["/etc/confluent/docker/run"]
"""

#: A program for Java, and no Kafka.
NEITHER = """
ARG OURS
FROM ${OURS}
RUN mv /opt/kafka/libs /opt/libs
"""


@pytest.fixture(scope="module")
def mirror(engine: DockerClient, toolbox: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry with a Debian base."""
    with registry(tmp_path_factory.mktemp("registry")) as at:
        put(engine, toolbox, at, DEBIAN)
        yield at
        forget(engine, at)


def built(engine: DockerClient, dockerfile: str, tag: str, directory: Path) -> str:
    (directory / "Dockerfile").write_text(dockerfile)
    ours = kafka_image(engine, DEFAULT_VERSION)
    engine.images.build(path=str(directory), tag=tag, buildargs={"OURS": ours}, rm=True)
    return tag


@pytest.fixture
def forgotten(engine: DockerClient) -> Iterator[list[str]]:
    """Images that the test is to leave no trace of."""
    tags: list[str] = []
    yield tags
    for tag in tags:
        engine.images.remove(tag, force=True)


def test_our_images_are_built_from_the_base_of_the_registry(engine: DockerClient, mirror: str) -> None:
    wanted = Sources((Source.REGISTRY,), mirror)
    digest = engine.images.get_registry_data(f"{mirror}/{DEBIAN}").id
    toolbox = toolbox_image(engine, wanted)
    kafka = kafka_image(engine, DEFAULT_VERSION, wanted)
    assert "-registry-" in toolbox
    assert "-registry-" in kafka
    assert engine.images.get(kafka).labels[BASE] == f"{mirror}/{DEBIAN}@{digest}"
    assert lacking(engine, wanted) == []


def test_a_registry_that_is_asked_for_and_has_no_debian_is_named(engine: DockerClient, tmp_path: Path) -> None:
    with (
        registry(tmp_path) as empty,
        pytest.raises(EnvironmentLacks, match=f"^no registry answers for {empty}/{DEBIAN} "),
    ):
        chosen(engine, Sources((Source.REGISTRY,), empty))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("dockerfile", "name", "image"),
    [
        (OFFICIAL, f"apache/kafka:{DEFAULT_VERSION}", "official"),
        (CONFLUENT, "confluentinc/cp-kafka:8.3.0", "{mirror}/confluentinc/cp-kafka:8.3.0"),
    ],
    ids=["official", "confluent"],
)
def test_an_image_that_others_publish_runs_as_it_is(
    dockerfile: str,
    name: str,
    image: str,
    engine: DockerClient,
    mirror: str,
    tmp_path: Path,
    kafka_trial: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    forgotten: list[str],
) -> None:
    digest = put(engine, built(engine, dockerfile, "kafka-trial-test/published:1", tmp_path), mirror, name)
    forgotten += ["kafka-trial-test/published:1", f"{mirror}/{name}"]
    monkeypatch.setenv("KAFKA_TRIAL_REGISTRY", mirror)
    story = tmp_path / "story.yaml"
    story.write_text(yaml.safe_dump({**QUICK, "cluster": {"brokers": 1, "image": image.format(mirror=mirror)}}))
    done = kafka_trial("run", story, "--store", tmp_path / "store", "--json")
    assert done.code == 0, done.err
    (run,) = [path.parent for path in (tmp_path / "store").rglob("run.json")]
    versions = RunFile.read(run).versions
    assert versions["image of nodes"] == f"{mirror}/{name}@{digest}, not built here"
    assert versions["image of the toolbox"].startswith("kafka-trial/toolbox:")
    assert versions["clients"] in {"direct", "published"}


def test_an_image_of_another_layout_is_refused(engine: DockerClient, tmp_path: Path, forgotten: list[str]) -> None:
    tag = built(engine, NEITHER, "kafka-trial-test/neither:1", tmp_path)
    forgotten.append(tag)
    with pytest.raises(EnvironmentLacks, match=f"^cluster.image {tag} has no kafka_2.x jar, or several: an image must"):
        node_image(engine, DEFAULT_VERSION, tag, Sources())
