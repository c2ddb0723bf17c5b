"""What a row of the table of faults says of its fault, whichever version recorded it.

No one who reads a history need know a fault by its name: what it does to nodes are columns. Runs of before these were
recorded show it by the fault's kind then, and the sides of a cut in its evidence. ``injection`` was called ``fault``.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from harness.core.topology import Plane, Role

Row = Mapping[str, Any]


class Does(StrEnum):
    """What a fault does to the nodes that it hits: columns of the table, true or false."""

    ENDS_PROCESS = "ends_process"
    HALTS_PROCESS = "halts_process"
    DESTROYS_DATA = "destroys_data"
    CUTS = "cuts"
    DELAYS = "delays"


#: The kinds of fault that did so when no column said so.
_KINDS_THEN: dict[Does, frozenset[str]] = {
    Does.ENDS_PROCESS: frozenset({"kill", "stop", "restart"}),
    Does.HALTS_PROCESS: frozenset({"pause"}),
    Does.DESTROYS_DATA: frozenset({"wipe"}),
    Does.CUTS: frozenset({"partition", "isolate"}),
    Does.DELAYS: frozenset({"slow"}),
}


#: What stops, or loses, what a broker has to have to be elected.
_UNFIT = (Does.ENDS_PROCESS, Does.HALTS_PROCESS, Does.DESTROYS_DATA)
#: What is hit where a broker may not be heard by the controller. (None: it was not recorded.)
_HEARTBEATS = frozenset({Plane.ALL, Plane.CONTROLLER, None})
#: What is cut where clients cannot reach a broker.
_SERVES = frozenset({Plane.ALL, Plane.CLIENT, None})
#: What is cut where no follower can fetch.
_REPLICATES = frozenset({Plane.ALL, Plane.REPLICATION})


def injection_of(row: Row) -> str:
    """The injection's own name: the scenario's ``as:``, or one that the harness made. ``kind`` names its fault."""
    return str(row.get("injection") or row["fault"])


def does(row: Row, what: Does) -> bool:
    """Whether the fault does this to the nodes that it hits."""
    recorded = row.get(what)
    return row["kind"] in _KINDS_THEN[what] if recorded is None else bool(recorded)


def acted_on(row: Row) -> frozenset[str]:
    """The nodes on which there is evidence that the fault acted: those of one that is not effective may be some."""
    without = row.get("nodes_without_effect")
    if without is None:
        return frozenset(row["nodes"]) if row["effective"] else frozenset()
    return frozenset(row["nodes"]) - frozenset(without)


def in_doubt(row: Row) -> bool:
    """Whether nobody knows of some node, or of an election, if the fault acted: its effect was never measured."""
    recorded = row.get("nodes_not_known")
    if recorded is None:
        return not row["effective"] and row["injected_ns"] is None
    return bool(recorded)


def supposing_it_acted(row: Row) -> Row:
    """The row as it were if the fault had acted wherever nobody knows."""
    if not in_doubt(row):
        return row
    without = frozenset(row["nodes"]) - acted_on(row)
    doubtful = row.get("nodes_not_known")
    left = without - (without if doubtful is None else frozenset(doubtful))
    return {**row, "effective": not left, "nodes_without_effect": sorted(left)}


def started(row: Row) -> dict[str, int]:
    """By when the processes of nodes that it had ended, or that it was to start, had been begun again: of each node by
    itself, as far as that was recorded."""
    nodes = json.loads(row["evidence"]).get("released", {})
    return {name: int(seen["at_ns"]) for name, seen in nodes.items()}


def sides(row: Row) -> tuple[frozenset[str], ...]:
    """Of a cut between two groups of nodes both; of any other fault none."""
    one, other = row.get("cut_from"), row.get("cut_to")
    if one is not None and other is not None:
        return frozenset(one), frozenset(other)
    return tuple(frozenset(side) for side in json.loads(row["evidence"]).get("sides", {}).values())


def opposite(row: Row) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Of a cut between two groups of nodes each, with the other; of any other fault none."""
    both = sides(row)
    return ((both[0], both[1]), (both[1], both[0])) if both else ()


def loses(row: Row, sender: str, receiver: str) -> bool:
    """Whether a cut is known to have lost all that one broker sent to another to replicate, as long as it was in force.

    (Of a cut that was recorded without its ``plane``, or without ``both_ways``, nobody knows what else was lost.)
    """
    if not does(row, Does.CUTS) or row.get("plane") not in _REPLICATES:
        return False
    if row.get("cut_from") is None and row.get("cut_to") is None and row["kind"] != "partition":
        return not {sender, receiver}.isdisjoint(acted_on(row))
    if not {sender, receiver} <= acted_on(row):
        return False
    lost = opposite(row) if row.get("both_ways") else opposite(row)[:1]
    return any(sender in senders and receiver in receivers for senders, receivers in lost)


def cuts_only(row: Row, nodes: frozenset[str]) -> bool:
    """Whether a fault does no more than cut some of ``nodes`` from each other. (A cut between two groups named the
    nodes of both before their sides were recorded.)"""
    if sides(row):
        return frozenset().union(*sides(row)) <= nodes
    return row["kind"] == "partition" and frozenset(row["nodes"]) <= nodes


def unfit(row: Row, brokers: frozenset[str], controllers: frozenset[str]) -> frozenset[str]:
    """The brokers that a fault is known to keep from being elected, as long as it is in force: their process does
    nothing, they lost their disk, or they are cut from all ``controllers`` (of ZooKeeper: its nodes, which keep their
    sessions)."""
    acted = brokers & acted_on(row)
    if any(does(row, what) for what in _UNFIT):
        return acted
    if not does(row, Does.CUTS) or not hits_heartbeats(row):
        return frozenset()
    if not sides(row):
        return frozenset() if row["kind"] == "partition" else acted
    cut = (one for one, other in opposite(row) if controllers and controllers <= other)
    return acted & frozenset[str]().union(*cut)


def may_be_unfit(row: Row, brokers: frozenset[str], kraft: bool) -> frozenset[str]:
    """The brokers that a fault may keep from being elected: it may not be heard who they are cut from. (Brokers that
    are cut from each other are led by the quorum of KRaft all the same; of ZooKeeper one of them is the
    controller.)"""
    acted = brokers & acted_on(row)
    if any(does(row, what) for what in _UNFIT):
        return acted
    if not hits_heartbeats(row):
        return frozenset()
    if not sides(row):
        return acted
    cut = acted & frozenset[str]().union(*(one for one, other in opposite(row) if other - brokers - {Role.CLIENTS}))
    return cut if kraft else cut | hit(row, brokers)


def unreached(row: Row) -> frozenset[str]:
    """The nodes that a cut is known to keep from the clients."""
    if not does(row, Does.CUTS) or row.get("plane") not in _SERVES:
        return frozenset()
    if not sides(row):
        return frozenset() if row["kind"] == "partition" else acted_on(row)
    return acted_on(row) & frozenset[str]().union(*(one for one, other in opposite(row) if Role.CLIENTS in other))


def hits_heartbeats(row: Row) -> bool:
    """Whether it is traffic between a broker and the controller that a fault hits, among others."""
    return row.get("plane") in _HEARTBEATS


def hit(row: Row, nodes: frozenset[str]) -> frozenset[str]:
    """Those of ``nodes`` that a fault is known to have acted on: of a cut between two groups, the smaller one."""
    acted = nodes & acted_on(row)
    groups = [acted & side for side in sides(row)]
    return min(groups, key=len) if groups and all(groups) else acted
