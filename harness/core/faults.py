"""What a row of the table ``faults`` says about its fault, whichever version recorded it.

Code that reads a history knows no fault by its name: columns say what a fault does to nodes. Older runs lack these
columns: there the fault's kind says it, and the evidence has the sides of a cut. ``injection`` was called ``fault``.
Some runs record ``delays: false`` for kinds that do delay traffic: lost packets are sent again, limited ones wait.
"""

import json
from collections.abc import Iterable, Mapping, Set
from enum import StrEnum
from itertools import chain
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


#: The kind of a row that is no fault of the catalogue: an election that a step asked for. Its key has the same name.
ELECTION = "elect"

#: In runs without these columns: the kinds of fault that do so.
_KINDS_OF_OLDER_RUNS: dict[Does, frozenset[str]] = {
    Does.ENDS_PROCESS: frozenset({"kill", "stop", "restart"}),
    Does.HALTS_PROCESS: frozenset({"pause"}),
    Does.DESTROYS_DATA: frozenset({"wipe"}),
    Does.CUTS: frozenset({"partition", "isolate"}),
    Does.DELAYS: frozenset({"slow", "reorder", "flaky", "throttle", "corrupt"}),
}
#: The kinds of fault that do so although some runs record false.
_FALSE_IN_OLDER_RUNS: dict[Does, frozenset[str]] = {Does.DELAYS: frozenset({"flaky", "throttle", "corrupt"})}

#: What takes from a broker what it needs to be elected: its process or its data.
_UNFIT = (Does.ENDS_PROCESS, Does.HALTS_PROCESS, Does.DESTROYS_DATA)
#: The planes that carry heartbeats from brokers to the controller. (None: the plane was not recorded.)
_HEARTBEATS = frozenset({Plane.ALL, Plane.CONTROLLER, None})
#: The planes that carry what followers fetch.
_REPLICATION = frozenset({Plane.ALL, Plane.REPLICATION, None})
#: The planes that carry the clients' requests.
_SERVES = frozenset({Plane.ALL, Plane.CLIENT, None})
#: The planes without clients.
_BETWEEN_NODES = frozenset({Plane.REPLICATION, Plane.CONTROLLER})
#: The planes that carry the followers' fetches.
_REPLICATES = frozenset({Plane.ALL, Plane.REPLICATION})


def injection_of(row: Row) -> str:
    """The injection's own name: the scenario's ``as:``, or one that the harness made. ``kind`` names its fault."""
    return str(row.get("injection") or row["fault"])


def does(row: Row, what: Does) -> bool:
    """Whether the fault does this to the nodes that it hits."""
    recorded = row.get(what)
    if recorded is None:
        return row["kind"] in _KINDS_OF_OLDER_RUNS[what]
    return bool(recorded) or row["kind"] in _FALSE_IN_OLDER_RUNS.get(what, ())


def acted_on(row: Row) -> frozenset[str]:
    """The nodes on which there is evidence that the fault acted. A fault that is not effective may have acted on some
    of its nodes."""
    without = row.get("nodes_without_effect")
    if without is None:
        return frozenset(row["nodes"]) if row["effective"] else frozenset()
    return frozenset(row["nodes"]) - frozenset(without)


def in_force_since_ns(row: Row) -> int:
    """When the fault had been injected; when its injection began, if the end of that was not recorded."""
    return int(row["injecting_ns"] if row["injected_ns"] is None else row["injected_ns"])


def in_doubt(row: Row) -> bool:
    """Whether nobody knows if the fault acted on some node, or for how long, or whether an election was held."""
    recorded = row.get("nodes_not_known")
    if recorded is None:
        return not row["effective"] and row["injected_ns"] is None
    return bool(recorded)


def doubted_on(row: Row) -> frozenset[str]:
    """The nodes on which nobody knows whether the fault acted, or for how long."""
    if not in_doubt(row):
        return frozenset()
    without = frozenset(row["nodes"]) - acted_on(row)
    doubtful = row.get("nodes_not_known")
    return without if doubtful is None else without & frozenset(doubtful)


