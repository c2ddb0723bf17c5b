"""Checks a timeline in one pass: what its steps name, and which faults last at each step. Pure."""

from collections.abc import Iterator

from harness.core.written import KeyPath
from harness.scenario.model import Scenario
from harness.scenario.problems import Problem
from harness.scenario.steps import Heal, Inject, Random, Until
from harness.scenario.timeline_faults import ShapedTraffic, cannot_act, never_comes
from harness.scenario.timeline_names import Names, wrong_in_a_heal, wrong_in_an_injection, wrong_targets


def problems_of_the_timeline(scenario: Scenario) -> Iterator[Problem]:
    """A problem for each name that is unknown at its step, and for each fault that cannot act as written."""
    cluster = scenario.cluster
    names, shaped = Names(cluster), ShapedTraffic(cluster)
    for index, step in enumerate(scenario.timeline):
        where: KeyPath = ("timeline", index)
        match step:
            case Inject(inject=injection):
                key = (*where, "inject")
                yield from wrong_in_an_injection(injection, names, key)
                yield from cannot_act(injection, cluster, key)
                yield from shaped.clashing(injection, key)
                names.remember(injection)
                shaped.remember(injection)
            case Random(random=draw):
                names.unnamed |= {fault.fault for fault in draw.faults}
                for number, fault in enumerate(draw.faults):
                    entry = (*where, "random", "faults", number)
                    yield from wrong_targets(fault.targets().values(), names, entry)
                    yield from cannot_act(fault, cluster, entry)
                    yield from shaped.clashing(fault, entry)
            case Until(until=condition):
                wrong = list(wrong_targets(condition.targets(), names, (*where, "until")))
                yield from wrong or never_comes(condition, cluster, scenario.topic.replication, (*where, "until"))
            case Heal(heal=name):
                yield from wrong_in_a_heal(name, names, (*where, "heal"))
                names.healed(name)
                shaped.healed(name)
    for name in scenario.final_read.down:
        if name not in {*names.all, *cluster.node_names}:
            yield Problem(("final_read", "down"), f"{name!r} is neither a node nor a name from the timeline")
