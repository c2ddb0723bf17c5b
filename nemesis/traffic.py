"""Traffic that is late, lossy or thin."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from harness.core.quantities import Duration, Rate, Share
from harness.core.topology import Node, Plane, Topology
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim
from nemesis.links import apply_rules, count_rules, has_rules, packets_dropped, remove_rules, rules_losing
from nemesis.network import NetworkFault, Scripts
from nemesis.shaping import Shape, apply_shape, count_shape, remove_shape, traffic
from nemesis.targets import Expression

#: What netem takes: a 32-bit number of ticks, of 64 ns each (iproute2, tc_core; net/pkt_sched.h, PSCHED_SHIFT).
_LONGEST_DELAY_S = 274.0

#: Packets that a queue holds: what is late is not to be lost as well. (netem's own limit is 1000.)
_ROOM = 100_000

#: An Ethernet frame's bytes.
_FRAME = 1514

#: Seconds of a rate that may pass at once. What comes in such a time is not faster than the rate, however it comes.
_BURST_S = 0.1

#: Seconds for a queue to drain, at most: of one that is longer the rest is thrown away.
_DRAIN_S = 60.0

#: Parts a listing that has queues after something else.
_COUNTED = "QUEUES\n"
_COUNTERS = "echo QUEUES\n"


class _Traffic(NetworkFault):
    target: Expression = Field(description="whose traffic")
    plane: Plane = Field(Plane.ALL, description="only this traffic: all, replication, controller or client")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    @property
    def shapes(self) -> Plane | None:
        return self.plane

    @abstractmethod
    def counted(self, aim: Aim, listing: str) -> Seen:
        """What one node's listing tells of it."""

    @override
    def seen(self, aim: Aim, topology: Topology, listings: Mapping[Node, str]) -> Evidence:
        return {node: self.counted(aim, listing) for node, listing in listings.items()}


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

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"htb", "netem"})

    def queue(self) -> str:
        """The tc text of the netem queue."""
        text = f"netem limit {_ROOM} delay {_ms(self.delay)}"
        if self.jitter:
            text += f" {_ms(self.jitter)}"
        if self.correlation is not None:
            text += f" {_percent(self.correlation)}"
        if self.distribution is not None:
            text += f" distribution {self.distribution}"
        return text

    @property
    def shape(self) -> Shape:
        """How its nodes' traffic is shaped."""
        return Shape(self.queue(), self.plane, drains_within=min(self.delay + 4 * self.jitter + 1, _DRAIN_S))

    @override
    def scripts(self, aim: Aim, topology: Topology) -> Mapping[Node, Scripts]:
        return shaping(self.shape, aim)

    def counted(self, aim: Aim, listing: str) -> Seen:
        """It acts if packets went through the queue, or wait in it."""
        passed = traffic(listing, aim.tag)
        late = passed is not None and passed.packets + passed.waiting > 0
        return _if_there(passed is not None, late, asdict(passed) if passed else {})


class Flaky(_Traffic):
    """Some of the packets are lost: of those that leave (tc netem), or of those that arrive (iptables `statistic`)
    where the kernel has no netem. The evidence says which."""

    loss: Share = Field(gt=0, description="how many packets are lost, such as 2%")
    correlation: Share | None = Field(None, description="how much one loss is like the one before (netem only)")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"iptables"} if self.correlation is None else {"htb", "netem"})

    def queue(self) -> str:
        """The tc text of the netem queue."""
        correlation = "" if self.correlation is None else f" {_percent(self.correlation)}"
        return f"netem limit {_ROOM} loss {_percent(self.loss)}{correlation}"

    @override
    def scripts(self, aim: Aim, topology: Topology) -> Mapping[Node, Scripts]:
        shape = Shape(self.queue(), plane=self.plane)
        count = count_rules(aim.tag) + _COUNTERS + count_shape()
        return {
            node: Scripts(
                self._apply(apply_shape(node, shape, aim.tag), aim.tag),
                count,
                remove_shape(node, shape, aim.tag) + remove_rules(aim.tag),
            )
            for node in aim.nodes
        }

    def _apply(self, with_netem: str, tag: str) -> str:
        if self.correlation is not None:
            return f"{with_netem}echo netem\n"
        with_iptables = apply_rules(rules_losing(self.loss, self.plane, tag), tag)
        return (
            "if tc qdisc add dev lo root netem 2>/dev/null; then\n"
            "tc qdisc del dev lo root\n"
            f"{with_netem}echo netem\n"
            f"else\n{with_iptables}echo iptables statistic\nfi\n"
        )

    def counted(self, aim: Aim, listing: str) -> Seen:
        """It acts if packets were lost."""
        rules, _, queues = listing.partition(_COUNTED)
        passed = traffic(queues, aim.tag)
        lost = passed.drops if passed else packets_dropped(rules)
        by = "netem" if passed else "iptables statistic"
        there = passed is not None or has_rules(rules, aim.tag)
        return _if_there(there, lost > 0, {"packets_dropped": lost, "by": by})


class Throttle(_Traffic):
    """The nodes hit send and receive no faster than this (tc tbf; what arrives is shaped on an ifb device)."""

    rate: Rate = Field(description="how fast at most, each way, such as 10kbit")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"htb", "tbf", "ifb"})

    def queue(self) -> str:
        """The tc text of the tbf queue."""
        burst = max(2 * _FRAME, round(self.rate / 8 * _BURST_S))
        return f"tbf rate {self.rate}bit burst {burst} limit {_ROOM * _FRAME}"

    @property
    def shape(self) -> Shape:
        """How its nodes' traffic is shaped."""
        at_once = f"tbf rate 10gbit burst 1mb limit {_ROOM * _FRAME}"
        return Shape(self.queue(), self.plane, arriving_too=True, drains_within=_DRAIN_S, drains_as=at_once)

    @override
    def scripts(self, aim: Aim, topology: Topology) -> Mapping[Node, Scripts]:
        return shaping(self.shape, aim)

    def counted(self, aim: Aim, listing: str) -> Seen:
        """It acts if its own packets had to wait for their turn."""
        passed = traffic(listing, aim.tag)
        held = passed is not None and (passed.overlimits > 0 or passed.waiting > 0)
        return _if_there(passed is not None, held, asdict(passed) if passed else {})


def _if_there(there: bool, counted: bool, facts: Mapping[str, Any]) -> Seen:
    """Counters of nothing tell nothing; where what counts is gone, so is the fault."""
    if not there:
        return Seen(Effect.DOES_NOT_HOLD, {**facts, "rules": "gone"})
    return Seen(Effect.HOLDS if counted else Effect.NOT_KNOWN, facts)


def shaping(shape: Shape, aim: Aim) -> Mapping[Node, Scripts]:
    """The scripts of a fault that is nothing but a shape, for each node hit."""
    return {
        node: Scripts(
            apply_shape(node, shape, aim.tag),
            count_shape(),
            remove_shape(node, shape, aim.tag),
        )
        for node in aim.nodes
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms"


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
