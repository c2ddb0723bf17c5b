"""Removes what runs left on machines. Any process can: each node's directory names its run."""

from collections.abc import Mapping

from harness.core.errors import ClusterError, HistoryError, KafkaTrialError, ScenarioError
from harness.providers.ssh import text
from harness.providers.ssh.fleet import on_all
from harness.providers.ssh.looking import MachineFacts, Owner, look
from harness.providers.ssh.machine import Machine

#: The words that ``text.remove_node`` and ``text.remove_kafka`` print, and what they mean.
_REMOVED = {
    "fault": "undid a fault that was left",
    "process": "ended the node's process",
    "node": "removed the node's directory",
    "kafka": "removed Kafka's jars",
}


def cleanup(machines: Mapping[str, Machine], run: str | None, force: bool, dry_run: bool, here: str) -> list[str]:
    """Remove the node of one run from each machine that has it. If ``run`` is None, remove the nodes of every finished
    run, and Kafka's jars.

    Returns a line for each thing. After all machines were tried, raises ScenarioError if ``run`` is still going, and
    ClusterError if something could not be removed, or a machine does not answer. The error's notes are the lines.
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


def cleaned(machine: Machine, seen: MachineFacts, run: str | None, force: bool, dry_run: bool, here: str) -> list[str]:
    """The part of ``cleanup`` for one machine: remove what was ``seen`` there, and nothing that came later."""
    called, data, owner_line = machine.called, machine.host.data, seen.owner
    owner = None
    if owner_line is not None:
        try:
            owner = Owner.read(owner_line)
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
        return [] if owner_line is None else [f"{called}: would remove the node of {owner.run if owner else 'no run'}"]
    paths = text.MachinePaths(data, None if owner is None else owner_line)
    words = []
    if owner_line is not None:
        words = machine.run(text.remove_node(paths), "remove its node", within=text.REMOVED_WITHIN_S).split()
    if run is None:
        words += machine.run(text.remove_kafka(data), "remove Kafka").split()
    return [f"{called}: {_REMOVED[word]}" for word in words]
