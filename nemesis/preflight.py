"""Check, before a cluster is started, whether this machine's kernel has what the faults need."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.core.errors import ClusterError
from harness.core.listing import in_order
from harness.core.topology import Ports
from nemesis.catalogue import FAULTS
from nemesis.fault import Fault, Needs
from nemesis.mechanisms.nfqueue import program
from nemesis.mechanisms.tc import LOAD_IFB


@dataclass(frozen=True)
class Need:
    """A feature of the kernel: a script that works only with it, and how to get it."""

    script: str
    missing: str
    get: str


#: A port to match packets by: any would do, and this is one of a node's.
_PORT = Ports().replication

_NETEM = "modprobe sch_netem (Ubuntu: apt-get install linux-modules-extra-$(uname -r) && modprobe sch_netem)"

NEEDS: dict[str, Need] = {
    "netem": Need(
        "tc qdisc add dev lo root netem delay 1ms",
        "this kernel has no sch_netem",
        _NETEM,
    ),
    "nfqueue": Need(
        f"iptables -w -t mangle -A PREROUTING ! -i lo -p tcp -m multiport --ports {_PORT}"
        f" -j NFQUEUE --queue-num 1 --queue-bypass\n{program('try')}",
        "this kernel has no netfilter queue",
        f"modprobe -a xt_NFQUEUE nfnetlink_queue, and install python3; for what can do without it, {_NETEM}",
    ),
    "htb": Need(
        "tc qdisc add dev lo root handle 1: htb\n"
        "tc class add dev lo parent 1: classid 1:10 htb rate 10kbit quantum 1514\n"
        f"tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip sport {_PORT} 0xffff flowid 1:10",
        "this kernel has no sch_htb with cls_u32",
        "modprobe -a sch_htb cls_u32",
    ),
    "tbf": Need(
        "tc qdisc add dev lo root tbf rate 10kbit burst 3028 limit 10000",
        "this kernel has no sch_tbf",
        "modprobe sch_tbf",
    ),
    "ifb": Need(
        f"{LOAD_IFB}ip link add kt-ifb type ifb\n"
        "tc qdisc add dev lo handle ffff: ingress\n"
        "tc filter add dev lo parent ffff: protocol ip prio 1 u32 match u32 0 0"
        " action mirred egress redirect dev kt-ifb",
        "this kernel has no ifb with act_mirred",
        "modprobe -a ifb act_mirred",
    ),
    "iptables": Need(
        f"iptables -w -A INPUT -p tcp -m multiport --ports {_PORT}"
        " -m statistic --mode random --probability 0.02 -j DROP",
        "iptables does not work in a network namespace here",
        "the kernel needs nf_tables, xt_multiport and xt_statistic",
    ),
}


@dataclass(frozen=True)
class Kernel:
    """What a machine's kernel has. Each feature is tried once.

    ``try_script`` runs a script with NET_ADMIN in a temporary network namespace. If the script fails, it raises
    ClusterError with the script's last line.
    """

    try_script: Callable[[str], object]
    _tried: dict[str, str | None] = field(default_factory=dict)

    def lacking(self, needs: Iterable[Needs]) -> list[str]:
        """One line for each feature that the faults need and the kernel does not have.

        One alternative is enough; if it has none, the lines are about the last.
        """
        missing: list[tuple[str, str]] = []
        for alternatives in needs:
            found = [self._lacks(alternative) for alternative in alternatives]
            missing += found[-1] if found and all(found) else []
        return list(dict.fromkeys(f"{line}: {needed_by(name)}; {NEEDS[name].get}" for name, line in missing))

    def means(self, needs: Needs) -> str:
        """Which alternative a fault uses here, and how to get the first one if it uses another; empty for a fault that
        has no alternatives, or cannot act."""
        used = self.used(needs)
        if used is None or len(needs) == 1:
            return ""
        better = self._lacks(needs[0])
        return "; ".join([_by(used), *(f"{line}: {NEEDS[name].get}" for name, line in better)])

    def report(self, fault: type[Fault]) -> tuple[list[str], str]:
        """What a fault in its simplest form lacks; and what it acts by, with each other form that acts by something
        else."""
        simplest = fault.model_construct().needs
        said = [self.means(simplest)]
        for form, needs in fault.forms.items():
            used = self.used(needs)
            if used is None:
                said += [f"{form} not at all: {line}" for line in self.lacking([needs])]
            elif used != self.used(simplest):
                said.append(f"{form} {_by(used)}")
        return self.lacking([simplest]), "; ".join(filter(None, said))

    def used(self, needs: Needs) -> frozenset[str] | None:
        """The first alternative of which the kernel has everything."""
        return next((alternative for alternative in needs if not self._lacks(alternative)), None)

    def _lacks(self, alternative: frozenset[str]) -> list[tuple[str, str]]:
        for name in sorted(alternative - self._tried.keys()):
            self._tried[name] = self._why_not(NEEDS[name])
        return [(name, line) for name in sorted(alternative) if (line := self._tried[name]) is not None]

    def _why_not(self, need: Need) -> str | None:
        """What is missing, in one line; None if nothing is."""
        try:
            self.try_script(need.script)
        except ClusterError as exc:
            said = str(exc).rpartition("failed: ")[2].removeprefix("Error: ").rstrip(".")
            return f"{need.missing} ({need.script.split()[0]}: {said})"
        return None


def needed_by(need: str, faults: Mapping[str, type[Fault]] = FAULTS) -> str:
    """Which faults need a feature, and what they could use instead: "`isolate` needs it; `flaky` needs it, or netem".

    Faults for which something else is the last resort are not named: they can do without it."""
    forms = {f"`{kind}`": fault.model_construct().needs for kind, fault in faults.items()}
    forms |= {f"`{kind}` {form}": needs for kind, fault in faults.items() for form, needs in fault.forms.items()}
    who: dict[str, list[str]] = {}
    for name, needs in forms.items():
        if needs and need in needs[-1]:
            who.setdefault("".join(f", or {in_order(sorted(better))}" for better in needs[:-1]), []).append(name)
    return "; ".join(
        f"{in_order(who[instead])} need{'s' * (len(who[instead]) == 1)} it{instead}" for instead in sorted(who)
    )


def _by(used: frozenset[str]) -> str:
    return f"by {' and '.join(sorted(used))}"


def lacking(needs: Iterable[Needs], try_script: Callable[[str], object]) -> list[str]:
    """One line for each feature that the faults need and the kernel does not have (``Kernel.lacking``)."""
    return Kernel(try_script).lacking(needs)