def supposing_it_acted(row: Row) -> Row:
    """The row as it would be if the fault had acted on every node of which nobody knows, all the time."""
    if not in_doubt(row):
        return row
    spared = frozenset(row["nodes"]) - acted_on(row) - doubted_on(row)
    return {**row, "effective": not spared, "nodes_without_effect": sorted(spared)}


def may_have_acted(rows: Iterable[Row]) -> list[Row]:
    """The faults that may have acted on some node, as they would be if they had acted wherever nobody knows."""
    return [row for row in map(supposing_it_acted, rows) if row["effective"] or acted_on(row)]


def evidence_of(row: Row) -> dict[str, Any]:
    """The evidence; empty if it is not a JSON object."""
    try:
        evidence = json.loads(row["evidence"])
    except (ValueError, RecursionError):
        return {}
    return evidence if isinstance(evidence, dict) else {}


def _by_name(row: Row, key: str) -> dict[str, Any]:
    """A part of the evidence that maps names to values; empty if it has another shape."""
    part = evidence_of(row).get(key)
    return part if isinstance(part, dict) else {}


def started(row: Row) -> dict[str, int]:
    """For each node whose process the fault ended, or started: the time at which that process was running again, if it
    was recorded."""
    released = _by_name(row, "released")
    times = {name: seen.get("at_ns") for name, seen in released.items() if isinstance(seen, dict)}
    return _times(times)


def _times(values: Mapping[str, Any]) -> dict[str, int]:
    """Those of these values that can be times of a history."""
    return {name: at_ns for name, at_ns in values.items() if type(at_ns) is int and abs(at_ns) < 1 << 63}


def by_end(row: Row) -> list[Row]:
    """The row of a fault that ended on some of its nodes before it did on others, as a row for each end; else the row
    itself."""
    ended = _times(_by_name(row, "ended"))
    apart: dict[int | None, list[str]] = {}
    for name in row["nodes"]:
        apart.setdefault(ended.get(name, row["healed_ns"]), []).append(name)
    return [row] if len(apart) <= 1 else [_limited_to(row, names, at_ns) for at_ns, names in apart.items()]


def split_by_end(rows: Iterable[Row]) -> list[Row]:
    """Rows of faults; one that ended earlier on some of its nodes is a row for each end."""
    return [*chain.from_iterable(map(by_end, rows))]


def _limited_to(row: Row, names: list[str], ended_ns: int | None) -> Row:
    """The row of a fault for some of its nodes, on which it ended at this time."""
    lists = ("nodes_without_effect", "nodes_not_known")
    kept = {key: [name for name in row[key] if name in names] for key in lists if row.get(key) is not None}
    healing = [at_ns for at_ns in (row["healing_ns"], ended_ns) if at_ns is not None]
    return {**row, "nodes": names, **kept, "healing_ns": min(healing, default=None), "healed_ns": ended_ns}


def sides(row: Row) -> tuple[frozenset[str], ...]:
    """The two groups of nodes of a cut between groups; empty for any other fault."""
    one, other = row.get("cut_from"), row.get("cut_to")
    if one is not None and other is not None:
        return frozenset(one), frozenset(other)
    groups = _by_name(row, "sides").values()
    both = tuple(frozenset(map(str, group)) for group in groups if isinstance(group, list))
    return both if len(both) == 2 else ()


