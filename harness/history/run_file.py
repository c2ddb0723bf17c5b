"""run.json: all that is stored of a run, apart from its tables."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.core.clock import MS_NS, SECOND_NS
from harness.core.errors import HistoryError
from harness.core.guarantees import Configuration
from harness.core.quantities import Duration, Whole
from harness.core.topology import Role, broker_name
from harness.core.verdict import Expectation
from harness.history.writing import write_file

RUN_FILE = "run.json"

#: The phase of a run in which its scenario's timeline is followed.
TIMELINE = "timeline"
HEAL = "heal"
#: The phase in which producers end, after a write was acknowledged after the heal, or the wait for one timed out.
DRAIN = "drain"
#: The phase in which every log is read from its start to its end.
FINAL_READ = "final read"

#: The default of request.timeout.ms.
_REQUEST_MS = 30_000

#: A broker's session and the time between its heartbeats, in clusters that the harness brings up, unless the scenario
#: sets others (harness/cluster/kafka_config.py). ZooKeeper's clients send one at least every third of a session.
SESSION_MS, HEARTBEAT_MS = 6_000, 1_000
_SESSION, _HEARTBEAT = "broker.session.timeout.ms", "broker.heartbeat.interval.ms"
_ZOOKEEPER_SESSION = "zookeeper.session.timeout.ms"
#: The silence after which a broker of such a cluster may be replaced as leader.
QUICK_SILENCE_NS = (SESSION_MS - HEARTBEAT_MS) * MS_NS

#: The last second of the year 9999: there is no later date.
_LAST_DATE_NS = 253_402_300_799 * SECOND_NS

#: The tables that clients of each role write, for runs of earlier versions: those lack ``writes``.
_WROTE: dict[str, tuple[str, ...]] = {
    "producer": ("sends",),
    "transactor": ("sends", "transactions"),
    "consumer": ("reads", "positions"),
    "final": ("reads", "log_ends"),
    "replica": ("reads",),
}

#: Keys of earlier versions, which nothing reads.
_DROPPED = frozenset({"origin_monotonic_ns"})


class State(StrEnum):
    """How far a run came. ``recorded``: it is whole and can be judged. ``crashed``: it has what was recorded until the
    crash. ``interrupted``: it ended before anything was sent, so there is nothing to judge.

    Earlier versions changed ``recorded`` to ``judged``; now a recorded run.json is never written again.
    """

    RUNNING = "running"
    RECORDED = "recorded"
    JUDGED = "judged"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"


class Origin(StrEnum):
    """Who recorded a run. Only kafka-trial reads every log to its end after the run, and observes leaders."""

    KAFKA_TRIAL = "kafka-trial"
    JEPSEN = "jepsen"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Requirements(_Part):
    """What must have happened for a verdict to mean anything (a scenario's ``requires:``)."""

    acknowledged: Whole = Field(1, ge=0, description="at least this many acknowledged writes")
    leader: str | None = Field(
        None,
        pattern="^(changed|unchanged)$",
        description="changed (while faults acted) or unchanged: the watched leader",
    )


class Limits(_Part):
    """How long service may be gone (a scenario's ``limits:``)."""

    unavailable: Duration | None = Field(None, description="the longest time that a partition acknowledges nothing")
    recovery: Duration | None = Field(
        None, description="the same, from a heal to the next injection, if no other fault is in force"
    )


class StepReport(_Part):
    """The outcome of a step of the timeline. An ``until`` that timed out is not ``met``; ``detail``: what was seen."""

    step: str
    at_ns: int
    ended_ns: int
    met: bool = True
    detail: str = ""


class PhaseReport(_Part):
    """When a phase of the run began."""

    phase: str
    at_ns: int


class ClockReport(_Part):
    """How far a node's wall clock is ahead of the harness's, and the largest possible error. With it, the times in the
    node's log can be compared with ``origin_unix_ns``."""

    node: str
    at_ns: int
    ahead_s: float
    error_s: float


class NodeAddress(_Part):
    """A node as run.json stores it."""

    name: str
    role: str
    id: int
    address: str


class Process(_Part):
    """One process of a worker. ``incarnation``: how many processes the worker had before."""

    worker: int
    incarnation: int


class RunFile(_Part):
    """The whole of run.json. ``origin_unix_ns`` is the wall clock at the origin of every ``…_ns`` of the history."""

    run: str
    origin: Origin = Origin.KAFKA_TRIAL
    scenario_name: str
    scenario: dict[str, Any]
    configuration: Configuration
    expect: Expectation = Expectation()
    requires: Requirements = Requirements()
    limits: Limits = Limits()
    watch_topic: str = "trial"
    watch_partition: int = 0
    seed: int = 0
    state: State = State.RUNNING
    origin_unix_ns: int = Field(0, ge=0, le=_LAST_DATE_NS)
    versions: dict[str, str] = {}
    features: dict[str, int] = {}
    clients: dict[str, dict[str, Any]] = Field({}, description="settings as passed to librdkafka, by role and number")
    writes: dict[str, tuple[str, ...]] = Field(
        {}, description="the tables that each client writes; older runs do not say it"
    )
    nodes: list[NodeAddress] = []
    clocks: list[ClockReport] = Field([], description="of nodes on machines with clocks of their own")
    phases: list[PhaseReport] = []
    timeline: list[StepReport] = []
    killed: list[Process] = Field([], description="the members of its group that the timeline killed")
    died: list[Process] = Field(
        [], description="members that ended in the middle of what they did, and no step killed them"
    )
    unfinished: list[str] = Field([], description="workers that were asked to finish and did not: one line each")
    down: dict[str, list[str]] = Field({}, description="the nodes that a node or pin of final_read.down meant")
    lasting: dict[str, list[str]] = Field(
        {}, description="the nodes on which a fault lasts after the heal, by its name"
    )
    partial: bool = Field(False, description="the history is not whole: a worker or the harness was cut off")
    notes: list[str] = Field([], description="why the run is not what it should be: one line each")

    @property
    def lasted(self) -> float:
        """Seconds from its first phase to its last."""
        return (self.phases[-1].at_ns - self.phases[0].at_ns) / SECOND_NS if self.phases else 0.0

    @property
    def timeline_lasted(self) -> float | None:
        """Seconds that its timeline took; None if the timeline did not end."""
        at = next((n for n, phase in enumerate(self.phases) if phase.phase == TIMELINE), len(self.phases))
        following = self.phases[at + 1 :]
        return (following[0].at_ns - self.phases[at].at_ns) / SECOND_NS if following else None

    @model_validator(mode="before")
    @classmethod
    def _without_former_keys(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if key not in _DROPPED} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _killed_by_its_steps(self) -> Self:
        """Runs of earlier versions lack ``killed``: the steps of the timeline say which members were killed."""
        if "killed" not in self.model_fields_set:
            self.killed = _killed(self.timeline, sorted(self.workers("positions")))
        return self

    @property
    def final_read(self) -> bool:
        """Whether the run has to read every log to its end at last."""
        return self.origin is Origin.KAFKA_TRIAL

    @property
    def heals_all(self) -> bool:
        """Whether no fault lasts after the heal."""
        return not self.lasting and not (self.scenario.get("final_read") or {}).get("down")

    @property
    def compacted(self) -> bool:
        """Whether its topics are compacted: their logs need to keep only the last record of each key."""
        config = (self.scenario.get("topic") or {}).get("config") or {}
        return "compact" in str(config.get("cleanup.policy", ""))

    @property
    def brokers(self) -> dict[int, str]:
        """The names of the brokers by their ids."""
        return {node.id: node.name for node in self.nodes if node.role == "broker"}

    @property
    def controllers(self) -> frozenset[str]:
        """The names of the controllers, or of ZooKeeper's nodes."""
        return frozenset(node.name for node in self.nodes if node.role in {Role.CONTROLLER, Role.ZOOKEEPER})

    def broker(self, number: int) -> str:
        """The name of a broker by its id."""
        return broker_name(number, self.brokers)

    def written_by(self, client: str) -> tuple[str, ...]:
        """The tables that a client writes: a key of ``clients``."""
        role = client.split(maxsplit=1)[0]
        return self.writes.get(client, _WROTE.get(role, ()))

    def workers(self, writing: str | None = None) -> dict[int, dict[str, Any]]:
        """The settings of the clients that write one table, or of all clients, by their numbers."""
        return {
            int(client.split()[1]): settings
            for client, settings in self.clients.items()
            if writing is None or writing in self.written_by(client)
        }

    @property
    def request_timeout_ns(self) -> int:
        """The shortest time after which a producer sends an unanswered request again."""
        configured = (settings.get("request.timeout.ms") for settings in self.workers("sends").values())
        return min([_REQUEST_MS, *(int(ms) for ms in configured if ms is not None)]) * MS_NS

    @property
    def silence_ns(self) -> int:
        """The shortest silence of a broker after which the controllers may hold it for dead: its session, without the
        time between two heartbeats."""
        config = (self.scenario.get("cluster") or {}).get("config") or {}
        if self.configuration.metadata != "kraft":
            return int(config.get(_ZOOKEEPER_SESSION, SESSION_MS)) * MS_NS * 2 // 3
        session_ms, heartbeat_ms = int(config.get(_SESSION, SESSION_MS)), int(config.get(_HEARTBEAT, HEARTBEAT_MS))
        return max(session_ms - heartbeat_ms, 0) * MS_NS

    def text(self) -> str:
        """The text of run.json."""
        return self.model_dump_json(indent=2) + "\n"

    def write(self, directory: Path) -> None:
        """Replace run.json in ``directory`` atomically: a reader sees the old file or the new one."""
        write_file(directory, RUN_FILE, self.text())

    @classmethod
    def read(cls, directory: Path) -> "RunFile":
        """Raises HistoryError if run.json is missing, or not one of ours."""
        path = directory / RUN_FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as exc:
            raise HistoryError(f"{path}: no run here ({exc.strerror})") from exc
        except ValidationError as exc:
            first = exc.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "whole file"
            raise HistoryError(f"{path}: not a run file of this version ({where}: {first['msg']})") from exc


def _killed(timeline: list[StepReport], members: list[int]) -> list[Process]:
    """The processes that the steps of a timeline killed. Each ``join`` starts the next process of its worker."""
    incarnations, killed = dict.fromkeys(members, 0), []
    for step in timeline:
        acted = re.fullmatch(r"(kill|join) member (\d+)", step.step) if step.met else None
        if acted is None or not 0 < int(acted[2]) <= len(members):
            continue
        worker = members[int(acted[2]) - 1]
        if acted[1] == "join":
            incarnations[worker] += 1
        elif step.detail.startswith("killed process"):
            killed.append(Process(worker=worker, incarnation=incarnations[worker]))
    return killed
