"""Faults of traffic: packets are late, lost, limited in rate, out of order, doubled or corrupt."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidatorFunctionWrapHandler, field_validator, model_validator
from typing_extensions import override

from harness.core.printable import shown
from harness.core.quantities import A_RATE, Duration, Misfit, PositiveDuration, PositiveShare, Rate, Share
from harness.core.topology import Node, Plane, Topology
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim, Needs, on_each
from nemesis.faults.network import NetworkFault, where_a_network_is
from nemesis.mechanisms import catalogue, round_trips
from nemesis.mechanisms.mechanism import DRAIN_S, Mechanism
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression

#: netem's limit: a 32-bit number of ticks of 64 ns each (iproute2, tc_core; net/pkt_sched.h, PSCHED_SHIFT).
_LONGEST_DELAY_S = 274.0

#: Seconds that a busy machine needs to try a few connections.
_MOMENT_S = 5.0


class _Traffic(NetworkFault):
    """Faults of packets that come late, if they come: TCP sends again what was lost, and waits for it."""

    target: Expression = Field(description="whose traffic")
    plane: Plane = Field(Plane.ALL, description="only this traffic: all, replication, controller or client")

    delays: ClassVar[bool] = True

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    @property
    @override
    def traffic_plane(self) -> Plane | None:
        return self.plane

    @property
    def shapes(self) -> Plane | None:
        return self.plane

    @property
    @override
    def by_netem(self) -> bool:
        return any("netem" in alternative for alternative in self.needs)

    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism on each node hit."""

    @override
    def mechanisms(self, aim: Aim, topology: Topology) -> Mapping[Node, Mechanism]:
        return dict.fromkeys(aim.nodes, self.mechanism())


class _Late(_Traffic):
    """Faults that hold packets for a time that is given: round trips show how late they are."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The longest delay of a packet, in seconds."""

    @property
    @abstractmethod
    def asked(self) -> Mapping[str, Any]:
        """The delays asked for, in milliseconds, to compare with measured round trips."""

    @property
    @override
    def heals_within(self) -> float:
        """Adds the time to measure round trips, and the time until held packets have left."""
        return (
            super().heals_within + min(self.longest + _MOMENT_S, round_trips.LONGEST_S) + min(self.longest + 1, DRAIN_S)
        )

    @override
    def probe(self, shell: NodeShell, aim: Aim) -> Evidence:
        """How long round trips take from each node hit to the living nodes that are not hit."""
        within = self.longest + _MOMENT_S
        if within > round_trips.LONGEST_S:
            return {}
        others = [node for node in shell.topology.nodes if node not in aim.nodes]
        alive = [node for node, state in on_each(others, shell.process).items() if state is not ProcessState.EXITED]
        far = (*alive, shell.topology.clients)

        def time_them(node: Node) -> str:
            return shell.in_network_of(node, round_trips.script(far, node.ports, self.plane, within))

        listings = where_a_network_is(shell, aim.nodes, time_them)
        return {
            node: Seen(Effect.NOT_KNOWN, {"round_trip_ms": {"asked": self.asked, **round_trips.read(said, len(far))}})
            for node, said in listings.items()
        }


class Slow(_Late):
    """Packets are late: those that leave the nodes hit (tc netem), or, if the kernel has no netem or a correlation is
    given, those that arrive at them (NFQUEUE); netem's delays do not correlate. A round trip takes equally longer
    either way, but a packet that is held on arrival outlives its sender. The evidence says which one acted, how long
    packets were held, and how long round trips took."""

    forms: ClassVar[Mapping[str, Needs]] = {"with a correlation": catalogue.CORRELATED_DELAY.needs}

    delay: PositiveDuration = Field(le=_LONGEST_DELAY_S, description="how late, such as 250ms")
    jitter: Duration = Field(0.0, le=_LONGEST_DELAY_S, description="how much that varies")
    correlation: Share | None = Field(
        None, description="how much one packet's delay is like the one before, such as 25%"
    )
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] | None = Field(
        None, description="how it varies; by default evenly (`uniform`)"
    )

    @model_validator(mode="after")
    def _vary_only_with_jitter(self) -> Self:
        if not self.jitter and (self.correlation is not None or self.distribution is not None):
            raise ValueError("correlation and distribution say how a delay varies: give a jitter as well")
        return self

    @property
    def needs(self) -> Needs:
        return catalogue.DELAY.needs if self.correlation is None else catalogue.CORRELATED_DELAY.needs

    @override
    def mechanism(self) -> Mechanism:
        shape = (self.delay, self.jitter, self.distribution, self.plane)
        if self.correlation is None:
            return catalogue.DELAY.mechanism(*shape)
        return catalogue.CORRELATED_DELAY.mechanism(*shape, self.correlation)

    @property
    @override
    def longest(self) -> float:
        return self.delay + 4 * self.jitter

    @property
    @override
    def asked(self) -> Mapping[str, Any]:
        return {"delay": self.delay * 1e3, "jitter": self.jitter * 1e3}


