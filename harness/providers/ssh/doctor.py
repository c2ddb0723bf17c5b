"""Checks whether machines have what clusters on them, and faults, need."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.cluster.provider import Diagnosis
from harness.core.errors import KafkaTrialError
from harness.core.topology import Ports
from harness.providers.ssh.fleet import on_all
from harness.providers.ssh.looking import (
    MachineFacts,
    address_of,
    in_the_way,
    kernel_of,
    left_there,
    look,
    loopbacks,
    named_twice,
    offset,
)
from harness.providers.ssh.machine import Machine
from nemesis.catalogue import FAULTS
from nemesis.fault import Fault


def doctor(machines: Mapping[str, Machine], ports: Ports) -> Iterator[Diagnosis]:
    """Check each machine, and every fault of the catalogue on all of them."""
    looked = on_all(machines, look)
    facts = {name: found for name, found in looked.items() if isinstance(found, MachineFacts)}
    yield from (Diagnosis(name, False, str(found)) for name, found in looked.items() if name not in facts)
    yield from (Diagnosis("machines", False, line) for line in named_twice(facts))
    answering = {name: machines[name] for name in facts}
    clocks = on_all(answering, offset)
    for name, machine in answering.items():
        yield _machine(machine, facts[name], ports, clocks[name])

    able = {name: machine for name, machine in answering.items() if not facts[name].missing}
    yield from _faults(on_all(able, lambda machine: _tried(machine, facts[machine.called])))


#: For each fault: what a machine lacks for it, and its mechanism there.
Tried = dict[str, tuple[list[str], str]]


def _tried(machine: Machine, facts: MachineFacts) -> Tried:
    kernel, address = kernel_of(machine), address_of(machine.host)

    def of(fault: type[Fault]) -> tuple[list[str], str]:
        lacking, means = kernel.report(fault)
        return [*lacking, *in_the_way(kernel, facts, address, [fault.model_construct().needs])], means

    return {kind: of(fault) for kind, fault in FAULTS.items()}


def _faults(tried: Mapping[str, Tried | KafkaTrialError]) -> Iterator[Diagnosis]:
    """A diagnosis for every fault, from all machines on which it was tried."""
    failed = [str(result) for result in tried.values() if isinstance(result, KafkaTrialError)]
    results = {name: result for name, result in tried.items() if not isinstance(result, KafkaTrialError)}
    for kind in FAULTS:
        wrong = failed + [f"{name}: {line}" for name, result in results.items() for line in result[kind][0]]
        means = dict.fromkeys(result[kind][1] for result in results.values())
        detail = "; ".join(wrong or means) if tried else "tried on no machine"
        yield Diagnosis(kind, bool(tried) and not wrong, detail, needed=False)


def _machine(machine: Machine, facts: MachineFacts, ports: Ports, clock: Any) -> Diagnosis:
    lines = [*facts.lacks(machine.host, ports), *loopbacks([machine.host])]
    if (occupied := left_there(machine, facts)) is not None:
        lines.append(occupied)
    ahead = f"clock {clock[0] * 1e3:+.0f} ms ± {clock[1] * 1e3:.0f} ms" if isinstance(clock, tuple) else str(clock)
    summary = f"{facts.kernel}, {facts.java}, {ahead}"
    return Diagnosis(machine.called, not lines, "; ".join(lines) or summary)
