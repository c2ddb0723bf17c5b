"""Whether this machine's kernel has what faults need, found out before a cluster is started."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.core.errors import ClusterError
from nemesis.fault import Needs


@dataclass(frozen=True)
class Need:
    """Something of the kernel: a script that works only where it is, and what to do where it is not."""

    script: str
    missing: str
    instead: str


NEEDS: dict[str, Need] = {
    "netem": Need(
        "tc qdisc add dev lo root netem delay 1ms",
        "this kernel has no sch_netem",
        "`slow`, and `flaky` with a correlation, cannot run here; use a kernel with sch_netem"
        " (modprobe sch_netem; Debian: linux-modules-extra), or `throttle`, or `flaky` without correlation",
    ),
    "htb": Need(
        "tc qdisc add dev lo root handle 1: htb\n"
        "tc class add dev lo parent 1: classid 1:10 htb rate 10kbit quantum 1514\n"
        "tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip sport 9094 0xffff flowid 1:10",
        "this kernel has no sch_htb with cls_u32",
        "`slow` and `throttle` cannot run here; load them (modprobe -a sch_htb cls_u32)",
    ),
    "tbf": Need(
        "tc qdisc add dev lo root tbf rate 10kbit burst 3028 limit 10000",
        "this kernel has no sch_tbf",
        "`throttle` cannot run here; load it (modprobe sch_tbf)",
    ),
    "ifb": Need(
        "ip link add kt-ifb type ifb\n"
        "tc qdisc add dev lo handle ffff: ingress\n"
        "tc filter add dev lo parent ffff: protocol ip prio 1 u32 match u32 0 0"
        " action mirred egress redirect dev kt-ifb",
        "this kernel has no ifb with act_mirred",
        "`throttle` cannot run here; load them (modprobe -a ifb act_mirred)",
    ),
    "iptables": Need(
        "iptables -w -A INPUT -p tcp -m multiport --ports 9094 -m statistic --mode random --probability 0.02 -j DROP",
        "iptables does not work in a container here",
        "`partition`, `isolate` and `flaky` cannot run here; the kernel needs nf_tables, xt_multiport and xt_statistic",
    ),
}


def lacking(needs: Iterable[Needs], try_script: Callable[[str], object]) -> list[str]:
    """One line for each thing that this kernel does not have, of what faults need.

    Of alternatives one is enough; where this kernel has none, what it lacks for the last is told. ``try_script`` runs a
    script with NET_ADMIN in a network namespace that is thrown away; it raises ClusterError with what the script said
    last where it fails.
    """
    tried: dict[str, str | None] = {}

    def lines(alternative: frozenset[str]) -> list[str]:
        for name in sorted(alternative - tried.keys()):
            tried[name] = _why_not(NEEDS[name], try_script)
        return [line for name in sorted(alternative) if (line := tried[name]) is not None]

    missing: list[str] = []
    for alternatives in needs:
        found = [lines(alternative) for alternative in alternatives]
        missing += found[-1] if found and all(found) else []
    return list(dict.fromkeys(missing))


def _why_not(need: Need, try_script: Callable[[str], object]) -> str | None:
    """What this kernel lacks, in one line; None where it lacks nothing."""
    try:
        try_script(need.script)
    except ClusterError as exc:
        said = str(exc).rpartition("failed: ")[2].removeprefix("Error: ").rstrip(".")
        return f"{need.missing} ({need.script.split()[0]}: {said}): {need.instead}"
    return None
