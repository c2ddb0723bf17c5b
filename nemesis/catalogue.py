"""Every fault that a scenario can name: one line each."""

from nemesis.disk import Wipe
from nemesis.fault import Fault
from nemesis.partition import Isolate, Partition
from nemesis.process import Kill, Pause, Restart, Resume, Start, Stop
from nemesis.traffic import Flaky, Slow, Throttle

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
