"""The members of a workload's consumer group are killed, leave, and join again. The first member is 1."""

from harness.core.errors import ClusterError
from workloads.processes import Workers
from workloads.worker_process import Worker

#: A choice: room for a commit without an answer (10 s, workloads/clients/consuming.py), and to close the consumer.
_LEAVE_S = 20.0
#: The longest time until a member processes a poll: it may have to finish one poll, then get another.
_IDLE_S = 15.0


def kill(workers: Workers, member: int, within: float = _IDLE_S) -> str:
    """Kill a member of the group (SIGKILL) while it processes the records of a poll.

    If it processes nothing ``within`` this many seconds, it is killed all the same. The group learns of it when the
    session is over. Returns what was done, in a few words. Raises ClusterError if it is not in the group, or has died
    by itself: that is a defect, and makes the run partial.
    """
    worker = _there(workers, member)
    busy = worker.is_processing(within)
    return f"{workers.kill(worker)}, {'in the middle of a poll' if busy else 'not in the middle of a poll'}"


def leave(workers: Workers, member: int) -> str:
    """Have a member leave the group: it commits what it processed, and ends, so the group need not wait for it.

    Returns what was done, in a few words. Raises ClusterError if it is not in the group, or does not end.
    """
    worker = _there(workers, member)
    worker.finish(0)
    if not worker.wait(_LEAVE_S):
        raise ClusterError(f"{worker.name} did not leave the group within {_LEAVE_S:g} s")
    worker.end()
    if worker.death:
        raise ClusterError(worker.death)
    workers.remove(worker)
    return f"process {worker.pid} left"


def join(workers: Workers, member: int) -> str:
    """Have a member that was killed or has left join again. It is the next incarnation of the same worker.

    Returns what was done, in a few words. Raises ClusterError if there is no such member, or it is still in the group.
    """
    number = _worker_of(workers, member)
    gone = [process for process in workers.gone if process.spec.worker == number]
    if not gone or any(process.spec.worker == number for process in workers.workers):
        raise ClusterError(f"member {member} has not gone: it cannot join again")
    return workers.start_successor(gone[-1])


def _there(workers: Workers, member: int) -> Worker:
    number = _worker_of(workers, member)
    for process in workers.workers:
        if process.spec.worker == number:
            return process
    raise ClusterError(f"member {member} is not in the group")


def _worker_of(workers: Workers, member: int) -> int:
    members = workers.members
    if member > len(members):
        raise ClusterError(f"there is no member {member}: they are 1 to {len(members)}")
    return members[member - 1]
