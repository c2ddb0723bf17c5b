"""How a machine is looked at and a cluster given up, against engines of plain data: whatever happens, nothing stays."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker import DockerClient
from docker.errors import APIError, ImageNotFound
from requests import Response
from requests.exceptions import ConnectionError as NoConnection
from urllib3.exceptions import ReadTimeoutError

from harness.cluster.spec import ClusterSpec
from harness.core.errors import ClusterError, EnvironmentLacks, NoMeans
from harness.core.topology import Node, Role
from harness.providers.catalogue import PROVIDERS, composed
from harness.providers.docker.compose import FOREGROUND, container_name, labels_of, project_of
from harness.providers.docker.provider import Docker, DockerCluster, released
from nemesis.fault import Needs
from tests.providers.docker.nodes import nodes_of

RUN = "s/1"
NAMES = ("b1", "b2")


@dataclass
class FakeContainer:
    name: str
    engine: "FakeEngine"
    labels: dict[str, str] = field(default_factory=lambda: labels_of(RUN, Path("/nowhere")))

    def logs(self, stream: bool, follow: bool) -> Iterator[bytes]:
        yield b"the first line\n"
        if self.engine.fails is not None:
            raise self.engine.fails
        yield b"the last line\n"

    def remove(self, force: bool, v: bool) -> None:
        if self.name == self.engine.stays:
            raise NoConnection("read timed out")
        self.engine.there.remove(self)


@dataclass
class Listing:
    """A kind of resource: what ``list`` returns, or raises at first."""

    found: list[Any]
    fails: Exception | None = None

    def list(self, **_: object) -> list[Any]:
        if self.fails is not None:
            failure, self.fails = self.fails, None
            raise failure
        return list(self.found)


class FakeEngine:
    """Two nodes' containers. ``fails`` is raised in the middle of each log."""

    def __init__(self, fails: BaseException | None = None, cannot_list: Exception | None = None) -> None:
        self.fails = fails
        self.stays = ""
        self.there = [
            FakeContainer(container_name(RUN, Node(name, Role.BROKER, 1, "10.0.0.1")), self) for name in NAMES
        ]
        self.containers = Listing(self.there, cannot_list)
        self.networks = Listing([])
        self.volumes = Listing([])

    @property
    def client(self) -> DockerClient:
        return cast(DockerClient, self)


@pytest.mark.parametrize("fails", [NoConnection("read timed out"), APIError("500 Server Error", explanation="broken")])
def test_an_engine_that_fails_is_one_line_whatever_is_asked(fails: Exception, tmp_path: Path) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise fails

    docker = Docker(lambda: cast(DockerClient, Broken()))
    spec, given = ClusterSpec(), composed(PROVIDERS).model_validate({"image": "somebody/kafka:1"})
    needs = [frozenset({"iptables"})]
    asked: list[Callable[[], object]] = [
        lambda: docker.check(given, []),
        lambda: docker.check(spec, [(needs[0],)]),
        lambda: docker.up(spec, RUN, tmp_path, print).__enter__(),
        lambda: docker.cleanup(ClusterSpec(), None, force=False, dry_run=False),
        lambda: list(docker.doctor(ClusterSpec())),
    ]
    for ask in asked:
        with pytest.raises(ClusterError, match=r"the Docker engine failed \((read timed out|broken)\)"):
            ask()


@dataclass
class Trial:
    """A toolbox container of a kernel without netem."""

    engine: "KernelWithoutNetem"
    script: str

    def start(self) -> None:
        self.engine.running += 1

    def wait(self) -> dict[str, int]:
        return {"StatusCode": int("netem" in self.script)}

    def logs(self, stdout: bool, stderr: bool) -> bytes:
        return b"Error: Specified qdisc kind is unknown.\n" if stderr and "netem" in self.script else b""

    def remove(self, force: bool) -> None:
        self.engine.running -= 1


@dataclass
class KernelWithoutNetem:
    """An engine that has every image."""

    running: int = 0
    tried: list[str] = field(default_factory=list)

    @property
    def images(self) -> SimpleNamespace:
        return SimpleNamespace(get=lambda tag: tag)

    @property
    def containers(self) -> "KernelWithoutNetem":
        return self

    def create(self, image: str, command: list[str], **options: object) -> Trial:
        assert image.startswith("kafka-trial/toolbox:")
        assert options["network_mode"] == "none"
        self.tried.append(command[-1])
        return Trial(self, command[-1])


class WithoutImages(KernelWithoutNetem):
    """An engine that has no image, and reaches no registry."""

    @property
    def images(self) -> SimpleNamespace:
        def missing(name: str) -> None:
            answer = Response()
            answer.status_code = 404
            raise ImageNotFound(name, answer)

        return SimpleNamespace(get=missing, get_registry_data=missing, pull=missing)


