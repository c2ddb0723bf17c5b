"""The workload ``groups``: producers append numbered records, and members of one consumer group process each of them.

Steps of the timeline have members join and leave, and kill them. What a kill does depends on when a member commits. If
it commits before it processes, records that it had committed may never be processed; if after, records that it had
processed may be processed again.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.core.quantities import Duration, Whole
from workloads import members
from workloads.appending import Appending
from workloads.clients.settings import consumer_config
from workloads.clients.specs import ConsumerSpec
from workloads.processes import Workers
from workloads.protocol import Spec
from workloads.workload import Contradiction, Surroundings, WorkloadStep

#: A broker's default of group.min.session.timeout.ms.
_SHORTEST_SESSION_MS = 6_000


class Member(BaseModel):
    """A member of the workload's consumer group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    member: Whole = Field(ge=1, description="which one: 1 is the first")

    def __str__(self) -> str:
        return f"member {self.member}"


class _OfAMember(WorkloadStep):
    elsewhere: ClassVar[str] = "only the members of a group come and go: use kind: groups"

    @property
    def number(self) -> int:
        """The number of the member."""
        meant: Member = getattr(self, self.key)
        return meant.member


class Kill(_OfAMember):
    """Kill a member in the middle of its work: the group waits for it until its session is over."""

    kill: Member

    def play(self, workers: Workers) -> str:
        return members.kill(workers, self.number)


class Leave(_OfAMember):
    """Have a member finish its work and leave the group, so that the group need not wait for it."""

    leave: Member

    def play(self, workers: Workers) -> str:
        return members.leave(workers, self.number)


class Join(_OfAMember):
    """Have a member that was killed or has left join again. It is the next incarnation of the same worker."""

    join: Member

    def play(self, workers: Workers) -> str:
        return members.join(workers, self.number)


class Groups(Appending):
    """The keys of a scenario's ``workload:`` with ``kind: groups``, in addition to the client settings."""

    steps: ClassVar = (Kill, Leave, Join)

    kind: Literal["groups"] = "groups"
    #: With all producers the workers are fewer than ``FINAL_READER``.
    members: Whole = Field(3, ge=1, le=99, description="processes that share the partitions as one consumer group")
    commit: Literal["before-processing", "after-processing"] = Field(
        "after-processing", description="when a member commits the records of a poll: at-most-once, or at-least-once"
    )
    processing: Duration = Field(0.2, ge=0, le=10, description="how long a member processes the records of one poll")
    session_timeout_ms: Whole = Field(
        _SHORTEST_SESSION_MS,
        ge=1_000,
        alias="session.timeout.ms",
        description="after how long a dead member's partitions go to others; brokers allow 6000 and more by default",
    )

    @property
    def grouped(self) -> bool:
        """True: its consumers always share the partitions as a group."""
        return True

    @property
    def commits_first(self) -> bool:
        """Whether a member commits the records of a poll before it processes them."""
        return self.commit == "before-processing"

    def worker_specs(self, surroundings: Surroundings) -> list[Spec]:
        """Producers, and the members of the group."""
        return [*self.producer_specs(surroundings), *self._members(surroundings)]

    def contradictions(self, timeline: Iterable[tuple[int, WorkloadStep]]) -> Iterator[Contradiction]:
        """A member can leave or be killed only while it is in the group, and join only while it is not."""
        gone: set[int] = set()
        for index, step in timeline:
            if not isinstance(step, _OfAMember):
                continue
            joins, number = isinstance(step, Join), step.number
            if number > self.members:
                yield Contradiction(index, (), f"there is no member {number}: they are 1 to {self.members}")
            elif joins and number not in gone:
                yield Contradiction(index, (), f"member {number} is in the group: kill it before, or let it leave")
            elif not joins and number in gone:
                yield Contradiction(index, (), f"member {number} is not in the group any more: let it join before")
            gone = gone - {number} if joins else gone | {number}

    def _members(self, surroundings: Surroundings) -> list[Spec]:
        return [
            ConsumerSpec(
                worker=worker,
                config=consumer_config(
                    self, surroundings.bootstrap, f"kafka-trial-{worker}", surroundings.group, self.session_timeout_ms
                ),
                grouped=True,
                processing=self.processing,
                commits_first=self.commits_first,
                **surroundings.of_every_spec,
            )
            for worker in range(self.producers + 1, self.producers + self.members + 1)
        ]
