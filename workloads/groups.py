"""The workload ``groups``: producers append numbered records, and members of one consumer group process each of them.

Members join, leave and are killed by steps of the timeline. When a member commits decides what a kill does: before it
processes, what it had committed is processed by nobody; after it, what it had processed is processed again.
"""

from typing import Literal

from pydantic import Field

from harness.core.quantities import Duration
from workloads.queue import Appending

#: A broker's default of group.min.session.timeout.ms.
_SHORTEST_SESSION_MS = 6_000


class Groups(Appending):
    """What a scenario's ``workload:`` with ``kind: groups`` may say, besides the client settings."""

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
        description="after how long a dead member's partitions are given to others; 6000 is a broker's default least",
    )

    @property
    def grouped(self) -> bool:
        """Whether its consumers share the partitions as a group: they always do."""
        return True

    @property
    def commits_first(self) -> bool:
        """Whether a member commits what a poll brought before it processes that."""
        return self.commit == "before-processing"
