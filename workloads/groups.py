"""The workload ``groups``: producers append numbered records, and members of one consumer group process each of them.

Members join, leave and are killed by steps of the timeline. When a member commits decides what a kill does: before it
processes, what it had committed is processed by nobody; after it, what it had processed is processed again.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.core.quantities import Duration
from workloads.clients.settings import consumer_config
from workloads.processes import Workers
from workloads.protocol import ConsumerSpec, Spec
from workloads.queue import Appending
from workloads.workload import Contradiction, Plan, WorkloadStep

#: A broker's default of group.min.session.timeout.ms.
_SHORTEST_SESSION_MS = 6_000


class Member(BaseModel):
    """A member of our consumer group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    member: int = Field(ge=1, description="which one: 1 is the first")

    def __str__(self) -> str:
        return f"member {self.member}"


class _OfAMember(WorkloadStep):
    elsewhere: ClassVar[str] = "only the members of a group come and go: use kind: groups"

    @property
    def number(self) -> int:
        """Which member is meant."""
        meant: Member = getattr(self, self.key)
        return meant.member


class Kill(_OfAMember):
    """Kill a member in the middle of what it does: the group waits for it until its session is over."""

    kill: Member

    def play(self, workers: Workers) -> str:
        return workers.kill(self.number)


class Leave(_OfAMember):
    """Have a member finish what it does and leave the group, which then need not wait for it."""

    leave: Member

    def play(self, workers: Workers) -> str:
        return workers.leave(self.number)


class Join(_OfAMember):
    """Have a member that was killed or has left join again, as the next incarnation of the same worker."""

    join: Member

    def play(self, workers: Workers) -> str:
        return workers.join(self.number)


class Groups(Appending):
    """What a scenario's ``workload:`` with ``kind: groups`` may say in addition to the client settings."""

    steps: ClassVar = (Kill, Leave, Join)

    kind: Literal["groups"] = "groups"
    members: int = Field(3, ge=1, le=99, description="processes that share the partitions as one consumer group")
    commit: Literal["before-processing", "after-processing"] = Field(
        "after-processing", description="when a member commits what a poll brought: at-most-once, or at-least-once"
    )
    processing: Duration = Field(0.2, ge=0, le=10, description="how long the records of one poll take to be processed")
    session_timeout_ms: int = Field(
        _SHORTEST_SESSION_MS,
        ge=1_000,
        alias="session.timeout.ms",
        description="after how long a dead member's partitions go to others; 6000 is a broker's default least",
    )

    @property
    def grouped(self) -> bool:
        """Whether its consumers share the partitions as a group: they always do."""
        return True

    @property
    def commits_first(self) -> bool:
        """Whether a member commits what a poll brought before it processes that."""
        return self.commit == "before-processing"

    def worker_specs(self, plan: Plan) -> list[Spec]:
        """Producers, and the members of the group."""
        return [*self.producer_specs(plan), *self._members(plan)]

    def contradictions(self, timeline: Iterable[tuple[int, WorkloadStep]]) -> Iterator[Contradiction]:
        """Members come and go, each of them where it is."""
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

    def _members(self, plan: Plan) -> list[Spec]:
        return [
            ConsumerSpec(
                worker=worker,
                config=consumer_config(
                    self, plan.bootstrap, f"kafka-trial-{worker}", plan.group, self.session_timeout_ms
                ),
                grouped=True,
                processing=self.processing,
                commits_first=self.commits_first,
                **plan.of_every_spec,
            )
            for worker in range(self.producers + 1, self.producers + self.members + 1)
        ]
