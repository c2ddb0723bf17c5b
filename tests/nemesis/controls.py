"""The rows that tests need for each fault of the catalogue: how a scenario writes it, a case on three nodes b1, b2, b3
in which it acts, and a case in which it cannot have acted."""

from dataclasses import dataclass
from typing import Any

#: A fault as a scenario writes it.
Written = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Control:
    """A fault, the faults before it, and how often b1 and b2 send packets to each other while it lasts.

    ``until_healed``: b1 goes on sending until the heal.
    """

    fault: dict[str, Any]
    before: tuple[Written, ...] = ()
    speak: int = 0
    until_healed: bool = False


#: A fault as a scenario writes it, by kind.
WRITTEN: dict[str, dict[str, Any]] = {
    "partition": {"from": "leader", "to": "followers"},
    "isolate": {"target": "leader"},
    "kill": {"target": "leader"},
    "stop": {"target": "leader"},
    "restart": {"target": "leader"},
    "start": {"target": "leader"},
    "pause": {"target": "leader"},
    "resume": {"target": "leader"},
    "slow": {"target": "followers", "delay": "250ms"},
    "flaky": {"target": "brokers", "loss": "2%"},
    "throttle": {"target": "followers", "rate": "10kbit", "plane": "replication"},
    "reorder": {"target": "followers", "share": "25%"},
    "duplicate": {"target": "followers", "share": "5%"},
    "corrupt": {"target": "followers", "share": "5%"},
    "wipe": {"target": "leader"},
}

#: Faults that must come before.
PRESUMED = {"start": "kill", "resume": "pause", "wipe": "kill"}

KILLED: Written = ("kill", {"target": "b1"})
PAUSED: Written = ("pause", {"target": "b1"})

#: Cases in which the fault acts.
ACTS: dict[str, Control] = {
    "partition": Control({"from": "b1", "to": "b2"}, speak=1),
    "isolate": Control({"target": "b1"}, speak=1),
    "kill": Control({"target": "b1"}),
    "stop": Control({"target": "b1"}),
    "restart": Control({"target": "b1"}),
    "start": Control({"target": "b1"}, before=(KILLED,)),
    "pause": Control({"target": "b1"}),
    "resume": Control({"target": "b1"}, before=(PAUSED,)),
    "slow": Control({"target": "b1", "delay": "50ms"}, speak=1),
    "flaky": Control({"target": "b1", "loss": "90%"}, speak=1),
    "throttle": Control({"target": "b1", "rate": "40kbit"}, speak=1),
    # (With netem, overtaking packets are only seen while something looks at the queue.)
    "reorder": Control({"target": "b1", "share": "50%", "delay": "50ms"}, speak=1, until_healed=True),
    "duplicate": Control({"target": "b1", "share": "90%"}, speak=1),
    "corrupt": Control({"target": "b1", "share": "20%"}, speak=10),
    "wipe": Control({"target": "b1"}, before=(KILLED,)),
}

#: Cases in which it cannot have acted: a node never sent anything, was already in that state, or had nothing to lose.
IDLE: dict[str, tuple[Control, ...]] = {
    "partition": (
        Control({"from": "b1", "to": "b2"}),
        Control({"from": "b1", "to": "b3"}, speak=1),
        Control({"from": "b1", "to": ["b2", "b3"]}, speak=1),
        Control({"from": "b1", "to": "b2", "plane": "controller"}, speak=1),
    ),
    "isolate": (
        Control({"target": "b1"}),
        Control({"target": "b3"}, speak=1),
        Control({"target": ["b1", "b3"]}, speak=1),
    ),
    "kill": (Control({"target": "b1"}, before=(KILLED,)), Control({"target": ["b1", "b2"]}, before=(KILLED,))),
    "stop": (Control({"target": "b1"}, before=(KILLED,)),),
    "restart": (Control({"target": "b1"}, before=(KILLED,)),),
    "start": (Control({"target": "b1"}), Control({"target": ["b1", "b2"]}, before=(KILLED,))),
    "pause": (Control({"target": "b1"}, before=(PAUSED,)), Control({"target": "b1"}, before=(KILLED,))),
    "resume": (Control({"target": "b1"}), Control({"target": "b1"}, before=(KILLED,))),
    "slow": (
        Control({"target": "b1", "delay": "50ms"}),
        Control({"target": "b3", "delay": "50ms"}, speak=1),
        Control({"target": "b1", "delay": "50ms", "plane": "controller"}, speak=1),
    ),
    "flaky": (
        Control({"target": "b1", "loss": "90%"}),
        Control({"target": "b3", "loss": "90%"}, speak=1),
        Control({"target": "b1", "loss": "90%", "plane": "controller"}, speak=1),
    ),
    "throttle": (
        Control({"target": "b1", "rate": "40kbit"}),
        Control({"target": "b1", "rate": "10gbit"}, speak=1),
        Control({"target": ["b1", "b3"], "rate": "40kbit"}, speak=1),
    ),
    "reorder": (
        Control({"target": "b1", "share": "50%"}),
        Control({"target": "b3", "share": "50%"}, speak=1),
        Control({"target": "b1", "share": "50%", "plane": "controller"}, speak=1),
    ),
    "duplicate": (
        Control({"target": "b1", "share": "50%"}),
        Control({"target": "b3", "share": "50%"}, speak=1),
    ),
    "corrupt": (
        Control({"target": "b1", "share": "50%"}),
        Control({"target": "b3", "share": "50%"}, speak=1),
    ),
    "wipe": (Control({"target": "b1"}, before=(KILLED, ("wipe", {"target": "b1"}))),),
}
