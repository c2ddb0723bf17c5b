"""Every fault that a scenario can name: one line each."""

from nemesis.fault import Fault
from nemesis.faults.disk import Wipe
from nemesis.faults.partition import Isolate, Partition
from nemesis.faults.process import Kill, Pause, Restart, Resume, Start, Stop
from nemesis.faults.traffic import Flaky, Slow, Throttle

FAULTS: dict[str, type[Fault]] = {
    "partition": Partition,
    "isolate": Isolate,
    "kill": Kill,
    "stop": Stop,
    "restart": Restart,
    "start": Start,
    "pause": Pause,
    "resume": Resume,
    "slow": Slow,
    "flaky": Flaky,
    "throttle": Throttle,
    "wipe": Wipe,
}


def kind_of(fault: Fault) -> str:
    """The name under which a fault is in the catalogue."""
    return next(kind for kind, cls in FAULTS.items() if isinstance(fault, cls))
