"""The names in a timeline, and whether each is known at its step. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from harness.cluster.spec import ClusterSpec
from harness.core.errors import ScenarioError
from harness.core.faults import ELECTION
from harness.core.written import KeyPath
from harness.scenario.problems import Problem
from harness.scenario.steps import Injection
from nemesis.catalogue import FAULTS
from nemesis.shell import ProcessState
from nemesis.targets import GROUPS, Expression, bare, check_names, check_new_name, parts

#: The faults that end a process until they are healed.
_ENDING = " or ".join(kind for kind, fault in FAULTS.items() if fault.keeps is ProcessState.EXITED)


@dataclass
class Names:
    """The names that a timeline has given so far, and which of them mean nodes that do not run."""

    cluster: ClusterSpec
    injections: set[str] = field(default_factory=set)
    pins: set[str] = field(default_factory=set)
    ended: dict[str, frozenset[str]] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)

    @property
    def all(self) -> set[str]:
        """The names of injections and of pins."""
        return self.injections | self.pins

    def misnamed(self, expression: Expression) -> str | None:
        """Why the expression means no node of this cluster at this step; None if it means one."""
        try:
            check_names(expression, self.cluster.node_names, self.all)
        except ScenarioError as exc:
            return str(exc)
        groups = groups_of(self.cluster)
        empty = [name for name in map(bare, parts(expression)) if name in groups and not groups[name]]
        return f"target {empty[0]!r}: a cluster with metadata: {self.cluster.metadata} has none" if empty else None

    def misnaming(self, name: str) -> str | None:
        """Why a step may not give this name; None if it may."""
        if name in self.injections:
            return f"an earlier injection is called {name!r}: choose another name"
        if re.fullmatch(rf"{ELECTION}-\d+", name):
            return f"{name!r} is the name of an election by hand: choose another name"
        if name.rpartition("-")[0] in self.unnamed and re.fullmatch(r".*-\d+", name):
            return f"an earlier injection without a name gets the name {name!r}: choose another name"
        try:
            check_new_name(name, self.cluster.node_names)
        except ScenarioError as exc:
            return str(exc)
        return None

    def not_ended(self, expression: Expression) -> str | None:
        """The first part of ``expression`` whose process has not certainly been ended."""
        ended = frozenset().union(*self.ended.values())
        groups = groups_of(self.cluster)
        for part in parts(expression):
            if part not in ended and not (groups.get(part) and groups[part] <= ended):
                return part
        return None

    def remember(self, injection: Injection) -> None:
        """Note the names to which later steps may refer."""
        self.pins |= set(injection.pin)
        if injection.name is None:
            self.unnamed.add(injection.fault)
        if injection.name is not None:
            self.injections.add(injection.name)
        if injection.keeps is ProcessState.EXITED:
            self.ended[injection.name or f"unnamed {len(self.ended)}"] = self._called(injection)
        elif ProcessState.EXITED in injection.releases:
            again = self._called(injection)
            self.ended = {name: nodes - again for name, nodes in self.ended.items()}

    def healed(self, name: str) -> None:
        """Note that the nodes that this injection killed, or all nodes, run again."""
        self.ended = {} if name == "all" else {other: nodes for other, nodes in self.ended.items() if other != name}

    def _called(self, injection: Injection) -> frozenset[str]:
        """Every name that from now on means a node of this fault. A role that may move is not one."""
        groups = groups_of(self.cluster)
        hit = {part for expression in injection.targets().values() for part in parts(expression)}
        pinned = {role for role, expression in injection.pin.items() if set(parts(expression)) <= hit}
        fixed = {part for part in hit if part in self.all or part in self.cluster.node_names}
        members = frozenset().union(*(groups.get(part, frozenset()) for part in hit))
        return frozenset({*pinned, *fixed, *members, *([injection.name] if injection.name else [])})


def wrong_in_a_heal(name: str, known: Names, where: KeyPath) -> Iterator[Problem]:
    """A problem if no injection has that name."""
    if name != "all" and name not in known.injections:
        named = ", ".join(sorted(known.injections)) or "nothing (name an injection with `as:`)"
        yield Problem(where, f"no earlier injection is called {name!r}; named so far: {named}")


def wrong_in_an_injection(injection: Injection, known: Names, where: KeyPath) -> Iterator[Problem]:
    """A problem for each of its names that is taken, and for each of its targets that means no node."""
    for role, expression in injection.pin.items():
        for says in filter(None, (known.misnaming(role), known.misnamed(expression))):
            yield Problem((*where, "pin", role), says)
    if injection.name is not None and (misnaming := known.misnaming(injection.name)):
        yield Problem((*where, "as"), misnaming)
    here = replace(known, pins=known.pins | set(injection.pin))
    wrong = list(wrong_targets(injection.targets().values(), here, where))
    yield from wrong
    if injection.needs_exited and not wrong:
        for expression in injection.targets().values():
            if part := here.not_ended(expression):
                yield Problem(
                    where,
                    f"{part!r} has not ended: `{injection.fault}` hits only a node whose process has exited; "
                    f"inject {_ENDING} `as:` a name, and name that as the target",
                )


def wrong_targets(targets: Iterable[Expression], known: Names, where: KeyPath) -> Iterator[Problem]:
    """A problem for each target that means no node at this step."""
    for expression in targets:
        if says := known.misnamed(expression):
            yield Problem(where, says)


def groups_of(cluster: ClusterSpec) -> dict[str, frozenset[str]]:
    """The targets that are groups of nodes, and their nodes in this cluster."""
    return {group: frozenset(name for name, role, _ in cluster.roster if role in of) for group, of in GROUPS.items()}