class Reorder(_Late):
    """Some packets overtake the others, which are late. This acts on packets that leave the nodes hit (tc netem) or, if
    the kernel has no netem, on packets that arrive at them (NFQUEUE). The evidence says which."""

    share: PositiveShare = Field(lt=1, description="how many packets overtake others, such as 25%")
    delay: PositiveDuration = Field(0.01, le=_LONGEST_DELAY_S, description="how late the others are")

    @property
    def needs(self) -> Needs:
        return catalogue.REORDERING.needs

    @override
    def mechanism(self) -> Mechanism:
        return catalogue.REORDERING.mechanism(self.share, self.delay, self.plane)

    @property
    @override
    def longest(self) -> float:
        return self.delay

    @property
    @override
    def asked(self) -> Mapping[str, Any]:
        return {"delay": self.delay * 1e3, "of": 1 - self.share}


class Flaky(_Traffic):
    """Some packets are lost: of those that leave the nodes hit (tc netem) or, if the kernel has no netem, of those that
    arrive at them (iptables `statistic`; NFQUEUE with a correlation). The evidence says which."""

    forms: ClassVar[Mapping[str, Needs]] = {"with a correlation": catalogue.CORRELATED_LOSS.needs}

    loss: PositiveShare = Field(description="how many packets are lost, such as 2%")
    correlation: Share | None = Field(None, lt=1, description="how much one loss is like the one before")

    @property
    def needs(self) -> Needs:
        return catalogue.LOSS.needs if self.correlation is None else catalogue.CORRELATED_LOSS.needs

    @override
    def mechanism(self) -> Mechanism:
        if self.correlation is None:
            return catalogue.LOSS.mechanism(self.loss, self.plane)
        return catalogue.CORRELATED_LOSS.mechanism(self.loss, self.correlation, self.plane)


class Duplicate(_Traffic):
    """Some of the packets that leave the nodes hit are sent twice (only tc netem). The kernel does not count the
    copies. The fault counts as effective when so many packets have left that more than 14 copies are expected; TCP
    segments that are handed down in one piece count as one packet. A node cannot have another fault of netem at the
    same time: kernels refuse that."""

    doubles: ClassVar[bool] = True
    delays: ClassVar[bool] = False

    share: PositiveShare = Field(description="how many packets are sent twice, such as 5%")

    @property
    def needs(self) -> Needs:
        return catalogue.DUPLICATION.needs

    @override
    def mechanism(self) -> Mechanism:
        return catalogue.DUPLICATION.mechanism(self.share, self.plane)


class Corrupt(_Traffic):
    """In some of the packets that leave the nodes hit one bit is wrong (only tc netem). TCP drops them, because their
    checksum is wrong. Whether it is effective is decided as for `duplicate`."""

    share: PositiveShare = Field(description="how many packets are corrupt, such as 5%")

    @property
    def needs(self) -> Needs:
        return catalogue.CORRUPTION.needs

    @override
    def mechanism(self) -> Mechanism:
        return catalogue.CORRUPTION.mechanism(self.share, self.plane)


class Throttle(_Traffic):
    """The nodes hit send and receive no faster than `rate` (tc tbf; arriving packets are shaped on an ifb device)."""

    rate: Rate = Field(description="the highest rate, each way, such as 10kbit")

    @field_validator("rate", mode="wrap")
    @classmethod
    def _let_something_through(cls, value: object, parse: ValidatorFunctionWrapHandler) -> int:
        rate: int = parse(value)
        if rate < 8:
            raise Misfit(f"{shown(value)} lets nothing through; to cut traffic use `partition` or `isolate`", A_RATE)
        return rate

    @property
    def needs(self) -> Needs:
        return catalogue.RATE_LIMIT.needs

    @property
    @override
    def heals_within(self) -> float:
        """Adds the time until waiting packets have left."""
        return super().heals_within + DRAIN_S

    @override
    def mechanism(self) -> Mechanism:
        return catalogue.RATE_LIMIT.mechanism(self.rate, self.plane)
