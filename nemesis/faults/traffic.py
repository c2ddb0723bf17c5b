"""Traffic that is late, lossy or thin."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from harness.core.quantities import Duration, Rate, Share
from harness.core.topology import Node, Plane, Topology
from nemesis.fault import Aim, Needs
from nemesis.faults.network import NetworkFault
from nemesis.mechanisms import iptables, tc
from nemesis.mechanisms.mechanism import Either, Mechanism
from nemesis.targets import Expression

#: What netem takes: a 32-bit number of ticks, of 64 ns each (iproute2, tc_core; net/pkt_sched.h, PSCHED_SHIFT).
_LONGEST_DELAY_S = 274.0

_NETEM = frozenset({"htb", "netem"})


class _Traffic(NetworkFault):
    target: Expression = Field(description="whose traffic")
    plane: Plane = Field(Plane.ALL, description="only this traffic: all, replication, controller or client")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    @property
    def shapes(self) -> Plane | None:
        return self.plane

    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What acts on each node hit."""

    @override
    def mechanisms(self, aim: Aim, topology: Topology) -> Mapping[Node, Mechanism]:
        return dict.fromkeys(aim.nodes, self.mechanism())


class Slow(_Traffic):
    """What the nodes hit send is late (tc netem)."""

    delay: Duration = Field(gt=0, le=_LONGEST_DELAY_S, description="how late, such as 250ms")
    jitter: Duration = Field(0.0, le=_LONGEST_DELAY_S, description="how much that varies")
    correlation: Share | None = Field(
        None, description="how much one packet's delay is like the one before, such as 25%"
    )
    distribution: Literal["normal", "pareto", "paretonormal"] | None = Field(None, description="how it varies")

    @model_validator(mode="after")
    def _vary_only_with_jitter(self) -> Self:
        if not self.jitter and (self.correlation is not None or self.distribution is not None):
            raise ValueError("correlation and distribution say how a delay varies: give a jitter as well")
        return self

    delays: ClassVar[bool] = True

    @property
    def needs(self) -> Needs:
        return (_NETEM,)

    @override
    def mechanism(self) -> Mechanism:
        return tc.Delay(self.delay, self.jitter, self.correlation, self.distribution, self.plane)


class Flaky(_Traffic):
    """Some of the packets are lost: of those that leave (tc netem), or of those that arrive (iptables `statistic`)
    where the kernel has no netem. The evidence says which."""

    loss: Share = Field(gt=0, description="how many packets are lost, such as 2%")
    correlation: Share | None = Field(None, description="how much one loss is like the one before (netem only)")

    @property
    def needs(self) -> Needs:
        return (_NETEM, frozenset({"iptables"})) if self.correlation is None else (_NETEM,)

    @override
    def mechanism(self) -> Mechanism:
        netem = tc.Lose(self.loss, self.correlation, self.plane)
        return netem if self.correlation is not None else Either(netem, iptables.Lose(self.loss, self.plane))


class Throttle(_Traffic):
    """The nodes hit send and receive no faster than this (tc tbf; what arrives is shaped on an ifb device)."""

    rate: Rate = Field(description="how fast at most, each way, such as 10kbit")

    @property
    def needs(self) -> Needs:
        return (frozenset({"htb", "tbf", "ifb"}),)

    @override
    def mechanism(self) -> Mechanism:
        return tc.Limit(self.rate, self.plane)
