"""Removing what runs left on machines, from any process: each node's directory names its run."""

from collections.abc import Mapping

from harness.core.errors import ClusterError, HistoryError, KafkaTrialError, ScenarioError
from harness.providers.ssh import text
from harness.providers.ssh.fleet import on_all
from harness.providers.ssh.looking import Facts, Owner, look
from harness.providers.ssh.machine import Machine

#: What ``text.remove_node`` and ``text.remove_kafka`` print, in words.
_REMOVED = {
    "fault": "undid a fault that was left",
    "process": "ended the node's process",
    "node": "removed the node's directory",
    "kafka": "removed Kafka's jars",
}


def cleanup(machines: Mapping[str, Machine], run: str | None, force: bool, dry_run: bool, here: str) -> list[str]:
    """Remove the node of one run from each machine that has it; where ``run`` is None, that of every run that is over,
    and Kafka's jars with it.

    Returns a line for each thing. Raises ScenarioError where ``run`` is still going, ClusterError where something
    stays, or a machine does not answer, when all was tried; notes of it are the lines.
    """
    tried = on_all(machines, lambda machine: cleaned(machine, look(machine), run, force, dry_run, here))
    failed = [found for found in tried.values() if isinstance(found, KafkaTrialError)]
    lines = [line for found in tried.values() if isinstance(found, list) for line in found]
    if failed:
        going = any(isinstance(exc, ScenarioError) for exc in failed)
        error = (ScenarioError if going else ClusterError)("; ".join(dict.fromkeys(map(str, failed))))
        for line in lines:
            error.add_note(line)
        raise error
    return lines


def cleaned(machine: Machine, seen: Facts, run: str | None, force: bool, dry_run: bool, here: str) -> list[str]:
    """Remove from one machine what was ``seen`` there, and nothing that came after; as ``cleanup`` does of all."""
    called, data, there = machine.called, machine.host.data, seen.owner
    owner = None
    if there is not None:
        try:
            owner = Owner.read(there)
        except HistoryError as exc:
            if not force:
                raise ClusterError(f"{called}: {exc}: --force removes what is in {data}/{text.NODE}") from exc
    if run is not None and (owner is None or owner.run != run):
        return []
    if owner is not None and not force and (why := owner.going(here)) is not None:
        if run is not None:
            raise ScenarioError(f"{run} is left alone: {why}; --force removes it all the same")
        return [f"{called}: left {owner.run} alone: {why}"]
    if dry_run:
        return [] if there is None else [f"{called}: would remove the node of {owner.run if owner else 'no run'}"]
    paths = text.MachinePaths(data, None if owner is None else there)
    words = [] if there is None else machine.run(text.remove_node(paths), "remove its node", within=180.0).split()
    if run is None:
        words += machine.run(text.remove_kafka(data), "remove Kafka").split()
    return [f"{called}: {_REMOVED[word]}" for word in words]