def opposite(row: Row) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Each group of a cut between two groups, with the other group; empty for any other fault."""
    both = sides(row)
    return ((both[0], both[1]), (both[1], both[0])) if both else ()


def loses(row: Row, sender: str, receiver: str) -> bool:
    """Whether a cut in force is known to drop all replication traffic from one broker to another.

    (If a row lacks ``plane`` or ``both_ways``, nobody knows what else the cut dropped.)
    """
    if not does(row, Does.CUTS) or row.get("plane") not in _REPLICATES:
        return False
    if _alone(row):
        return not {sender, receiver}.isdisjoint(acted_on(row))
    if not {sender, receiver} <= acted_on(row):
        return False
    lost = opposite(row) if row.get("both_ways") else opposite(row)[:1]
    return any(sender in senders and receiver in receivers for senders, receivers in lost)


def only_hears_nothing(row: Row, name: str) -> bool:
    """Whether a cut in one direction drops what is sent to a node, and nothing that it sends."""
    both = sides(row)
    one_way = bool(both) and row.get("both_ways") is False
    return one_way and name in both[1] and name not in both[0]


def _alone(row: Row) -> bool:
    """Whether a cut is one of each of its nodes from all others. (One between two groups named the nodes of both before
    their sides were recorded.)"""
    between = row.get("cut_from") is not None or row.get("cut_to") is not None or sides(row)
    return not between and (row["kind"] != "partition" or len(row["nodes"]) == 1)


def cuts_only(row: Row, nodes: frozenset[str]) -> bool:
    """Whether a fault only cuts some of ``nodes`` from each other. (Older runs do not record the sides of a cut between
    two groups: there its nodes are those of both groups.)"""
    if sides(row):
        return frozenset().union(*sides(row)) <= nodes
    return row["kind"] == "partition" and not _alone(row) and frozenset(row["nodes"]) <= nodes


def unfit(row: Row, brokers: frozenset[str], controllers: frozenset[str]) -> frozenset[str]:
    """The brokers that cannot be elected while the fault is in force: their process does not run, they lost their disk,
    or they are cut from all ``controllers`` (with ZooKeeper: from its nodes, which keep the brokers' sessions)."""
    acted = brokers & acted_on(row)
    if any(does(row, what) for what in _UNFIT):
        return acted
    if not does(row, Does.CUTS) or not hits_heartbeats(row):
        return frozenset()
    if not sides(row):
        return acted if _alone(row) else frozenset()
    cut = (one for one, other in opposite(row) if controllers and controllers <= other)
    return acted & frozenset[str]().union(*cut)


def may_be_unfit(row: Row, brokers: frozenset[str], kraft: bool) -> frozenset[str]:
    """The brokers that a fault may keep from being elected: the controller may not hear from them. (In KRaft a cut
    between brokers alone does not matter: the quorum elects. With ZooKeeper one of the brokers is the controller.)"""
    acted = brokers & acted_on(row)
    if any(does(row, what) for what in _UNFIT):
        return acted
    if not hits_heartbeats(row):
        return frozenset()
    if not sides(row):
        return acted
    cut = acted & frozenset[str]().union(*(one for one, controllers in _from_controllers(row, brokers) if controllers))
    return cut if kraft else cut | hit(row, brokers)


def _from_controllers(row: Row, brokers: frozenset[str]) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Each group of a cut between two groups, with the controllers (or ZooKeeper's nodes) of the other group."""
    return [(one, other - brokers - {Role.CLIENTS}) for one, other in opposite(row)]


def may_be_behind(
    row: Row, observer: str, brokers: frozenset[str], kraft: bool, controllers: frozenset[str] = frozenset()
) -> bool:
    """Whether a fault may keep the latest metadata from a broker while it is in force: the broker, or a node that is no
    broker, may not hear of the controller's decisions in time; or the controller sends them late. ``controllers``: with
    ZooKeeper, the brokers that may be the controller. (In KRaft a cut between brokers alone does not matter.)
    """
    acted = acted_on(row) - {Role.CLIENTS}
    if not hits_controllers(row) or not acted:
        return False
    if kraft and sides(row):
        cut = _from_controllers(row, brokers)
        return all(there for _, there in cut) or any(observer in one and there for one, there in cut)
    if sides(row):
        hears = ((acted & one, other & controllers or other - brokers - {Role.CLIENTS}) for one, other in opposite(row))
        return may_unseat(row, brokers, controllers) or any(observer in one and there for one, there in hears)
    if does(row, Does.DELAYS) and acted & controllers:
        return True
    return (observer in acted or not acted <= brokers) and not (kraft and cuts_only(row, brokers))


def moves_controller(
    row: Row, observer: str, brokers: frozenset[str], kraft: bool, controllers: frozenset[str] = frozenset()
) -> bool:
    """Whether a fault may do no more to an observer than to stop the controller, or to cut it off: another one is
    elected soon, or nobody decides anything. ``controllers``: with ZooKeeper, the brokers that may be the controller.
    """
    acted = acted_on(row) - {Role.CLIENTS}
    unseats = stops(row) or (does(row, Does.CUTS) and hits_heartbeats(row) and _alone(row))
    return unseats and observer not in acted and not acted <= (brokers if kraft else brokers - controllers)


def may_unseat(row: Row, brokers: frozenset[str], controllers: frozenset[str]) -> bool:
    """Whether a fault may make another broker ZooKeeper's controller, if one of ``controllers`` is it: it stops it,
    delays it, or cuts it from ZooKeeper's nodes; or it hits these nodes."""
    acted = acted_on(row) - {Role.CLIENTS}
    if not hits_controllers(row):
        return False
    if not sides(row):
        return not acted <= brokers - controllers
    cut = ((acted & one, there) for one, there in _from_controllers(row, brokers))
    return any(there and one - brokers | one & controllers for one, there in cut)


def hits_controllers(row: Row) -> bool:
    """Whether a fault stops, cuts off or delays a controller, if it hits one."""
    return stops(row) or (hits_heartbeats(row) and (does(row, Does.CUTS) or does(row, Does.DELAYS)))


def stops(row: Row) -> bool:
    """Whether the fault ends or halts the processes of its nodes."""
    return does(row, Does.ENDS_PROCESS) or does(row, Does.HALTS_PROCESS)


def unreached(row: Row) -> frozenset[str]:
    """The nodes that a cut is known to keep from the clients. (Of a cut from all others, older runs do not record
    whether clients are among these.)"""
    if not does(row, Does.CUTS) or row.get("plane") not in _SERVES:
        return frozenset()
    if not sides(row):
        return acted_on(row) if _alone(row) and row.get("cuts_clients") else frozenset()
    return acted_on(row) & frozenset[str]().union(*(one for one, other in opposite(row) if Role.CLIENTS in other))


def kept_from_clients(row: Row) -> frozenset[str]:
    """The brokers of which a cut is known to drop all traffic with the clients, both ways."""
    both_ways = row.get("both_ways") or not sides(row)
    return unreached(row) if row.get("plane") in _SERVES - {None} and both_ways else frozenset()


def may_keep_answers(
    row: Row, leaders: Set[str | None], replicas: Set[str | None], brokers: frozenset[str], acks_all: bool
) -> bool:
    """Whether a fault may keep a partition's acknowledgements from producers: it hit the leader or the clients, or cut
    one from the other; or, if the whole ISR must answer, it hit any replica or a controller, or cut a replica from
    another or from a controller. (Clients talk to leaders only. A leader that answers alone asks no controller.)"""
    acted, plane = acted_on(row), row.get("plane")
    spares_clients = does(row, Does.CUTS) and not sides(row) and row.get("cuts_clients") is False
    if not acks_all and (plane in _BETWEEN_NODES or spares_clients or cuts_only(row, brokers)):
        return False
    served = replicas if acks_all and plane != Plane.CLIENT else leaders
    if not sides(row):
        return bool(acted & served or (acted - brokers if acks_all else Role.CLIENTS in acted))
    return any(
        (Role.CLIENTS in other and acted & one & leaders)
        or (acks_all and acted & one & served and other - brokers - {Role.CLIENTS})
        or (acks_all and plane != Plane.CLIENT and acted & one & replicas and other & replicas)
        for one, other in opposite(row)
    )


def slows_replication(row: Row, replicas: Set[str | None]) -> bool:
    """Whether a fault may keep a partition's followers from their leader: it hit a replica, or cut one from another."""
    if row.get("plane") not in _REPLICATION:
        return False
    acted = acted_on(row)
    if not sides(row):
        return bool(acted & replicas)
    return any(acted & one & replicas and other & replicas for one, other in opposite(row))


def hits_clients_only(row: Row) -> bool:
    """Whether a fault hits only the traffic between clients and brokers."""
    return row.get("plane") == Plane.CLIENT or any(side == {Role.CLIENTS} for side in sides(row))


def hits_heartbeats(row: Row) -> bool:
    """Whether a fault hits the traffic between brokers and the controller."""
    return row.get("plane") in _HEARTBEATS


def hit(row: Row, nodes: frozenset[str]) -> frozenset[str]:
    """Those of ``nodes`` that a fault is known to have acted on. For a cut between two groups: only the smaller one."""
    acted = nodes & acted_on(row)
    groups = [acted & side for side in sides(row)]
    return min(groups, key=len) if groups and all(groups) else acted
