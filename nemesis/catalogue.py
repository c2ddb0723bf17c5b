"""Every fault that a scenario can name: one line each."""

from collections.abc import Mapping

from nemesis.fault import Fault
from nemesis.faults.disk import Wipe
from nemesis.faults.partition import Isolate, Partition
from nemesis.faults.process import Kill, Pause, Restart, Resume, Start, Stop
from nemesis.faults.traffic import Corrupt, Duplicate, Flaky, Reorder, Slow, Throttle

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
    "reorder": Reorder,
    "duplicate": Duplicate,
    "corrupt": Corrupt,
    "throttle": Throttle,
    "wipe": Wipe,
}


def kind_of(fault: Fault, faults: Mapping[str, type[Fault]] = FAULTS) -> str:
    """The name of a fault: the catalogue's key of its class, or of its nearest base class there."""
    kinds = {cls: kind for kind, cls in faults.items()}
    return next(kinds[cls] for cls in type(fault).__mro__ if cls in kinds)