NETEM, IPTABLES = frozenset({"netem"}), frozenset({"iptables"})


def test_a_machine_is_refused_if_its_kernel_lacks_a_needed_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_TRIAL_CLIENTS", "published")
    engine = KernelWithoutNetem()
    with pytest.raises(NoMeans) as refused:
        Docker(lambda: cast(DockerClient, engine)).check(ClusterSpec(), [(IPTABLES,), (NETEM,), (NETEM,)])
    assert str(refused.value).startswith("this kernel has no sch_netem (tc: Specified qdisc kind is unknown): ")
    assert str(refused.value).count("netem (tc") == 1
    assert len(engine.tried) == 2
    assert engine.running == 0


@pytest.mark.parametrize("needs", [[], [()], [(IPTABLES,)], [(NETEM, IPTABLES)]])
def test_a_machine_is_not_refused_for_features_that_no_fault_needs(
    needs: list[Needs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_TRIAL_CLIENTS", "published")
    engine = KernelWithoutNetem()
    Docker(lambda: cast(DockerClient, engine)).check(ClusterSpec(), needs)
    assert len(engine.tried) == len({name for alternatives in needs for each in alternatives for name in each})
    assert engine.running == 0


_BUILT = ("kafka:4.3.1", "java:bookworm")


def test_a_run_that_waits_for_an_image_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_TRIAL_IMAGES", "registry")
    docker, said = Docker(lambda: cast(DockerClient, WithoutImages())), list[str]()
    with pytest.raises(EnvironmentLacks, match="no registry answers"):
        docker.up(ClusterSpec(version="4.3.1"), RUN, tmp_path, print, progress=said.append).__enter__()
    assert said == [f"building the image {name}, which is kept: it takes a minute or more" for name in _BUILT]


@pytest.mark.parametrize(
    ("image", "waits"),
    [
        (None, [f"building the image {name}, which is kept: it takes a minute or more" for name in _BUILT]),
        ("somebody/kafka:4.3.1", ["pulling the image somebody/kafka:4.3.1, which is kept"]),
    ],
)
def test_a_check_that_waits_for_an_image_says_so(
    image: str | None, waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_TRIAL_IMAGES", "registry")
    monkeypatch.delenv("KAFKA_TRIAL_CLIENTS", raising=False)
    docker, said = Docker(lambda: cast(DockerClient, WithoutImages())), list[str]()
    with pytest.raises(EnvironmentLacks, match=r"no registry answers|cannot be pulled"):
        docker.check(composed(PROVIDERS).model_validate({"image": image}), [], progress=said.append)
    assert said == waits


def test_the_logs_of_all_nodes_are_kept_and_the_cluster_is_removed(tmp_path: Path) -> None:
    engine, notes = FakeEngine(), list[str]()
    with released(engine.client, RUN, tmp_path / "logs", notes.append):
        assert len(engine.there) == 2
    assert engine.there == []
    assert notes == []
    kept = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert kept == {f"{name}.log": "the first line\nthe last line\n" for name in NAMES}


@pytest.mark.parametrize(
    "fails",
    [
        APIError("the engine is out of order"),
        NoConnection("read timed out"),
        ReadTimeoutError(cast(Any, None), "/logs", "read timed out"),
        OSError(28, "No space left on device"),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_a_log_that_cannot_be_kept_is_noted_and_the_cluster_is_removed(fails: Exception, tmp_path: Path) -> None:
    engine, notes = FakeEngine(fails), list[str]()
    with released(engine.client, RUN, tmp_path / "logs", notes.append):
        pass
    assert engine.there == []
    assert notes == [f"the log of {name} is not stored completely: {fails}" for name in NAMES]
    assert (tmp_path / "logs" / "b1.log").read_text() == "the first line\n"


def test_a_full_disk_is_noted_and_the_cluster_is_removed(tmp_path: Path) -> None:
    (tmp_path / "b1.log").symlink_to("/dev/full")
    engine, notes = FakeEngine(), list[str]()
    with released(engine.client, RUN, tmp_path, notes.append):
        pass
    assert engine.there == []
    assert notes == ["the log of b1 is not stored completely: [Errno 28] No space left on device"]
    assert "the last line" in (tmp_path / "b2.log").read_text()


def test_the_cluster_is_removed_even_if_no_container_can_be_listed(tmp_path: Path) -> None:
    engine, notes = FakeEngine(cannot_list=NoConnection("read timed out")), list[str]()
    with released(engine.client, RUN, tmp_path, notes.append):
        pass
    assert engine.there == []
    assert notes == ["no node's log is stored: read timed out"]


@pytest.mark.parametrize("interrupts", [KeyboardInterrupt(), RuntimeError("a defect")], ids=["interrupt", "defect"])
def test_an_interrupt_or_defect_while_storing_logs_is_raised_after_the_cluster_is_removed(
    interrupts: BaseException, tmp_path: Path
) -> None:
    engine, notes = FakeEngine(interrupts), list[str]()
    with (
        pytest.raises(type(interrupts)),
        released(engine.client, RUN, tmp_path, notes.append),
    ):
        pass
    assert engine.there == []


def test_an_error_in_the_run_is_not_hidden_by_logs_that_cannot_be_kept(tmp_path: Path) -> None:
    engine, notes = FakeEngine(OSError(28, "No space left on device")), list[str]()
    with pytest.raises(RuntimeError, match="the run failed"), released(engine.client, RUN, tmp_path, notes.append):
        raise RuntimeError("the run failed")
    assert engine.there == []
    assert len(notes) == 2


def test_a_cluster_that_is_kept_has_its_logs_kept_too(tmp_path: Path) -> None:
    engine, notes = FakeEngine(), list[str]()
    with released(engine.client, RUN, tmp_path, notes.append, keep=True):
        pass
    assert len(engine.there) == 2
    assert {path.stem for path in tmp_path.iterdir()} == set(NAMES)
    assert all(project_of(RUN) in container.name for container in engine.there)


def test_a_container_that_cannot_be_removed_is_noted_and_all_others_are_removed(tmp_path: Path) -> None:
    engine, notes = FakeEngine(), list[str]()
    first = engine.stays = engine.there[0].name
    with released(engine.client, RUN, tmp_path, notes.append):
        pass
    assert [container.name for container in engine.there] == [first]
    assert notes == [
        f"container {first} could not be removed: read timed out; `kafka-trial cleanup {RUN}` removes what is left"
    ]


def test_an_interrupt_stays_an_interrupt_where_not_all_can_be_removed(tmp_path: Path) -> None:
    engine, notes = FakeEngine(), list[str]()
    engine.stays = engine.there[0].name
    with pytest.raises(KeyboardInterrupt), released(engine.client, RUN, tmp_path, notes.append):
        raise KeyboardInterrupt
    assert len(notes) == 1


@dataclass
class Gone:
    """The container of a node, as the engine tells of it; ``fails`` is raised where its log is asked for."""

    status: str
    fails: Exception | None = None
    attrs: dict[str, Any] = field(default_factory=lambda: {"State": {"ExitCode": 1}})

    def logs(self, tail: int) -> bytes:
        if self.fails is not None:
            raise self.fails
        return b"INFO starting\n[b1] ERROR no space left\nINFO stopped\n"


def cluster_of(container: Gone | Exception) -> DockerCluster:
    def get(name: str) -> Gone:
        if isinstance(container, Exception):
            raise container
        return container

    client = cast(DockerClient, SimpleNamespace(containers=SimpleNamespace(get=get)))
    return DockerCluster(RUN, cast(Any, None), cast(Any, None), client)


B1 = Node("b1", Role.BROKER, 1, "10.0.0.1")


def test_a_node_that_exited_is_reported_with_the_errors_that_it_logged() -> None:
    assert cluster_of(Gone("exited")).why_dead(B1) == "b1 exited with 1: [b1] ERROR no space left"
    assert cluster_of(Gone("running")).why_dead(B1) is None


@pytest.mark.parametrize("container", [APIError("out of order"), Gone("exited", NoConnection("out of order"))])
def test_an_engine_that_does_not_say_why_a_node_died_is_an_error_in_a_line(container: Gone | Exception) -> None:
    with pytest.raises(ClusterError, match="b1: cannot look at its container: out of order"):
        cluster_of(container).why_dead(B1)


@pytest.mark.parametrize("can", [True, False])
def test_clusters_start_in_the_background_where_the_engine_can_share_the_cores(can: bool) -> None:
    engine = SimpleNamespace(info=lambda: {"CPUShares": can})
    assert Docker(lambda: cast(DockerClient, engine)).has_background(ClusterSpec()) is can


def test_a_cluster_in_the_foreground_has_as_much_of_the_cores_as_any_other() -> None:
    given = dict[str, int]()

    def get(name: str) -> SimpleNamespace:
        return SimpleNamespace(update=lambda cpu_shares: given.update({name: cpu_shares}))

    _, nodes = nodes_of()
    client = cast(DockerClient, SimpleNamespace(containers=SimpleNamespace(get=get)))
    DockerCluster(RUN, nodes, cast(Any, None), client).to_foreground()
    assert given == {container_name(RUN, node): FOREGROUND for node in nodes.nodes}
