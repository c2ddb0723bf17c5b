"""Which jars a version of Kafka needs, and what its nodes are started with. Pure."""

import base64
import hashlib

import jinja2

from harness.core.topology import Node, Role, Topology
from harness.core.version import Version, parse_version
from harness.resources import recipes

#: A choice: one release of Log4j 2 for every Kafka from 4.0 on.
_LOG4J2 = "2.25.4"

#: Group, artifact and version.
Artifact = tuple[str, str, str]

#: What a version needs on Java 17 beside its own dependencies: (from, below, artifacts). A logging backend, mostly.
EXTRAS: tuple[tuple[Version, Version, tuple[Artifact, ...]], ...] = (
    ((0, 10), (1, 0), (("javax.xml.bind", "jaxb-api", "2.3.1"),)),
    ((1, 1), (2, 4), (("log4j", "log4j", "1.2.17"), ("org.slf4j", "slf4j-log4j12", "1.7.25"))),
    ((2, 0), (2, 4), (("org.apache.zookeeper", "zookeeper", "3.4.10"),)),
    ((2, 4), (3, 2), (("log4j", "log4j", "1.2.17"), ("org.slf4j", "slf4j-log4j12", "1.7.30"))),
    ((3, 2), (4, 0), (("org.slf4j", "slf4j-reload4j", "1.7.36"),)),
    (
        (4, 0),
        (5, 0),
        (
            ("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J2),
            ("org.apache.logging.log4j", "log4j-api", _LOG4J2),
            ("org.apache.logging.log4j", "log4j-core", _LOG4J2),
        ),
    ),
)


def extras(version: Version) -> tuple[Artifact, ...]:
    """The artifacts that this version needs beside the dependencies of ``kafka_2.1x``."""
    return tuple(artifact for low, below, found in EXTRAS if low <= version < below for artifact in found)


def pom(version: str) -> str:
    """The Maven project whose runtime dependencies are the server of this version. Raises ScenarioError."""
    number = parse_version(version)
    scala = "2.13" if number >= (2, 6) else "2.12" if number >= (1, 0) else "2.11"
    template = jinja2.Template((recipes() / "kafka" / "pom.xml.j2").read_text(encoding="utf-8"), autoescape=True)
    return str(template.render(version=version, scala=scala, extras=extras(number)))


#: The folder of a node's data, and the file that holds back its main process while it exists. A provider may choose
#: others.
DATA = "/data"
HELD = "/run/kafka-trial-held"

#: The script that starts a node in every provider, and its logging settings: files of ``recipes()/kafka``. The first
#: lines of ``START`` say what it reads from the environment.
START = "start"
SCRIPTS = (START, "log4j.properties", "log4j2.properties")

#: The JVM's options for the heap of each role.
HEAP = {Role.BROKER: "-Xms384m -Xmx384m", Role.CONTROLLER: "-Xms192m -Xmx192m", Role.ZOOKEEPER: "-Xms96m -Xmx96m"}


#: Without it, ZooKeeper's client looks up its server's name before each connection, for SASL (ClientCnxn,
#: startConnect). Nobody uses SASL here, and where no DNS answers, an isolated broker came back 20 s late.
_NO_SASL = "-Dzookeeper.sasl.client=false"


def environment(run: str, node: Node, topology: Topology, libraries: str = "") -> dict[str, str]:
    """The environment of ``START`` for a node of a run. ``libraries``: the folder of its jars, if it is not next to
    ``START``."""
    kraft = bool(topology.having(Role.CONTROLLER))
    own = {"NODE_ID": str(node.id), "HEAP": HEAP[node.role]}
    own |= {"KAFKA_TRIAL_LIBS": libraries} if libraries else {}
    return {**own, **({"CLUSTER_ID": cluster_id(run)} if kraft else {"JAVA_TOOL_OPTIONS": _NO_SASL})}


def cluster_id(run: str) -> str:
    """Kafka's cluster id: 16 bytes in URL-safe base64.

    The first bit is 0, so that it never begins with a dash, which Kafka's command line would take for an option.
    """
    digest = hashlib.sha256(run.encode()).digest()[:16]
    return base64.urlsafe_b64encode(bytes([digest[0] & 0x7F]) + digest[1:]).decode().rstrip("=")
